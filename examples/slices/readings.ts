import { join } from 'node:path'
import { definePipeline } from 'stet'
import { csv } from 'stet/sources/csv'
import { duckdb } from 'stet/targets/duckdb'

const here = import.meta.dirname

// Each run reads from the watermark less the grace: a sensor that was offline for an hour may still deliver.
export default definePipeline({
  name: 'readings',
  source: csv({
    files: join(here, 'inbox/readings-*.csv'),
    columns: { sensor: 'text', at: 'timestamptz', celsius: 'numeric(4,1)' },
  }),
  target: duckdb({ file: join(here, 'stet.duckdb') }),
  table: 'readings',
  write: { strategy: 'upsert', key: ['sensor', 'at'] },
  incremental: { cursor: 'at', grace: '2h' },
})
