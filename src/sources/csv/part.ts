import { StetError } from '../../errors.ts'
import { quoteIdentifier, quoteLiteral, quotePath } from '../../local/quote.ts'
import type { Reject, RowLocation, SourceContext, SourcePart } from '../../model/source.ts'
import { type Layout, scanData } from './layout.ts'
import type { Expected, MeasuredFile, PartFile } from './prepare.ts'
import { whyRefused } from './reason.ts'
import { type RepeatedHeader, repeatedHeader } from './repeated-header.ts'

/** A file as a relation. Its selects have to run on the connection of `context`, which holds the reject tables. */
export function csvPart(file: PartFile, context: SourceContext): SourcePart {
  const { names } = file
  const { local, signal } = context
  // A select that may find records where there are none has a table of its own: what it refused is no reject.
  const tables = { select: local.newName('csv_rejects'), surely: local.newName('csv_rejects') }
  let rejectsTable = tables.select
  const measured = (): MeasuredFile => {
    const found = file.measured()
    if (found !== null) return found
    throw new StetError('STET_INTERNAL', `"${file.path}" was read before it was looked at`)
  }
  const repeated = (layout: Layout): RepeatedHeader | null =>
    file.dialect.repeatedHeader === 'row' ? null : repeatedHeader(names, layout.shape, file.dialect.nullTexts)
  const select = (wanted: readonly string[], found: Expected) =>
    selectSql(wanted, { ...file, ...found, rejectsTable, repeated: repeated(found.readable) })
  const { expected } = file

  /** Where DuckDB refused a record, by its place among those it got. Kept by a rollback, doubled by a second scan. */
  const refusedByDuckDB = async (): Promise<ReadonlySet<number>> => {
    const tables = await local.count(
      `select count(*) from duckdb_tables() where table_name = ${quoteLiteral(rejectsTable)}`,
    )
    if (tables === 0) return new Set()
    const rows = await local.rows(
      `select distinct line_byte_position - 1 as offset
         from ${quoteIdentifier(rejectsTable)}
        order by 1`,
    )
    return placesOf(
      rows.map((row) => Number(row.offset)),
      measured().readable,
      file.path,
      signal,
    )
  }

  /** Visits the rows of `select` and, between them, the records that are none. */
  const scanRows = async (
    visit: (record: () => Buffer, line: number, row: number | null) => boolean,
  ): Promise<void> => {
    const refused = await refusedByDuckDB()
    const header = repeated(measured().original)
    let given = 0
    let row = 0
    await scanData(measured().original, { signal }, (bytes, start, end, at) => {
      const isGiven = !at.refused && !refused.has(++given)
      const isRow = isGiven && header?.is(bytes.subarray(start, end)) !== true
      if (isRow) row++
      return visit(() => bytes.subarray(start, end), at.line, isRow ? row : null)
    })
  }

  return {
    file,
    get records() {
      return file.measured()?.records
    },
    select: (wanted) => select(wanted, measured()),
    early:
      expected === null
        ? undefined
        : {
            select: (wanted) => select(wanted, expected),
            holds: async () => {
              await file.looked()
              if (select(names, measured()) === select(names, expected)) return true
              rejectsTable = tables.surely
              return false
            },
          },
    get selectByOneThread() {
      if (file.measured()?.splittable !== true) return undefined
      return (wanted: readonly string[]) => {
        rejectsTable = tables.surely
        return select(wanted, { ...measured(), splittable: false })
      }
    },
    rejects: async () => {
      const rejects: Reject[] = []
      const header = repeated(measured().original)
      const isHeader = (record: Buffer) => header?.is(record) === true
      await scanRows((record, line, row) => {
        if (row !== null) return true
        const raw = record()
        const why = isHeader(raw) ? REPEATED : (whyRefused(raw, measured().original, names) ?? UNEXPLAINED)
        rejects.push({ file: file.path, line, ...why, raw: raw.toString('utf8') })
        return true
      })
      return rejects
    },
    locate: async (rows) => {
      const found: RowLocation[] = []
      const wanted = new Set(rows)
      const last = Math.max(0, ...rows)
      if (last === 0) return found
      await scanRows((record, line, row) => {
        if (row !== null && wanted.has(row)) found.push({ line, raw: record().toString('utf8') })
        return row === null || row < last
      })
      return found
    },
  }
}

const REPEATED = {
  column: null,
  value: null,
  reason:
    'repeats the header, as in files that were joined; if it is a row: --repeated-header row (repeatedHeader in a pipeline)',
}

const UNEXPLAINED = { column: null, value: null, reason: 'the CSV reader refuses this record' }

/** The places, from 1, of the records that begin at these offsets. */
async function placesOf(
  offsets: readonly number[],
  layout: Layout,
  name: string,
  signal: AbortSignal,
): Promise<ReadonlySet<number>> {
  const places = new Set<number>()
  let next = 0
  if (offsets.length > 0) {
    await scanData(layout, { signal }, (_bytes, start, end, at) => {
      // DuckDB names the blank line before the record, if there is one, and a blank line itself is never refused.
      if (start === end) return true
      let isNamed = false
      for (; (offsets[next] ?? Number.POSITIVE_INFINITY) < at.offset + end - start; next++) isNamed = true
      if (isNamed) places.add(at.ordinal)
      return next < offsets.length
    })
  }
  if (places.size < offsets.length || next < offsets.length) {
    throw new StetError('STET_INTERNAL', `Cannot tell which records of "${name}" were refused`, {
      hint: 'Please report this, with the file if it may be shown',
      details: { file: name, offsets: offsets.length, records: places.size },
    })
  }
  return places
}

/** DuckDB's own limit for a record, which costs nothing. */
const RECORD_BYTES_DEFAULT = 2_000_000
const BUFFER_BYTES_DEFAULT = 32_000_000

function selectSql(
  wanted: readonly string[],
  options: PartFile & Expected & { readonly rejectsTable: string; readonly repeated: RepeatedHeader | null },
): string {
  const { names, readable, dialect, delimiter, longest, rejectsTable } = options
  const fields = wanted.map((name, i) => {
    const position = names.indexOf(name)
    if (position !== -1) return `f${position} as c${i}`
    throw new StetError('STET_COLUMNS', `Cannot read "${options.path}": it has no column "${name}"`, {
      hint: `Its columns are: ${names.join(', ')}`,
      details: { file: options.path, column: name },
    })
  })
  const possible = dialect.nullTexts.filter((text) => !text.includes(delimiter))
  // DuckDB wants at least one. A line break cannot stand in a field without quotes, so this one is never met.
  const nullTexts = possible.length === 0 ? ['\n'] : possible
  const settings: Readonly<Record<string, string>> = {
    // Nothing is guessed by DuckDB: a bad file would change the guess.
    auto_detect: 'false',
    columns: `{${names.map((_, i) => `f${i}: 'VARCHAR'`).join(', ')}}`,
    header: String(readable.hasHeader),
    delim: quoteLiteral(delimiter),
    quote: quoteLiteral(dialect.quote),
    escape: quoteLiteral(dialect.quoteEscape),
    // Two characters, which DuckDB reads as one. The only line end that it never gets wrong.
    new_line: `'\\n'`,
    // Several threads guess where records begin, and guess wrong in text that looks like records itself: rows change or
    // are lost without a word. So only where no guess can be wrong, and the count of records is looked at afterwards.
    parallel: String(options.splittable),
    strict_mode: 'true',
    null_padding: 'false',
    nullstr: `[${nullTexts.map(quoteLiteral).join(', ')}]`,
    // "" is a text, only an empty field without quotes is NULL.
    allow_quoted_nulls: 'false',
    // By content, which has been seen to already; DuckDB would go by the name.
    compression: `'none'`,
    hive_partitioning: 'false',
    store_rejects: 'true',
    rejects_table: quoteLiteral(rejectsTable),
    rejects_scan: quoteLiteral(`${rejectsTable}_scan`),
    ...(longest < RECORD_BYTES_DEFAULT / 2
      ? {}
      : {
          max_line_size: String(longest + 1024),
          buffer_size: String(Math.max(BUFFER_BYTES_DEFAULT, 2 * (longest + 1024))),
        }),
  }
  const list = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const unwanted = names.flatMap((name, i) => (wanted.includes(name) ? [] : [`f${i}`]))
  // DuckDB lets ragged records pass, now and then, when it may skip the columns that nobody asked for.
  const conditions = [
    ...(unwanted.length === 0 ? [] : [`coalesce(${unwanted.join(', ')}, '') is not null`]),
    ...(options.repeated === null ? [] : [options.repeated.notSql]),
  ]
  const where = conditions.length === 0 ? '' : `\n where ${conditions.join('\n   and ')}`
  return `select ${fields.join(', ')}
  from read_csv(${quotePath(readable.path)}, ${list.join(', ')})${where}`
}
