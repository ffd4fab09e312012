import { StetError } from '../../../errors.ts'
import { isRequired, reasonForNull } from '../../../local/land.ts'
import { narrowQuery } from '../../../local/narrow.ts'
import { quoteIdentifier } from '../../../local/quote.ts'
import { readText } from '../../../local/typing/reading.ts'
import type { ContractColumn } from '../../../model/columns.ts'
import type { RemoteLanded, RemoteRules } from '../../../model/remote.ts'
import type { Reject, SourceField } from '../../../model/source.ts'
import { type CatalogColumn, identify, readCatalog } from '../catalog.ts'
import type { Connection, Row } from '../connection.ts'
import { sqlstateOf } from '../errors.ts'
import { readingOf, type TryFunction, tryFunction } from './reading-sql.ts'
import { type Asked, columnOf, createStageSql, type RemoteContext, STAGE } from './stage.ts'

/** How many rejects are brought and shown; all are counted. */
const REJECTS_SHOWN = 100
/** A longer value tells a reader nothing more. */
const VALUE_SHOWN_CHARACTERS = 200

/** The columns that a query gives, without running it; in a transaction that the caller undoes. */
export async function describeQuery(
  connection: Connection,
  query: string,
): Promise<readonly CatalogColumn[]> {
  // With parameters, even none, the server takes one statement only: a second one in the query is refused here.
  await ofQuery(() =>
    connection.query(
      `create temp table stet_answer on commit drop as select q.* from (${bare(query)}\n) as q with no data`,
      [],
    ),
  )
  const identity = await identify(connection, { schema: 'pg_temp', table: 'stet_answer' })
  const answer = await readCatalog(connection, identity, { counting: false })
  if (answer === null || answer.columns.length === 0) {
    throw new StetError('STET_COLUMNS', 'Cannot read the query: it gives no columns')
  }
  return answer.columns
}

export function fieldsOf(columns: readonly CatalogColumn[]): readonly SourceField[] {
  // `name` is the catalogues' own; as a column of a new table it would cut what is longer.
  return columns.map(({ name, type, base }) => ({ name, type: base === 'name' ? { kind: 'text' } : type }))
}

/** Runs the query once and puts its rows on the stage, each value exactly or the whole row as a reject. */
export async function landQuery(
  connection: Asked,
  context: RemoteContext,
  query: string,
  answer: readonly CatalogColumn[],
  rules: RemoteRules,
): Promise<RemoteLanded> {
  const { sql, tries } = landingSql(context, query, answer, rules)
  await connection.query(
    [
      createStageSql(context),
      ...tries.map(({ create }) => create),
      // Only until the savepoint is released: the query reads, and what it calls may not write either.
      'savepoint stet_query',
      'set transaction read only',
    ].join(';\n'),
  )
  await ofQuery(() => connection.query(sql, []))
  await connection.query(
    ['release savepoint stet_query', ...tries.map(({ drop }) => drop), `analyze ${STAGE}`].join(';\n'),
  )
  const [counted] = await connection.query(`select count(*) as read from ${STAGE}`)
  const [faulty] = await connection.query(`select count(*) as rejected from ${STAGE} where raw is not null`)
  const rejected = Number(faulty?.rejected)
  const rejects = rejected === 0 ? [] : await rejectsOf(connection, context, rules)
  if (rejected > 0) await connection.query(`delete from ${STAGE} where raw is not null`)
  return { read: Number(counted?.read), rejected, rejects }
}

/** A semicolon at the end is a habit, and no part of a statement inside another. */
function bare(query: string): string {
  return query.trim().replace(/(\s*;)+$/, '')
}

function landingSql(
  context: RemoteContext,
  query: string,
  answer: readonly CatalogColumn[],
  rules: RemoteRules,
): { readonly sql: string; readonly tries: readonly TryFunction[] } {
  const { contract, shape } = context
  const tries = new Map<string, TryFunction>()
  const tryRead = (base: string) => {
    const known = tries.get(base) ?? tryFunction(base, tries.size)
    tries.set(base, known)
    return known.name
  }
  const columns = contract.columns.map((column) => {
    const from = answer.find(({ name }) => name === column.name)
    if (from === undefined) throw new StetError('STET_COLUMNS', `The query has no column "${column.name}"`)
    const normalize =
      column.key && rules.normalizeKey === 'nfc' && ['text', 'varchar', 'char'].includes(column.type.kind)
    const to = columnOf(shape, column)
    const x = `q.${quoteIdentifier(column.name)}`
    return { column, to, x, reading: readingOf(column, x, from, to, { normalize, tryRead }) }
  })
  const v = ({ id }: ContractColumn) => `w.v_${id}`
  const faults = columns.map(({ column, reading }) => {
    const parts = [
      ...(isRequired(column, rules) ? [`${v(column)} is null`] : []),
      ...(reading.mayFail ? [`(${v(column)} is null and w.x_${column.id} is not null)`] : []),
      ...(reading.loses === null ? [] : [`coalesce(${reading.loses(v(column))}, false)`]),
    ]
    return parts.length === 0 ? null : `(${parts.join(' or ')})`
  })
  const values = columns.map(({ column, to, reading }, position) => {
    const value = reading.loses === null ? v(column) : `${v(column)}::${to.storage}`
    // An assignment would fail on a value that does not fit, where a reject is wanted.
    return faults[position] === null || reading.loses === null
      ? `${value} as ${column.id}`
      : `case when not ${faults[position]} then ${value} end as ${column.id}`
  })
  const anyFault = faults.filter((fault) => fault !== null).join(' or ')
  const texts = columns.map(({ column }) => `w.x_${column.id}::text`)
  const places = faults.map((fault, place) => `case when ${fault ?? 'false'} then ${place} end`)
  const raw = anyFault === '' ? 'null' : `case when ${anyFault} then array[${texts.join(', ')}] end`
  const bad =
    anyFault === ''
      ? 'null'
      : `case when ${anyFault} then array_remove(array[${places.join(', ')}], null) end`
  // `offset 0`: each value is read once, and not before the conditions beside it have been looked at.
  const sql = `insert into ${STAGE} (${[...columns.map(({ column }) => column.id), 'raw', 'bad'].join(', ')})
select ${values.join(',\n       ')},
       ${raw},
       ${bad}
  from (select ${columns.map(({ column, x, reading }) => `${x} as x_${column.id}, ${reading.value} as v_${column.id}`).join(',\n               ')}
          from (${narrowQuery(bare(query), rules.narrowing)}
                offset 0) as q
        offset 0) as w`
  return { sql, tries: [...tries.values()] }
}

async function rejectsOf(
  connection: Asked,
  { contract, shape }: RemoteContext,
  rules: RemoteRules,
): Promise<readonly Reject[]> {
  const shown = rules.keepRejects ?? REJECTS_SHOWN
  const rows = await connection.query(`
    select array_to_json(raw)::text as raw, array_to_json(bad)::text as bad
      from ${STAGE}
     where raw is not null
     order by raw
     limit ${shown}`)
  return rows.flatMap((row) => rejectsOfRow(row, contract.columns, shape, rules))
}

function rejectsOfRow(
  row: Row,
  columns: readonly ContractColumn[],
  shape: RemoteContext['shape'],
  rules: RemoteRules,
): readonly Reject[] {
  const texts = JSON.parse(row.raw ?? '[]') as readonly (string | null)[]
  const places = JSON.parse(row.bad ?? '[]') as readonly number[]
  const raw = JSON.stringify(
    Object.fromEntries(columns.map(({ name }, place) => [name, texts[place] ?? null])),
  )
  return places.map((place): Reject => {
    const column = columns[place]
    const value = texts[place] ?? null
    return {
      file: null,
      line: null,
      column: column?.name ?? null,
      value: value?.slice(0, VALUE_SHOWN_CHARACTERS) ?? null,
      reason: column === undefined ? 'is refused' : reasonOf(column, value, columnOf(shape, column)),
      raw: rules.keepRejects === undefined ? raw.slice(0, VALUE_SHOWN_CHARACTERS * 5) : raw,
    }
  })
}

function reasonOf(column: ContractColumn, value: string | null, to: CatalogColumn): string {
  if (value === null) return reasonForNull(column)
  const reading = readText(column.type, value)
  return 'reason' in reading ? reading.reason : `is none that ${to.storage} can hold without loss`
}

/** What the server says of the user's query is the source's fault, and not the table's. */
async function ofQuery<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const sqlstate = sqlstateOf(error) ?? ''
    if (!(error instanceof Error) || !/^(0A|21|22|23|25006|42|P0)/.test(sqlstate) || sqlstate === '42501') {
      throw error
    }
    if (sqlstate === '42701') {
      throw new StetError('STET_COLUMNS', `Cannot read the query: ${error.message}`, {
        hint: 'Name each column apart: select a.id as …',
        cause: error,
      })
    }
    throw new StetError('STET_SOURCE', `Cannot run the query: ${error.message}`, {
      ...(sqlstate === '25006' ? { hint: 'A source only reads: leave out what writes' } : {}),
      details: { sqlstate },
      cause: error,
    })
  }
}
