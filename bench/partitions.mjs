// Replacing one day of 30 in a table of five million orders: by diff, by swap, and by delete + insert. Each way starts from the
// same day, and is run once by itself, for its time, and once beside a reader of that day and one of another, for their slowest
// answer. `npm run bench -- --targets partitions [--rounds 3]`
import { spawn, spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { generateOrders } from './generate-orders.mjs'
import { openPostgres } from './limits-postgres.mjs'

const ROWS = 5_000_000
const DAYS = 30
const DAY = '2024-01-15'
const OTHER_DAY = '2024-01-20'
const SELF = fileURLToPath(import.meta.url)

/** One round; `note(group, name, value)`: seconds, or MB where the name ends so. */
export async function roundOfPartitions(note) {
  const orders = `bench/data/${ROWS}`
  await generateOrders(ROWS, orders)
  const folder = mkdtempSync(join(tmpdir(), 'stet-bench-'))
  const server = await openPostgres()
  try {
    await fill(server, `${orders}/v1.csv`)
    const files = { same: join(folder, 'same.csv'), changed: join(folder, 'changed.csv') }
    await writeDay(server.url, files.same, 'amount')
    await writeDay(server.url, files.changed, 'amount + 1')
    const group = `One day of ${DAYS}, ${ROWS / 1e6}M orders`
    note(group, 'idle reader, slowest', (await watched(server.url, () => wait(3_000))).sameDay)
    const ways = [
      ['limit: delete + insert, one transaction', (file) => deleteAndInsert(server.url, file)],
      ['by diff', (file, isWatched) => replace(server.url, file, 'diff', isWatched)],
      ['by swap', (file, isWatched) => replace(server.url, file, 'swap', isWatched)],
    ]
    for (const [name, act] of Math.random() < 0.5 ? ways : [...ways].reverse()) {
      for (const what of ['same', 'changed']) {
        const step = `${name}, ${what === 'same' ? 'nothing changed' : 'all changed'}`
        // The day as the others find it.
        const reset = async () => {
          await deleteAndInsert(server.url, files.same)
          await server.query('vacuum analyze bench_orders')
          await server.query('checkpoint')
        }
        await reset()
        const before = await server.wal()
        note(group, step, await act(files[what], false))
        note(group, `${step}: WAL MB`, await server.walSince(before))
        await reset()
        const { sameDay, otherDay } = await watched(server.url, () => act(files[what], true))
        note(group, `${step}: slowest reader of the day`, sameDay)
        note(group, `${step}: slowest reader of another day`, otherDay)
      }
    }
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The generator's orders without its repeated keys, by days. */
async function fill(server, file) {
  await server.load('bench_raw', file)
  await server.query(`
    create table bench_orders (like bench_raw, primary key (order_ref, event_date)) partition by range (event_date)`)
  for (let n = 0; n < DAYS; n++) {
    await server.query(`
      create table bench_orders_${n + 1} partition of bench_orders
        for values from (date '2024-01-01' + ${n}) to (date '2024-01-01' + ${n + 1})`)
  }
  await server.query(`
    insert into bench_orders
    select distinct on (order_ref, event_date) * from bench_raw order by order_ref, event_date, load_seq desc`)
  await server.query('drop table bench_raw')
}

async function writeDay(url, file, amount) {
  await withClient(url, (client) =>
    pipeline(
      client.query(
        copyTo(
          `copy (select order_ref, customer_id, ${amount} as amount, status, created_at, event_date, note, load_seq
                   from bench_orders where event_date = '${DAY}') to stdout (format csv, header)`,
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
    `delete from bench_orders where event_date = '${DAY}'`,
    `\\copy bench_orders from '${file}' (format csv, header)`,
    'commit',
  ])
}

function psql(url, statements) {
  return child('psql', ['-qX', '-v', 'ON_ERROR_STOP=1', url, ...statements.flatMap((sql) => ['-c', sql])])
}

/**
 * Beside readers it stands behind them in the queue for a processor: its two threads would make the readers of a small machine
 * wait, and what is asked there is how long they wait for the table.
 */
function replace(url, file, apply, isWatched) {
  const niceness = isWatched ? '19' : '0'
  return child('nice', ['-n', niceness, process.execPath, SELF, JSON.stringify({ url, file, apply })])
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
        const { rows } = await client.query(
          `select count(*)::int as n from bench_orders where event_date = '${day}'`,
        )
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
  const { COLUMNS } = await import('./generate-orders.mjs')
  const { csv } = await import('../dist/sources/csv/index.js')
  const { postgres } = await import('../dist/targets/postgres/index.js')
  const started = performance.now()
  await run(
    definePipeline({
      name: 'bench_orders',
      source: csv({ files: file, columns: COLUMNS }),
      target: postgres({ url }),
      table: 'bench_orders',
      write: {
        strategy: 'replace-partition',
        by: 'event_date',
        size: 'day',
        key: ['order_ref', 'event_date'],
        apply,
        allowDeletes: true,
      },
    }),
    { slice: DAY },
  )
  process.stdout.write(String((performance.now() - started) / 1000))
}
