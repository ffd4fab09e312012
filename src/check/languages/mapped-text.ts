import { HOLE_CLOSE, HOLE_OPEN } from '../sql/lexer.ts'

/** A text put together from pieces of a file, which knows where in the file each of its characters stands. */
export interface MappedText {
  readonly text: string
  /** The offset in the file of an offset in the text. */
  at(offset: number): number
}

/** The whole of a file, where both offsets are the same. */
export function plainMapping(text: string, shift = 0): MappedText {
  return { text, at: (offset) => offset + shift }
}

export interface TextBuilder {
  literal(text: string, start: number): void
  hole(expression: string, start: number): void
  build(): MappedText
}

export function textBuilder(): TextBuilder {
  const starts: number[] = []
  const sources: number[] = []
  const exact: boolean[] = []
  let text = ''
  const piece = (added: string, start: number, linear: boolean): void => {
    starts.push(text.length)
    sources.push(start)
    exact.push(linear)
    text += added
  }
  return {
    literal(added, start) {
      if (added !== '') piece(added, start, true)
    },
    hole(expression, start) {
      const oneLine = expression.replaceAll(HOLE_OPEN, '').replaceAll(HOLE_CLOSE, '')
      piece(`${HOLE_OPEN}${oneLine}${HOLE_CLOSE}`, start, false)
    },
    build() {
      return {
        text,
        at(offset) {
          let low = 0
          let high = starts.length - 1
          while (low < high) {
            const middle = (low + high + 1) >> 1
            if ((starts[middle] ?? 0) <= offset) low = middle
            else high = middle - 1
          }
          const source = sources[low] ?? 0
          return exact[low] ? source + offset - (starts[low] ?? 0) : source
        },
      }
    },
  }
}

/**
 * Escapes of a host string, each replaced by a text of the same length so that positions stay exact: `\n` becomes a
 * space and a line break, `\'` a space and a quote.
 */
export function decodeEscapes(raw: string): string {
  if (!raw.includes('\\')) return raw
  return raw.replace(/\\([\s\S])/g, (_, char: string) => {
    if (char === 'n') return ' \n'
    if (char === 't' || char === 'r') return '  '
    if (char === '\n') return ' \n'
    if (char === '\\') return ' \\'
    return ` ${char}`
  })
}
