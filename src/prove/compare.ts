import { join } from 'node:path'
import { diffEffects } from './http/recorder.ts'
import type { Observation } from './lab.ts'
import type { Cluster, Session } from './sandbox/cluster.ts'
import { diffTable, isTwiceAsMuch } from './state/diff.ts'
import { diffFiles } from './state/files.ts'
import type { Fingerprint } from './state/fingerprint.ts'
import type { Ignore } from './state/ignore.ts'
import { listTables } from './state/tables.ts'
import type { Difference } from './verdict.ts'

/** The state of a clean run, and a copy of its database that may be read at any time. */
export interface Reference {
  readonly observation: Observation
  readonly database: string
}

const PLAIN = { examples: [], changes: [], note: null } as const

/** Whether two observations are the same state; sequences may have advanced. */
function isSameState(one: Observation, other: Observation): boolean {
  return differingTables(one.database, other.database).length === 0 && isSameBesideTables(one, other)
}

function isSameBesideTables(one: Observation, other: Observation): boolean {
  const beside = ({ database, digest }: Observation) =>
    [...database.definitions, ...digest.split('\n').slice(1)].join('\n')
  return beside(one) === beside(other)
}

function differingTables(one: Fingerprint, other: Fingerprint): readonly string[] {
  const names = [...new Set([...one.tables.keys(), ...other.tables.keys()])]
  return names.filter((name) => one.tables.get(name)?.full !== other.tables.get(name)?.full)
}

/** Everything in which a state differs from that of a clean run. */
export async function differences(
  clean: Reference,
  here: Observation,
  cluster: Cluster,
  ignore: Ignore,
): Promise<readonly Difference[]> {
  if (isSameState(clean.observation, here)) return []
  return [
    ...(await tableDifferences(clean, here, cluster, ignore)),
    ...definitionDifferences(clean.observation.database, here.database),
    ...(await fileDifferences(clean.observation, here)),
    ...requestDifferences(clean.observation, here),
  ]
}

async function tableDifferences(
  clean: Reference,
  here: Observation,
  cluster: Cluster,
  ignore: Ignore,
): Promise<readonly Difference[]> {
  const names = differingTables(clean.observation.database, here.database)
  if (names.length === 0) return []
  await using cleanSession = await cluster.open(clean.database)
  await using hereSession = await cluster.open(here.world.database)
  const found: Difference[] = []
  for (const name of names) {
    const before = clean.observation.database.tables.get(name)
    const after = here.database.tables.get(name)
    const counts = { where: name, kind: 'table', clean: before?.rows ?? 0, here: after?.rows ?? 0 } as const
    if (after === undefined) {
      found.push({ ...PLAIN, ...counts, class: 'lost', count: counts.clean, note: 'the table is not there' })
    } else if (before === undefined) {
      found.push({
        ...PLAIN,
        ...counts,
        class: 'left behind',
        count: 1,
        note: `a table of ${after.rows} rows`,
      })
    } else if (before.content === after.content && before.rows === after.rows) {
      found.push({ ...PLAIN, ...counts, class: 'renumbered', count: after.rows })
    } else if ([...before.columns.keys()].join() !== [...after.columns.keys()].join()) {
      found.push({ ...PLAIN, ...counts, class: 'different', count: after.rows, note: 'it has other columns' })
    } else found.push(...(await rowDifferences(name, counts, cleanSession, hereSession, ignore)))
  }
  return found
}

async function rowDifferences(
  name: string,
  counts: Pick<Difference, 'where' | 'kind' | 'clean' | 'here'>,
  clean: Session,
  here: Session,
  ignore: Ignore,
): Promise<readonly Difference[]> {
  const table = (await listTables(here)).find((one) => one.name === name)
  if (table === undefined) return []
  const diff = await diffTable(clean, here, table, ignore)
  const { examples, changes } = diff
  const found: Difference[] = []
  const add = (name: Difference['class'], count: number, note: string | null) => {
    if (count > 0) found.push({ ...counts, class: name, count, examples, changes, note })
  }
  add('lost', diff.lost, null)
  add('doubled', diff.doubled, null)
  const isTwice = isTwiceAsMuch(changes)
  add(isTwice ? 'doubled' : 'different', diff.changed, isTwice ? 'values twice as large' : 'other values')
  add('different', diff.extra, 'rows that a clean run does not leave')
  return found
}

function definitionDifferences(clean: Fingerprint, here: Fingerprint): readonly Difference[] {
  // What belongs to a table that is too many, or missing, has been said with the table.
  const odd = [...clean.tables.keys(), ...here.tables.keys()].filter(
    (name) => clean.tables.has(name) !== here.tables.has(name),
  )
  const minus = (one: readonly string[], other: readonly string[]) =>
    one.filter((line) => !other.includes(line) && !odd.some((name) => line.includes(name)))
  const differ = (lines: readonly string[], name: Difference['class'], note: string): Difference[] =>
    lines.map((line) => ({
      ...PLAIN,
      class: name,
      where: line.replace(/\s+/g, ' ').slice(0, 100),
      kind: 'definition',
      count: 1,
      clean: name === 'different' ? 1 : 0,
      here: name === 'different' ? 0 : 1,
      note,
    }))
  return [
    ...differ(minus(clean.definitions, here.definitions), 'different', 'defined by a clean run, not here'),
    ...differ(minus(here.definitions, clean.definitions), 'left behind', 'not defined by a clean run'),
  ]
}

async function fileDifferences(clean: Observation, here: Observation): Promise<readonly Difference[]> {
  const side = ({ world, files }: Observation) => ({ folder: join(world.folder, 'work'), files })
  const diffs = await diffFiles(side(clean), side(here))
  return diffs.map(({ file, kind, lines }) => ({
    ...PLAIN,
    class: kind,
    where: file,
    kind: 'file',
    count: lines === null ? 1 : Math.abs(lines.here - lines.clean) || 1,
    clean: lines?.clean ?? (kind === 'lost' ? 1 : 0),
    here: lines?.here ?? (kind === 'lost' ? 0 : 1),
    note: lines === null ? null : 'lines',
  }))
}

function requestDifferences(clean: Observation, here: Observation): readonly Difference[] {
  return diffEffects(clean.world.ledger, here.world.ledger).map((diff) => ({
    ...PLAIN,
    class: diff.here < diff.clean ? 'lost' : diff.clean === 0 ? 'different' : 'doubled',
    where: diff.effect,
    kind: 'request',
    count: Math.abs(diff.here - diff.clean),
    clean: diff.clean,
    here: diff.here,
    note: null,
  }))
}

export interface Gap {
  readonly table: string
  readonly visible: number
  readonly of: number
}

/** Tables that show, between a crash and the rerun, neither the state before nor the one after. */
export function gaps(start: Observation, crashed: Observation, clean: Observation): readonly Gap[] {
  const found: Gap[] = []
  for (const [table, after] of clean.database.tables) {
    const now = crashed.database.tables.get(table)
    const before = start.database.tables.get(table)
    if (now === undefined || now.content === after.content || now.content === before?.content) continue
    found.push({ table, visible: now.rows, of: after.rows })
  }
  return found
}
