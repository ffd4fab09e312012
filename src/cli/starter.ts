/** The files of `stet init`, by name. A test runs them as they are. */
export const STARTER_FILES: Readonly<Record<string, string>> = {
  'pipeline.ts': `import { join } from 'node:path'
import { definePipeline } from 'stet'
import { csv } from 'stet/sources/csv'
import { duckdb } from 'stet/targets/duckdb'

// Paths beside this file, so that it does not matter where it is run from.
const here = import.meta.dirname

export default definePipeline({
  // Names the pipeline in the run log: stet runs --pipeline orders
  name: 'orders',

  // The columns to load and their types. A value that does not fit is refused with its line, never rounded or guessed.
  source: csv({
    files: join(here, 'orders.csv'), // also a pattern: join(here, 'inbox/orders-*.csv.gz')
    columns: {
      order_ref: 'text',
      amount: 'numeric(12,2)',
      status: 'text',
      ordered_at: 'timestamptz',
      load_seq: 'bigint',
    },
  }),

  // For PostgreSQL: import { postgres } from 'stet/targets/postgres', and postgres({ url: process.env.DATABASE_URL ?? '' })
  target: duckdb({ file: join(here, 'stet.duckdb') }),
  table: 'orders',

  // New keys are inserted, changed rows updated, equal rows left alone. Of two rows with one key the one with the
  // greater load_seq wins, whichever comes first.
  write: { strategy: 'upsert', key: ['order_ref'], newest: 'load_seq' },
})
`,
  'orders.csv': `order_ref,amount,status,ordered_at,load_seq
A-1001,129.00,paid,2026-03-02T09:14:05Z,1
A-1002,18.50,paid,2026-03-02T10:40:51Z,2
A-1003,74.90,open,2026-03-03T16:02:33Z,3
`,
}
