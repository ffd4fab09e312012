import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { PLANTED_FAULTS } from './support/planted-faults.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
}

/** Runs the tests that have to catch a fault, with it planted in the source as it is loaded. */
async function runPlanted(name: string, file: string, testName: string): Promise<Report> {
  const args = ['vitest', 'run', file, '--reporter=json', ...(testName === '' ? [] : ['-t', testName])]
  const { stdout } = await promisify(execFile)('npx', ['--no-install', ...args], {
    cwd: root,
    env: { ...process.env, STET_PLANT: name },
    maxBuffer: 1 << 26,
  }).catch((error: { readonly stdout: string }) => error)
  return JSON.parse(stdout.slice(stdout.indexOf('{'), stdout.lastIndexOf('}') + 1)) as Report
}

describe('a fault planted in the source is caught', () => {
  for (const fault of PLANTED_FAULTS) {
    test(fault.name, { timeout: 240_000 }, async () => {
      const report = await runPlanted(fault.name, fault.test, fault.caughtBy)
      expect(report.numFailedTests, JSON.stringify(report).slice(0, 2000)).toBeGreaterThan(0)
    })
  }
})
