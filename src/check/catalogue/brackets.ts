/** Brackets of Python, JavaScript and Prisma texts, read without a grammar: definitions of tables are plain lists. */

const CLOSES: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }

/** Behind the bracket that closes the one at `open`; the length of the text if none does. Quoted texts are passed over. */
function afterClosing(text: string, open: number): number {
  const stack: string[] = []
  for (let at = open; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (char === '"' || char === "'" || char === '`') {
      at = quoteEnd(text, at)
      continue
    }
    if (char === '#' && /\s/.test(text.charAt(at - 1))) at = lineEnd(text, at)
    else if (char === '/' && text.charAt(at + 1) === '/') at = lineEnd(text, at)
    const closing = CLOSES[char]
    if (closing !== undefined) stack.push(closing)
    else if (char === stack.at(-1)) {
      stack.pop()
      if (stack.length === 0) return at + 1
    }
  }
  return text.length
}

/** What stands inside the bracket at `open`. */
export function inside(text: string, open: number): string {
  return text.slice(open + 1, Math.max(open + 1, afterClosing(text, open) - 1))
}

/** The parts between commas of the outermost level, trimmed, without empty ones. */
export function partsOf(text: string): string[] {
  const parts: string[] = []
  let from = 0
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (char === '"' || char === "'" || char === '`') at = quoteEnd(text, at)
    else if (CLOSES[char] !== undefined) at = afterClosing(text, at) - 1
    else if (char === ',') {
      parts.push(text.slice(from, at))
      from = at + 1
    }
  }
  parts.push(text.slice(from))
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

/** All quoted texts, in lower case: names of columns in a list. */
export function quotedNames(text: string): string[] {
  return [...text.matchAll(/['"`]([\w. ]+)['"`]/g)].map((match) => (match[1] ?? '').toLowerCase())
}

function quoteEnd(text: string, open: number): number {
  const quote = text.charAt(open)
  if (quote !== '`' && text.startsWith(quote.repeat(3), open)) {
    const end = text.indexOf(quote.repeat(3), open + 3)
    return end < 0 ? text.length : end + 2
  }
  for (let at = open + 1; at < text.length; at += 1) {
    if (text.charAt(at) === '\\') at += 1
    else if (text.charAt(at) === quote || (text.charAt(at) === '\n' && quote !== '`')) return at
  }
  return text.length
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}
