import type { FieldNode, FieldSet } from './fields.ts'
import {
  BRACE,
  BRACE_END,
  BRACKET,
  COMMA,
  type Findings,
  QUOTE,
  skipColon,
  skipScalar,
  skipSpace,
  skipString,
  skipValue,
  unescaped,
  unexpected,
} from './scan.ts'

/** Takes records apart into the texts of their fields. */
export interface RecordReader {
  /**
   * Reads the record that begins at `from`; where it ends.
   *
   * @throws {JsonFault} when it does not.
   */
  read(text: string, from: number): number
  /** Of the last record, by column; null for NULL and for what it does not have. */
  readonly values: readonly (string | null)[]
  /** Why the last record cannot be loaded, though it is JSON. */
  readonly refusal: Refusal | null
  /** Whether any record so far had the column. */
  has(column: number): boolean
}

/** Why a record that is JSON, and a number or a list, is refused. */
export const NO_OBJECT = 'is no object'

interface Refusal {
  readonly column: string | null
  readonly reason: string
}

/** @param holdsJson Columns whose strings keep their quotes: `"1"` is another document than `1`. Default: none. */
export function createRecordReader(
  fields: FieldSet,
  holdsJson: (column: string) => boolean = () => false,
): RecordReader {
  const findings: Findings = { refusal: null, escaped: false }
  const values: (string | null)[] = []
  const quoted: boolean[] = []
  // The number of the last record that had the column.
  const lastRecord: number[] = []
  let record = 0
  let refusal: Refusal | null = null
  // Records of a file mostly have their keys in one order: the key after the last one is looked for first.
  const order: FieldNode[] = []

  const refuse = (column: string | null, reason: string) => {
    refusal ??= { column, reason }
  }

  const keepsQuotes = (column: number): boolean => {
    quoted[column] ??= holdsJson(fields.names[column] ?? '')
    return quoted[column]
  }

  const readObject = (text: string, from: number, node: FieldNode): number => {
    const isRoot = node === fields.root
    let at = skipSpace(text, from + 1)
    if (text.charCodeAt(at) === BRACE_END) return at + 1
    for (let i = 0; ; i++) {
      if (text.charCodeAt(at) !== QUOTE) unexpected(text, at, 'a key in quotes')
      const guess = isRoot ? order[i] : undefined
      let child: FieldNode | undefined
      if (guess !== undefined && text.startsWith(guess.quoted, at)) {
        child = guess
        at += guess.quoted.length
      } else {
        findings.escaped = false
        const end = skipString(text, at, findings)
        const raw = text.slice(at + 1, end - 1)
        const key = findings.escaped ? unescaped(raw) : raw
        child = node.children?.get(key) ?? (isRoot ? fields.discover(key) : undefined)
        if (isRoot && child !== undefined && !findings.escaped) order[i] = child
        at = end
      }
      at = skipColon(text, at)
      at = child === undefined ? skipValue(text, at, findings) : readValue(text, at, child)
      at = skipSpace(text, at)
      const code = text.charCodeAt(at)
      if (code === BRACE_END) return at + 1
      if (code !== COMMA) unexpected(text, at, '"," or "}"')
      at = skipSpace(text, at + 1)
    }
  }

  const readValue = (text: string, from: number, node: FieldNode): number => {
    const { column } = node
    if (node.record === record || (column >= 0 && lastRecord[column] === record)) {
      // Readers of JSON differ in which of two values they take.
      refuse(node.key, `has the key ${node.quoted} twice`)
    }
    node.record = record
    if (column >= 0) lastRecord[column] = record
    const code = text.charCodeAt(from)
    findings.escaped = false
    let end: number
    let value: string | null
    if (code === BRACE || code === BRACKET) {
      end =
        code === BRACE && node.children !== null
          ? readObject(text, from, node)
          : skipValue(text, from, findings)
      value = column >= 0 ? text.slice(from, end) : null
    } else {
      end = skipScalar(text, from, findings)
      if (code === QUOTE && column >= 0 && keepsQuotes(column)) {
        value = text.slice(from, end)
      } else if (code === QUOTE) {
        value = text.slice(from + 1, end - 1)
        if (findings.escaped) value = unescaped(value)
      } else {
        value = text.slice(from, end)
        if (value === 'null') value = null
      }
    }
    if (node.children !== null && code !== BRACE && !text.startsWith('null', from)) {
      refuse(node.key, 'is no object, so that nothing can be taken from within it')
    }
    if (column >= 0) values[column] = value
    if (findings.refusal !== null) {
      refuse(node.key, findings.refusal)
      findings.refusal = null
    }
    return end
  }

  return {
    read(text, from) {
      record++
      refusal = null
      findings.refusal = null
      values.length = fields.names.length
      values.fill(null)
      if (text.charCodeAt(from) === BRACE) {
        const end = readObject(text, from, fields.root)
        if (findings.refusal !== null) refuse(null, findings.refusal)
        return end
      }
      const end = skipValue(text, from, findings)
      refuse(null, NO_OBJECT)
      return end
    },
    values,
    get refusal() {
      return refusal
    },
    has: (column) => (lastRecord[column] ?? 0) > 0,
  }
}
