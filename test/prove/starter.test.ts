import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../support/run-cli.ts'
import { PATIENCE_MS, testFence } from './support.ts'

// Below the repository, where `stet` is found as a package.
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(fileURLToPath(new URL('../../node_modules/.stet-starter-', import.meta.url)))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const env = { PATH: process.env.PATH ?? '' }

describe('the pipeline of `stet init`, into a DuckDB file', { timeout: PATIENCE_MS }, () => {
  test.for(['stet.duckdb', 'wh.duckdb'])('named %s, survives with its run log left out', async (name) => {
    await using fence = await testFence()
    const network = fence.isClosed ? [] : ['--allow-network']
    const cwd = await mkdtemp(join(folder, 'work-'))
    expect(await runCli(['init'], { cwd, env })).toMatchObject({ status: 0 })
    const path = join(cwd, 'pipeline.ts')
    await writeFile(path, (await readFile(path, 'utf8')).replace("'stet.duckdb'", `'${name}'`))
    const { status, stdout, document } = await runCli(
      ['prove', '--json', '--try', 'crash', ...network, 'pipeline.ts'],
      { cwd, env },
    )
    expect(status, stdout).toBe(0)
    expect(document()).toMatchObject({ verdict: 'survives', findings: [] })
    // The table counts, the tables of the run log do not; and nothing was loaded here.
    expect(document()).toMatchObject({
      clean: { changes: [{ table: `${name}:orders`, before: 0, after: 3 }] },
    })
    expect((await readdir(cwd)).sort()).toEqual(['orders.csv', 'pipeline.ts'])
  })
})
