import { equal, rejects } from 'node:assert/strict'
import type { Contract } from '../model/columns.ts'
import type { Difference } from '../model/comparison.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Applied, Target, TargetSession } from '../model/target.ts'
import { run } from '../pipeline/run.ts'
import {
  type Check,
  COLUMNS,
  FIRST,
  idsAndNotes,
  isRefusal,
  lastRun,
  load,
  make,
  pipelineOf,
  REPLACE,
  type Rows,
  SECOND,
  UPSERT,
} from './kit.ts'
import type { Attempt, Place } from './place.ts'
import { ofCursor } from './slice-scenarios.ts'

export function checksOfOthers(check: Check): void {
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
    'a watermark that a person sets back while a run reads stays where the person put it',
    ['G4', 'G7'],
    async (place) => {
      const earlier: Rows = [['a', '2026-08-07', 'first', '1']]
      await make(place, ofCursor(earlier))
      const signal = new AbortController().signal
      await using log = await place.target.openRunLog({ signal })
      const [watermark] = await log.watermarks()
      if (watermark === undefined) throw new Error('there is no watermark')
      const target = between(async () => {
        await using record = await place.target.openRecord({ signal })
        await record.setWatermark({ ...watermark, value: '0' }, 'somebody')
      })(place)
      const attempt = ofCursor([...earlier, ['b', '2026-08-07', 'second', '9']])
      await rejects(run(pipelineOf(target, attempt)), (error: unknown) =>
        isRefusal(error, 'STET_SERIALIZATION', ['watermark']),
      )
      equal((await log.watermarks())[0]?.value, '0')
      equal(await place.count('t'), 1, 'nothing of the refused run was written')
      await make(place, attempt)
      equal((await log.watermarks())[0]?.value, '9')
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
  return withApply(place.target, async (session, contract, difference, _, load) => {
    await act()
    return session.apply(contract, difference, load)
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
    load: Parameters<TargetSession['apply']>[2],
  ) => Promise<Applied>,
): Target {
  return {
    ...target,
    open: async (options) => {
      const session = await target.open(options)
      const apply: TargetSession['apply'] = (contract, difference, load) =>
        act(session, contract, difference, options.local, load)
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
