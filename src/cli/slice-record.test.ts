import { spawnSync } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { violations } from '../../test/support/schemas.ts'
import { byCursor, writeDay, writeVisits } from '../../test/support/visits.ts'
import { visitsCli } from '../../test/support/visits-cli.ts'

const cli = visitsCli()
const { stet, run, rowsOf, runsOf } = cli

describe('stet slices', () => {
  test('shows months of days, by letters with a legend, and as JSON', async () => {
    await writeDay(cli.cwd, '2026-05-02', [])
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

  test('--forget says what it has done, also where the calendar cannot be shown for another slice', async () => {
    await run('--slice', '2026-05-01', '--slice', '2206-05-01', '--slice', '1026-05-01')
    const forgotten = await stet(['slices', 'visits.ts', '--forget', '2206-05-01'])
    expect(forgotten.status).toBe(2)
    expect(forgotten.stderr).toContain('slice 2206-05-01 is forgotten')
    expect(forgotten.stderr).toContain('There are more than 20,000 slices')
  })

  test('an end that is mistyped is refused in its own words, not as a slice to forget', async () => {
    await run('--slice', '2026-05-01')
    for (const ends of [
      ['--from', '2026-5-1'],
      ['--from', '2026-05-09', '--to', '2026-05-01'],
    ]) {
      const { status, stderr } = await stet(['slices', 'visits.ts', ...ends])
      expect(status).toBe(2)
      expect(stderr).toContain(ends.length === 2 ? '2026-5-1' : '2026-05-09')
      expect(stderr).not.toContain('--forget')
    }
  })

  test('--forget is refused for a slice that was loaded once, or that nobody has run', async () => {
    await run('--slice', '2026-05-01')
    await rm(join(cli.cwd, 'inbox', '2026-05-01.csv'))
    await run('--slice', '2026-05-01')
    const loaded = await stet(['slices', 'visits.ts', '--forget', '2026-05-01'])
    expect(loaded.stderr).toContain('was loaded at')
    const never = await stet(['slices', 'visits.ts', '--forget', '2026-05-09'])
    expect(never.stderr).toContain('No slice "2026-05-09" of "visits" is on record')
    expect([loaded.status, never.status]).toEqual([2, 2])
    expect((await stet(['slices', 'visits.ts'])).stdout).toContain('1F')
  })

  test('shows a value that is called as runs without slices are', async () => {
    const write = `{ strategy: 'replace-partition', by: 'page', size: 'value', key: ['id'] }`
    await writeVisits({ cwd: cli.cwd, file: 'pages.ts', files: '2026-05-01.csv', write })
    await writeDay(cli.cwd, '2026-05-01', ['all'])
    await stet(['run', 'pages.ts', '--slice', 'all'])
    expect((await stet(['slices', 'pages.ts', '--json'])).document().slices).toMatchObject([
      { slice: 'all', state: 'loaded' },
    ])
  })

  test('of a pipeline that never ran is empty, of one with other slices says so', async () => {
    expect((await stet(['slices', 'visits.ts'])).stdout).toContain(
      'no slice of pipeline "visits" is on record',
    )
    await run('--slice', '2026-05-01')
    await writeVisits({
      cwd: cli.cwd,
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
    await writeDay(cli.cwd, '2026-05-01', ['a', 'B'])
    await writeFile(
      join(cli.cwd, 'visits.ts'),
      `${await readFile(join(cli.cwd, 'visits.ts'), 'utf8')}// changed\n`,
    )
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

  test('says which files have come and gone since', async () => {
    const write = `{ strategy: 'upsert', key: ['id'] }`
    await writeVisits({ cwd: cli.cwd, file: 'whole.ts', files: '*.csv', write })
    await stet(['run', 'whole.ts'])
    const [first] = await runsOf()
    await rm(join(cli.cwd, 'inbox', '2026-05-01.csv'))
    await writeDay(cli.cwd, '2026-05-03', ['a'])
    const again = await stet(['rerun', first?.runId ?? '', 'whole.ts'])
    expect(again.status).toBe(0)
    expect(again.stderr.split(`2026-05-01.csv is not there any more since run ${first?.runId}`)).toHaveLength(
      2,
    )
    expect(again.stderr).toContain(`2026-05-03.csv was not read by that run since run ${first?.runId}`)
  })

  test('says that its only file is gone also where it fails for want of it', async () => {
    await run('--slice', '2026-05-01')
    const [first] = await runsOf()
    await rm(join(cli.cwd, 'inbox', '2026-05-01.csv'))
    const again = await stet(['rerun', first?.runId ?? '', 'visits.ts'])
    expect(again.status).toBe(1)
    expect(again.stderr).toMatch(
      new RegExp(`^note: \\S*2026-05-01\\.csv is not there any more since run ${first?.runId}\\nerror: `),
    )
  })

  test('repeats the window of a cursor and leaves the watermark (G4)', async () => {
    await writeVisits({ cwd: cli.cwd, ...byCursor("grace: '1h'") })
    await run()
    await writeDay(cli.cwd, '2026-05-03', ['a'])
    await run()
    const [second] = await runsOf()
    await writeDay(cli.cwd, '2026-05-04', ['a'])
    await run()
    const before = (await stet(['watermark', 'show', 'visits.ts'])).stdout
    expect((await stet(['rerun', second?.runId ?? '', 'visits.ts'])).status).toBe(0)
    expect((await runsOf())[0]?.window).toEqual(second?.window)
    expect((await stet(['watermark', 'show', 'visits.ts'])).stdout).toBe(before)
  })
})

describe('stet watermark', () => {
  const PIPELINE = byCursor("grace: '0s'")
  const watermark = (...argv: readonly string[]) => stet(['watermark', ...argv, 'visits.ts'])

  test('is shown, set, rewound and forgotten, old → new, and the next run goes by it', async () => {
    await writeVisits({ cwd: cli.cwd, ...PIPELINE })
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
    await writeVisits({ cwd: cli.cwd, ...PIPELINE })
    await run()
    await writeVisits({
      cwd: cli.cwd,
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

  /** The words of a command line as a shell takes them apart. */
  const wordsOf = (command: string): readonly string[] => {
    const { stdout } = spawnSync('sh', ['-c', `printf '%s\\0' ${command}`], { encoding: 'utf8' })
    return stdout.split('\0').slice(0, -1)
  }

  test('of another definition names ways out that work as they are pasted, and --from is one', async () => {
    await writeVisits({ cwd: cli.cwd, ...PIPELINE })
    await run()
    for (const way of ['set', 'from']) {
      const file = `to ${way}.ts`
      const zone = way === 'set' ? 'Asia/Seoul' : 'Asia/Tokyo'
      const more = `incremental: { cursor: 'changed', grace: '0s', zone: '${zone}' },`
      await writeVisits({ cwd: cli.cwd, ...PIPELINE, file, more })
      const { stderr } = await stet(['run', file])
      const command = /or (stet watermark set .*?)\. Or give/.exec(stderr)?.[1] ?? ''
      const from = /--from '[^']*'/.exec(stderr)?.[0] ?? ''
      if (way === 'set') expect(await stet(wordsOf(command).slice(1))).toMatchObject({ status: 0 })
      const argv = way === 'set' ? [] : wordsOf(from)
      const counts = { outside: 3, unchanged: 1 }
      expect((await stet(['run', file, ...argv, '--json'])).document()).toMatchObject({
        results: [{ counts, watermark: '2026-05-02 12:01:00+00' }],
      })
      expect((await stet(['run', file, '--json'])).document()).toMatchObject({ results: [{ counts }] })
    }
  })

  test('of another definition is taken over by --from also where nothing has come since', async () => {
    await writeVisits({ cwd: cli.cwd, ...PIPELINE })
    await run()
    const more = `incremental: { cursor: 'changed', grace: '0s', zone: 'Asia/Seoul' },`
    await writeVisits({ cwd: cli.cwd, ...PIPELINE, file: 'seoul.ts', more })
    const ran = await stet(['run', 'seoul.ts', '--from', '2026-05-03'])
    expect(ran.stdout).toContain('\nwindow 2026-05-02 15:00:00+00 to ')
    expect((await stet(['watermark', 'show', 'seoul.ts'])).stdout).toContain('changed 2026-05-02 15:00:00+00')
    expect(await stet(['run', 'seoul.ts'])).toMatchObject({ status: 0 })
  })

  test('is gone before by --from, and never left behind rows that nobody has read (G4)', async () => {
    await writeVisits({ cwd: cli.cwd, ...PIPELINE, more: `${PIPELINE.more} protect: true,` })
    await run()
    expect((await run('--from', '2026-05-01T12:01:00Z', '--json')).document()).toMatchObject({
      results: [{ counts: { outside: 1, unchanged: 3 }, watermark: '2026-05-02 12:01:00+00' }],
    })
    const beyond = await run('--from', '2026-06-01')
    expect(beyond.status).toBe(2)
    expect(beyond.stderr).toContain(
      '--from 2026-06-01 00:00:00+00 is after the watermark 2026-05-02 12:01:00+00: rows between',
    )
    const [, command = ''] = /for good: (.*)/.exec(beyond.stderr) ?? []
    expect(await stet(wordsOf(command).slice(1))).toMatchObject({ status: 0 })
    expect((await run('--from', 'soon')).stderr).toContain('Cannot read "soon" as a value of the cursor')
    expect((await run('--from', '2026-05-01', '--full')).stderr).toContain('both say where the run begins')
    expect((await run('--from', '2026-05-01', '--slice', '2026-05-01')).stderr).toContain('both say where')
    const full = await run('--full')
    expect(full.stderr).toContain('stet backfill visits.ts --from')
  })

  test('of numbers is not rewound by a length of time', async () => {
    await writeVisits({ cwd: cli.cwd, ...PIPELINE, more: `incremental: { cursor: 'id' },` })
    await run()
    const refused = await watermark('rewind', '2h')
    expect(refused.status).toBe(2)
    expect(refused.stderr).toContain(
      'Cannot rewind by 2h: the cursor "id" is a number (bigint), and has no time',
    )
    expect(refused.stderr).toContain(
      'Write the number to go back to, less than 21: stet watermark rewind NUMBER visits.ts',
    )
    expect((await watermark('rewind', '11')).stdout).toBe('visits: id 21 → id 11\n')
  })

  test('of a pipeline without a cursor there is none', async () => {
    expect((await watermark('show')).stderr).toContain('reads by no cursor')
    expect((await run('--from', '2026-05-01', '--slice', '2026-05-01')).stderr).toContain(
      'reads by no cursor, so it cannot begin at 2026-05-01',
    )
  })
})
