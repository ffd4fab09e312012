import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { violations } from '../../test/support/schemas.ts'
import { byCursor, writeDay, writeVisits } from '../../test/support/visits.ts'
import { visitsCli } from '../../test/support/visits-cli.ts'

const cli = visitsCli()
const { stet, run, runsOf } = cli

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
    expect((await stet(['runs', ...cli.into])).stdout).toMatch(
      /pipeline +slice +status.*\n.*visits +2026-05-02 +changed/,
    )
  })

  test('is the one that --at falls into, and both are on record', async () => {
    expect((await run('--at', '2026-05-02T23:59:59Z')).stdout).toContain('visits 2026-05-02 → ')
    const [entry] = await runsOf()
    expect(entry).toMatchObject({ slice: '2026-05-02', logicalTime: '2026-05-02T23:59:59Z' })
    const shown = await stet(['runs', 'show', entry?.runId ?? '', ...cli.into])
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
    await rm(join(cli.cwd, 'inbox', '2026-05-01.csv'))
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
    const path = join(cli.cwd, 'context.json')
    await writeFile(path, JSON.stringify({ ...data, partition_key: '2026-05-01' }))
    expect(await slicesRun({ DAGSTER_PIPES_CONTEXT: pipes({ path }) })).toMatchObject({ slice: '2026-05-01' })
    const range = { start: '2026-05-01', end: '2026-05-02' }
    const several = await stet(['run', 'visits.ts'], {
      env: {
        DAGSTER_PIPES_CONTEXT: pipes({ data: { ...data, partition_key: null, partition_key_range: range } }),
      },
    })
    expect(several).toMatchObject({ status: 2 })
    expect(several.stderr).toContain('stet backfill visits.ts --from 2026-05-01 --to 2026-05-02')
    const write = `{ strategy: 'replace-partition', by: 'changed', size: 'hour', key: ['id'] }`
    await writeVisits({ cwd: cli.cwd, file: 'by hour.ts', write })
    const hours = { start: '2026-05-01-08:00', end: '2026-05-01-09:00' }
    const context = { data: { ...data, partition_key: null, partition_key_range: hours } }
    const hourly = await stet(['run', 'by hour.ts'], { env: { DAGSTER_PIPES_CONTEXT: pipes(context) } })
    expect(hourly.stderr).toContain("stet backfill 'by hour.ts' --from 2026-05-01T08 --to 2026-05-01T09")
    const broken = await stet(['run', 'visits.ts'], { env: { DAGSTER_PIPES_CONTEXT: 'x' } })
    expect(broken.stderr).toContain('Cannot read the context of Dagster Pipes')
  })
})

describe('stet plan of a slice', () => {
  test('names slice, truth and the rows before and after; a run keeps to it', async () => {
    await run('--slice', '2026-05-02')
    await writeDay(cli.cwd, '2026-05-02', ['a'])
    const planned = await stet(['plan', 'visits.ts', '--slice', '2026-05-02', '--out', 'plan.json', '--json'])
    expect(violations('plans.json', planned.document())).toEqual([])
    const shown = await stet(['plan', 'visits.ts', '--slice', '2026-05-02'])
    expect(shown.stdout).toContain('slice 2026-05-02: 2 rows → 1 row\n')
    const other = await run('--slice', '2026-05-01', '--plan', 'plan.json')
    expect(other.stderr).toContain('The saved plan has none for slice 2026-05-01 of the pipeline "visits"')
    expect(await run('--slice', '2026-05-02', '--plan', 'plan.json')).toMatchObject({ status: 0 })
  })

  test('of a cursor names window and watermark', async () => {
    await writeVisits({ cwd: cli.cwd, ...byCursor("grace: '1h'") })
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
      join(cli.cwd, 'inbox', '2026-05-02.csv'),
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
    await writeDay(cli.cwd, '2026-05-01', [])
    await run('--slice', '2026-05-01', '--allow-empty')
    expect((await stet(['plan', 'visits.ts', '--slice', '2026-05-02'])).stderr).toBe('')
    expect(await run('--slice', '2026-05-02')).toMatchObject({ status: 0 })
  })
})

describe('a slice of a cursor', () => {
  beforeEach(async () => {
    await writeVisits({ cwd: cli.cwd, ...byCursor() })
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
    expect((await stet(['runs', ...cli.into])).stdout).toMatch(/2026-06-01 +nothing read +4 /)
  })
})

test('DuckDB has no partitions to exchange, and a run that was asked for it says so', async () => {
  for (const apply of ['swap', 'auto']) {
    const write = `{ strategy: 'replace-partition', by: 'day', size: 'day', key: ['id'], apply: '${apply}' }`
    await writeVisits({ cwd: cli.cwd, file: `${apply}.ts`, write })
    await writeDay(cli.cwd, '2026-05-01', [apply])
    const ran = await stet(['run', `${apply}.ts`, '--slice', '2026-05-01'])
    expect(ran.stderr).toBe(
      `note: DuckDB has no partitions to exchange: the rows are written in place (apply ${apply})\n`,
    )
    // Nothing to write, nothing to choose.
    expect((await stet(['run', `${apply}.ts`, '--slice', '2026-05-01'])).stderr).toBe('')
  }
})

test('a key that its own slice keeps is no reason to load that slice first', async () => {
  for (const missing of ['keep', 'delete']) {
    const write = `{ strategy: 'replace-partition', by: 'day', size: 'day', key: ['id'], missing: '${missing}' }`
    await writeVisits({ cwd: cli.cwd, file: `${missing}.ts`, write })
    await writeDay(cli.cwd, '2026-05-01', ['a'])
    await stet(['run', `${missing}.ts`, '--slice', '2026-05-01'])
    await writeFile(
      join(cli.cwd, 'inbox', '2026-05-02.csv'),
      'id,day,page,changed\n10,2026-05-02,a,2026-05-02 12:00:00+00\n',
    )
    const refused = await stet(['run', `${missing}.ts`, '--slice', '2026-05-02'])
    expect(refused.stderr).toContain('STET_KEY_CONSTRAINT')
    expect(refused.stderr.includes('Load the slice of that row first')).toBe(missing === 'delete')
  }
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
      ['load', file, '--table', 't', '--key', 'id', ...cli.into, '--fail-on-drift'],
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
    await writeVisits({ cwd: cli.cwd, more: SNAPSHOT })
    await run('--slice', '2026-05-01')
    await writeDay(cli.cwd, '2026-05-01', ['a', 'B', 'c'])
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

  test('is the whole table where the pipeline has no slices', async () => {
    await writeVisits({
      cwd: cli.cwd,
      file: 'whole.ts',
      write: "{ strategy: 'upsert', key: ['id'] }",
      files: '2026-05-01.csv',
      more: "truth: 'snapshot',",
    })
    const whole = (command: string) => stet([command, 'whole.ts'])
    expect(await whole('run')).toMatchObject({ status: 0 })
    expect((await whole('thaw')).stdout).toContain('visits is thawed: the next run may change it')
    expect((await whole('thaw')).stdout).not.toContain('slice')
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
