import { chmod, mkdtemp, rename, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cacheFolder, isPipelineFile } from './pipeline-files.ts'

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

test('a pipeline file is told by its ending', () => {
  expect(['a.ts', 'a.mts', 'b.js', 'c.cjs', 'd.tsx'].every(isPipelineFile)).toBe(true)
  expect(['a.csv', 'ts', 'a.json', 'a.ts.gz'].some(isPipelineFile)).toBe(false)
})
