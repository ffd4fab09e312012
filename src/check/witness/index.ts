/**
 * Shows a finding on two invented rows, really run in an embedded DuckDB: the statement itself where its holes can be
 * filled and DuckDB understands it, its shape otherwise; then the suggested form, which must not show the fault.
 */
import type { FileFacts, SqlUse } from '../facts.ts'
import type { Finding, WitnessResult } from '../finding.ts'
import { readsClock } from '../rules/clock.ts'
import { growsFromItself } from '../rules/self-increment.ts'
import { sourceTables } from '../sequence.ts'
import type { Token } from '../sql/lexer.ts'
import { openDatabase, type WitnessDatabase } from './duckdb.ts'

const MAKERS: Readonly<Record<string, (use: SqlUse, database: WitnessDatabase) => Promise<WitnessResult>>> = {
  'insert-no-key': insertTwice,
  'self-increment': addTwice,
  'upsert-no-guard': upsertTwice,
}

/** Findings of the three rules with their witness; one whose witness shows nothing loses its confidence. */
export async function withWitnesses(
  findings: readonly Finding[],
  facts: ReadonlyMap<string, FileFacts>,
): Promise<readonly Finding[]> {
  const witnessed: Finding[] = []
  for (const finding of findings) {
    const make = MAKERS[finding.rule]
    const use = facts.get(finding.path)?.sql.find((one) => one.start === finding.start)
    if (make === undefined || use === undefined || finding.severity === 'info') {
      witnessed.push(finding)
      continue
    }
    const database = await openDatabase()
    try {
      const witness = await make(use, database)
      witnessed.push(witness.shown ? { ...finding, witness } : { ...finding, witness, confidence: 'low' })
    } catch {
      // A witness that cannot be built says nothing about the finding.
      witnessed.push(finding)
    } finally {
      database.close()
    }
  }
  return witnessed
}

const quote = (name: string): string => `"${name.replaceAll('"', '')}"`

/** Tries a statement with columns of one type after the other; false if DuckDB takes none of them. */
async function tryRun(
  database: WitnessDatabase,
  setUp: (type: string) => readonly string[],
  statement: string,
): Promise<boolean> {
  for (const type of ['integer', 'varchar', 'timestamp']) {
    try {
      for (const sql of setUp(type)) await database.run(sql)
      await database.run(statement)
      return true
    } catch {
      // Another type may fit; if none does, the shape of the statement is run instead.
    }
  }
  return false
}

function filler(type: string, row: number): string {
  return type === 'integer'
    ? String(row)
    : type === 'varchar'
      ? `'${row}'`
      : `timestamp '2025-01-0${row} 00:00:00'`
}

function tableOf(name: string, columns: readonly string[], type: string, filled: boolean): string[] {
  const list = columns.map((column) => `${quote(column)} ${type}`).join(', ')
  const rows = [1, 2].map((row) => `(${columns.map(() => filler(type, row)).join(', ')})`).join(', ')
  return [
    `create or replace table ${quote(name)} (${list})`,
    ...(filled ? [`insert into ${quote(name)} values ${rows}`] : []),
  ]
}

/** The tokens as DuckDB takes them: holes filled, names without their schema. */
function filled(
  tokens: readonly Token[],
  use: SqlUse,
  source: string | undefined,
  clock: string | undefined,
): string {
  const { target } = use.statement
  let text = ''
  let skipUntil = -1
  tokens.forEach((token, index) => {
    if (token.start < skipUntil) return
    if (target !== undefined && token.start === target.start) {
      text += ` ${quote('target')} `
      skipUntil = target.end
      return
    }
    const read =
      source === undefined ? undefined : sourceTables(tokens).find((name) => name.start === token.start)
    if (read !== undefined) {
      text += ` ${quote('source')} `
      skipUntil = read.end
      return
    }
    if (token.kind === 'hole') text += ' 1 '
    else if (clock !== undefined && readsClock(tokens, index)) {
      text += ` timestamp '${clock}' `
      const next = tokens[index + 1]
      const after = tokens[index + 2]
      if (next?.value === '(' && after?.value === ')') skipUntil = after.end
    } else text += ` ${token.text} `
  })
  return text
}

const NO_COLUMNS = new Set([
  'select',
  'from',
  'where',
  'and',
  'or',
  'as',
  'group',
  'by',
  'order',
  'distinct',
  'not',
  'null',
  'is',
  'in',
  'case',
  'when',
  'then',
  'else',
  'end',
  'desc',
  'asc',
  'limit',
  'values',
  'insert',
  'into',
  'on',
  'between',
  'like',
  'cast',
  'date',
  'interval',
  'true',
  'false',
  'day',
  'all',
  'exists',
  'having',
  'timestamp',
  'integer',
  'int',
  'varchar',
  'text',
])

/** Names that stand where a column can stand. */
function columnsIn(tokens: readonly Token[]): string[] {
  const tables = sourceTables(tokens)
  const names = tokens.filter((token, index) => {
    if (token.kind !== 'word' && token.kind !== 'quoted') return false
    if (token.kind === 'word' && NO_COLUMNS.has(token.value)) return false
    if (tables.some((name) => token.start >= name.start && token.end <= name.end)) return false
    const next = tokens[index + 1]?.value
    return next !== '(' && next !== '.' && tokens[index - 1]?.value !== 'as'
  })
  return [...new Set(names.map((token) => token.value.toLowerCase()))]
}

async function insertTwice(use: SqlUse, database: WitnessDatabase): Promise<WitnessResult> {
  const { statement } = use
  const columns = statement.columns?.filter((column) => /^\w+$/.test(column)) ?? []
  const target = columns.length > 0 && columns.length === statement.columns?.length ? columns : ['a', 'b']
  const itself = filled(statement.tokens, use, 'source', '2025-01-01')
  const source = [...new Set([...columnsIn(statement.query), ...target])]
  const setUp = (type: string): string[] => [
    ...tableOf('target', target, type, false),
    ...tableOf('source', source, type, true),
  ]
  const real =
    sourceTables(statement.query).length <= 1 &&
    (await tryRun(database, setUp, itself)) &&
    (await database.rows(quote('target'), target.map(quote))).length > 0
  const list = target.map(quote).join(', ')
  const shape = `insert into "target" (${list}) select ${list} from "source"`
  const sql = real ? itself : shape
  if (!real) {
    for (const one of setUp('integer')) await database.run(one)
    await database.run(shape)
  }
  const first = await database.rows(quote('target'), target.map(quote))
  await database.run(sql)
  const second = await database.rows(quote('target'), target.map(quote))
  for (const one of [...tableOf('safe', target, 'varchar', false)]) await database.run(one)
  const safe = `insert into "safe" select * from (select ${list} from "target") except select * from "safe"`
  await database.run(safe)
  const safeFirst = await database.rows(quote('safe'), target.map(quote))
  await database.run(safe)
  const safeSecond = await database.rows(quote('safe'), target.map(quote))
  return {
    shown: second.length > first.length && safeFirst.length === safeSecond.length,
    lines: [
      `${real ? 'the statement itself' : 'a statement of its shape'}, run in DuckDB on invented rows`,
      `after run 1: ${first.length} row(s), (${first.slice(0, 2).join(') (')})`,
      `after run 2: ${second.length} row(s): ${second.length > first.length ? 'the same rows again' : 'no row was added'}`,
      `with an anti-join on the target: ${safeFirst.length} row(s) after run 1, ${safeSecond.length} after run 2`,
    ],
  }
}

async function addTwice(use: SqlUse, database: WitnessDatabase): Promise<WitnessResult> {
  const { statement } = use
  const sets =
    statement.kind === 'update'
      ? statement.set
      : (statement.conflict?.set ?? statement.merge?.branches.flatMap((branch) => [...branch.set]) ?? [])
  const grows = sets.find((one) => growsFromItself(one, statement))
  const column = grows?.column ?? 'n'
  const columns = [
    ...new Set([
      column,
      ...columnsIn(statement.tokens.slice(2)).filter((name) => name !== 'set' && name !== 'update'),
    ]),
  ]
  const itself = filled(statement.tokens, use, undefined, '2025-01-01')
  const setUp = (type: string): string[] => tableOf('target', columns, type, true)
  // The invented rows need not meet the condition; without it the assignments are the same.
  const condition = statement.where?.[0]
  const before = condition === undefined ? -1 : statement.tokens.indexOf(condition) - 1
  const bare = before < 0 ? itself : filled(statement.tokens.slice(0, before), use, undefined, '2025-01-01')
  const real =
    statement.kind === 'update' && statement.query.length === 0 && (await tryRun(database, setUp, bare))
  const changes =
    real &&
    (await tryRun(database, setUp, itself)) &&
    (await database.rows(quote('target'), [quote(column)])).join() !== '1,2'
  const sql = !real ? `update "target" set ${quote(column)} = ${quote(column)} + 5` : changes ? itself : bare
  if (!real) for (const one of setUp('integer')) await database.run(one)
  else await tryRun(database, setUp, 'select 1')
  await database.run(sql)
  const first = await database.rows(quote('target'), [quote(column)])
  await database.run(sql)
  const second = await database.rows(quote('target'), [quote(column)])
  await database.run(`create or replace table "safe" as select 1 as n, 0 as last_batch`)
  const safe = `update "safe" set n = n + 5, last_batch = 1 where last_batch < 1`
  await database.run(safe)
  const safeFirst = await database.rows(quote('safe'), ['n'])
  await database.run(safe)
  const safeSecond = await database.rows(quote('safe'), ['n'])
  return {
    shown: first.join() !== second.join() && safeFirst.join() === safeSecond.join(),
    lines: [
      `${real ? 'the statement itself' : 'a statement of its shape'}, run in DuckDB on two invented rows`,
      `"${column}" after run 1: ${first.join(', ')}; after run 2: ${second.join(', ')}`,
      `with a mark of the applied batch: ${safeFirst.join(', ')} after run 1, ${safeSecond.join(', ')} after run 2`,
    ],
  }
}

async function upsertTwice(use: SqlUse, database: WitnessDatabase): Promise<WitnessResult> {
  const { statement } = use
  const sets = statement.conflict?.set ?? statement.merge?.branches.flatMap((branch) => [...branch.set]) ?? []
  const touch =
    sets.find(
      (one) =>
        one.value.some((_, index) => readsClock(one.value, index)) ||
        /updated|modified|changed/.test(one.column),
    )?.column ?? 'updated_at'
  const value = sets.find((one) => one.column !== touch)?.column ?? 'v'
  const run = (stamp: string, guard: string): string =>
    `insert into "target" as t values (1, 10, timestamp '${stamp}') on conflict (k) do update set ${quote(value)} = excluded.${quote(value)}, ${quote(touch)} = excluded.${quote(touch)} ${guard}`
  const state = async (guard: string): Promise<{ first: string[]; second: string[] }> => {
    await database.run(
      `create or replace table "target" (k integer primary key, ${quote(value)} integer, ${quote(touch)} timestamp)`,
    )
    await database.run(run('2025-01-01 00:00:00', guard))
    const first = await database.rows(quote('target'), ['k', quote(value), quote(touch)])
    await database.run(run('2025-01-02 00:00:00', guard))
    return { first, second: await database.rows(quote('target'), ['k', quote(value), quote(touch)]) }
  }
  const bad = await state('')
  const safe = await state(`where t.${quote(value)} is distinct from excluded.${quote(value)}`)
  return {
    shown: bad.first.join() !== bad.second.join() && safe.first.join() === safe.second.join(),
    lines: [
      'a statement of its shape, run in DuckDB on one invented row, the same row on two days',
      `after run 1: (${bad.first.join()}); after run 2: (${bad.second.join()})`,
      `with a condition on the values: (${safe.second.join()}) after run 2`,
    ],
  }
}
