import { chmod, mkdtemp, rename, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cacheFolder, isPipelineFile, onePipeline } from './pipeline-files.ts'

test('translated pipeline files are kept in a folder of this user alone, and nowhere else', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'stet-cache-'))
  const folder = await cacheFolder(parent)
  expect(folder).toMatch(/stet-jiti-/)
  if (folder === false) return
  expect(await cacheFolder(parent)).toBe(folder)

  await chmod(folder, 0o777)
  expect(await cacheFolder(parent)).toBe(false)

  await chmod(folder, 0o700)
  await rename(folder, `${folder}-elsewhere`)
  await symlink(`${folder}-elsewhere`, folder)
  expect(await cacheFolder(parent)).toBe(false)

  expect(await cacheFolder(join(parent, 'missing\0'))).toBe(false)
})

test('which of several pipelines is meant is asked for, and said, in words that can be pasted', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'stet-several-'))
  const pipeline = (name: string) =>
    `definePipeline({ name: '${name}', source: rows({ rows: [], columns: { id: 'text' } }), target: duckdb({ file: 'x' }), table: 't', write: { strategy: 'replace-table' } })`
  await writeFile(
    join(cwd, 'two of them.ts'),
    `import { definePipeline } from 'stet'
import { rows } from 'stet/sources/rows'
import { duckdb } from 'stet/targets/duckdb'
export const one = ${pipeline('one')}
export const other = ${pipeline('the other')}
`,
  )
  await expect(onePipeline('two of them.ts', undefined, cwd)).rejects.toMatchObject({
    hint: "Name it: --pipeline one, or --pipeline 'the other'",
  })
  const { inCommands } = await onePipeline('two of them.ts', 'the other', cwd)
  expect(inCommands).toBe("'two of them.ts' --pipeline 'the other'")
})

test('a pipeline file is told by its ending', () => {
  expect(['a.ts', 'a.mts', 'b.js', 'c.cjs', 'd.tsx'].every(isPipelineFile)).toBe(true)
  expect(['a.csv', 'ts', 'a.json', 'a.ts.gz'].some(isPipelineFile)).toBe(false)
})
