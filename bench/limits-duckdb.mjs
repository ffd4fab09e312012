// What DuckDB does by itself, for comparison: the plain reader, and the upsert of the textbook.
import { DuckDBInstance } from '@duckdb/node-api'

const TYPES = `{'order_ref': 'varchar', 'customer_id': 'bigint', 'amount': 'decimal(12,2)', 'status': 'varchar',
  'created_at': 'timestamptz', 'event_date': 'date', 'note': 'varchar', 'load_seq': 'bigint'}`
const read = (csv) => `read_csv('${csv}', header = true, allow_quoted_nulls = false, columns = ${TYPES})`

async function timed(file, statements) {
  const instance = await DuckDBInstance.create(file)
  const connection = await instance.connect()
  await connection.run(`set TimeZone = 'UTC'`)
  await connection.run('set preserve_insertion_order = false')
  const started = performance.now()
  for (const statement of statements) await connection.run(statement)
  await connection.run('checkpoint')
  const seconds = (performance.now() - started) / 1000
  connection.closeSync()
  instance.closeSync()
  return seconds
}

/** `read_csv` into a table of a file: unchecked, no duplicates looked for. */
export async function duckdbLimit(file, csv) {
  return await timed(file, [`create or replace table orders as select * from ${read(csv)}`])
}

/** Primary key, newest row of each key, and a guarded `on conflict` over all rows. */
export async function duckdbTextbook(file, csv) {
  const names = ['customer_id', 'amount', 'status', 'created_at', 'event_date', 'note', 'load_seq']
  return await timed(file, [
    `create table if not exists orders (order_ref varchar primary key, customer_id bigint, amount decimal(12, 2), status varchar,
       created_at timestamptz, event_date date, note varchar, load_seq bigint)`,
    `insert into orders
     select * from ${read(csv)}
     qualify row_number() over (partition by order_ref order by load_seq desc) = 1
     on conflict (order_ref) do update
        set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}
      where ${names.map((name) => `orders.${name} is distinct from excluded.${name}`).join(' or ')}`,
  ])
}
