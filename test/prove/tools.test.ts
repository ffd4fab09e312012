import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Verdict } from '../../src/prove/prove.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { hasPsql, PATIENCE_MS, proveIt, pythonLacks } from './support.ts'

const tools = fileURLToPath(new URL('tools', import.meta.url))
const SEED = fileURLToPath(new URL('../../examples/doubled-revenue/seed.sql', import.meta.url))

/** Starting dbt or dlt takes seconds, and a proof starts them a hundred times. */
const TOOLS_PATIENCE_MS = 6 * PATIENCE_MS

/** Opt-in: PATH has to lead to a Python with dbt-postgres, dlt and pandas. */
const isAsked = process.env['STET_PROVE_TOOLS'] !== undefined && hasPsql
const lacksDbt = !isAsked || spawnSync('dbt', ['--version']).status !== 0
const lacks = (module: string) => !isAsked || pythonLacks(module)

const dbt = (...words: readonly string[]) => ['dbt', ...words, '--profiles-dir', '.']

interface Tool {
  readonly name: string
  readonly folder: string
  readonly command: readonly string[]
  readonly verdict: Verdict
  readonly isMissing: boolean
  readonly ignore?: readonly string[]
}

const TOOLS: readonly Tool[] = [
  {
    name: 'dbt, incremental without a unique_key',
    folder: 'dbt',
    command: dbt('run', '--select', 'append'),
    verdict: 'convicted',
    isMissing: lacksDbt,
  },
  {
    name: 'dbt, incremental with a unique_key',
    folder: 'dbt',
    command: dbt('run', '--select', 'keyed'),
    verdict: 'survives',
    isMissing: lacksDbt,
  },
  {
    name: 'dbt, snapshot',
    folder: 'dbt',
    command: dbt('snapshot'),
    verdict: 'survives',
    isMissing: lacksDbt,
  },
  {
    name: 'pandas to_sql, append',
    folder: 'python',
    command: ['python', 'pandas_append.py'],
    verdict: 'convicted',
    isMissing: lacks('pandas'),
  },
  {
    name: 'pandas to_sql, replace',
    folder: 'python',
    command: ['python', 'pandas_replace.py'],
    verdict: 'survives',
    isMissing: lacks('pandas'),
  },
  {
    name: 'dlt, append',
    folder: 'python',
    command: ['python', 'dlt_append.py'],
    verdict: 'convicted',
    isMissing: lacks('dlt'),
    // dlt's own log of loads.
    ignore: ['*_dlt_*'],
  },
  {
    // It dies after its rows are committed to the staging table and before it has noted so in its own folder.
    name: 'dlt, merge',
    folder: 'python',
    command: ['python', 'dlt_merge.py'],
    verdict: 'convicted',
    isMissing: lacks('dlt'),
    ignore: ['*_dlt_*'],
  },
]

for (const { name, folder, command, verdict, isMissing, ignore = [] } of TOOLS) {
  test.skipIf(isMissing)(`${name}: ${verdict}`, { timeout: TOOLS_PATIENCE_MS }, async () => {
    const proof = await proveIt({
      command,
      workFolder: `${tools}/${folder}`,
      // The story that everybody knows, told by tools.
      filling: { kind: 'seed', file: SEED },
      passed: ['DLT_DATA_DIR={dir}/.dlt-data'],
      ignore: ['logs/*', 'target/*', '.dlt-data/*', '.user.yml', ...ignore],
    })
    expect(proof.verdict, terminalReport(proof, DEFAULT_FAIL_ON)).toBe(verdict)
  })
}
