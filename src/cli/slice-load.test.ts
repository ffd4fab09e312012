import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { violations } from '../../test/support/schemas.ts'
import { writeDay } from '../../test/support/visits.ts'
import { visitsCli } from '../../test/support/visits-cli.ts'

const cli = visitsCli()
const { stet, rowsOf } = cli

describe('stet load', () => {
  const load = (file: string, ...argv: readonly string[]) =>
    stet(['load', join('inbox', file), '--table', 'visits', ...cli.into, ...argv])
  const KEY = ['--key', 'id'] as const

  test('replaces the slice that it names', async () => {
    const by = ['--strategy', 'replace-partition', '--partition-by', 'day', ...KEY] as const
    expect((await load('2026-05-01.csv', ...by, '--slice', '2026-05-01')).stdout).toContain('2 inserted')
    await writeDay(cli.cwd, '2026-05-01', ['a'])
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
    await writeDay(cli.cwd, '2026-05-01', ['a'])
    expect((await load('2026-05-01.csv', ...marking)).stdout).toContain('1 marked as gone')
    expect(await rowsOf('select id from visits where gone_at is not null')).toEqual([['011']])
    await writeDay(cli.cwd, '2026-05-01', ['a', 'b'])
    expect((await load('2026-05-01.csv', ...marking)).stdout).toContain('1 of the updated restored')
    await writeDay(cli.cwd, '2026-05-01', [])
    expect((await load('2026-05-01.csv', ...marking)).stderr).toContain('STET_DELETE_GUARD')
    expect((await load('2026-05-01.csv', ...marking, '--allow-empty')).stdout).toContain('2 marked as gone')
  })

  test('--keep-gone of a column that is not there prints the statement that makes one of that very name', async () => {
    await load('2026-05-01.csv', ...KEY)
    for (const [name, quoted] of [
      ['gone_at', 'gone_at'],
      ['Gone At', '"Gone At"'],
    ] as const) {
      const { stderr } = await load('2026-05-01.csv', ...KEY, '--missing', 'mark', '--keep-gone', name)
      expect(stderr).toContain(`add column ${quoted} timestamptz`)
    }
  })

  test('more than a tenth of many rows goes only with --allow-deletes (G10)', async () => {
    const many = (count: number) =>
      writeFile(
        join(cli.cwd, 'inbox', 'many.csv'),
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

  test('that the watermark stays is told where rejects are allowed, and not of a run that they fail', async () => {
    await writeFile(join(cli.cwd, 'inbox', 'bad.csv'), 'id,day,page,changed\n9,2026-05-01,x,\n')
    const incremental = [
      '2026-05-01.csv',
      join(cli.cwd, 'inbox', 'bad.csv'),
      ...KEY,
      '--cursor',
      'changed',
    ] as const
    const refused = await load(...incremental)
    expect(refused).toMatchObject({ status: 4 })
    expect(refused.stderr).not.toContain('The watermark stays')
    expect((await load(...incremental, '--max-rejects', '1')).stderr).toContain(
      'note: The watermark stays where it is, because 1 row was rejected: the next run reads it again',
    )
  })

  test('--truth snapshot freezes, --fail-on-drift ends with 5', async () => {
    const snapshot = [...KEY, '--truth', 'snapshot', '--fail-on-drift'] as const
    expect((await load('2026-05-01.csv', ...snapshot)).status).toBe(0)
    await writeDay(cli.cwd, '2026-05-01', ['a', 'B'])
    const drifted = await load('2026-05-01.csv', ...snapshot)
    expect(drifted.status).toBe(5)
    expect(drifted.stderr).toContain('STET_DRIFT')
  })

  test('--on-reject quarantine keeps the row whole', async () => {
    await load('2026-05-01.csv', ...KEY)
    await writeFile(
      join(cli.cwd, 'inbox', 'bad.csv'),
      'id,day,page,changed\n9,never,x,2026-05-01 12:00:00+00\n',
    )
    const ran = await load('bad.csv', ...KEY, '--on-reject', 'quarantine', '--max-rejects', '1')
    expect(ran.status).toBe(0)
    expect(ran.stderr).toContain('note: 1 rejected row is kept in stet.quarantine of the target')
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
