// `npm run bench [-- --rows 1000000,5000000 --rounds 3 --targets postgres,duckdb --memory 1GB]`, or `-- --backfill`, or one of
// `-- --targets partitions`, `prove`, `check`
// Prints ratios: each figure and its limit come from the same interleaved run, medians over the rounds. The machine's own speed
// falls out of a ratio; seconds are given for orientation only.
import { execFileSync, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { roundOfBackfill } from './backfill.mjs'
import { generateOrders } from './generate-orders.mjs'
import { duckdbLimit, duckdbTextbook } from './limits-duckdb.mjs'
import { openPostgres } from './limits-postgres.mjs'
import { hasPsql, roundOfPartitions } from './partitions.mjs'
import { roundOfProof, roundOfProxy } from './prove.mjs'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    targets: { type: 'string', default: 'postgres,duckdb' },
    memory: { type: 'string' },
    backfill: { type: 'boolean', default: false },
  },
})
const figures = []

function load(order) {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['bench/load-once.mjs', JSON.stringify({ ...order, memoryLimit: values.memory })],
    {
      encoding: 'utf8',
    },
  )
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

function note(group, name, value) {
  figures.push({ group, name, value })
}

const isApart = ['prove', 'partitions', 'check'].includes(values.targets)
for (const rows of isApart ? [] : values.rows.split(',').map(Number)) {
  const folder = `bench/data/${rows}`
  await generateOrders(rows, folder)
  for (let round = 0; round < Number(values.rounds); round++) {
    if (values.backfill) {
      await backfillOfPostgres(rows, folder, round)
      continue
    }
    if (values.targets.includes('postgres')) await roundOfPostgres(rows, folder)
    if (values.targets.includes('duckdb')) await roundOfDuckdb(rows, folder)
  }
}
if (values.targets === 'check') {
  await import('./check.mjs')
} else if (values.targets === 'partitions') {
  if (!hasPsql()) throw new Error('The bench of partitions needs psql for its textbook')
  for (let round = 0; round < Number(values.rounds); round++) await roundOfPartitions(note)
} else if (values.targets.includes('prove')) {
  for (let round = 0; round < Number(values.rounds); round++) await roundOfProxy(note)
  await roundOfProof(note)
} else if (values.targets !== 'none' && !values.backfill) startUp()
print()
printGrowth()
printTransform()

async function roundOfPostgres(rows, folder) {
  const server = await openPostgres()
  try {
    await stepsOfPostgres(server, rows, folder)
  } finally {
    await server[Symbol.asyncDispose]()
  }
}

/** One job is the limit that two are held against; rounds take turns in which begins. */
async function backfillOfPostgres(rows, folder, round) {
  const server = await openPostgres()
  try {
    const group = `Backfill of 30 days into PostgreSQL, ${rows / 1e6}M rows`
    await roundOfBackfill(server, folder, round % 2 === 0 ? 1 : 2, (name, seconds) =>
      note(`${group}: ${name.split(',')[0]}`, name.endsWith('1 job') ? 'limit: 1 job' : '2 jobs', seconds),
    )
  } finally {
    await server[Symbol.asyncDispose]()
  }
}

async function stepsOfPostgres(server, rows, folder) {
  const group = `PostgreSQL, ${rows / 1e6}M rows`
  await server.query('checkpoint')
  note(group, 'limit: one COPY of the file into an unlogged heap', await server.limit(`${folder}/v1.csv`))
  await server.query('checkpoint')
  const steps = [
    ['first load', 'v1'],
    ['unchanged rerun', 'v1'],
    ['1 % changed', 'v2'],
    ['10,000 rows against the table', 'small'],
  ]
  const withoutHash = ['first load without content_hash', 'v1', { keep: { contentHash: false } }]
  for (const [name, file, more = {}] of [withoutHash, ...steps]) {
    if (name === 'first load') await server.query('drop table orders')
    await server.query('checkpoint')
    const before = await server.wal()
    const { seconds, cpuSeconds, rssMb, counts } = load({
      file: `${folder}/${file}.csv`,
      target: 'postgres',
      where: server.url,
      ...more,
    })
    note(group, name, seconds)
    note(group, `${name}: processor time without the server's`, cpuSeconds)
    note(group, `${name}: WAL MB`, await server.walSince(before))
    note(group, `${name}: peak RSS MB`, rssMb)
    if (name === 'unchanged rerun' && counts.unchanged !== counts.read - counts.duplicate)
      throw new Error(JSON.stringify(counts))
  }
  for (const [name, file] of steps.slice(0, 3)) {
    await server.query('checkpoint')
    note(group, `textbook ${name}`, await server.textbook(`${folder}/${file}.csv`))
  }
}

async function roundOfDuckdb(rows, folder) {
  const group = `DuckDB, ${rows / 1e6}M rows`
  const file = `${folder}/bench.duckdb`
  const clear = () => {
    for (const name of [file, `${file}.wal`]) rmSync(name, { force: true })
  }
  clear()
  const before = process.cpuUsage()
  note(group, 'limit: read_csv into a table of a file', await duckdbLimit(file, `${folder}/v1.csv`))
  const used = process.cpuUsage(before)
  note(group, 'processor time of the limit', (used.user + used.system) / 1e6)
  const step = (name, source, more = {}) => {
    const order = { file: `${folder}/${source}.csv`, target: 'duckdb', where: file, ...more }
    const { seconds, cpuSeconds, rssMb } = load(order)
    note(group, name, seconds)
    note(group, `${name}: processor time`, cpuSeconds)
    note(group, `${name}: peak RSS MB`, rssMb)
    return seconds
  }
  for (const [name, more] of [
    ['first load without content_hash', { keep: { contentHash: false } }],
    ['first load through a TypeScript transform', { transform: true }],
  ]) {
    clear()
    step(name, 'v1', more)
  }
  clear()
  step('first load', 'v1')
  step('unchanged rerun', 'v1')
  step('1 % changed', 'v2')
  clear()
  for (const [name, source] of [
    ['textbook first load', 'v1'],
    ['textbook unchanged rerun', 'v1'],
  ]) {
    note(group, name, await duckdbTextbook(file, `${folder}/${source}.csv`))
  }
  clear()
}

/** Start-up: whole processes, as a shell sees them. */
function startUp() {
  const time = (args) => {
    const started = performance.now()
    execFileSync(process.execPath, args, { stdio: 'pipe' })
    return (performance.now() - started) / 1000
  }
  for (let round = 0; round < 9; round++) {
    note('Start-up', 'limit: node -e 0', time(['-e', '0']))
    note('Start-up', 'stet --version', time(['dist/cli/bin.js', '--version']))
    note(
      'Start-up',
      'stet plan of a small file',
      time([
        'dist/cli/bin.js',
        'plan',
        'examples/orders/orders-2026-04-27.csv',
        '--key',
        'order_ref',
        '--into',
        'bench/data/none.duckdb',
      ]),
    )
  }
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[sorted.length >> 1]
}

function print() {
  const groups = [...new Set(figures.map((figure) => figure.group))]
  for (const group of groups) {
    const ours = figures.filter((figure) => figure.group === group)
    const limit = median(
      ours.filter((figure) => figure.name.startsWith('limit')).map((figure) => figure.value),
    )
    process.stdout.write(`\n### ${group}\n\n| | median | ratio to the limit |\n|---|---|---|\n`)
    for (const name of [...new Set(ours.map((figure) => figure.name))]) {
      const value = median(ours.filter((figure) => figure.name === name).map((figure) => figure.value))
      const isTime = !/MB$/.test(name)
      const shown = isTime ? `${value.toFixed(value < 1 ? 3 : 2)} s` : `${value.toFixed(1)} MB`
      const base = name.includes('processor time') ? figureOf(group, 'processor time of the limit') : limit
      const ratio = isTime && base > 0 ? `${(value / base).toFixed(2)}x` : ''
      process.stdout.write(`| ${name} | ${shown} | ${ratio} |\n`)
    }
  }
}

function figureOf(group, name) {
  return median(
    figures.filter((figure) => figure.group === group && figure.name === name).map((figure) => figure.value),
  )
}

/** How much longer the largest number of rows takes than the smallest. */
function printGrowth() {
  const sizes = values.rows.split(',').map(Number)
  if (sizes.length < 2) return
  const [small, large] = [Math.min(...sizes) / 1e6, Math.max(...sizes) / 1e6]
  for (const target of ['PostgreSQL', 'DuckDB']) {
    for (const name of ['first load', 'unchanged rerun', '1 % changed']) {
      const ratio = figureOf(`${target}, ${large}M rows`, name) / figureOf(`${target}, ${small}M rows`, name)
      if (ratio > 0)
        process.stdout.write(`\n${target}, ${name}: ${large}M takes ${ratio.toFixed(1)} times ${small}M`)
    }
  }
  process.stdout.write('\n')
}

/** Rows a second that a transform in TypeScript adds to a load: out of the engine, through the function, and landed again. */
function printTransform() {
  for (const rows of values.rows.split(',').map(Number)) {
    const group = `DuckDB, ${rows / 1e6}M rows`
    const extra = (of) =>
      figureOf(group, `first load through a TypeScript transform${of}`) - figureOf(group, `first load${of}`)
    if (!(extra('') > 0)) continue
    const rate = (seconds) => Math.round(rows / seconds / 1000)
    process.stdout.write(
      `\n${group}: a TypeScript transform of 8 columns does ${rate(extra(''))}k rows/s, ${rate(extra(': processor time'))}k for each second of processor time\n`,
    )
  }
}
