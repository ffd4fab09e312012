import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { VERSION } from '../src/version.ts'

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  version: string
  dependencies: Record<string, string>
  peerDependencies: Record<string, string>
}
const targets = readdirSync('src/targets', { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'shared')
  .map(({ name }) => name)

describe.each(targets)('target %s', (name) => {
  test('has a contract test and a README', () => {
    expect(existsSync(`test/contract/${name}.contract.test.ts`)).toBe(true)
    expect(existsSync(`src/targets/${name}/README.md`)).toBe(true)
  })

  test('loads only drivers that the package declares', () => {
    const sources = readdirSync(`src/targets/${name}`, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
    )
    const imported = sources.flatMap((file) => [
      ...readFileSync(`src/targets/${name}/${file}`, 'utf8').matchAll(
        /(?:\bfrom|import\()\s*'([^.'\s][^'\s]*)'/g,
      ),
    ])
    const declared = { ...manifest.dependencies, ...manifest.peerDependencies }
    for (const [, specifier = ''] of imported) {
      if (specifier.startsWith('node:')) continue
      expect(Object.keys(declared), `${name} imports ${specifier}`).toContain(specifier)
    }
  })
})

test('the version that runs log is the one of the package', () => {
  expect(VERSION).toBe(manifest.version)
})
