import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { check } from '../../src/check/command.ts'

interface Expected {
  readonly must_flag: readonly { readonly file: string; readonly line: number; readonly tag: string }[]
  readonly must_not_flag: readonly string[]
  readonly exit_code?: number
}

const folder = join(import.meta.dirname, 'cases')

describe.each(readdirSync(folder))('%s', (name) => {
  // The files carry .txt behind their name, so that no compiler or linter of this repository reads them.
  const root = mkdtempSync(join(tmpdir(), 'stet-case-'))
  cpSync(join(folder, name), root, { recursive: true })
  for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (path.endsWith('.txt')) renameSync(join(root, path), join(root, path.slice(0, -4)))
  }
  afterAll(() => rmSync(root, { recursive: true, force: true }))
  const expected = JSON.parse(readFileSync(join(root, 'expected.json'), 'utf8')) as Expected

  test('every place that has to be found is found', async () => {
    const { findings } = await check({ root })
    const missed = expected.must_flag.filter(
      ({ file, line }) =>
        !findings.some((finding) => finding.path === file && Math.abs(finding.from.line - line) <= 1),
    )
    expect(missed).toEqual([])
  })

  test('nothing else fails the run', async () => {
    const { findings, exitStatus } = await check({ root })
    const loud = expected.must_not_flag.flatMap((place) => {
      const [file = '', range] = place.split(':')
      const [from, to] = range === undefined ? [1, Number.MAX_SAFE_INTEGER] : range.split('-').map(Number)
      return findings.filter(
        (finding) =>
          finding.path === file &&
          finding.severity !== 'info' &&
          finding.from.line >= (from ?? 1) &&
          finding.from.line <= (to ?? from ?? 1),
      )
    })
    expect(loud.map((finding) => `${finding.path}:${finding.from.line} ${finding.rule}`)).toEqual([])
    if (expected.exit_code !== undefined) expect(exitStatus).toBe(expected.exit_code)
  })
})
