import { StetError } from '../../errors.ts'
import { quoteIdentifier, quotePath } from '../../local/quote.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { InputFile } from '../shared/files.ts'
import { type Loss, lossOf, type StoredElement } from './loss.ts'
import { type ParquetType, parquetTypeOf } from './text.ts'

/** A column of a Parquet file. */
export interface ParquetColumn extends ParquetType {
  /** As the file has it. */
  readonly name: string
  /** As the local engine calls it, quoted: of two names that differ in case only, it changes one. */
  readonly local: string
  /** What the local engine's reader would lose of its values without a word; null where it loses nothing. */
  readonly loss: Loss | null
  /** Whether it is stored in the old form of timestamps, which also has nanoseconds. */
  readonly int96: boolean
}

/** The file as a relation of the local engine. Folders named `year=2024` are no columns. */
export function relationOf(input: InputFile, options = ''): string {
  return `read_parquet(${quotePath(input.path)}, hive_partitioning = false${options})`
}

/**
 * Reads which columns a file has, and every page of it once: a lazy reader would meet damage in a column that nobody
 * wants never, and in others after half of the rows.
 *
 * @throws {StetError} `STET_SOURCE` naming the file, when it is damaged or cut off.
 */
export async function readSchema(
  local: LocalConnection,
  input: InputFile,
): Promise<readonly ParquetColumn[]> {
  try {
    const described = await local.rows(`describe select * from ${relationOf(input)}`)
    const elements = await topLevelOf(local, input)
    const columns = described.map((row, i): ParquetColumn => {
      const stored = elements[i] ?? []
      return {
        ...parquetTypeOf(stored[0]?.logical === 'NullType()' ? 'VARCHAR' : String(row.column_type)),
        name: stored[0]?.name ?? String(row.column_name),
        local: quoteIdentifier(String(row.column_name)),
        loss: lossOf(stored),
        int96: stored.some(({ type }) => type === 'INT96'),
      }
    })
    const hashes = columns.map(({ local: column }) => `bit_xor(hash(${column}))`)
    await local.run(`select ${hashes.join(', ')} from ${relationOf(input)}`)
    refuseTwins(columns, input)
    return columns
  } catch (cause) {
    if (cause instanceof StetError) throw cause
    const [reason = ''] = String((cause as Error).message).split('\n')
    throw new StetError(
      'STET_SOURCE',
      `Cannot read "${input.file.path}" as Parquet: ${reason.replaceAll(input.path, input.file.path)}`,
      { hint: 'Fetch the file again; a Parquet file is readable only when it is whole', cause },
    )
  }
}

/** The schema's elements, those of one column together; it is stored as a tree in depth-first order below one root. */
async function topLevelOf(
  local: LocalConnection,
  input: InputFile,
): Promise<readonly (readonly StoredElement[])[]> {
  const rows = await local.rows(`
    select name, type, logical_type, num_children, precision
      from parquet_schema(${quotePath(input.path)})`)
  const columns: StoredElement[][] = []
  let below = 0
  for (const row of rows.slice(1)) {
    if (below === 0) columns.push([])
    else below--
    below += Number(row.num_children ?? 0)
    columns.at(-1)?.push({
      name: String(row.name),
      type: String(row.type),
      logical: String(row.logical_type),
      children: Number(row.num_children ?? 0),
      precision: Number(row.precision ?? 0),
    })
  }
  return columns
}

function refuseTwins(columns: readonly ParquetColumn[], { file }: InputFile): void {
  const seen = new Set<string>()
  for (const { name } of columns) {
    if (seen.has(name)) {
      throw new StetError('STET_COLUMNS', `Cannot read "${file.path}": it has two columns "${name}"`, {
        details: { file: file.path, column: name },
      })
    }
    seen.add(name)
  }
}
