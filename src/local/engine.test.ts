import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLocalEngine } from './engine.ts'

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'stet-test-'))
  try {
    await body(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

test('a run leaves nothing in the temporary folder', async () => {
  await inFolder(async (folder) => {
    {
      await using engine = await openLocalEngine({ temporaryFolder: folder })
      expect(await engine.count('select 41 + 1')).toBe(42)
      expect(await readdir(folder)).toHaveLength(1)
    }
    expect(await readdir(folder)).toEqual([])
  })
})

test('what a killed run has left is removed by the next, and nothing else', async () => {
  await inFolder(async (folder) => {
    // No process has this number: Linux gives out at most 4,194,304.
    await mkdir(join(folder, 'stet-run-4999999-abc'))
    await mkdir(join(folder, `stet-run-${process.pid}-alive`))
    await mkdir(join(folder, 'stet-other'))
    await using _ = await openLocalEngine({ temporaryFolder: folder })
    const names = await readdir(folder)
    expect(names).not.toContain('stet-run-4999999-abc')
    expect(names).toContain(`stet-run-${process.pid}-alive`)
    expect(names).toContain('stet-other')
  })
})

test('a temporary folder that cannot be used is named', async () => {
  await expect(openLocalEngine({ temporaryFolder: '/nowhere/at/all' })).rejects.toMatchObject({
    code: 'STET_CONFIG',
    message: expect.stringContaining('/nowhere/at/all'),
  })
})

test('an engine with a limit has a thread that returns memory to the system', async () => {
  await using free = await openLocalEngine()
  await using bounded = await openLocalEngine({ memoryLimit: '1GB' })
  const returns = async (engine: typeof free) =>
    (await engine.rows(`select current_setting('allocator_background_threads') as set`))[0]?.set
  expect([await returns(free), await returns(bounded)]).toEqual([false, true])
})

test('an engine spills into its own folder and never fetches an extension', async () => {
  await using engine = await openLocalEngine()
  const settings = await engine.rows(`
    select name, value
      from duckdb_settings()
     where name in ('temp_directory', 'autoinstall_known_extensions', 'autoload_known_extensions')
     order by name`)
  expect(Object.fromEntries(settings.map(({ name, value }) => [name, value]))).toEqual({
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    temp_directory: expect.stringContaining(engine.directory),
  })
})
