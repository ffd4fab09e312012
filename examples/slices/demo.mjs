// Tells of a late row and of a backfill, with the real command on the files of this folder, and checks every number that
// it shows. Ends with 1 when one of them is not what it should be.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const bin = join(root, 'dist/cli/bin.js')
if (!existsSync(bin)) build()

const folder = mkdtempSync(join(tmpdir(), 'stet-demo-'))
const inbox = (name) => join(folder, 'inbox', name)
const off = []
try {
  const isNoDatabase = (path) => !path.includes('.duckdb')
  cpSync(fileURLToPath(new URL('.', import.meta.url)), folder, { recursive: true, filter: isNoDatabase })
  tellOfALateRow()
  tellOfABackfill()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
for (const sentence of off) process.stdout.write(`\nwrong: ${sentence}\n`)
process.exitCode = off.length === 0 ? 0 : 1

function tellOfALateRow() {
  const arrives = inbox('readings-2.csv')
  renameSync(arrives, join(folder, 'later.csv'))
  say('Readings of two sensors, read by their time: the run notes how far it has come.')
  stet(['run', 'readings.ts'])
  expectCounts({ read: 4, outside: 0, inserted: 4 })

  say(
    'The next file has a reading of 13:00, and two late ones: of 10:30, and of 08:00. The grace is two hours.',
  )
  renameSync(join(folder, 'later.csv'), arrives)
  stet(['run', 'readings.ts'])
  expectCounts({ read: 7, outside: 3, inserted: 2, updated: 0, unchanged: 2 })

  say('The one of 08:00 was later than the grace allows. Go back, on the record, and read again.')
  stet(['watermark', 'rewind', '5h', 'readings.ts'])
  stet(['run', 'readings.ts'])
  expectCounts({ read: 7, outside: 0, inserted: 1, updated: 0, unchanged: 6 })
}

function tellOfABackfill() {
  say('Five days of visits. The file of the fifth was never delivered.')
  stet(['backfill', 'visits.ts', '--from', '2025-05-01', '--to', '2025-05-05'], 1)
  stet(['slices', 'visits.ts'])
  expectSlices(['loaded', 'loaded', 'loaded', 'loaded', 'failed'])

  say('It arrives; and the second day is exported anew, with one visit corrected and one gone.')
  writeFileSync(inbox('visits-2025-05-05.csv'), 'visit,day,page\nV-051,2025-05-05,/\n')
  writeFileSync(
    inbox('visits-2025-05-02.csv'),
    'visit,day,page\nV-021,2025-05-02,/\nV-022,2025-05-02,/download\n',
  )
  stet(['backfill', 'visits.ts', '--from', '2025-05-01', '--to', '2025-05-05'])
  stet(['slices', 'visits.ts'])
  expectSlices(['loaded', 'loaded', 'loaded', 'loaded', 'loaded'])
}

function say(sentence) {
  process.stdout.write(`\n# ${sentence}\n`)
}

/** Shows the command as one types it, and what it prints. */
function stet(args, expected = 0) {
  process.stdout.write(`$ stet ${args.join(' ')}\n`)
  const { status, stdout, stderr } = call(args)
  process.stdout.write((stderr + stdout).replaceAll(`${folder}/`, ''))
  if (status !== expected) off.push(`stet ${args.join(' ')} ended with ${status}, not ${expected}`)
}

function call(args) {
  return spawnSync(process.execPath, [bin, ...args], { cwd: folder, encoding: 'utf8' })
}

/** The newest run of the log has these counts. */
function expectCounts(expected) {
  const { runs } = document(['runs', '--json', '--last', '1'])
  const counts = runs?.[0]?.counts ?? {}
  for (const [term, count] of Object.entries(expected)) {
    if (counts[term] !== count) off.push(`${term} is ${counts[term]}, not ${count}`)
  }
}

function expectSlices(expected) {
  const states = document(['slices', 'visits.ts', '--json']).slices?.map(({ state }) => state) ?? []
  if (states.join() !== expected.join()) off.push(`the slices are ${states}, not ${expected}`)
}

function document(args) {
  try {
    return JSON.parse(call(args).stdout)
  } catch {
    // The command itself has said what is wrong.
    return {}
  }
}

function build() {
  process.stdout.write('building dist/ first\n')
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
