// One backfill in a process of its own: prints one line of JSON.
import { backfill, definePipeline } from 'stet'
import { csv } from 'stet/sources/csv'
import { postgres } from 'stet/targets/postgres'
import { COLUMNS } from './generate-orders.mjs'

const { folder, url, jobs, from, to } = JSON.parse(process.argv[2])
const pipeline = definePipeline({
  name: 'orders',
  source: csv({ files: `${folder}/day-{slice}.csv`, columns: COLUMNS }),
  target: postgres({ url }),
  table: 'orders',
  write: {
    strategy: 'replace-partition',
    by: 'event_date',
    size: 'day',
    key: ['order_ref'],
    newest: 'load_seq',
  },
})
const started = performance.now()
const { slices } = await backfill(pipeline, { from, to, jobs })
const seconds = (performance.now() - started) / 1000
const verdicts = {}
for (const { slice, status, result, error } of slices) {
  if (error !== null) process.stderr.write(`${slice}: ${error.code} ${error.message}\n`)
  const verdict = result?.verdict ?? status
  verdicts[verdict] = (verdicts[verdict] ?? 0) + 1
}
process.stdout.write(`${JSON.stringify({ seconds, verdicts })}\n`)
