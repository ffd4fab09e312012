// Replacing one day of 30 in a table of five million rows: by diff, by swap, and by delete + insert, beside a reader of
// that day and one of another. `npm run bench -- --targets partitions [--rounds 3]`. Each way starts from the same day.
import { spawn, spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { openPostgres } from './limits-postgres.mjs'

const DAYS = 30
const DAY = '2026-06-15'
const OTHER_DAY = '2026-06-20'
const SELF = fileURLToPath(import.meta.url)

/** One round; `note(group, name, value)`: seconds, or MB where the name ends so. */
export async function roundOfPartitions(note, rowsOfDay = 165_000) {
  const folder = mkdtempSync(join(tmpdir(), 'stet-bench-'))
  const server = await openPostgres()
  try {
    await fill(server, rowsOfDay)
    const files = { same: join(folder, 'same.csv'), changed: join(folder, 'changed.csv') }
    await writeDay(server.url, files.same, 'amount')
    await writeDay(server.url, files.changed, 'amount + 1')
    const group = `One day of ${DAYS}, ${((rowsOfDay * DAYS) / 1e6).toFixed(1)}M rows`
    note(group, 'idle reader, slowest', (await watched(server.url, () => wait(3_000))).sameDay)
    const ways = [
      ['limit: delete + insert, one transaction', (file) => deleteAndInsert(server.url, file)],
      ['by diff', (file) => replace(server.url, file, 'diff')],
      ['by swap', (file) => replace(server.url, file, 'swap')],
    ]
    for (const [name, act] of Math.random() < 0.5 ? ways : [...ways].reverse()) {
      for (const what of name === 'by swap' ? ['changed', 'same'] : ['same', 'changed']) {
        await server.query('vacuum analyze day_facts')
        await server.query('checkpoint')
        const before = await server.wal()
        const { seconds, sameDay, otherDay } = await watched(server.url, () => act(files[what]))
        const step = `${name}, ${what === 'same' ? 'nothing changed' : 'all changed'}`
        note(group, step, seconds)
        note(group, `${step}: WAL MB`, await server.walSince(before))
        note(group, `${step}: slowest reader of the day`, sameDay)
        note(group, `${step}: slowest reader of another day`, otherDay)
      }
      // The next way finds the day as this one found it.
      await deleteAndInsert(server.url, files.same)
    }
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function fill(server, rowsOfDay) {
  await server.query(`
    create table day_facts (id bigint not null, day date not null, customer_no bigint, amount numeric(12, 2), note text,
      primary key (id, day)) partition by range (day)`)
  for (let n = 1; n <= DAYS; n++) {
    const day = `2026-06-${String(n).padStart(2, '0')}`
    await server.query(`
      create table day_facts_${n} partition of day_facts
        for values from ('${day}') to (date '${day}' + 1);
      insert into day_facts
      select ${n} * 10000000 + i, '${day}', i % 5000, (i % 100000) / 100.0, 'order number ' || i
        from generate_series(1, ${rowsOfDay}) as i`)
  }
}

async function writeDay(url, file, amount) {
  await withClient(url, (client) =>
    pipeline(
      client.query(
        copyTo(
          `copy (select id, day, customer_no, ${amount} as amount, note from day_facts where day = '${DAY}') to stdout (format csv, header)`,
        ),
      ),
      createWriteStream(file),
    ),
  )
}

/** The way of the textbook, by psql so that nothing of ours is in it. */
function deleteAndInsert(url, file) {
  return psql(url, [
    'begin',
    `delete from day_facts where day = '${DAY}'`,
    `\\copy day_facts from '${file}' (format csv, header)`,
    'commit',
  ])
}

function psql(url, statements) {
  return child('psql', ['-qX', '-v', 'ON_ERROR_STOP=1', url, ...statements.flatMap((sql) => ['-c', sql])])
}

function replace(url, file, apply) {
  return child(process.execPath, [SELF, JSON.stringify({ url, file, apply })])
}

async function child(command, args) {
  const started = performance.now()
  const running = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  running.stdout.on('data', (chunk) => {
    output += chunk
  })
  const code = await new Promise((resolve) => running.on('close', resolve))
  if (code !== 0) throw new Error(`${command} ended with ${code}`)
  // A process of ours tells its own time, without its start.
  return output.trim() === '' ? (performance.now() - started) / 1000 : Number(output)
}

/** Does something while two readers count rows in a loop; the slowest answer of each, in seconds. */
async function watched(url, act) {
  let isOver = false
  const reader = async (day) =>
    withClient(url, async (client) => {
      let slowest = 0
      while (!isOver) {
        const started = performance.now()
        const { rows } = await client.query(`select count(*)::int as n from day_facts where day = '${day}'`)
        if (rows[0].n === 0) throw new Error(`a reader saw no rows of ${day}`)
        slowest = Math.max(slowest, (performance.now() - started) / 1000)
      }
      return slowest
    })
  const readers = [reader(DAY), reader(OTHER_DAY)]
  const seconds = await act().finally(() => {
    isOver = true
  })
  const [sameDay, otherDay] = await Promise.all(readers)
  return { seconds, sameDay, otherDay }
}

async function withClient(url, act) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await act(client)
  } finally {
    await client.end()
  }
}

function wait(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

/** Whether psql is there to be the textbook. */
export function hasPsql() {
  return spawnSync('psql', ['--version']).status === 0
}

if (process.argv[1] === SELF) {
  const { url, file, apply } = JSON.parse(process.argv[2])
  const { definePipeline, run } = await import('../dist/index.js')
  const { csv } = await import('../dist/sources/csv/index.js')
  const { postgres } = await import('../dist/targets/postgres/index.js')
  const started = performance.now()
  await run(
    definePipeline({
      name: 'day_facts',
      source: csv({ files: file }),
      target: postgres({ url }),
      table: 'day_facts',
      write: {
        strategy: 'replace-partition',
        by: 'day',
        size: 'day',
        key: ['id', 'day'],
        apply,
        allowDeletes: true,
      },
    }),
    { slice: DAY },
  )
  process.stdout.write(String((performance.now() - started) / 1000))
}
