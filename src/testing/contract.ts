import { deepEqual, equal, fail, ok, rejects } from 'node:assert/strict'
import { StetError } from '../errors.ts'
import type { RunCounts } from '../model/run.ts'
import type { Contract } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Applied, Difference, Target, TargetSession } from '../model/target.ts'
import type { WriteStrategy } from '../model/write.ts'
import { definePipeline } from '../pipeline/define.ts'
import { plan } from '../pipeline/plan.ts'
import { run } from '../pipeline/run.ts'
import type { DefinedPipeline, RunOptions, RunResult } from '../pipeline/types.ts'
import { literalRows } from './literal-source.ts'
import type { Attempt, Faults, Place } from './place.ts'

/** One sentence of the contract and how it is held to. */
export interface ContractCheck {
  readonly name: string
  /** The guarantees it stands for, as `docs/guarantees.md` numbers them. */
  readonly guarantees: readonly string[]
  readonly run: () => Promise<void>
  /** Why it does not apply to this target; printed, never silent. */
  readonly skip?: string | undefined
}

export interface ContractOptions {
  /** Makes a new, empty place. */
  readonly create: () => Promise<Place>
  /** Ways to end an attempt by force; at least one, or the contract says nothing about crashes. */
  readonly faults: readonly Faults[]
  /** Checks that cannot apply, by name, each with its reason. */
  readonly skip?: Readonly<Record<string, string>> | undefined
  /** Set to try every n-th fault point only, where a full walk is too dear. Default 1. */
  readonly faultStride?: number | undefined
}

const COLUMNS = {
  id: 'text',
  amount: 'numeric(12,2)',
  note: 'text',
  at: 'timestamptz',
  seq: 'bigint',
} as const
type Rows = readonly (readonly (string | null)[])[]

const FIRST: Rows = [
  ['a', '1.50', 'first', '2024-02-29 10:00:00+00', '1'],
  ['b', '2.00', '', '2024-02-29 10:00:00.000001+00', '1'],
  ['c', '-0.01', null, null, '1'],
]
/** `a` changed, `c` as it was, `d` new, `b` older than before. */
const SECOND: Rows = [
  ['a', '1.75', 'second', '2024-02-29 10:00:00+00', '2'],
  ['b', '9.99', 'stale', null, '0'],
  ['c', '-0.01', null, null, '1'],
  ['d', '4.00', 'new', null, '2'],
]
const UPSERT: WriteStrategy = { strategy: 'upsert', key: ['id'], newest: 'seq' }
const INSERT_ONCE: WriteStrategy = { strategy: 'insert-once', key: ['id'], newest: 'seq' }
const REPLACE: WriteStrategy = { strategy: 'replace-table', key: ['id'] }
const REPLACE_WITHOUT_KEY: WriteStrategy = { strategy: 'replace-table' }

/**
 * The contract that every target keeps: the checks as data, for any test runner.
 *
 * @example
 * for (const check of targetContract({ create, faults })) test(check.name, check.run)
 */
export function targetContract(options: ContractOptions): readonly ContractCheck[] {
  const checks: ContractCheck[] = []
  const check = (name: string, guarantees: readonly string[], body: (place: Place) => Promise<void>) => {
    checks.push({
      name,
      guarantees,
      skip: options.skip?.[name],
      run: async () => {
        await using place = await options.create()
        await body(place)
      },
    })
  }
  checksOfContent(check)
  checksOfGuards(check)
  checksOfOthers(check)
  for (const faults of options.faults) checksOfFaults(check, faults, options.faultStride ?? 1)
  return checks
}

type Check = (name: string, guarantees: readonly string[], body: (place: Place) => Promise<void>) => void

function checksOfContent(check: Check): void {
  check('the same rows again touch nothing', ['G1', 'G2'], async (place) => {
    const first = await load(place, FIRST)
    expectCounts(first, { read: 3, inserted: 3 })
    const rows = await place.rows('t')
    const versions = await place.versions('t')
    const second = await load(place, FIRST)
    expectCounts(second, { read: 3, unchanged: 3 })
    equal(second.verdict, 'unchanged')
    deepEqual(await place.rows('t'), rows)
    deepEqual(await place.versions('t'), versions)
  })

  check(
    'a changed row is updated, a new one inserted, an older one left alone',
    ['G1', 'G5', 'G6'],
    async (place) => {
      await load(place, FIRST)
      const versions = await place.versions('t')
      const result = await load(place, SECOND)
      expectCounts(result, { read: 4, inserted: 1, updated: 1, unchanged: 1, stale: 1 })
      deepEqual(await idsAndNotes(place), [
        ['a', 'second'],
        ['b', ''],
        ['c', null],
        ['d', 'new'],
      ])
      if (versions !== null) {
        const after = (await place.versions('t')) ?? []
        equal(
          versions.filter((version) => after.includes(version)).length,
          2,
          'b and c keep their row versions (G2)',
        )
      }
    },
  )

  check('an older load replayed after a newer one changes nothing', ['G5'], async (place) => {
    await load(place, SECOND)
    const rows = await place.rows('t')
    const result = await load(place, FIRST)
    expectCounts(result, { read: 3, updated: 1, unchanged: 1, stale: 1 })
    // b alone was older in SECOND; once it is repaired, the two loads can be repeated in any order.
    const settled = await place.rows('t')
    ok(settled.length === rows.length)
    await load(place, SECOND)
    deepEqual(await place.rows('t'), settled)
  })

  check('the newest of several rows with one key stays, wherever it stands', ['G5'], async (place) => {
    const rivals: Rows = [
      ['a', '1.00', 'nine', null, '9'],
      ['a', '2.00', 'twelve', null, '12'],
      ['a', '3.00', 'seven', null, '7'],
      ['b', '1.00', 'only', null, '1'],
      ['b', '1.00', 'only', null, '1'],
    ]
    for (const rows of [rivals, [...rivals].reverse()]) {
      const result = await load(place, rows)
      equal(result.counts.duplicate, 3)
      deepEqual(await idsAndNotes(place), [
        ['a', 'twelve'],
        ['b', 'only'],
      ])
    }
  })

  check('a losing duplicate that differs is never written', ['G2', 'G5'], async (place) => {
    const rows: Rows = [
      ['a', '1.00', 'old', null, '1'],
      ['a', '2.00', 'new', null, '2'],
    ]
    await load(place, rows)
    const versions = await place.versions('t')
    const again = await load(place, rows)
    expectCounts(again, { read: 2, duplicate: 1, unchanged: 1 })
    deepEqual(await place.versions('t'), versions)
  })

  check(
    'two rows that tie with different content are refused, and nothing is written',
    ['G5'],
    async (place) => {
      await load(place, FIRST)
      const rows = await place.rows('t')
      const tie: Rows = [
        ['z', '1.00', 'this', null, '5'],
        ['z', '1.00', 'that', null, '5'],
      ]
      await rejects(load(place, tie), (error: unknown) => isRefusal(error, 'STET_TIE', ['z', 'this', 'that']))
      deepEqual(await place.rows('t'), rows)
    },
  )

  check('insert-once never changes an existing row and counts it as frozen', ['G1', 'G6'], async (place) => {
    await load(place, FIRST, INSERT_ONCE)
    const versions = await place.versions('t')
    const result = await load(place, SECOND, INSERT_ONCE)
    expectCounts(result, { read: 4, inserted: 1, unchanged: 1, frozen: 2 })
    const after = await place.versions('t')
    if (versions !== null && after !== null) ok(versions.every((version) => after.includes(version)))
  })

  check('replace-table leaves exactly the rows of the load', ['G1', 'G2', 'G6'], async (place) => {
    await load(place, FIRST, REPLACE)
    const result = await load(place, SECOND.slice(0, 3), REPLACE)
    expectCounts(result, { read: 3, updated: 2, unchanged: 1 })
    const less = await load(place, SECOND.slice(1), REPLACE)
    expectCounts(less, { read: 3, inserted: 1, unchanged: 2, deleted: 1 })
    deepEqual(
      (await idsAndNotes(place)).map(([id]) => id),
      ['b', 'c', 'd'],
    )
  })

  check('replace-table without a key compares rows as a multiset', ['G1', 'G2', 'G6'], async (place) => {
    const twice: Rows = [...FIRST.slice(0, 1), ...FIRST]
    expectCounts(await load(place, twice, REPLACE_WITHOUT_KEY), { read: 4, inserted: 4 })
    const versions = await place.versions('t')
    expectCounts(await load(place, twice, REPLACE_WITHOUT_KEY), { read: 4, unchanged: 4 })
    deepEqual(await place.versions('t'), versions)
    expectCounts(await load(place, FIRST, REPLACE_WITHOUT_KEY), { read: 3, unchanged: 3, deleted: 1 })
    equal(await place.count('t'), 3)
  })

  check(
    'a column that is ignored is no reason to update, and is written with a row that changes',
    ['G2'],
    async (place) => {
      const write: WriteStrategy = { strategy: 'upsert', key: ['id'], ignore: ['at'] }
      await load(place, FIRST, write)
      const stamped = FIRST.map(([id, amount, note, , seq]) => [
        id ?? null,
        amount ?? null,
        note ?? null,
        '2030-01-01 00:00:00+00',
        seq ?? null,
      ])
      expectCounts(await load(place, stamped, write), { read: 3, unchanged: 3 })
      ok((await place.rows('t')).every((row) => !row.includes('2030')))
      const changed = stamped.map((row, position) =>
        position === 0 ? [row[0] ?? null, '7.00', ...row.slice(2)] : row,
      )
      expectCounts(await load(place, changed, write), { read: 3, updated: 1, unchanged: 2 })
      equal((await place.rows('t')).filter((row) => row.includes('2030')).length, 1)
    },
  )

  check('NULL, empty text, quotes, newlines and unicode come back as they went in', ['G9'], async (place) => {
    const texts = [
      '',
      ' ',
      'NULL',
      '\\N',
      '\\.',
      '"',
      "'",
      ',',
      '\n',
      '\r',
      '\r\n',
      '\t',
      '\u{FEFF}x',
      '😀',
      'é',
      'e\u0301',
      '#',
      '\\',
      'a"b,c\nd',
    ]
    const rows: Rows = [
      ...texts.map((text, position) => [`k${position}`, '1.00', text, null, '1']),
      ['k-null', '1.00', null, null, '1'],
    ]
    expectCounts(await load(place, rows), { read: rows.length, inserted: rows.length })
    expectCounts(await load(place, rows), { read: rows.length, unchanged: rows.length })
  })
}

function checksOfGuards(check: Check): void {
  check('a rejected row fails the run and changes nothing', ['G9'], async (place) => {
    await load(place, FIRST)
    const rows = await place.rows('t')
    const bad: Rows = [...SECOND, ['e', '1.005', 'rounds', null, '1']]
    await rejects(load(place, bad), (error: unknown) =>
      isRefusal(error, 'STET_REJECTED', ['amount', '1.005', '5']),
    )
    deepEqual(await place.rows('t'), rows)
    equal((await lastRun(place)).status, 'failed')
    equal((await lastRun(place)).error?.code, 'STET_REJECTED')
  })

  check('a NULL in the key is a reject', ['G1', 'G9'], async (place) => {
    const bad: Rows = [[null, '1.00', 'nobody', null, '1']]
    await rejects(load(place, bad), (error: unknown) => isRefusal(error, 'STET_REJECTED', ['id', 'NULL']))
  })

  check('an empty source empties nothing unless that is allowed by name', ['G10'], async (place) => {
    await load(place, FIRST, REPLACE)
    await rejects(load(place, [], REPLACE), (error: unknown) =>
      isRefusal(error, 'STET_DELETE_GUARD', ['empty', '3 rows']),
    )
    equal(await place.count('t'), 3)
    const allowed: WriteStrategy = { strategy: 'replace-table', key: ['id'], allowEmpty: true }
    expectCounts(await load(place, [], allowed), { deleted: 3 })
    equal(await place.count('t'), 0)
  })

  check('reading nothing and finding nothing changed are told apart', ['G10'], async (place) => {
    await load(place, FIRST)
    equal((await load(place, FIRST)).verdict, 'unchanged')
    equal((await load(place, [])).verdict, 'nothing read')
    equal(await place.count('t'), 3)
  })

  check('the run log tells every run with its counts', ['G6'], async (place) => {
    await load(place, FIRST, UPSERT, { runId: 'r1' })
    await load(place, SECOND, UPSERT, { runId: 'r2' })
    await using log = await place.target.openRunLog({ signal: new AbortController().signal })
    const entries = await log.list({})
    deepEqual(
      entries.map((entry) => [entry.runId, entry.status, entry.verdict]),
      [
        ['r2', 'succeeded', 'changed'],
        ['r1', 'succeeded', 'changed'],
      ],
    )
    equal(entries[0]?.counts?.stale, 1)
    equal(entries[0]?.counts?.updated, 1)
    equal((await log.find('r1'))[0]?.counts?.inserted, 3)
  })

  check('a plan says what a run will do and changes nothing', ['G2'], async (place) => {
    await load(place, FIRST)
    const rows = await place.rows('t')
    const runs = await runCount(place)
    const planned = await plan(
      pipelineOf(place.target, { table: 't', columns: COLUMNS, rows: SECOND, write: UPSERT }),
    )
    deepEqual(await place.rows('t'), rows)
    equal(await runCount(place), runs, 'a plan leaves no line in the record')
    const result = await load(place, SECOND, UPSERT, { plan: planned })
    deepEqual(result.counts, planned.counts)
    equal(
      (await load(place, SECOND, UPSERT, { plan: planned })).verdict,
      'unchanged',
      'a plan that was applied',
    )
    const other: Rows = [['a', '8.00', 'third', null, '3']]
    await rejects(load(place, other, UPSERT, { plan: planned }), (error: unknown) =>
      isRefusal(error, 'STET_PLAN_DIFFERS', []),
    )
    ok((await place.rows('t')).every((row) => !row.includes('third')))
  })

  check('an aborted run leaves the table as it was', ['G1'], async (place) => {
    await load(place, FIRST)
    const rows = await place.rows('t')
    const reason = new Error('enough')
    const controller = new AbortController()
    const attempt = load(place, SECOND, UPSERT, {
      signal: controller.signal,
      onProgress: ({ phase }) => {
        if (phase === 'writing') controller.abort(reason)
      },
    })
    await rejects(attempt, (error: unknown) => error === reason)
    deepEqual(await place.rows('t'), rows)
    expectCounts(await load(place, SECOND), { read: 4, inserted: 1, updated: 1, unchanged: 1, stale: 1 })
  })
}

function checksOfOthers(check: Check): void {
  check('several starts of one run at once end as one after the other', ['G7'], async (place) => {
    const many: Rows = Array.from({ length: 500 }, (_, position) => [`k${position}`, '1.00', 'x', null, '1'])
    const results = await Promise.all([1, 2, 3, 4].map(() => load(place, many)))
    equal(await place.count('t'), 500)
    equal(
      results.reduce((sum, result) => sum + result.counts.inserted, 0),
      500,
    )
    equal(
      results.reduce((sum, result) => sum + result.counts.unchanged, 0),
      1500,
    )
  })

  check('a stream that breaks midway commits no short table', ['G1', 'G9'], async (place) => {
    const many: Rows = Array.from({ length: 5000 }, (_, position) => [`k${position}`, '1.00', 'x', null, '1'])
    const attempt: Attempt = { table: 't', columns: COLUMNS, rows: many, write: UPSERT }
    await rejects(run(pipelineOf(breakingMidway(place), attempt)))
    equal(await place.count('t'), 0)
    equal((await lastRun(place)).status, 'failed')
    await run(pipelineOf(place.target, attempt))
    equal(await place.count('t'), 5000)
  })

  const between = (body: (place: Place) => Promise<void>) => (place: Place) =>
    interfering(place, () => body(place))

  check(
    'a newer row that another writer puts between comparison and commit stays',
    ['G5', 'G7'],
    async (place) => {
      await load(place, FIRST)
      const target = between(() => place.execute(`update t set note = 'theirs', seq = 99 where id = 'a'`))(
        place,
      )
      const result = await run(
        pipelineOf(target, { table: 't', columns: COLUMNS, rows: SECOND, write: UPSERT }),
      )
      equal(result.counts.stale, 2)
      equal((await idsAndNotes(place))[0]?.[1], 'theirs')
    },
  )

  check(
    'a row that another writer inserts between comparison and commit is met, not doubled',
    ['G1', 'G7'],
    async (place) => {
      await load(place, FIRST)
      const target = between(() =>
        place.execute(`insert into t (id, amount, note, seq) values ('d', 4.00, 'theirs', 1)`),
      )(place)
      const result = await run(
        pipelineOf(target, { table: 't', columns: COLUMNS, rows: SECOND, write: UPSERT }),
      )
      equal(result.counts.updated, 2)
      equal(await place.count('t'), 4)
    },
  )

  check(
    'a row that another writer refreshes is not deleted on the strength of an older look',
    ['G5', 'G7'],
    async (place) => {
      await load(place, FIRST, REPLACE)
      const target = between(() => place.execute(`update t set note = 'theirs' where id = 'c'`))(place)
      const withoutC = FIRST.slice(0, 2)
      const result = await run(
        pipelineOf(target, { table: 't', columns: COLUMNS, rows: withoutC, write: REPLACE }),
      )
      equal(result.counts.deleted, 0)
      equal(await place.count('t'), 3)
    },
  )
}

/** The target with somebody else's statement in between: after the comparison, before the first write. */
function interfering(place: Place, act: () => Promise<void>): Target {
  return withApply(place.target, async (session, contract, difference) => {
    await act()
    return session.apply(contract, difference)
  })
}

/** The target given a difference that fails when most of its rows have been read. */
function breakingMidway(place: Place): Target {
  return withApply(place.target, async (session, contract, difference, local) => {
    const table = local.newName('breaking')
    await local.run(`
      create view ${table} as
      select * from ${difference.table}
       where case when c0 = 'k4990' then error('the source has died') else true end`)
    return session.apply(contract, { ...difference, table })
  })
}

/** The target with another `apply`. */
function withApply(
  target: Target,
  act: (
    session: TargetSession,
    contract: Contract,
    difference: Difference,
    local: LocalConnection,
  ) => Promise<Applied>,
): Target {
  return {
    ...target,
    open: async (options) => {
      const session = await target.open(options)
      const apply: TargetSession['apply'] = (contract, difference) =>
        act(session, contract, difference, options.local)
      return new Proxy(session, {
        get: (inner, name) => {
          if (name === 'apply') return apply
          const value: unknown = Reflect.get(inner, name)
          return typeof value === 'function' ? value.bind(inner) : value
        },
      })
    },
  }
}

function checksOfFaults(check: Check, faults: Faults, stride: number): void {
  const strategies: readonly [string, WriteStrategy][] = [
    ['upsert', UPSERT],
    ['insert-once', INSERT_ONCE],
    ['replace-table', REPLACE],
    ['replace-table without a key', REPLACE_WITHOUT_KEY],
  ]
  for (const [name, write] of strategies) {
    for (const start of ['an empty target', 'a loaded target'] as const) {
      check(
        `${name}: ${faults.what} anywhere, on ${start}, and the rerun ends as if nothing had happened`,
        ['G1', 'G6'],
        async (place) => {
          const rows = start === 'an empty target' ? FIRST : SECOND
          const attempt: Attempt = { table: 't', columns: COLUMNS, rows, write }
          const begin = async () => {
            await place.execute('drop table if exists t')
            if (start === 'a loaded target') await load(place, FIRST, write)
          }
          await begin()
          const clean = await run(pipelineOf(place.target, attempt))
          const wanted = await place.rows('t')
          await begin()
          const points = await faults.countOf(place, attempt)
          ok(points > 0, 'a run that sends nothing proves nothing')
          for (let at = 1; at <= points; at += stride) {
            for (const side of ['before', 'after'] as const) {
              await begin()
              const where = `${side} ${at} of ${points}`
              const runsBefore = await runCount(place)
              const { claimedSuccess } = await faults.attemptWithFault(place, attempt, { at, side })
              if (claimedSuccess)
                deepEqual(await place.rows('t'), wanted, `success was claimed, fault ${where}`)
              const committed = claimedSuccess || (await succeededSince(place, runsBefore)) > 0
              if (committed && faults.attemptSurvives)
                ok(claimedSuccess, `a commit that arrived is found out, fault ${where}`)
              const again = await run(pipelineOf(place.target, attempt))
              deepEqual(await place.rows('t'), wanted, `after the rerun, fault ${where}`)
              const sum = again.counts
              if (!committed)
                deepEqual(changes(sum), changes(clean.counts), `counts of the rerun, fault ${where}`)
              deepEqual(await place.leftovers(), [], `nothing is left behind, fault ${where}`)
              await recordIsTrue(place, runsBefore, changes(clean.counts), where)
            }
          }
        },
      )
    }
  }
}

async function succeededSince(place: Place, runsBefore: number): Promise<number> {
  const entries = await entriesOf(place)
  return entries.slice(0, entries.length - runsBefore).filter(({ status }) => status === 'succeeded').length
}

/** Over all attempts since, what the record says was changed is what one run changes: rows and record are one commit. */
async function recordIsTrue(place: Place, runsBefore: number, wanted: unknown, where: string): Promise<void> {
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  const entries = await log.list({})
  const since = entries.slice(0, entries.length - runsBefore)
  const total = { inserted: 0, updated: 0, deleted: 0 }
  for (const entry of since) {
    if (entry.counts === null) continue
    if (entry.status !== 'succeeded') {
      const { inserted, updated, deleted } = entry.counts
      equal(inserted + updated + deleted, 0, `a run that ${entry.status} tells of no change, fault ${where}`)
      continue
    }
    total.inserted += entry.counts.inserted
    total.updated += entry.counts.updated
    total.deleted += entry.counts.deleted
  }
  deepEqual(total, wanted, `the record tells of each change once, fault ${where}`)
  ok(
    since.every((entry) => entry.status !== 'running'),
    `no attempt is left running in the record, fault ${where}`,
  )
}

function changes({ inserted, updated, deleted }: RunCounts): {
  inserted: number
  updated: number
  deleted: number
} {
  return { inserted, updated, deleted }
}

/** An attempt as a pipeline; also used by the process that gets killed. */
export function pipelineOf(target: Target, { table, columns, rows, write }: Attempt): DefinedPipeline {
  return definePipeline({
    name: 'contract',
    source: literalRows(columns, rows),
    target,
    table,
    write,
  } as never)
}

async function load(
  place: Place,
  rows: Rows,
  write: WriteStrategy = UPSERT,
  options: RunOptions = {},
): Promise<RunResult> {
  return run(pipelineOf(place.target, { table: 't', columns: COLUMNS, rows, write }), options)
}

function expectCounts(result: RunResult, wanted: Partial<RunCounts>): void {
  const { filtered, added, afterTransform, ...terms } = result.counts
  const all: Record<string, number> = {
    read: 0,
    rejected: 0,
    duplicate: 0,
    inserted: 0,
    updated: 0,
    unchanged: 0,
    stale: 0,
    frozen: 0,
    deleted: 0,
  }
  deepEqual({ ...terms }, { ...all, ...wanted })
  equal(filtered + added, 0)
  equal(afterTransform, terms.read)
}

async function idsAndNotes(place: Place): Promise<(string | null)[][]> {
  const rows = await place.rows('t')
  return rows.map((row) => {
    const { id, note } = JSON.parse(row) as { id: string; note: string | null }
    return [id, note]
  })
}

async function lastRun(place: Place): Promise<Awaited<ReturnType<typeof entriesOf>>[number]> {
  const [entry] = await entriesOf(place)
  return entry ?? fail('the record is empty')
}

async function entriesOf(place: Place) {
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  return await log.list({})
}

async function runCount(place: Place): Promise<number> {
  return (await entriesOf(place)).length
}

function isRefusal(error: unknown, code: string, words: readonly string[]): boolean {
  ok(error instanceof StetError, String(error))
  equal(error.code, code)
  for (const word of words) ok(error.message.includes(word), `"${error.message}" names ${word}`)
  return true
}
