// Proves the jobs of this folder with the real command: the first is convicted, its cures survive. Ends with 1 when a
// verdict is not what it should be.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const bin = fileURLToPath(new URL('../../dist/cli/bin.js', import.meta.url))

const CONVICTED = 1
const SURVIVES = 0
const hasPsycopg = spawnSync('python', ['-c', 'import psycopg']).status === 0

const proofs = [
  ['sh sql/job.sh', CONVICTED],
  ['sh sql/upsert.sh', SURVIVES],
  ['sh sql/delete-insert.sh', SURVIVES],
  ['sh sql/insert-once.sh', SURVIVES],
  ['stet/pipeline.ts', SURVIVES],
  ...(hasPsycopg
    ? [
        ['python python/job.py', CONVICTED],
        ['python python/upsert.py', SURVIVES],
        ['python python/delete_insert.py', SURVIVES],
        ['python python/insert_once.py', SURVIVES],
      ]
    : []),
]

let wrong = 0
for (const [at, [job, expected]] of proofs.entries()) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [bin, 'prove', '--quiet', '--seed', 'seed.sql', ...process.argv.slice(2), '--', ...job.split(' ')],
    { cwd: here, encoding: 'utf8' },
  )
  const verdict = stdout.trimEnd().split('\n').at(-1)?.trim() ?? ''
  // The first report in full: it is what the story is about.
  process.stdout.write(at === 0 ? `${stdout}\n` : `${job.padEnd(34)}${verdict}\n`)
  if (status === expected) continue
  wrong += 1
  process.stdout.write(`wrong: ended with ${status}\n${stderr}`)
}
if (!hasPsycopg) process.stdout.write('The Python jobs were left out: pip install "psycopg[binary]"\n')
process.exitCode = wrong === 0 ? 0 : 1
