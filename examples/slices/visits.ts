import { join } from 'node:path'
import { definePipeline } from 'stet'
import { csv } from 'stet/sources/csv'
import { duckdb } from 'stet/targets/duckdb'

const here = import.meta.dirname

// One file a day, and a run for each day: it owns the rows of its day and no others.
export default definePipeline({
  name: 'visits',
  source: csv({
    files: join(here, 'inbox/visits-{slice}.csv'),
    columns: { visit: 'text', day: 'date', page: 'text' },
  }),
  target: duckdb({ file: join(here, 'stet.duckdb') }),
  table: 'visits',
  write: { strategy: 'replace-partition', by: 'day', size: 'day', key: ['visit'] },
})
