import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Ran, type RanWith, runCli } from '../../test/support/run-cli.ts'
import { violations } from '../../test/support/schemas.ts'
import { writeDay, writeVisits } from '../../test/support/visits.ts'

let cwd = ''
let into: readonly string[] = []
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stet-slices-'))
  into = ['--into', join(cwd, 'stet.duckdb')]
  await writeVisits({ cwd })
  await writeDay(cwd, '2026-05-01', ['a', 'b'])
  await writeDay(cwd, '2026-05-02', ['a', 'b'])
})

function stet(argv: readonly string[], more: Partial<RanWith> = {}): Promise<Ran> {
  return runCli(argv, { cwd, ...more })
}

function run(...argv: readonly string[]): Promise<Ran> {
  return stet(['run', 'visits.ts', ...argv])
}

/** What stands in the DuckDB file. */
async function rowsOf(sql: string): Promise<unknown> {
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(join(cwd, 'stet.duckdb'))
  const connection = await instance.connect()
  try {
    return (await connection.runAndReadAll(sql)).getRows()
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

interface Entry {
  readonly runId: string
  readonly slice: string
  readonly logicalTime: string | null
  readonly code: string | null
  readonly rerunOf: string | null
  readonly window: { readonly from: string | null; readonly to: string | null } | null
}

/** The run log, newest first. */
async function runsOf(): Promise<readonly Entry[]> {
  const ran = await stet(['runs', ...into, '--json'])
  expect(violations('runs.json', ran.document())).toEqual([])
  return ran.document().runs as Entry[]
}

describe('the slice of a run', () => {
  test('is named, several one after another, and the run log shows them', async () => {
    const ran = await run('--slice', '2026-05-01', '--slice', '2026-05-02', '--run-id', 'r1')
    expect(ran).toMatchObject({ status: 0, stderr: '' })
    expect(ran.stdout).toContain('visits 2026-05-01 → ')
    expect(ran.stdout).toContain('visits 2026-05-02 → ')
    expect(await runsOf()).toMatchObject([
      { slice: '2026-05-02', runId: 'r1/2026-05-02' },
      { slice: '2026-05-01', runId: 'r1/2026-05-01' },
    ])
    expect((await stet(['runs', ...into])).stdout).toMatch(
      /pipeline +slice +status.*\n.*visits +2026-05-02 +changed/,
    )
  })

  test('is the one that --at falls into, and both are on record', async () => {
    expect((await run('--at', '2026-05-02T23:59:59Z')).stdout).toContain('visits 2026-05-02 → ')
    const [entry] = await runsOf()
    expect(entry).toMatchObject({ slice: '2026-05-02', logicalTime: '2026-05-02T23:59:59Z' })
    const shown = await stet(['runs', 'show', entry?.runId ?? '', ...into])
    expect(shown.stdout).toMatch(
      /slice +2026-05-02\n +logical time +2026-05-02T23:59:59Z\n +code +sha256 [0-9a-f]{64}/,
    )
  })

  test('is never of the clock’s choosing, nor named in two ways', async () => {
    const none = await run()
    expect(none).toMatchObject({ status: 2, stdout: '' })
    expect(none.stderr).toContain('this run names none')
    const both = await run('--slice', '2026-05-01', '--at', '2026-05-01T00:00:00Z')
    expect(both.stderr).toContain('--slice and --at both say')
  })

  test('fails alone, and the failure names it', async () => {
    await rm(join(cwd, 'inbox', '2026-05-01.csv'))
    const ran = await run('--slice', '2026-05-01', '--slice', '2026-05-02', '--json')
    expect(ran.status).toBe(1)
    expect(violations('run.json', ran.document())).toEqual([])
    expect(ran.document()).toMatchObject({
      results: [{ slice: '2026-05-02' }],
      failures: [{ pipeline: 'visits', slice: '2026-05-01' }],
    })
    expect(ran.stderr).toContain('error: 2026-05-01: ')
  })

  test('comes from Airflow 2 and 3, with the run id, and a notice says so', async () => {
    const told = { AIRFLOW_CTX_DAG_RUN_ID: 'scheduled__1', AIRFLOW_CTX_TASK_ID: 'load' }
    const three = await stet(['run', 'visits.ts'], {
      env: { ...told, AIRFLOW_CTX_LOGICAL_DATE: '2026-05-01T00:00:00+00:00' },
    })
    expect(three.status).toBe(0)
    expect(three.stderr).toContain(
      'note: logical time 2026-05-01T00:00:00+00:00, from AIRFLOW_CTX_LOGICAL_DATE',
    )
    expect(three.stderr).toContain('note: run id scheduled__1/load, from AIRFLOW_CTX_DAG_RUN_ID')
    const two = await stet(['run', 'visits.ts', '--run-id', 'mine'], {
      env: { ...told, AIRFLOW_CTX_EXECUTION_DATE: '2026-05-02T00:00:00+00:00' },
    })
    expect(two.stderr).not.toContain('scheduled__1')
    expect(await runsOf()).toMatchObject([
      { slice: '2026-05-02', runId: 'mine', logicalTime: '2026-05-02T00:00:00+00:00' },
      { slice: '2026-05-01', runId: 'scheduled__1/load' },
    ])
    // What the command line says is not overruled.
    const named = await stet(['run', 'visits.ts', '--slice', '2026-05-02'], {
      env: { AIRFLOW_CTX_LOGICAL_DATE: '2026-05-01T00:00:00+00:00' },
    })
    expect(named).toMatchObject({ status: 0, stderr: '' })
    expect(named.stdout).toContain('visits 2026-05-02 → ')
  })

  test('comes from Dagster: a variable of the op, or the context of Pipes, in it or in a file', async () => {
    const pipes = (params: object) => deflateSync(JSON.stringify(params)).toString('base64')
    const slicesRun = async (env: Readonly<Record<string, string>>) => {
      const ran = await stet(['run', 'visits.ts'], { env })
      return { status: ran.status, slice: (await runsOf())[0]?.slice, stderr: ran.stderr }
    }
    expect(await slicesRun({ DAGSTER_PARTITION_KEY: '2026-05-01' })).toMatchObject({ slice: '2026-05-01' })
    const data = { run_id: 'd1', partition_key: '2026-05-02', partition_key_range: null }
    expect(await slicesRun({ DAGSTER_PIPES_CONTEXT: pipes({ data }) })).toMatchObject({
      slice: '2026-05-02',
      stderr:
        'note: run id d1, from DAGSTER_PIPES_CONTEXT\nnote: slice 2026-05-02, from DAGSTER_PIPES_CONTEXT\n',
    })
    const path = join(cwd, 'context.json')
    await writeFile(path, JSON.stringify({ ...data, partition_key: '2026-05-01' }))
    expect(await slicesRun({ DAGSTER_PIPES_CONTEXT: pipes({ path }) })).toMatchObject({ slice: '2026-05-01' })
    const range = { start: '2026-05-01', end: '2026-05-02' }
    const several = await stet(['run', 'visits.ts'], {
      env: {
        DAGSTER_PIPES_CONTEXT: pipes({ data: { ...data, partition_key: null, partition_key_range: range } }),
      },
    })
    expect(several).toMatchObject({ status: 2 })
    expect(several.stderr).toContain('stet backfill --from 2026-05-01 --to 2026-05-02')
    const broken = await stet(['run', 'visits.ts'], { env: { DAGSTER_PIPES_CONTEXT: 'x' } })
    expect(broken.stderr).toContain('Cannot read the context of Dagster Pipes')
  })
})

describe('stet plan of a slice', () => {
  test('names slice, truth and the rows before and after; a run keeps to it', async () => {
    await run('--slice', '2026-05-02')
    await writeDay(cwd, '2026-05-02', ['a'])
    const planned = await stet(['plan', 'visits.ts', '--slice', '2026-05-02', '--out', 'plan.json', '--json'])
    expect(violations('plans.json', planned.document())).toEqual([])
    const shown = await stet(['plan', 'visits.ts', '--slice', '2026-05-02'])
    expect(shown.stdout).toContain('slice 2026-05-02: 2 rows → 1 row\n')
    const other = await run('--slice', '2026-05-01', '--plan', 'plan.json')
    expect(other.stderr).toContain('The saved plan has none for slice 2026-05-01 of the pipeline "visits"')
    expect(await run('--slice', '2026-05-02', '--plan', 'plan.json')).toMatchObject({ status: 0 })
  })

  test('of a cursor names window and watermark', async () => {
    await writeVisits({
      cwd,
      files: '*.csv',
      write: `{ strategy: 'upsert', key: ['id'] }`,
      more: `incremental: { cursor: 'changed', grace: '1h' },`,
    })
    await run()
    const shown = await stet(['plan', 'visits.ts'])
    expect(shown.stdout).toMatch(
      /\nwindow 2026-05-02 11:01:00\+00 to 20\S+ \S+\nwatermark 2026-05-02 12:01:00\+00\n/,
    )
    expect(shown.stdout).toMatch(/outside +2 {2}not in the window that is read/)
  })

  test('says that a key is in another slice, which refuses the run, and frees it in the right order', async () => {
    await run('--slice', '2026-05-01')
    await writeFile(
      join(cwd, 'inbox', '2026-05-02.csv'),
      'id,day,page,changed\n10,2026-05-02,a,2026-05-02 12:00:00+00\n',
    )
    const planned = await stet(['plan', 'visits.ts', '--slice', '2026-05-02', '--sql'])
    expect(planned.status).toBe(0)
    expect(planned.stderr).toContain(
      '1 key of this load is in another slice, such as id=10 with day=2026-05-01: a run is',
    )
    expect(planned.stdout).toContain(`>= '2026-05-02'::DATE`)
    expect(planned.stdout).toContain('nothing was changed; a run would be refused as the table is now\n')
    expect((await run('--slice', '2026-05-02')).stderr).toContain('STET_KEY_CONSTRAINT')
    await writeDay(cwd, '2026-05-01', [])
    await run('--slice', '2026-05-01', '--allow-empty')
    expect((await stet(['plan', 'visits.ts', '--slice', '2026-05-02'])).stderr).toBe('')
    expect(await run('--slice', '2026-05-02')).toMatchObject({ status: 0 })
  })
})

describe('a slice of a cursor', () => {
  beforeEach(async () => {
    await writeVisits({
      cwd,
      files: '*.csv',
      write: `{ strategy: 'upsert', key: ['id'] }`,
      more: `incremental: { cursor: 'changed' },`,
    })
  })

  test('is what is read, by its name, and the watermark is said to stay', async () => {
    const first = await run('--slice', '2026-05-01')
    expect(first.stdout).toContain('\nwindow the slice 2026-05-01; the watermark is not set\n')
    await run()
    const again = await run('--slice', '2026-05-01')
    expect(again.stdout).toContain(
      '\nwindow the slice 2026-05-01; the watermark stays 2026-05-02 12:01:00+00\n',
    )
  })

  test('that holds none of the rows is empty, in every account', async () => {
    await run()
    const empty = await run('--slice', '2026-06-01')
    expect(empty.stdout).toContain('nothing read, no row of the source is in the slice')
    const filled = await stet(['backfill', 'visits.ts', '--from', '2026-06-01', '--to', '2026-06-01'])
    expect(filled.stdout).toContain('[1/1] 2026-06-01  nothing read  0 inserted')
    expect(filled.stdout).toContain('1 slice: 1 nothing read')
    const planned = await stet([
      'backfill',
      'visits.ts',
      '--from',
      '2026-06-01',
      '--to',
      '2026-06-01',
      '--plan',
    ])
    expect(planned.stdout).toMatch(/2026-06-01 +empty +nothing read/)
    expect((await stet(['runs', ...into])).stdout).toMatch(/2026-06-01 +nothing read +4 /)
  })
})

describe('options that contradict one another', () => {
  test('--full and a slice are refused together, before anything is read', async () => {
    for (const argv of [
      ['--slice', '2026-05-01', '--full'],
      ['--at', '2026-05-01T00:00:00Z', '--full'],
    ]) {
      for (const command of ['run', 'plan']) {
        const ran = await stet([command, 'visits.ts', ...argv])
        expect(ran).toMatchObject({ status: 2, stdout: '' })
        expect(ran.stderr).toContain('reads that slice and no more')
      }
    }
  })

  test('--fail-on-drift is refused where nothing is ever frozen', async () => {
    const visits = ['visits.ts', '--slice', '2026-05-01', '--fail-on-drift']
    const file = join('inbox', '2026-05-01.csv')
    for (const argv of [
      ['run', ...visits],
      ['plan', ...visits],
      ['load', file, '--table', 't', '--key', 'id', ...into, '--fail-on-drift'],
      ['backfill', 'visits.ts', '--from', '2026-05-01', '--to', '2026-05-02', '--fail-on-drift'],
    ]) {
      const ran = await stet(argv)
      expect(ran).toMatchObject({ status: 2, stdout: '' })
      expect(ran.stderr).toContain('nothing can drift')
    }
  })
})

describe('a frozen slice', () => {
  const SNAPSHOT = `truth: 'snapshot',`

  beforeEach(async () => {
    await writeVisits({ cwd, more: SNAPSHOT })
    await run('--slice', '2026-05-01')
    await writeDay(cwd, '2026-05-01', ['a', 'B', 'c'])
  })

  test('tells its drift, with --fail-on-drift by status 5, and keeps what was committed', async () => {
    const calm = await run('--slice', '2026-05-01')
    expect(calm.status).toBe(0)
    expect(calm.stdout).toContain('slice 2026-05-01 is frozen and its source has drifted: 1 differ')
    expect(calm.stdout).toContain('id=11  page b → B')
    const failed = await run('--slice', '2026-05-01', '--fail-on-drift', '--json')
    expect(failed.status).toBe(5)
    expect(violations('run.json', failed.document())).toEqual([])
    expect(failed.document()).toMatchObject({
      results: [{ frozen: true, counts: { frozen: 1, unchanged: 2 } }],
      error: { code: 'STET_DRIFT', details: { frozen: 1, missing: 0 } },
    })
    expect(failed.stderr).toContain('id=11  page b → B')
    expect((await stet(['plan', 'visits.ts', '--slice', '2026-05-01', '--fail-on-drift'])).status).toBe(5)
    expect((await run('--slice', '2026-05-02', '--fail-on-drift')).status).toBe(0)
  })

  test('is thawed on the record, and the next run takes the source over', async () => {
    const thaw = (...argv: readonly string[]) => stet(['thaw', 'visits.ts', ...argv])
    expect((await thaw()).stderr).toContain('Which slice is to be thawed?')
    const thawed = await thaw('--slice', '2026-05-01', '--slice', '2026-05-02', '--json')
    expect(violations('thaw.json', thawed.document())).toEqual([])
    expect(thawed.document()).toMatchObject({
      slices: [
        { slice: '2026-05-01', thawed: true },
        { slice: '2026-05-02', thawed: false },
      ],
    })
    expect((await stet(['slices', 'visits.ts', '--json'])).document().slices).toMatchObject([
      { state: 'loaded' },
    ])
    expect((await run('--slice', '2026-05-01', '--json')).document()).toMatchObject({
      results: [{ frozen: false, counts: { inserted: 1, updated: 1 } }],
    })
    expect((await stet(['slices', 'visits.ts', '--json'])).document().slices).toMatchObject([
      { state: 'frozen' },
    ])
  })
})

describe('stet slices', () => {
  test('shows months of days, by letters with a legend, and as JSON', async () => {
    await writeDay(cwd, '2026-05-02', [])
    await run('--slice', '2026-05-01', '--slice', '2026-05-02', '--slice', '2026-05-03')
    const shown = await stet(['slices', 'visits.ts', '--to', '2026-05-05'])
    expect(shown.stdout).toBe(
      [
        'visits',
        '',
        '2026-05',
        '  Mo   Tu   We   Th   Fr   Sa   Su',
        '                       1L   2e   3F',
        '   4.   5.',
        '',
        'L 1 loaded   e 1 empty (finished, nothing read)   F 1 failed   . 2 missing',
        'failed: 2026-05-03 STET_SOURCE',
        '',
      ].join('\n'),
    )
    const { document } = await stet(['slices', 'visits.ts', '--json'])
    expect(violations('slices.json', document())).toEqual([])
    expect(document()).toMatchObject({
      slicing: { by: 'day', size: 'day', zone: 'UTC' },
      slices: [
        { state: 'loaded', rows: 2 },
        { state: 'empty', rows: 0 },
        { state: 'failed', error: 'STET_SOURCE' },
      ],
    })
  })

  test('--forget takes off a slice that was mistyped and never loaded, on record, until it is run again', async () => {
    await run('--slice', '2026-05-01', '--slice', '2206-05-01')
    expect((await stet(['slices', 'visits.ts'])).stderr).toContain('never loaded? --forget it')
    const states = async (...argv: readonly string[]) => {
      const ran = await stet(['slices', 'visits.ts', ...argv, '--json'])
      expect(violations('slices.json', ran.document())).toEqual([])
      return (ran.document().slices as { slice: string; state: string }[]).map(
        ({ slice, state }) => `${slice} ${state}`,
      )
    }
    expect(await states('--forget', '2206-05-01')).toEqual(['2026-05-01 loaded'])
    expect(await rowsOf('select kind, pipeline, table_name, slice, done_by from stet.stet.event')).toEqual([
      ['forget', 'visits', 'visits', '2206-05-01', 'tester@here'],
    ])
    // What was run stays on record.
    expect((await runsOf()).map(({ slice }) => slice)).toEqual(['2206-05-01', '2026-05-01'])
    const range = ['--from', '2206-05-01', '--to', '2206-05-01']
    expect(await states(...range)).toEqual(['2206-05-01 missing'])
    await run('--slice', '2206-05-01')
    expect(await states(...range)).toEqual(['2206-05-01 failed'])
  })

  test('--forget is refused for a slice that was loaded once, or that nobody has run', async () => {
    await run('--slice', '2026-05-01')
    await rm(join(cwd, 'inbox', '2026-05-01.csv'))
    await run('--slice', '2026-05-01')
    const loaded = await stet(['slices', 'visits.ts', '--forget', '2026-05-01'])
    expect(loaded.stderr).toContain('was loaded at')
    const never = await stet(['slices', 'visits.ts', '--forget', '2026-05-09'])
    expect(never.stderr).toContain('No slice "2026-05-09" of "visits" is on record')
    expect([loaded.status, never.status]).toEqual([2, 2])
    expect((await stet(['slices', 'visits.ts'])).stdout).toContain('1F')
  })

  test('of a pipeline that never ran is empty, of one with other slices says so', async () => {
    expect((await stet(['slices', 'visits.ts'])).stdout).toContain(
      'no slice of pipeline "visits" is on record',
    )
    await run('--slice', '2026-05-01')
    await writeVisits({
      cwd,
      file: 'monthly.ts',
      write: `{ strategy: 'replace-partition', by: 'day', size: 'month', key: ['id'] }`,
    })
    expect((await stet(['slices', 'monthly.ts'])).stderr).toContain(
      '1 slice of another size, such as 2026-05-01',
    )
  })
})

describe('stet rerun', () => {
  test('repeats slice and logical time, and says what has changed since', async () => {
    await run('--at', '2026-05-01T06:00:00Z')
    const [first] = await runsOf()
    const quiet = await stet(['rerun', first?.runId.slice(0, 8) ?? '', 'visits.ts'])
    expect(quiet).toMatchObject({ status: 0, stderr: '' })
    expect(quiet.stdout).toContain('visits 2026-05-01 → ')
    await writeDay(cwd, '2026-05-01', ['a', 'B'])
    await writeFile(join(cwd, 'visits.ts'), `${await readFile(join(cwd, 'visits.ts'), 'utf8')}// changed\n`)
    const loud = await stet(['rerun', first?.runId ?? '', 'visits.ts', '--json'])
    expect(violations('run.json', loud.document())).toEqual([])
    expect(loud.stderr).toContain(`The pipeline's file has changed since run ${first?.runId}`)
    expect(loud.stderr).toMatch(/2026-05-01\.csv has other content since run/)
    expect((await runsOf())[0]).toMatchObject({
      slice: '2026-05-01',
      logicalTime: '2026-05-01T06:00:00Z',
      rerunOf: first?.runId,
    })
    // Of a run whose slice was named there is no logical time to find it by.
    await run('--slice', '2026-05-02')
    const [named] = await runsOf()
    expect((await stet(['rerun', named?.runId ?? '', 'visits.ts'])).stdout).toContain('visits 2026-05-02 → ')
    const unknown = await stet(['rerun', 'nope', 'visits.ts'])
    expect(unknown).toMatchObject({ status: 2 })
    expect(unknown.stderr).toContain(
      "hint:  A rerun looks in the log of the pipeline's own target; stet runs --into",
    )
  })

  test('repeats the window of a cursor and leaves the watermark (G4)', async () => {
    await writeVisits({
      cwd,
      files: '*.csv',
      write: `{ strategy: 'upsert', key: ['id'] }`,
      more: `incremental: { cursor: 'changed', grace: '1h' },`,
    })
    await run()
    await writeDay(cwd, '2026-05-03', ['a'])
    await run()
    const [second] = await runsOf()
    await writeDay(cwd, '2026-05-04', ['a'])
    await run()
    const before = (await stet(['watermark', 'show', 'visits.ts'])).stdout
    expect((await stet(['rerun', second?.runId ?? '', 'visits.ts'])).status).toBe(0)
    expect((await runsOf())[0]?.window).toEqual(second?.window)
    expect((await stet(['watermark', 'show', 'visits.ts'])).stdout).toBe(before)
  })
})

describe('stet watermark', () => {
  const PIPELINE = {
    files: '*.csv',
    write: `{ strategy: 'upsert', key: ['id'] }`,
    more: `incremental: { cursor: 'changed', grace: '0s' },`,
  } as const
  const watermark = (...argv: readonly string[]) => stet(['watermark', ...argv, 'visits.ts'])

  test('is shown, set, rewound and forgotten, old → new, and the next run goes by it', async () => {
    await writeVisits({ cwd, ...PIPELINE })
    expect((await watermark('show')).stdout).toContain('has no watermark yet')
    expect((await watermark('set', '2026-05-01')).stderr).toContain('has never run')
    await run()
    expect((await watermark('rewind', '1d')).stdout).toBe(
      'visits: changed 2026-05-02 12:01:00+00 → changed 2026-05-01 12:01:00+00\n',
    )
    expect((await run('--json')).document()).toMatchObject({
      results: [{ counts: { outside: 1, unchanged: 3 }, watermark: '2026-05-02 12:01:00+00' }],
    })
    const set = await watermark('set', '2026-05-02T14:00:00+02:00', '--json')
    expect(violations('watermark.json', set.document())).toEqual([])
    expect(set.document()).toMatchObject({
      before: { value: '2026-05-02 12:01:00+00' },
      watermark: { value: '2026-05-02 12:00:00+00', setBy: 'tester@here' },
    })
    expect((await watermark('rewind', '2026-06-01T00:00:00Z')).stderr).toContain(
      'Cannot rewind to 2026-06-01 00:00:00+00',
    )
    expect((await watermark('set', 'soon')).stderr).toContain('Cannot read "soon" as a value of the cursor')
    expect((await watermark('forget')).stdout).toBe('visits: changed 2026-05-02 12:00:00+00 → no watermark\n')
    expect((await run('--json')).document()).toMatchObject({ results: [{ counts: { outside: 0 } }] })
  })

  test('that is set accepts the definition that the pipeline has now; --full reads all of it', async () => {
    await writeVisits({ cwd, ...PIPELINE })
    await run()
    await writeVisits({
      cwd,
      ...PIPELINE,
      file: 'seoul.ts',
      more: `incremental: { cursor: 'changed', grace: '0s', zone: 'Asia/Seoul' },`,
    })
    const runSeoul = (...argv: readonly string[]) => stet(['run', 'seoul.ts', ...argv])
    expect((await runSeoul()).stderr).toContain('STET_DEFINITION_CHANGED')
    const set = await stet(['watermark', 'set', '2026-05-02 12:01:00+00', 'seoul.ts'])
    expect(set.status).toBe(0)
    expect((await runSeoul('--json')).document()).toMatchObject({ results: [{ counts: { outside: 3 } }] })
    expect((await runSeoul('--full', '--json')).document()).toMatchObject({
      results: [{ counts: { outside: 0 } }],
    })
  })

  test('of numbers is not rewound by a length of time', async () => {
    await writeVisits({ cwd, ...PIPELINE, more: `incremental: { cursor: 'id' },` })
    await run()
    const refused = await watermark('rewind', '2h')
    expect(refused.status).toBe(2)
    expect(refused.stderr).toContain(
      'Cannot rewind by 2h: the cursor "id" is a number (bigint), and has no time',
    )
    expect(refused.stderr).toContain(
      'Write the number to go back to, less than 21: stet watermark rewind NUMBER',
    )
    expect((await watermark('rewind', '11')).stdout).toBe('visits: id 21 → id 11\n')
  })

  test('of a pipeline without a cursor there is none', async () => {
    expect((await watermark('show')).stderr).toContain('reads by no cursor')
  })
})

describe('stet load', () => {
  const load = (file: string, ...argv: readonly string[]) =>
    stet(['load', join('inbox', file), '--table', 'visits', ...into, ...argv])
  const KEY = ['--key', 'id'] as const

  test('replaces the slice that it names', async () => {
    const by = ['--strategy', 'replace-partition', '--partition-by', 'day', ...KEY] as const
    expect((await load('2026-05-01.csv', ...by, '--slice', '2026-05-01')).stdout).toContain('2 inserted')
    await writeDay(cwd, '2026-05-01', ['a'])
    const again = await load('2026-05-01.csv', ...by, '--slice', '2026-05-01', '--json')
    expect(violations('load.json', again.document())).toEqual([])
    expect(again.document()).toMatchObject({ slice: '2026-05-01', counts: { deleted: 1 } })
    expect((await load('2026-05-02.csv', ...by, '--slice', '2026-05-01')).stderr).toContain(
      'STET_OUTSIDE_SLICE',
    )
    const month = await load(
      '2026-05-02.csv',
      ...by,
      '--partition-size',
      'month',
      '--slice',
      '2026-05',
      '--plan',
    )
    expect(month.stdout).toContain('slice 2026-05: 1 row → 2 rows')
  })

  test('--missing mark keeps rows that are gone, in the column of --keep-gone', async () => {
    const marking = [...KEY, '--missing', 'mark', '--keep-gone', 'gone_at'] as const
    await load('2026-05-01.csv', ...marking)
    await writeDay(cwd, '2026-05-01', ['a'])
    expect((await load('2026-05-01.csv', ...marking)).stdout).toContain('1 marked as gone')
    expect(await rowsOf('select id from visits where gone_at is not null')).toEqual([['011']])
    await writeDay(cwd, '2026-05-01', ['a', 'b'])
    expect((await load('2026-05-01.csv', ...marking)).stdout).toContain('1 of the updated restored')
    await writeDay(cwd, '2026-05-01', [])
    expect((await load('2026-05-01.csv', ...marking)).stderr).toContain('STET_DELETE_GUARD')
    expect((await load('2026-05-01.csv', ...marking, '--allow-empty')).stdout).toContain('2 marked as gone')
  })

  test('more than a tenth of many rows goes only with --allow-deletes (G10)', async () => {
    const many = (count: number) =>
      writeFile(
        join(cwd, 'inbox', 'many.csv'),
        `id\n${Array.from({ length: count }, (_, id) => `${id}\n`).join('')}`,
      )
    const mirror = [...KEY, '--missing', 'delete'] as const
    await many(300)
    await load('many.csv', ...mirror)
    await many(150)
    const refused = await load('many.csv', ...mirror)
    expect(refused.status).toBe(3)
    expect(refused.stderr).toContain('--allow-deletes')
    expect((await load('many.csv', ...mirror, '--allow-deletes')).stdout).toContain('150 deleted')
  })

  test('--cursor goes on from the watermark, --grace and --start say from where', async () => {
    const incremental = [
      ...KEY,
      '--cursor',
      'changed',
      '--grace',
      '0s',
      '--start',
      '2026-05-01 12:01:00+00',
    ] as const
    expect((await load('2026-05-0*.csv', ...incremental)).stdout).toContain('1 outside the window')
    const again = await load('2026-05-0*.csv', ...incremental)
    expect(again.stdout).toContain('read 4 rows from 2 files')
    expect(again.stdout).toContain('3 outside the window')
    expect(again.stdout).toContain('watermark 2026-05-02 12:01:00+00')
  })

  test('--truth snapshot freezes, --fail-on-drift ends with 5', async () => {
    const snapshot = [...KEY, '--truth', 'snapshot', '--fail-on-drift'] as const
    expect((await load('2026-05-01.csv', ...snapshot)).status).toBe(0)
    await writeDay(cwd, '2026-05-01', ['a', 'B'])
    const drifted = await load('2026-05-01.csv', ...snapshot)
    expect(drifted.status).toBe(5)
    expect(drifted.stderr).toContain('STET_DRIFT')
  })

  test('--on-reject quarantine keeps the row whole', async () => {
    await load('2026-05-01.csv', ...KEY)
    await writeFile(join(cwd, 'inbox', 'bad.csv'), 'id,day,page,changed\n9,never,x,2026-05-01 12:00:00+00\n')
    const ran = await load('bad.csv', ...KEY, '--on-reject', 'quarantine', '--max-rejects', '1')
    expect(ran.status).toBe(0)
    expect(await rowsOf('select raw from stet.stet.quarantine')).toEqual([
      ['9,never,x,2026-05-01 12:00:00+00'],
    ])
  })

  test.each([
    [
      ['--missing', 'delete', '--strategy', 'replace-table'],
      '--missing has no meaning with --strategy replace-table',
    ],
    [[...KEY, '--partition-by', 'day'], '--partition-by has no meaning with --strategy upsert'],
    [[...KEY, '--zone', 'UTC'], '--zone has no meaning without --cursor'],
    [[...KEY, '--grace', '1h'], '--grace has no meaning without --cursor'],
    [[...KEY, '--allow-deletes'], '--allow-deletes has no meaning with --strategy upsert'],
    [['--strategy', 'replace-partition'], 'needs the column of its slices'],
    [[...KEY, '--slice', '2026-05-01'], 'is not cut into slices'],
    [
      ['--strategy', 'replace-partition', '--partition-by', 'day', '--partition-size', 'week'],
      'hour, day, month',
    ],
  ])('%j is refused', async (argv, message) => {
    const ran = await load('2026-05-01.csv', ...argv)
    expect(ran).toMatchObject({ status: 2, stdout: '' })
    expect(ran.stderr).toContain(message)
  })
})
