import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openFence } from '../../src/prove/sandbox/fence.ts'
import { findPrograms } from '../../src/prove/sandbox/programs.ts'
import { startPostgres } from '../../src/prove/sandbox/postgres-server.ts'
import { connect } from '../support/databases.ts'
import { embeddedBinaries, systemBinaries } from '../support/postgres-binaries.ts'
import { hasPsql, PATIENCE_MS } from './support.ts'

const prover = fileURLToPath(new URL('prover-process.ts', import.meta.url))
const cli = fileURLToPath(new URL('../../dist/cli/bin.js', import.meta.url))
const jiti = fileURLToPath(import.meta.resolve('jiti/register'))
const isRoot = process.getuid?.() === 0

let folder: string
let isFenced: boolean
beforeAll(async () => {
  const fence = await openFence()
  isFenced = !('refused' in fence)
  if (!('refused' in fence)) await fence[Symbol.asyncDispose]()
})
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-hostile-'))
  await chmod(folder, 0o755)
  await mkdir(join(folder, 'work'))
  await mkdir(join(folder, 'tmp'))
  return () => rm(folder, { recursive: true, force: true })
})

const LOAD = 'psql -qc "delete from t" && psql -qc "insert into t select 1"'

interface Ended {
  readonly status: number | null
  readonly output: string
  readonly left: readonly string[]
}

/** The prover as a process of its own, with a temporary folder of its own, which has to be empty afterwards. */
async function proveApart(
  command: string,
  { seed, around = [] }: { readonly seed: string; readonly around?: readonly string[] },
): Promise<Ended> {
  await writeFile(join(folder, 'seed.sql'), seed)
  const options = JSON.stringify({
    seed: join(folder, 'seed.sql'),
    allowNetwork: !isFenced,
    kinds: ['crash'],
  })
  const words = [...around, process.execPath, '--import', jiti, prover, options, 'sh', '-c', command]
  const { status, stdout, stderr } = spawnSync(words[0] ?? '', words.slice(1), {
    cwd: join(folder, 'work'),
    encoding: 'utf8',
    env: { ...process.env, TMPDIR: join(folder, 'tmp') },
  })
  return { status, output: stdout + stderr, left: await readdir(join(folder, 'tmp')) }
}

/** On a disk of so many megabytes. What is left on it is told at the end of the output: it goes when the process does. */
const smallDisk = (megabytes: number) => [
  'unshare',
  '-m',
  'sh',
  '-c',
  `mount -t tmpfs -o size=${megabytes}m,mode=755 none $TMPDIR && "$@"; echo "status $?, left: $(ls -A $TMPDIR)"`,
  'sh',
]

describe.skipIf(!hasPsql)('hostile surroundings (they need psql)', { timeout: PATIENCE_MS }, () => {
  const SMALL = 'create table t (a int);'
  const FILLS = 'insert into t select generate_series(1, 3000000)'

  test.skipIf(!isRoot).for([
    ['for the server itself', 12, SMALL, LOAD, /initdb ended with 1: .*No space left on device/s],
    ['for the seed', 100, `${SMALL}${FILLS};`, LOAD, /The seed .* failed: .*No space left on device/s],
    [
      'for what the job writes',
      100,
      SMALL,
      `psql -qc '${FILLS}'`,
      /The disk with the sandbox is full|server has ended: .*No space left on device/,
    ],
  ] as const)(
    'a disk with no room %s is named, and nothing is left on it',
    async ([, megabytes, seed, job, words]) => {
      const { output } = await proveApart(job, { seed, around: smallDisk(megabytes) })
      expect(output).toMatch(words)
      expect(output).toMatch(/^status 130, left: (jiti)?$/m)
    },
  )

  test.skipIf(!isRoot)('a temporary folder that the server may not enter is named', async () => {
    await chmod(folder, 0o700)
    const { output, left } = await proveApart(LOAD, { seed: SMALL })
    expect(output).toMatch(/initdb ended with 1: .*Permission denied/s)
    expect(left.filter((name) => name.startsWith('stet-'))).toEqual([])
  })

  test.skipIf(!isRoot)('a temporary folder that nobody may write to is named', async () => {
    await chmod(join(folder, 'tmp'), 0o555)
    const asNobody = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
    const { output } = await proveApart(LOAD, { seed: SMALL, around: asNobody })
    expect(output).toMatch(/Cannot make a folder for the sandbox in .*EACCES|Cannot fence the command off/)
  })

  test('a seed with an error leaves nothing', async () => {
    const { output, left } = await proveApart(LOAD, { seed: `${SMALL}\nselect 1/0;` })
    expect(output).toMatch(/seed\.sql:2: ERROR: {2}division by zero/)
    expect(left.filter((name) => name.startsWith('stet-'))).toEqual([])
  })

  test('a command that needs a terminal is told that it has none', async () => {
    const { output, left } = await proveApart('read answer < /dev/tty', { seed: SMALL })
    expect(output).toContain('fails without any fault')
    expect(output).toMatch(/\/dev\/tty: No such device|cannot open \/dev\/tty/)
    expect(left.filter((name) => name.startsWith('stet-'))).toEqual([])
  })
})

describe.skipIf(!hasPsql || !existsSync('/usr/bin/script'))(
  'at a terminal (it needs script)',
  { timeout: PATIENCE_MS },
  () => {
    /** A PATH with all programs but the one that makes namespaces. */
    async function pathWithout(missing: string): Promise<string> {
      const bin = join(folder, 'bin')
      await mkdir(bin)
      for (const place of (process.env.PATH ?? '').split(delimiter)) {
        for (const name of await readdir(place).catch(() => [])) {
          if (name !== missing) await symlink(join(place, name), join(bin, name)).catch(() => undefined)
        }
      }
      return bin
    }

    async function answer(line: string): Promise<Ended> {
      await writeFile(join(folder, 'seed.sql'), 'create table t (a int)')
      const command = `${process.execPath} ${cli} prove --try crash --seed ${join(folder, 'seed.sql')} -- sh -c '${LOAD}'`
      const { status, stdout } = spawnSync('/usr/bin/script', ['-qec', command, '/dev/null'], {
        cwd: join(folder, 'work'),
        encoding: 'utf8',
        input: line,
        env: { ...process.env, PATH: await pathWithout('unshare'), TMPDIR: join(folder, 'tmp') },
      })
      return { status, output: stdout, left: await readdir(join(folder, 'tmp')) }
    }

    test('without a fence it asks, and goes on only after a yes', async () => {
      const { status, output } = await answer('y\n')
      expect(output).toContain('This system has no network fence')
      expect(output).toContain('open: the command could reach other servers')
      expect(output).toContain('SURVIVES')
      expect(status).toBe(0)
    })

    test('where nobody can be asked, nothing runs without --allow-network', async () => {
      await writeFile(join(folder, 'seed.sql'), 'create table t (a int)')
      const options = JSON.stringify({ seed: join(folder, 'seed.sql') })
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        ['--import', jiti, prover, options, 'sh', '-c', `echo ran > ${join(folder, 'mark')}`],
        {
          cwd: join(folder, 'work'),
          encoding: 'utf8',
          env: { ...process.env, PATH: await pathWithout('unshare'), TMPDIR: join(folder, 'tmp') },
        },
      )
      expect(stderr).toContain('Cannot fence the command off from the network')
      expect(stderr).toContain('--allow-network')
      expect(stdout).toBe('')
      expect(status).toBe(130)
      expect(await readdir(folder)).not.toContain('mark')
    })

    test.each(['n\n', '\n'])('%j is no yes', async (line) => {
      const { status, output, left } = await answer(line)
      expect(output).toContain('--allow-network')
      expect(output).not.toContain('making the sandbox')
      expect(status).toBe(2)
      expect(left.filter((name) => /^stet-(pg|prove)/.test(name))).toEqual([])
    })
  },
)

describe.skipIf(!hasPsql)(
  'an archive of pg_dump (it needs the client programs)',
  { timeout: PATIENCE_MS },
  () => {
    test.each(['-Fc', '-Fd', '-Ft'])('%s fills the sandbox', async (format) => {
      const binaries = systemBinaries(existsSync) ?? (await embeddedBinaries())
      await using server = await startPostgres({ binaries })
      await using db = await connect(server.url)
      await db.client.query('create table t (a int); insert into t values (7)')
      const { pgDump } = await findPrograms(process.env.PATH ?? '')
      const dump = spawnSync(pgDump ?? '', [format, '-f', join(folder, 'dump'), server.url], {
        encoding: 'utf8',
      })
      expect(dump.stderr).toBe('')
      const options = JSON.stringify({
        template: join(folder, 'dump'),
        allowNetwork: !isFenced,
        kinds: ['twice'],
      })
      const job = '[ $(psql -Atc "select a from t") = 7 ] && psql -qc "insert into t values (8)"'
      const run = spawnSync(process.execPath, ['--import', jiti, prover, options, 'sh', '-c', job], {
        cwd: join(folder, 'work'),
        encoding: 'utf8',
      })
      expect(run.stdout, run.stderr).toContain('t +1 row')
      expect(run.status).toBe(1)
    })

    test('a file that is none is refused with what to do', async () => {
      await writeFile(join(folder, 'seed.sql'), 'create table t (a int)')
      const options = JSON.stringify({ template: join(folder, 'seed.sql'), allowNetwork: !isFenced })
      const run = spawnSync(process.execPath, ['--import', jiti, prover, options, 'true'], {
        encoding: 'utf8',
      })
      expect(run.stderr).toContain('Cannot restore')
      expect(run.stderr).toContain('does not appear to be a valid archive')
    })
  },
)
