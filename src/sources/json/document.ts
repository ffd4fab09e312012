import type { InputFile } from '../shared/files.ts'
import { type Cursor, openCursor } from './cursor.ts'
import {
  BRACE,
  BRACE_END,
  BRACKET,
  BRACKET_END,
  COMMA,
  type Findings,
  JsonFault,
  QUOTE,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
  unescaped,
  unexpected,
} from './scan.ts'
import type { RecordVisitor } from './visit.ts'

/**
 * Reads a document whose records are the elements of an array, or that is a row of records one after the other. What is
 * broken in it breaks all of it: where the next record begins would be a guess.
 *
 * @param path Keys that lead to the array; none when it is the document itself.
 * @throws {StetError} `STET_SOURCE` with line and column.
 */
export async function readDocument(
  input: InputFile,
  path: readonly string[],
  visitor: RecordVisitor,
  pieceBytes?: number,
): Promise<void> {
  await using cursor = openCursor(input, pieceBytes)
  const first = await cursor.step(peek)
  if (path.length > 0) await readPath(cursor, path, path.join('.'), visitor)
  else if (first === BRACKET) await readArray(cursor, visitor)
  else if (first === BRACE) return await readRow(cursor, visitor)
  else await cursor.step((text, at) => unexpected(text, at, 'an array or an object'))
  if (visitor.finished) return
  await cursor.step((text, from) => {
    const at = skipSpace(text, from)
    if (at < text.length) throw new JsonFault('broken', at, 'more follows behind its end')
    if (!cursor.atEnd) throw new JsonFault('cut', at, '')
  })

  /** The first character that is no space; the cursor stands on it. */
  function peek(text: string, from: number): number {
    const at = skipSpace(text, from)
    if (at === text.length) unexpected(text, at, 'a value')
    cursor.at = at
    return text.charCodeAt(at)
  }
}

/** Objects one after the other, on as many lines as they like. */
async function readRow(cursor: Cursor, visitor: RecordVisitor): Promise<void> {
  for (let ended = false; !ended && !visitor.finished; ) {
    const { waiting } = await cursor.step((text) => {
      for (;;) {
        const from = skipSpace(text, cursor.at)
        if (from === text.length) {
          if (!cursor.atEnd) throw new JsonFault('cut', from, '')
          ended = true
          return { waiting: undefined }
        }
        if (text.charCodeAt(from) !== BRACE) unexpected(text, from, 'the next object')
        const to = visitor.read(text, from)
        const waiting = visitor.done(cursor.lineAt(from), () => text.slice(from, to), null)
        cursor.at = to
        if (waiting !== undefined || visitor.finished) return { waiting }
      }
    })
    if (waiting !== undefined) await waiting
  }
}

/** From an opening bracket to behind the closing one. */
async function readArray(cursor: Cursor, visitor: RecordVisitor): Promise<void> {
  let ended = await cursor.step((text, from) => {
    const at = skipSpace(text, from + 1)
    if (at === text.length) unexpected(text, at, 'a value')
    const isEmpty = text.charCodeAt(at) === BRACKET_END
    cursor.at = isEmpty ? at + 1 : at
    return isEmpty
  })
  while (!ended && !visitor.finished) {
    const { waiting } = await cursor.step((text) => {
      for (;;) {
        const from = skipSpace(text, cursor.at)
        const to = visitor.read(text, from)
        const next = skipSpace(text, to)
        const code = text.charCodeAt(next)
        if (code !== COMMA && code !== BRACKET_END) unexpected(text, next, '"," or "]"')
        const waiting = visitor.done(cursor.lineAt(from), () => text.slice(from, to), null)
        cursor.at = next + 1
        ended = code === BRACKET_END
        if (ended || waiting !== undefined || visitor.finished) return { waiting }
      }
    })
    if (waiting !== undefined) await waiting
  }
}

/** From the first character of a value through the objects that lead to the array. */
async function readPath(
  cursor: Cursor,
  path: readonly string[],
  name: string,
  visitor: RecordVisitor,
): Promise<void> {
  const [key, ...rest] = path
  if (key === undefined) {
    await cursor.step((text, at) => {
      if (text.charCodeAt(at) !== BRACKET) unexpected(text, at, `the array "${name}"`)
    })
    return readArray(cursor, visitor)
  }
  let found = false
  for (let isFirst = true; ; isFirst = false) {
    const member = await cursor.step((text, from) => readMember(text, from, isFirst, key))
    cursor.at = member.at
    if (member.kind === 'end') break
    if (member.kind === 'other') continue
    if (found) await cursor.step((_, at) => breakOff(at, `the key "${key}" stands here a second time`))
    found = true
    await readPath(cursor, rest, name, visitor)
    if (visitor.finished) return
  }
  if (!found) await cursor.step((_, at) => breakOff(at - 1, `the object ends without "${key}" of "${name}"`))
}

function breakOff(at: number, message: string): never {
  throw new JsonFault('broken', at, message)
}

const findings: Findings = { refusal: null, escaped: false }

/** One member of an object, or its end. The value of the key that is looked for is left unread. */
function readMember(text: string, from: number, isFirst: boolean, wanted: string) {
  let at = skipSpace(text, from)
  if (isFirst) {
    if (text.charCodeAt(at) !== BRACE) unexpected(text, at, `an object with "${wanted}"`)
    at = skipSpace(text, at + 1)
  }
  if (text.charCodeAt(at) === BRACE_END) return { kind: 'end', at: at + 1 } as const
  if (!isFirst) {
    if (text.charCodeAt(at) !== COMMA) unexpected(text, at, '"," or "}"')
    at = skipSpace(text, at + 1)
  }
  if (text.charCodeAt(at) !== QUOTE) unexpected(text, at, 'a key in quotes')
  findings.escaped = false
  const end = skipString(text, at, findings)
  const raw = text.slice(at + 1, end - 1)
  const key = findings.escaped ? unescaped(raw) : raw
  at = skipColon(text, end)
  if (at === text.length) unexpected(text, at, 'a value')
  if (key === wanted) return { kind: 'found', at } as const
  at = skipSpace(text, skipValue(text, at, findings))
  // Only what follows tells that a number has ended.
  if (at === text.length) unexpected(text, at, '"," or "}"')
  return { kind: 'other', at } as const
}
