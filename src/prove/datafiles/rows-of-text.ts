/** Rows of a text file under the names of its columns. A missing cell is null. */
export interface TextRows {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | null)[])[]
}

const DELIMITERS = [',', ';', '\t', '|']
const NAME = /^[A-Za-z_][\w .:-]*$/

/** Reads CSV as it is, torn ends and ragged rows included: what is compared may be the work of a crash. */
export function rowsOfCsv(text: string): TextRows {
  const firstLine = /^[^\r\n]*/.exec(text)?.[0] ?? ''
  const count = (delimiter: string) => firstLine.split(delimiter).length
  const [delimiter = ','] = [...DELIMITERS].sort((a, b) => count(b) - count(a))
  const records = splitRecords(text, delimiter)
  const width = Math.max(0, ...records.map((record) => record.length))
  const [first = []] = records
  const isHead =
    first.length === width && first.every((cell) => NAME.test(cell)) && new Set(first).size === width
  return {
    columns: isHead ? first : Array.from({ length: width }, (_, n) => `column ${n + 1}`),
    rows: (isHead ? records.slice(1) : records).map((record) =>
      Array.from({ length: width }, (_, n) => record[n] ?? null),
    ),
  }
}

function splitRecords(text: string, delimiter: string): string[][] {
  const records: string[][] = []
  let record: string[] = []
  let cell = ''
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (isQuoted) {
      if (char !== '"') cell += char
      else if (text[at + 1] === '"') cell += text.charAt(++at)
      else isQuoted = false
    } else if (char === '"' && cell === '') isQuoted = true
    else if (char === delimiter) {
      record.push(cell)
      cell = ''
    } else if (char === '\n') {
      records.push([...record, cell.replace(/\r$/, '')])
      record = []
      cell = ''
    } else cell += char
  }
  if (cell !== '' || record.length > 0) records.push([...record, cell])
  return records
}

/** Where a line is not an object of JSON. */
const TEXT_COLUMN = 'text'

/** Reads a line as an object of JSON; whatever is none, such as the torn last line, stays text. */
export function rowsOfNdjson(text: string): TextRows {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const cells = lines.map(cellsOfLine)
  const columns = [...new Set(cells.flatMap((line) => [...line.keys()]))]
  return { columns, rows: cells.map((line) => columns.map((column) => line.get(column) ?? null)) }
}

const STRING_OR_NUMBER = /("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)/g

function cellsOfLine(line: string): ReadonlyMap<string, string> {
  let value: unknown
  try {
    // A number keeps every digit as text.
    value = JSON.parse(
      line.replace(STRING_OR_NUMBER, (_, string?: string, number = '') => string ?? `"${number}"`),
    )
  } catch {
    return new Map([[TEXT_COLUMN, line]])
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map([[TEXT_COLUMN, line]])
  return new Map(
    Object.entries(value).map(([name, cell]) => [
      name,
      typeof cell === 'string' ? cell : JSON.stringify(cell),
    ]),
  )
}
