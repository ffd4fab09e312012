import { quoteLiteral } from '../../local/quote.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { ContractColumn } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import { CUT_INTERVAL } from '../shared/interval.ts'
import type { CatalogTable } from './catalog.ts'
import type { Connection } from './connection.ts'
import { sqlstateOf } from './errors.ts'
import { type PulledColumn, pullRows } from './pull.ts'

export interface CanonicalOptions {
  readonly connection: Connection
  readonly local: LocalConnection
  /** Null for a table that is yet to be made. */
  readonly table: CatalogTable | null
  readonly column: ContractColumn
  /** Local table with a VARCHAR column `text`. */
  readonly from: string
  readonly settings: string
  readonly inTransaction: boolean
}

/** As much text as one question carries. */
const BATCH_BYTES = 4_000_000

const ANSWER: readonly PulledColumn[] = ['text', 'canonical', 'reason'].map((id) => ({
  id,
  readAs: 'VARCHAR',
  value: id,
  unheld: null,
}))

/**
 * Asks the server for its own form of texts of one type; only it knows that `{1, 2}` is `{1,2}` and `P1D` is `1 day`. A
 * text that is none of the type, or that would be rounded or cut, comes back with a reason.
 */
export async function canonicalTexts(options: CanonicalOptions): Promise<string> {
  const { local, from } = options
  const answers = local.newName('canonical')
  await local.run(`create table ${answers} (text varchar, canonical varchar, reason varchar)`)
  const batches = local.newName('texts')
  await local.run(`
    create table ${batches} as
    select text, row_number() over () as n,
           (sum(strlen(text) + 4) over (rows unbounded preceding) // ${BATCH_BYTES})::bigint as batch
      from ${from}
     where text is not null`)
  const ranges = await local.rows(
    `select min(n)::varchar as low, max(n)::varchar as high from ${batches} group by batch order by batch`,
  )
  for (const { low, high } of ranges) await ask(options, batches, answers, Number(low), Number(high))
  await local.run(`drop table ${batches}`)
  return answers
}

/** Asks for the texts `low` to `high`; where the server refuses them as a whole, for each half. */
async function ask(
  options: CanonicalOptions,
  batches: string,
  answers: string,
  low: number,
  high: number,
): Promise<void> {
  const { connection, local } = options
  const [row] = await local.rows(`
    select string_agg('"' || replace(replace(text, '\\', '\\\\'), '"', '\\"') || '"', ',' order by n) as list
      from ${batches}
     where n between ${low} and ${high}`)
  const list = typeof row?.list === 'string' ? row.list : ''
  const query = querySql(options, `${quoteLiteral(`{${list}}`)}::text[]`)
  const reason = await refusable(options, async () => {
    const { table } = await pullRows(connection, local, query, ANSWER)
    await local.run(`insert into ${answers} from ${table}`)
    await local.run(`drop table ${table}`)
  })
  if (reason === null) return
  if (low === high) {
    await local.run(
      `insert into ${answers} select text, null, ${quoteLiteral(reason)} from ${batches} where n = ${low}`,
    )
    return
  }
  const middle = Math.floor((low + high) / 2)
  await ask(options, batches, answers, low, middle)
  await ask(options, batches, answers, middle + 1, high)
}

/** Asks in a way that a refusal does not spoil the transaction; gives the server's reason, or null. */
async function refusable(
  { connection, settings, inTransaction }: CanonicalOptions,
  work: () => Promise<void>,
): Promise<string | null> {
  await connection.query(inTransaction ? 'savepoint stet_canonical' : `begin read only;\n${settings}`)
  const undo = inTransaction ? 'rollback to savepoint stet_canonical' : 'rollback'
  try {
    await work()
    await connection.query(undo)
    return null
  } catch (error) {
    // Only what the server says about a value; a lost connection must not end as a rejected row.
    if (!/^(22|23|42601|42804|0A)/.test(sqlstateOf(error) ?? '') || connection.lost) throw error
    await connection.query(undo)
    return error instanceof Error ? error.message : String(error)
  }
}

/** Whether a text of arrays and ranges of dates and times holds a word that stands for the moment of reading (G9). */
export function clockSql(type: string): string {
  if (!/date|time|^ts(tz)?(multi)?range/i.test(type)) return 'false'
  return `x ~* '\\m(now|today|tomorrow|yesterday|allballs|epoch)\\M'`
}

const DAY = String.raw`\d{4,}-\d\d-\d\d`
const TIME_OF_DAY = String.raw`\d\d:\d\d(:\d\d(\.\d+)?)?`
const OFFSET = String.raw` ?(Z|[+-]\d\d(:?\d\d){0,2})`

/** How dates and times have to be written in types that Stet does not read itself: the type, a pattern, and that in words. */
const MOMENTS: readonly (readonly [type: RegExp, pattern: string, wanted: string])[] = [
  [/^(timetz|time with time zone)(\[\])*$/i, `${TIME_OF_DAY}${OFFSET}`, 'HH:MM:SS+02:00'],
  [/^time( without time zone)?(\[\])*$/i, TIME_OF_DAY, 'HH:MM:SS'],
  [
    /^(timestamptz|timestamp with time zone|tstz(multi)?range)(\[\])*$/i,
    `${DAY}[ T]${TIME_OF_DAY}${OFFSET}`,
    'YYYY-MM-DD HH:MM:SS+02:00',
  ],
  [
    /^(timestamp( without time zone)?|ts(multi)?range)(\[\])*$/i,
    `${DAY}([ T]${TIME_OF_DAY})?`,
    'YYYY-MM-DD HH:MM:SS',
  ],
  [/^date((multi)?range)?(\[\])*$/i, DAY, 'YYYY-MM-DD'],
]

/**
 * Whether a text holds a date or time, in an array or range or alone, in a form that the server would complete or cut: one
 * without an offset gets the session's, an offset or a time too many is dropped, `01/02/2024` is read one way of two (G9).
 */
export function looseSql(base: string): string {
  const pattern = MOMENTS.find(([type]) => type.test(base))?.[1]
  if (pattern === undefined) return 'false'
  // What is left without the bounds of an array, and without what is written as it should be, has no digit.
  const bare = String.raw`regexp_replace(x, '^(\[[+-]?\d+:[+-]?\d+\])+=', '')`
  return `regexp_replace(${bare}, '${pattern}', '', 'gi') ~ '[0-9]'`
}

function wantedMoment(base: string): string {
  return MOMENTS.find(([type]) => type.test(base))?.[2] ?? ''
}

/** Whether a text loses something in a type that has no modifier to compare with. */
export function cutSql(base: string): string {
  if (base === 'name') return 'octet_length(x) > 63'
  if (base === '"char"') return 'octet_length(x) > 1'
  if (base === 'oid') return `x !~ '^[0-9]+$'`
  if (base === 'money') return `x ~ '[.][0-9]{2}[0-9]*[1-9]'`
  if (/^interval\b/i.test(base)) return `x ~* ${quoteLiteral(CUT_INTERVAL)}`
  // Seven and more digits after the point: all of these types keep microseconds.
  return /time|interval|^ts(tz)?(multi)?range/i.test(base) ? `x ~ '[.][0-9]{6}[0-9]*[1-9]'` : 'false'
}

/**
 * A cast cuts and rounds without a word where the type has a modifier (`char(3)`, `interval(0)`). The value without the
 * modifier is compared with it, and one that has lost something is refused.
 */
function querySql({ table, column }: CanonicalOptions, texts: string): string {
  const found = table?.columns.find(({ name }) => name === column.name)
  const type = found?.native ?? formatColumnType(column.type)
  const storage = found?.storage ?? type
  const base = found?.base ?? type.replace(/\(.*\)/, '')
  const whole = storage === base ? 'true' : `x::${base} is not distinct from x::${storage}::${base}`
  // In this order: a cast must not be tried on a text that is refused for what it says.
  return `select 1, x,
            case when ${clockSql(type)} or ${cutSql(base)} or ${looseSql(base)} then null when ${whole} then x::${type}::text end,
            case when ${clockSql(type)} then 'holds a word that the database turns into the clock'
                 when ${cutSql(base)} then 'would be rounded or cut to ${storage.replaceAll("'", "''")}'
                 when ${looseSql(base)} then 'holds a date or time that is not written as ${wantedMoment(base)}'
                 when not (${whole}) then 'would be rounded or cut to ${storage.replaceAll("'", "''")}' end
       from unnest(${texts}) as x`
}
