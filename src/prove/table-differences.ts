import { isTwiceAsMuch, type TableDiff } from './state/diff.ts'
import type { TableState } from './state/fingerprint.ts'
import type { Difference } from './verdict.ts'

export type Tables = ReadonlyMap<string, TableState>

/** How a difference of a table is told, and where its rows come from. */
export interface TableSides {
  readonly kind: 'table' | 'file'
  /** Null when the rows cannot be read. */
  readonly rows: (name: string) => Promise<TableDiff | null>
}

/** Names of tables that are not the same on both sides. */
export function differingTables(one: Tables, other: Tables): readonly string[] {
  const names = [...new Set([...one.keys(), ...other.keys()])]
  return names.filter((name) => one.get(name)?.full !== other.get(name)?.full)
}

const PLAIN = { examples: [], changes: [], note: null } as const

/** What is wrong with the tables that differ. */
export async function tableDifferences(
  clean: Tables,
  here: Tables,
  { kind, rows }: TableSides,
): Promise<readonly Difference[]> {
  const found: Difference[] = []
  for (const name of differingTables(clean, here)) {
    const [before, after] = [clean.get(name), here.get(name)]
    const counts = { where: name, kind, clean: before?.rows ?? 0, here: after?.rows ?? 0 } as const
    const other = wholeDifference(counts, before, after)
    if (other !== null) found.push(other)
    else {
      const diff = await rows(name)
      if (diff !== null) found.push(...rowDifferences(counts, diff))
    }
  }
  return found
}

type Counts = Pick<Difference, 'where' | 'kind' | 'clean' | 'here'>

/** What can be said without a look at rows. */
function wholeDifference(
  counts: Counts,
  before: TableState | undefined,
  after: TableState | undefined,
): Difference | null {
  const rows = counts.kind === 'file' ? { ...PLAIN, note: 'rows' } : PLAIN
  if (after === undefined && counts.kind === 'file')
    return { ...rows, ...counts, class: 'lost', count: counts.clean }
  if (after === undefined) {
    return { ...PLAIN, ...counts, class: 'lost', count: counts.clean, note: 'the table is not there' }
  }
  if (before === undefined) {
    const note = `a table of ${after.rows} rows`
    return { ...PLAIN, ...counts, class: 'left behind', count: 1, note }
  }
  if (before.content === after.content && before.rows === after.rows) {
    return { ...PLAIN, ...counts, class: 'renumbered', count: after.rows }
  }
  if ([...before.columns.keys()].join() === [...after.columns.keys()].join()) return null
  if (after.rows === 0) return { ...rows, ...counts, class: 'lost', count: counts.clean }
  return { ...PLAIN, ...counts, class: 'different', count: after.rows, note: 'it has other columns' }
}

function rowDifferences(counts: Counts, diff: TableDiff): readonly Difference[] {
  const { examples, changes } = diff
  const found: Difference[] = []
  const add = (name: Difference['class'], count: number, note: string | null) => {
    const told = counts.kind === 'file' ? 'rows' : note
    if (count > 0) found.push({ ...counts, class: name, count, examples, changes, note: told })
  }
  add('lost', diff.lost, null)
  add('doubled', diff.doubled, null)
  const isTwice = isTwiceAsMuch(changes)
  add(isTwice ? 'doubled' : 'different', diff.changed, isTwice ? 'values twice as large' : 'other values')
  add('different', diff.extra, 'rows that a clean run does not leave')
  return found
}
