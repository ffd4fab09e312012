import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openGround } from '../sandbox/fence.ts'
import { fileCallOf } from './calls.ts'
import { startFileTrace, whyNoTrace } from './trace.ts'

const read = (line: string) => fileCallOf(line, '/w')

test('calls that change files are read from what strace writes', () => {
  expect(read('7  openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/a>')).toEqual({
    verb: 'empty',
    path: '/w/a',
    to: null,
    name: 'openat',
  })
  expect(read('7  write(1</w/a b.csv>, ""..., 3) = 3 (DELAYED)')).toMatchObject({
    verb: 'write',
    path: '/w/a b.csv',
  })
  expect(read('7  renameat2(AT_FDCWD</w/s>, "a", AT_FDCWD</w>, "../b", RENAME_NOREPLACE) = 0')).toMatchObject(
    {
      verb: 'rename',
      path: '/w/s/a',
      to: '/b',
    },
  )
  expect(read('7  rename("x.tmp", "/w/x.csv") = 0')).toMatchObject({ path: '/w/x.tmp', to: '/w/x.csv' })
  expect(read('7  unlink("gr\\303\\266\\303\\237e \\"1\\".csv") = 0')).toMatchObject({
    path: '/w/größe "1".csv',
  })
})

test('calls that change none are not', () => {
  expect(read('7  openat(AT_FDCWD</w>, "a", O_RDONLY|O_CLOEXEC) = 3</w/a>')).toBeNull()
  expect(read('7  write(1<pipe:[81]>, ""..., 3) = 3')).toBeNull()
  expect(read('+++ exited with 0 +++')).toBeNull()
})

describe('with strace', async () => {
  const missing = await whyNoTrace(openGround(), process.env['PATH'] ?? '')
  let folder: string
  beforeEach(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'stet-trace-')))
    await mkdir(join(folder, 'work'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const trace = async (script: string, foldNames = false) => {
    const changes: string[] = []
    await using files = await startFileTrace({
      folder,
      work: join(folder, 'work'),
      home: join(folder, 'home'),
      foldNames,
      counts: (path) => !path.endsWith('.log'),
      onChange: (change) => changes.push(`${change.what} #${change.occurrence}`),
      delay: null,
    })
    const { program, args } = files.wrap({ program: 'sh', args: ['-c', script] })
    const { status } = spawnSync(program, args, { cwd: join(folder, 'work') })
    await files.settled()
    return { changes, status }
  }

  test('every change by the command and what it starts is told, in order, and its exit status kept', async ({
    skip,
  }) => {
    skip(missing !== null, missing ?? '')
    const script =
      'echo 1 >> out; echo x > no.log; mkdir s; (cd s; mv ../out in); rm s/in; echo y > ../other; exit 4'
    expect(await trace(script)).toEqual({
      changes: [
        'open out #1',
        'write to out #1',
        'make folder s #1',
        'rename out to s/in #1',
        'remove s/in #1',
      ],
      status: 4,
    })
  })

  test('names made up by chance count as one when they are asked to', async ({ skip }) => {
    skip(missing !== null, missing ?? '')
    const { changes } = await trace('for n in a7 b9; do : > tmp$n.part; done', true)
    expect(changes).toEqual(['open tmpa7.part, which empties it #1', 'open tmpb9.part, which empties it #2'])
  })
})
