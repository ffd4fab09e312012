import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { connect, freshDatabase } from '../../test/support/databases.ts'
import { type Ran, type RanWith, runCli } from '../../test/support/run-cli.ts'
import { violations } from '../../test/support/schemas.ts'
import { byCursor, writeDay, writeVisits } from '../../test/support/visits.ts'
import { StetError } from '../errors.ts'
import type { BackfillDocument } from './documents.ts'

const bin = fileURLToPath(new URL('../../dist/cli/bin.js', import.meta.url))
const DAYS = ['2026-05-01', '2026-05-02', '2026-05-03', '2026-05-04'] as const
const RANGE = ['--from', '2026-05-01', '--to', '2026-05-04']

let cwd = ''
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stet-backfill-'))
  await writeVisits({ cwd })
  for (const day of DAYS) await writeDay(cwd, day, ['a', 'b'])
})
afterEach(() => {
  globalThis.beforeSlice = undefined
})

function stet(argv: readonly string[], more: Partial<RanWith> = {}): Promise<Ran> {
  return runCli(argv, { cwd, ...more })
}

function backfill(...argv: readonly string[]): Promise<Ran> {
  return stet(['backfill', 'visits.ts', ...RANGE, ...argv])
}

async function documentOf(...argv: readonly string[]): Promise<BackfillDocument> {
  const ran = await backfill(...argv, '--json')
  expect(violations('backfill.json', ran.document())).toEqual([])
  return ran.document() as unknown as BackfillDocument
}

function statuses({ slices }: BackfillDocument): readonly string[] {
  return slices.map(({ slice, status, result }) => `${slice.slice(8)} ${result?.verdict ?? status}`)
}

describe('a backfill', () => {
  test('runs each slice on its own, and again writes nothing (G2)', async () => {
    const first = await backfill()
    expect(first).toMatchObject({ status: 0, stderr: '' })
    expect(first.stdout).toContain('[1/4] 2026-05-01  changed       2 inserted')
    expect(first.stdout).toContain('4 slices: 4 changed')
    expect(statuses(await documentOf())).toEqual([
      '01 unchanged',
      '02 unchanged',
      '03 unchanged',
      '04 unchanged',
    ])
  })

  test('goes on after a slice that fails, names it and the command that runs just it, and ends with its status', async () => {
    await rm(join(cwd, 'inbox', '2026-05-02.csv'))
    await writeDay(cwd, '2026-05-03', ['a', 'b'])
    const ran = await backfill('--allow-deletes')
    expect(ran.status).toBe(1)
    expect(ran.stdout).toContain('4 slices: 3 changed, 1 failed')
    expect(ran.stderr).toContain('error: 2026-05-02: Cannot read')
    expect(ran.stdout).toContain('  stet run visits.ts --slice 2026-05-02 --allow-deletes')
    const again = await documentOf()
    expect(again).toMatchObject({
      again: 'stet run visits.ts --slice 2026-05-02',
      error: { code: 'STET_SOURCE' },
    })
    await writeDay(cwd, '2026-05-02', ['a'])
    expect(await stet(['run', 'visits.ts', '--slice', '2026-05-02'])).toMatchObject({ status: 0 })
  })

  test('--only missing, failed and changed take only these', async () => {
    await rm(join(cwd, 'inbox', '2026-05-02.csv'))
    await stet(['run', 'visits.ts', '--slice', '2026-05-01', '--slice', '2026-05-02'])
    await writeDay(cwd, '2026-05-02', ['a'])
    expect(statuses(await documentOf('--only', 'failed'))).toEqual([
      '01 skipped',
      '02 changed',
      '03 skipped',
      '04 skipped',
    ])
    expect(statuses(await documentOf('--only', 'missing'))).toEqual([
      '01 skipped',
      '02 skipped',
      '03 changed',
      '04 changed',
    ])
    await writeDay(cwd, '2026-05-03', ['a', 'c'])
    expect(statuses(await documentOf('--only', 'changed'))).toEqual([
      '01 skipped',
      '02 skipped',
      '03 changed',
      '04 skipped',
    ])
    expect((await backfill('--only', 'failed')).stdout).toContain('4 slices: 4 left out')
    // What is skipped was not run: it has no second line.
    const runs = (await stet(['runs', '--into', join(cwd, 'stet.duckdb'), '--json'])).document().runs
    expect((runs as { slice: string }[]).filter(({ slice }) => slice === '2026-05-04')).toHaveLength(1)
  })

  test('--order newest begins with the last', async () => {
    expect(statuses(await documentOf('--order', 'newest'))).toEqual([
      '04 changed',
      '03 changed',
      '02 changed',
      '01 changed',
    ])
  })

  test('--plan shows what each slice would come to, and changes nothing', async () => {
    await stet(['run', 'visits.ts', '--slice', '2026-05-01'])
    await writeDay(cwd, '2026-05-02', [])
    const ran = await backfill('--plan')
    expect(ran.status).toBe(0)
    expect(ran.stdout).toMatch(/2026-05-01 +loaded +unchanged +2 rows → 2 rows/)
    expect(ran.stdout).toMatch(/2026-05-02 +missing +nothing read +0 rows → 0 rows/)
    expect(ran.stdout).toMatch(/2026-05-03 +missing +changed +0 rows → 2 rows +2 inserted/)
    const planned = await documentOf('--plan')
    expect(planned).toMatchObject({
      planned: true,
      slices: [{ status: 'planned', plan: { slice: '2026-05-01' } }, {}, {}, {}],
    })
    const runs = (await stet(['runs', '--into', join(cwd, 'stet.duckdb'), '--json'])).document().runs
    expect(runs).toHaveLength(1)
  })

  test('an empty day is emptied only when allowed (G10)', async () => {
    await backfill()
    await writeDay(cwd, '2026-05-02', [])
    const refused = await documentOf()
    expect(refused).toMatchObject({ error: { code: 'STET_DELETE_GUARD' } })
    expect(refused.again).toBe('stet run visits.ts --slice 2026-05-02')
    expect(await documentOf('--allow-empty')).toMatchObject({
      error: null,
      slices: [{}, { result: { counts: { deleted: 2 } } }, {}, {}],
    })
  })

  test('takes a slice that has not ended only when --to names the end, and says so', async () => {
    const date = new Date('2026-05-03T10:00:00Z')
    const open = await stet(['backfill', 'visits.ts', '--from', '2026-05-01'], { date })
    expect(open).toMatchObject({ status: 0 })
    expect(open.stdout).toContain('2 slices: 2 changed')
    expect(open.stderr).toContain('Up to 2026-05-02, the last day that has ended')
    const named = await stet(['backfill', 'visits.ts', '--from', '2026-05-01', '--to', '2026-05-03'], {
      date,
    })
    expect(named.stdout).toContain('3 slices: 1 changed, 2 unchanged')
    expect(named.stderr).toContain('2026-05-03 has not ended yet')
    const none = await stet(['backfill', 'visits.ts', '--from', '2026-05-03'], { date })
    expect(none.stderr).toContain('No day from 2026-05-03 on has ended yet')
  })

  test.each([
    [['--jobs', '0'], 'a whole number, 1 or more'],
    [['--pipeline', 'other'], 'There is no pipeline "other"'],
  ])('%j is refused', async (argv, message) => {
    const ran = await backfill(...argv)
    expect(ran.status).toBe(2)
    expect(ran.stderr).toContain(message)
  })

  test('a pipeline that is not cut into slices has none to fill', async () => {
    await writeVisits({ cwd, write: `{ strategy: 'upsert', key: ['id'] }` })
    expect((await backfill()).stderr).toContain('Pipeline "visits" is not cut into slices')
  })
})

test('windows of a cursor are filled, and the watermark stays where it is (G4)', async () => {
  await writeVisits({ cwd, ...byCursor("start: '2026-05-04 00:00:00+00'") })
  expect((await stet(['run', 'visits.ts'])).stdout).toContain('2 inserted')
  const watermark = async () => (await stet(['watermark', 'show', 'visits.ts'])).stdout
  const before = await watermark()
  expect(before).toContain('2026-05-04 12:01:00+00')
  const filled = await documentOf()
  expect(statuses(filled)).toEqual(['01 changed', '02 changed', '03 changed', '04 unchanged'])
  expect(filled.slices[0]?.result?.counts).toMatchObject({ read: 8, outside: 6, inserted: 2 })
  expect(await watermark()).toBe(before)
})

describe('a backfill over frozen slices', () => {
  test('--fail-on-drift ends with 5 when one has drifted, tells which, and goes on with the others', async () => {
    await writeVisits({ cwd, more: `truth: 'snapshot',` })
    expect(await backfill('--fail-on-drift')).toMatchObject({ status: 0 })
    await writeDay(cwd, '2026-05-02', ['a', 'B'])
    await writeDay(cwd, '2026-05-03', ['a', 'b', 'c'])
    expect((await backfill()).status).toBe(0)
    const planned = await stet(['backfill', 'visits.ts', ...RANGE, '--fail-on-drift', '--plan'])
    expect(planned.status).toBe(5)
    expect(planned.stderr).toContain('Slice 2026-05-02 of pipeline "visits" is frozen and has drifted')
    const ran = await backfill('--fail-on-drift', '--json')
    expect(ran.status).toBe(5)
    expect(ran.stderr).toContain('id=21  page b → B')
    expect(violations('backfill.json', ran.document())).toEqual([])
    const { slices, error, again } = ran.document() as unknown as BackfillDocument
    expect(error?.code).toBe('STET_DRIFT')
    expect(again).toBeNull()
    expect(slices.map((slice) => slice.error?.code ?? null)).toEqual([null, 'STET_DRIFT', null, null])
    expect(slices.map(({ status }) => status)).toEqual(DAYS.map(() => 'succeeded'))
  })
})

describe('a backfill that is stopped', () => {
  test('leaves what is done, names the way on, and ends with 130', async () => {
    const controller = new AbortController()
    globalThis.beforeSlice = async (slice) => {
      if (slice === '2026-05-03')
        controller.abort(new StetError('STET_INTERRUPTED', 'Stopped by SIGINT; the table is as it was'))
    }
    const ran = await stet(['backfill', 'visits.ts', ...RANGE], { signal: controller.signal })
    expect(ran.status).toBe(130)
    expect(ran.stdout).toContain('4 slices: 2 changed, 1 interrupted, 1 not started')
    expect(ran.stdout).toContain('  stet backfill visits.ts --from 2026-05-01 --to 2026-05-04\n')
    expect(ran.stdout).toContain('--only missing')
    expect(ran.stderr).toContain('slices that are done are done')
    globalThis.beforeSlice = undefined
    expect(statuses(await documentOf())).toEqual(['01 unchanged', '02 unchanged', '03 changed', '04 changed'])
  })

  test('killed, it goes on when started again, and the table is as if it had never been killed (G1)', async () => {
    const child = spawn(process.execPath, [bin, 'backfill', 'visits.ts', ...RANGE], {
      cwd,
      env: { ...process.env, HALT_AT: '2026-05-03' },
    })
    let written = ''
    await new Promise<void>((resolve, reject) => {
      child.once('close', () => reject(new Error(`it ended too early: ${written}`)))
      child.stderr.on('data', (text: Buffer) => {
        written += text.toString()
      })
      child.stdout.on('data', (text: Buffer) => {
        written += text.toString()
        if (written.includes('halted')) resolve()
      })
    })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    const slices = await stet(['slices', 'visits.ts', ...RANGE, '--json'])
    expect((slices.document().slices as { state: string }[]).map(({ state }) => state)).toEqual([
      'loaded',
      'loaded',
      'failed',
      'missing',
    ])
    expect(statuses(await documentOf('--only', 'missing'))).toEqual([
      '01 skipped',
      '02 skipped',
      '03 changed',
      '04 changed',
    ])
    expect(statuses(await documentOf())).toEqual([
      '01 unchanged',
      '02 unchanged',
      '03 unchanged',
      '04 unchanged',
    ])
  })
})

describe('in PostgreSQL', () => {
  let url = ''
  beforeEach(async () => {
    url = await freshDatabase()
    await writeVisits({ cwd, target: `postgres({ url: ${JSON.stringify(url)} })` })
  })
  /** A first run makes the table. */
  const makeTable = () => stet(['run', 'visits.ts', '--slice', '2026-05-04'])

  async function rowsByDay(): Promise<unknown> {
    await using database = await connect(url)
    const { rows } = await database.client.query(
      `select day::text, count(*)::int as visits, count(distinct id)::int as ids from visits group by day order by day`,
    )
    return rows
  }
  const EACH_DAY_TWICE = DAYS.map((day) => ({ day, visits: 2, ids: 2 }))

  test('--jobs 2 works on two slices at a time', async () => {
    await makeTable()
    // Neither goes on before the other has begun: one job alone would wait for ever.
    const meet = meeting(2)
    globalThis.beforeSlice = async (slice) => {
      if (slice === '2026-05-02' || slice === '2026-05-03') await meet()
    }
    const ran = await backfill('--jobs', '2')
    expect(ran.status).toBe(0)
    expect(ran.stdout).toContain('4 slices: 3 changed, 1 unchanged')
    expect(await rowsByDay()).toEqual(EACH_DAY_TWICE)
  })

  test('--jobs 2 lets the slice that makes the table go alone, whatever has failed before it', async () => {
    await rm(join(cwd, 'inbox', '2026-05-01.csv'))
    const begun: (string | undefined)[] = []
    globalThis.beforeSlice = async (slice) => {
      begun.push(slice)
      if (slice !== '2026-05-02') return
      // Time for another to begin, if there were one.
      await stet(['slices', 'visits.ts'])
      expect(begun).toEqual(['2026-05-01', '2026-05-02'])
    }
    expect(statuses(await documentOf('--jobs', '2'))).toEqual([
      '01 failed',
      '02 changed',
      '03 changed',
      '04 changed',
    ])
  })

  test('--jobs 2 says nothing of a wait for its own other slice; a run tells of one for somebody else', async () => {
    await makeTable()
    await using database = await connect(url)
    const answer = async (sql: string) =>
      (await database.client.query<{ answer: string }>(sql)).rows[0]?.answer
    const untilOneWaits = async () => {
      const sql = `select count(*) as answer from pg_locks where locktype = 'advisory' and not granted`
      while ((await answer(sql)) !== '1');
    }
    const meet = meeting(2)
    let held: Promise<unknown> | undefined
    globalThis.beforeSlice = async (slice) => {
      if (slice !== '2026-05-02' && slice !== '2026-05-03') return
      await meet()
      // Whichever has its turn cannot write, so the other has to wait for it.
      held ??= database.client.query('begin; lock table visits in share mode')
      await held
    }
    const running = backfill('--jobs', '2')
    await untilOneWaits()
    const turn = `select (classid::bigint << 32 | objid::bigint)::text as answer from pg_locks where locktype = 'advisory' and granted`
    const key = await answer(turn)
    await database.client.query('commit')
    const ran = await running
    expect(ran).toMatchObject({ status: 0 })
    expect(ran.stderr).not.toContain('Waiting')

    await database.client.query(`select pg_advisory_lock(${key})`)
    globalThis.beforeSlice = undefined
    const other = stet(['backfill', 'visits.ts', ...RANGE, '--jobs', '2', '--order', 'newest'])
    await untilOneWaits()
    await database.client.query(`select pg_advisory_unlock(${key})`)
    expect((await other).stderr).toContain('Waiting for another run that writes')
  })

  test('a plan finds a key in another slice, and a slice that was never loaded is forgotten', async () => {
    await stet(['run', 'visits.ts', '--slice', '2026-05-01', '--slice', '2206-05-01'])
    await writeFile(
      join(cwd, 'inbox', '2026-05-02.csv'),
      'id,day,page,changed\n10,2026-05-02,a,2026-05-02 12:00:00+00\n',
    )
    const planned = await stet([
      'backfill',
      'visits.ts',
      '--from',
      '2026-05-01',
      '--to',
      '2026-05-02',
      '--plan',
    ])
    expect(planned.status).toBe(0)
    expect(planned.stderr).toContain(
      'note: 2026-05-02: 1 key of this load is in another slice, such as id=10 with day=2026-05-01: a run',
    )
    expect(planned.stdout).toMatch(/2026-05-01 +loaded +unchanged .*\n2026-05-02 +missing +refused now /)
    const forgotten = await stet(['slices', 'visits.ts', '--forget', '2206-05-01', '--json'])
    expect(forgotten.document().slices).toMatchObject([{ slice: '2026-05-01', state: 'loaded' }])
    await stet(['run', 'visits.ts', '--slice', '2206-05-01'])
    const range = ['--from', '2206-05-01', '--to', '2206-05-01']
    const again = await stet(['slices', 'visits.ts', ...range, '--json'])
    expect(again.document().slices).toMatchObject([{ slice: '2206-05-01', state: 'failed' }])
  })

  test('two at once do not disturb one another (G7)', async () => {
    await makeTable()
    const meet = meeting(2)
    const begun = new Set<string>()
    globalThis.beforeSlice = async (slice = '') => {
      const isFirst = (slice === '2026-05-01' || slice === '2026-05-04') && !begun.has(slice)
      begun.add(slice)
      // Both are under way, from opposite ends, before either goes on.
      if (isFirst) await meet()
    }
    const [a, b] = await Promise.all([documentOf(), documentOf('--order', 'newest')])
    expect([a.error, b.error]).toEqual([null, null])
    expect(await rowsByDay()).toEqual(EACH_DAY_TWICE)
    const inserted = [...a.slices, ...b.slices].map(({ result }) => result?.counts.inserted ?? 0)
    expect(inserted.reduce((sum, count) => sum + count)).toBe(6)
  })
})

test('DuckDB takes one run at a time, so jobs are one, and it says so', async () => {
  const ran = await backfill('--jobs', '3')
  expect(ran.status).toBe(0)
  expect(ran.stderr).toContain('takes one run at a time')
})

/** A place at which so many wait for one another. */
function meeting(count: number): () => Promise<void> {
  let waiting = 0
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return async () => {
    if (++waiting === count) open()
    await opened
  }
}
