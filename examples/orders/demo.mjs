// Tells the main job as a person would type it, with the real command on the files of this folder, and checks every
// number that it shows. Ends with 1 when one of them is not what it should be.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const here = fileURLToPath(new URL('.', import.meta.url))
const bin = join(root, 'dist/cli/bin.js')
if (!existsSync(bin)) build()

const folder = mkdtempSync(join(tmpdir(), 'stet-demo-'))
const off = []
try {
  for (const name of readdirSync(here)) {
    if (name.endsWith('.csv')) copyFileSync(join(here, name), join(folder, name))
  }
  tell()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
for (const sentence of off) process.stdout.write(`\nwrong: ${sentence}\n`)
process.exitCode = off.length === 0 ? 0 : 1

function tell() {
  const load = (file) => ['load', file, '--key', 'order_ref', '--newest', 'load_seq']

  say("Monday's export, 200 orders, goes into a table that is not there yet.")
  stet(load('orders-2026-04-27.csv'))
  expectCounts({ read: 200, inserted: 200, updated: 0, unchanged: 0 })

  say('The same again: nothing is written, no row is touched.')
  stet(load('orders-2026-04-27.csv'))
  expectCounts({ read: 200, inserted: 0, updated: 0, unchanged: 200 })

  say(
    "Tuesday's export. One order was refunded, and it is in the file twice: before the refund and after it.",
  )
  stet([...load('orders-2026-04-28.csv'), '--plan'])
  stet(load('orders-2026-04-28.csv'))
  expectCounts({ read: 201, inserted: 0, updated: 1, unchanged: 199, duplicate: 1 })

  say("Somebody replays Monday's file. The refund must not be undone: the older row is stale.")
  stet(load('orders-2026-04-27.csv'))
  expectCounts({ read: 200, inserted: 0, updated: 0, unchanged: 199, stale: 1 })

  say('Every run is on record, in the target itself.')
  stet(['runs'])
  expectVerdicts(['unchanged', 'changed', 'unchanged', 'changed'])
}

function say(sentence) {
  process.stdout.write(`\n# ${sentence}\n`)
}

/** Shows the command as one types it, and what it prints. */
function stet(args) {
  process.stdout.write(`$ stet ${args.join(' ')}\n`)
  const { status, stdout, stderr } = call(args)
  // On a terminal the notes come first.
  process.stdout.write(stderr + stdout)
  if (status !== 0) off.push(`stet ${args.join(' ')} ended with ${status}`)
}

function call(args) {
  return spawnSync(process.execPath, [bin, ...args], { cwd: folder, encoding: 'utf8' })
}

/** The newest run of the log has these counts. */
function expectCounts(expected) {
  const [{ counts }] = log(1)
  for (const [term, count] of Object.entries(expected)) {
    if (counts[term] !== count) off.push(`${term} is ${counts[term]}, not ${count}`)
  }
}

function expectVerdicts(expected) {
  const verdicts = log(20).map((entry) => entry.verdict)
  if (verdicts.join() !== expected.join()) off.push(`the log has ${verdicts}, not ${expected}`)
}

function log(last) {
  const { stdout } = call(['runs', '--json', '--last', String(last)])
  try {
    return JSON.parse(stdout).runs
  } catch {
    // The command itself has said what is wrong.
    return [{ counts: {} }]
  }
}

function build() {
  process.stdout.write('building dist/ first\n')
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
