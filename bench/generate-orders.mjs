// Orders for the benchmarks: `node bench/generate-orders.mjs ROWS FOLDER` writes v1.csv, v2.csv (1.0 % changed, 0.1 % new) and
// small.csv (the first 10,000 rows of v1). 1 % of the order_refs come twice, the second time with a later load_seq; keys are
// local to the day and random inside it; notes hold quotes, commas, newlines, tabs, backslashes, unicode, NULL and ''.
import { existsSync, mkdirSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'

export const COLUMNS = {
  order_ref: 'text',
  customer_id: 'bigint',
  amount: 'numeric(12,2)',
  status: 'text',
  created_at: 'timestamptz',
  event_date: 'date',
  note: 'text',
  load_seq: 'bigint',
}

/** Writes the files once; the same rows come out every time. */
export async function generateOrders(rows, folder) {
  mkdirSync(folder, { recursive: true })
  if (existsSync(`${folder}/small.csv`)) return
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run(`set TimeZone = 'UTC'`)
  const unique = Math.floor(rows * 0.99)
  const orders = (version) => `
    select 'SO-' || strftime(date '2024-01-01' + cast(k * 30 // ${unique} as int), '%Y%m%d')
                 || '-' || lpad(printf('%x', (k * 2654435761) % 4294967296), 8, '0') as order_ref,
           cast(hash(k, 1) % 800000 + 1 as bigint) as customer_id,
           cast((hash(k, 2, ${version} = 2 and changed, again) % 5000000) / 100.0 as decimal(12, 2)) as amount,
           case when ${version} = 2 and changed then 'refunded'
                else (['new', 'paid', 'shipped', 'cancelled', 'returned'])[cast(hash(k, 3, again) % 5 + 1 as int)] end as status,
           timestamptz '2024-01-01 00:00:00+00' + interval 1 second * (k * 2592000 // ${unique})
                 + interval 1 millisecond * cast(hash(k, 4) % 1000 as bigint) as created_at,
           date '2024-01-01' + cast(k * 30 // ${unique} as int) as event_date,
           case cast(hash(k, 5) % 20 as int)
                when 0 then null
                when 1 then ''
                when 2 then 'She said "ring twice", then left'
                when 3 then 'first line' || chr(10) || 'second line, ref ' || k
                when 4 then 'Zürich, naïve café ☕ 東京 ' || k
                when 5 then 'C:\\orders\\new, tab' || chr(9) || 'end'
                else (['standard', 'gift wrap', 'asked about the invoice', 'fragile, please', 'n/a'])[cast(hash(k, 6) % 5 + 1 as int)]
                     || ' ' || (hash(k, 7) % 100000000) end as note,
           cast(i + 1 + case when ${version} = 2 and changed then 100000000 else 0 end as bigint) as load_seq
      from (select i, k, hash(k, 99) % 100 = 7 as changed, i >= ${unique} as again
              from (select i, case when i < ${unique} then i else (i - ${unique}) * 97 + 13 end as k
                      from range(0, ${rows}) as t(i)))`
  const fresh = `
    select 'SN-' || order_ref as order_ref, * exclude (order_ref, load_seq), load_seq + 200000000 as load_seq
      from (${orders(1)})
     where hash(order_ref) % 1000 = 3`
  const write = (query, name) =>
    connection.run(
      `copy (${query}) to '${folder}/${name}.csv' (header, delimiter ',', quote '"', nullstr '')`,
    )
  await write(orders(1), 'v1')
  await write(`${orders(2)} union all ${fresh}`, 'v2')
  await write(`select * from (${orders(1)}) limit 10000`, 'small')
  connection.closeSync()
  instance.closeSync()
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await generateOrders(Number(process.argv[2] ?? 1_000_000), process.argv[3] ?? 'bench/data')
}
