// Cure 4: a pipeline of Stet's. It compares the day's orders with the table and writes what differs, rows and record in
// one transaction; no note of what is done is needed, and a second run at the same time waits for the first.
import { definePipeline } from 'stet'
import { postgres as query } from 'stet/sources/postgres'
import { postgres } from 'stet/targets/postgres'

const url = process.env.DATABASE_URL ?? ''
const day = process.env.DAY ?? '2026-03-01'
if (!/^\d{4}-\d\d-\d\d$/.test(day)) throw new Error(`DAY is no day: ${day}`)

export default definePipeline({
  name: 'revenue',
  source: query({ url, query: `select order_id, day, amount from shop_orders where day = '${day}'` }),
  target: postgres({ url }),
  table: 'revenue_by_order',
  write: { strategy: 'upsert', key: ['order_id'] },
  keep: { updatedAt: false, contentHash: false },
})
