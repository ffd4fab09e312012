import { type LandingRules, takenRowsSql } from '../local/land.ts'
import { textSql } from '../local/typing.ts'
import type { Contract, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Reject, SourcePart } from '../model/source.ts'
import type { TargetSession } from '../model/target.ts'

/** Rows that the target's own types refuse: deleted from the landed table, counted and shown. */
export interface RefusedByTarget {
  readonly rejected: number
  readonly rejects: readonly Reject[]
}

const REJECTS_SHOWN = 100

function shownOf({ keepRejects }: LandingRules): number {
  return keepRejects ?? REJECTS_SHOWN
}

/**
 * Brings columns that compare as text into the form in which the target gives them back, by asking the target itself:
 * only it knows that `[1,5]` is `[1,6)` or `abc` in a char(5) is `abc  `. Distinct texts travel, not rows.
 */
export async function bringIntoTargetForm(
  local: LocalConnection,
  session: TargetSession,
  landed: string,
  contract: Contract,
  parts: readonly SourcePart[],
  rules: LandingRules,
): Promise<RefusedByTarget> {
  const shown = shownOf(rules)
  let rejected = 0
  const rejects: Reject[] = []
  const explained = parts.map(() => new Set<number>())
  for (const column of contract.columns.filter((candidate) => candidate.asText)) {
    const texts = local.newName('texts')
    await local.run(`
      create table ${texts} as
      select distinct ${column.id} as text
        from ${landed}
       where ${column.id} is not null`)
    if ((await local.count(`select count(*) from ${texts}`)) === 0) continue
    const forms = await session.canonical(column, texts)
    const bad = `select 1 from ${forms} as f where f.canonical is null and f.text = x.${column.id}`
    const refused = await local.count(`select count(*) from ${landed} as x where exists (${bad})`)
    if (refused > 0) {
      if (rejects.length < shown) {
        rejects.push(...(await explain(local, forms, column, { contract, parts, rules, explained })))
      }
      await local.run(`delete from ${landed} as x where exists (${bad})`)
      rejected += refused
    }
    await local.run(`
      update ${landed} as x
         set ${column.id} = f.canonical
        from ${forms} as f
       where f.text = x.${column.id}
         and f.canonical is distinct from f.text`)
  }
  return { rejected, rejects: rejects.slice(0, shown) }
}

interface Explaining {
  readonly contract: Contract
  readonly parts: readonly SourcePart[]
  readonly rules: LandingRules
  /** Numbers of the rows of each part that have a reject: one of several faults must not take another row's place. */
  readonly explained: readonly Set<number>[]
}

async function explain(
  local: LocalConnection,
  forms: string,
  column: ContractColumn,
  { contract, parts, rules, explained }: Explaining,
): Promise<Reject[]> {
  const rejects: Reject[] = []
  // Row numbers mean something only in the file's own order, which the landing gives up for speed.
  await local.run('set preserve_insertion_order = true')
  for (const [index, part] of parts.entries()) {
    const known = explained[index] ?? new Set()
    // The target was asked for the text as landed, which the source may spell in another way.
    const refused = await local.rows(`
      select s.n, s.${column.id} as value, f.reason
        from (${takenRowsSql(part, contract.columns, rules)}) as s
        join ${forms} as f
          on f.text = s.v_${column.id}
       where f.canonical is null
       order by s.n
       limit ${shownOf(rules) + known.size}`)
    const found = refused.filter(({ n }) => !known.has(Number(n)))
    for (const { n } of found) known.add(Number(n))
    const places = await part.locate(found.map((row) => Number(row.n)))
    for (const [position, row] of found.entries()) {
      rejects.push({
        file: part.file?.path ?? null,
        line: places[position]?.line ?? null,
        column: column.name,
        value: String(row.value).slice(0, 200),
        reason: String(row.reason ?? 'is refused by the target'),
        raw: places[position]?.raw,
      })
    }
  }
  await local.run('set preserve_insertion_order = false')
  return rejects
}

/** The same contract with further columns compared as text. */
export function withTextColumns(contract: Contract, ids: readonly string[]): Contract {
  return {
    ...contract,
    columns: contract.columns.map((column) =>
      ids.includes(column.id) ? { ...column, asText: true } : column,
    ),
  }
}

/**
 * Turns landed columns into text after the target turned out to hold values that their local types cannot. The texts of
 * the proved local types can be written as the target's own, so nothing has to be landed again.
 */
export async function turnIntoText(
  local: LocalConnection,
  landed: string,
  columns: readonly ContractColumn[],
): Promise<void> {
  for (const column of columns) {
    await local.run(
      `alter table ${landed} alter column ${column.id} set data type varchar using ${textSql(column, column.id)}`,
    )
  }
}

/** A DuckDB relation as a part of a source: rows that a transform made, which stand in no file. */
export function relationPart(
  local: LocalConnection,
  relation: string,
  textOf: (name: string) => string,
): SourcePart {
  return {
    file: null,
    select: (wanted) =>
      `select ${wanted.map((name, position) => `${textOf(name)} as c${position}`).join(', ')} from ${relation}`,
    rejects: async () => [],
    locate: async (rows) => {
      if (rows.length === 0) return []
      const found = await local.rows(`
        select n, to_json(x)::varchar as raw
          from (select row_number() over () as n, * from ${relation}) as x
         where n in (${rows.join(', ')})`)
      const rawByNumber = new Map(found.map(({ n, raw }) => [Number(n), withoutNumber(String(raw))]))
      return rows.map((n) => ({ line: null, raw: rawByNumber.get(n) ?? '' }))
    },
  }
}

/** The row as it is, without the number by which it was found. */
function withoutNumber(raw: string): string {
  return raw.replace(/^\{"n":\d+,/, '{')
}
