// One load in a process of its own, so that its peak memory is its own: prints one line of JSON.
import { definePipeline, run } from 'stet'
import { csv } from 'stet/sources/csv'
import { COLUMNS } from './generate-orders.mjs'

const { file, target, where, memoryLimit, keep, transform } = JSON.parse(process.argv[2])
const made =
  target === 'postgres'
    ? (await import('stet/targets/postgres')).postgres({ url: where })
    : (await import('stet/targets/duckdb')).duckdb({ file: where })
const pipeline = definePipeline({
  name: 'orders',
  source: csv({ files: file, columns: COLUMNS }),
  target: made,
  table: 'orders',
  write: { strategy: 'upsert', key: ['order_ref'], newest: 'load_seq' },
  ...(keep === undefined ? {} : { keep }),
  // All columns go through JavaScript and back; one of them is changed.
  ...(transform === true
    ? { transform: { row: (row) => ({ ...row, status: row.status.toUpperCase() }) } }
    : {}),
})
const before = process.cpuUsage()
const started = performance.now()
const { counts } = await run(pipeline, memoryLimit === undefined ? {} : { memoryLimit })
const seconds = (performance.now() - started) / 1000
const used = process.cpuUsage(before)
const rssMb = process.resourceUsage().maxRSS / 1024
process.stdout.write(
  `${JSON.stringify({ seconds, cpuSeconds: (used.user + used.system) / 1e6, rssMb, counts })}\n`,
)
