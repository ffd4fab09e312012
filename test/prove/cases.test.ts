import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { Proof } from '../../src/prove/prove.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { copyFolder } from '../../src/prove/state/files.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { hasPsql, PATIENCE_MS, proveIt } from './support.ts'

const cases = fileURLToPath(new URL('cases', import.meta.url))

interface Expected {
  readonly setup: string
  readonly command: string
  readonly verdict: string
  readonly tables: readonly string[]
  readonly lost?: readonly { readonly table: string; readonly ids: readonly number[] }[]
  readonly doubled?: Readonly<Record<string, number>>
  readonly after_crash_and_rerun?: Readonly<Record<string, number>>
  readonly control: { readonly setup?: string; readonly command: string }
}

async function proveCase(name: string, setup: string, command: string): Promise<Proof> {
  const folder = await mkdtemp(join(tmpdir(), 'stet-case-'))
  try {
    await copyFolder(join(cases, name), folder)
    return await proveIt({
      command: command.split(' '),
      workFolder: folder,
      filling: { kind: 'seed', file: join(folder, setup) },
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}

const convicting = ({ trials }: Proof) =>
  trials.filter((trial) => trial.differences.some((one) => DEFAULT_FAIL_ON.includes(one.class)))

describe.skipIf(!hasPsql)('real cases (they need psql)', { timeout: PATIENCE_MS }, async () => {
  for (const name of await readdir(cases)) {
    const expected = JSON.parse(await readFile(join(cases, name, 'expected.json'), 'utf8')) as Expected
    const { setup, command, verdict, control } = expected

    test(`${name}: ${verdict}, and only after a fault`, async () => {
      const proof = await proveCase(name, setup, command)
      const report = terminalReport(proof, DEFAULT_FAIL_ON)
      expect(proof.verdict, report).toBe('convicted')
      expect(proof.trials[0]?.differences, report).toEqual([])
      const found = convicting(proof).flatMap((trial) => trial.differences)
      expect(new Set(found.map((one) => one.class.toUpperCase())), report).toEqual(new Set([verdict]))
      expect(
        found.every((one) => expected.tables.includes(one.where)),
        report,
      ).toBe(true)
      for (const { ids } of expected.lost ?? []) {
        const lost = found.map((one) => one.examples.map((row) => Number(row.values['id'])))
        expect(lost, report).toContainEqual(ids)
      }
      for (const [table, count] of Object.entries(expected.doubled ?? {})) {
        expect(found, report).toContainEqual(expect.objectContaining({ where: table, count }))
      }
      for (const [shop, value] of Object.entries(expected.after_crash_and_rerun ?? {})) {
        const changes = found.flatMap((one) => one.changes).filter((row) => row.key['shop'] === shop)
        expect(changes.map((row) => row.changes[0]?.here)).toContain(String(value))
      }
    })

    test(`${name}: the repaired job survives`, async () => {
      const proof = await proveCase(name, control.setup ?? setup, control.command)
      expect(proof.verdict, terminalReport(proof, DEFAULT_FAIL_ON)).toBe('survives')
      expect(convicting(proof)).toEqual([])
    })
  }
})
