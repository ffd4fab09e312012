import { join } from 'node:path'
import { diffEffects } from './http/recorder.ts'
import type { Observation } from './lab.ts'
import type { Cluster } from './sandbox/cluster.ts'
import { diffTable } from './state/diff.ts'
import { diffFiles, type FileDiff, tablesOfFiles } from './state/files.ts'
import type { Ignore } from './state/ignore.ts'
import { listTables } from './state/tables.ts'
import { differingTables, type Tables, tableDifferences } from './table-differences.ts'
import type { Difference } from './verdict.ts'

/** The state of a clean run, and a copy of its database that may be read at any time. */
export interface Reference {
  readonly observation: Observation
  readonly database: string
}

const PLAIN = { examples: [], changes: [], note: null } as const

/** Whether two observations are the same state; sequences may have advanced. */
function isSameState(one: Observation, other: Observation): boolean {
  return (
    differingTables(one.database.tables, other.database.tables).length === 0 && isSameBesideTables(one, other)
  )
}

function isSameBesideTables(one: Observation, other: Observation): boolean {
  const beside = ({ database, digest }: Observation) =>
    [...database.definitions, ...digest.split('\n').slice(1)].join('\n')
  return beside(one) === beside(other)
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
    ...(await databaseDifferences(clean, here, cluster, ignore)),
    ...definitionDifferences(clean.observation.database, here.database),
    ...(await fileDifferences(clean.observation, here, ignore)),
    ...requestDifferences(clean.observation, here),
  ]
}

async function databaseDifferences(
  clean: Reference,
  here: Observation,
  cluster: Cluster,
  ignore: Ignore,
): Promise<readonly Difference[]> {
  const sides = [clean.observation.database.tables, here.database.tables] as const
  if (differingTables(...sides).length === 0) return []
  await using cleanSession = await cluster.open(clean.database)
  await using hereSession = await cluster.open(here.world.database)
  const shapes = await listTables(hereSession)
  return await tableDifferences(...sides, {
    kind: 'table',
    rows: async (name) => {
      const table = shapes.find((one) => one.name === name)
      return table === undefined ? null : diffTable(cleanSession, hereSession, table, ignore)
    },
  })
}

interface Defined {
  readonly tables: Tables
  readonly definitions: readonly string[]
}

function definitionDifferences(clean: Defined, here: Defined): readonly Difference[] {
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

async function fileDifferences(
  clean: Observation,
  here: Observation,
  ignore: Ignore,
): Promise<readonly Difference[]> {
  const side = ({ world, files }: Observation) => ({ folder: join(world.folder, 'work'), files })
  const [before, after] = [side(clean), side(here)]
  const found: Difference[] = []
  for (const diff of await diffFiles(before, after)) {
    const { file } = diff
    const [one, other] = [before.files.get(file), after.files.get(file)]
    if (one?.data == null || other?.data == null) found.push(bytesDifference(diff))
    else {
      found.push(
        ...(await tableDifferences(one.data.tables, other.data.tables, {
          kind: one.data.tables.has(file) ? 'file' : 'table',
          rows: (table) =>
            clean.dataFiles.diff(join(before.folder, file), join(after.folder, file), file, table, ignore),
        })),
        ...definitionDifferences(one.data, other.data),
      )
    }
  }
  return found
}

function bytesDifference({ file, kind, lines }: FileDiff): Difference {
  return {
    ...PLAIN,
    class: kind,
    where: file,
    kind: 'file',
    count: lines === null ? 1 : Math.abs(lines.here - lines.clean) || 1,
    clean: lines?.clean ?? (kind === 'lost' ? 1 : 0),
    here: lines?.here ?? (kind === 'lost' ? 0 : 1),
    note: lines === null ? null : 'lines',
  }
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
  const look = (before: Tables, now: Tables, after: Tables, isGoneSeen: boolean) => {
    for (const [table, { rows, content }] of after) {
      const [old, seen] = [before.get(table), now.get(table)]
      if (seen?.content === content || seen?.content === old?.content) continue
      // A table that was not there, and now has no rows, is nothing to anybody.
      if (seen === undefined ? !isGoneSeen : seen.rows === 0 && old === undefined) continue
      found.push({ table, visible: seen?.rows ?? 0, of: rows })
    }
  }
  look(start.database.tables, crashed.database.tables, clean.database.tables, false)
  const files = [start, crashed, clean].map((one) => tablesOfFiles(one.files)) as [Tables, Tables, Tables]
  look(...files, true)
  return found
}
