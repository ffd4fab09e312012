// A backfill of thirty days into PostgreSQL, with one job and with two, over the same files: first load and unchanged rerun.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'

const DAYS = Array.from({ length: 30 }, (_, day) => `2024-01-${String(day + 1).padStart(2, '0')}`)
const [FROM] = DAYS
const TO = DAYS.at(-1)

/** One round: each number of jobs in a database of its own; `first` says which begins, so that rounds can alternate. */
export async function roundOfBackfill(server, folder, first, note) {
  await splitByDay(folder)
  for (const jobs of first === 1 ? [1, 2] : [2, 1]) {
    await server.query(`create database jobs_${jobs}`)
    const url = new URL(server.url)
    url.pathname = `/jobs_${jobs}`
    for (const [name, expected] of [
      ['first load', 'changed'],
      ['unchanged rerun', 'unchanged'],
    ]) {
      await server.query('checkpoint')
      const { seconds, verdicts } = once({ folder, url: url.href, jobs, from: FROM, to: TO })
      if (verdicts[expected] !== DAYS.length) throw new Error(`${name}: ${JSON.stringify(verdicts)}`)
      note(`${name}, ${jobs} ${jobs === 1 ? 'job' : 'jobs'}`, seconds)
    }
    await server.query(`drop database jobs_${jobs}`)
  }
}

function once(order) {
  const { stdout, status } = spawnSync(process.execPath, ['bench/backfill-once.mjs', JSON.stringify(order)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (status !== 0) throw new Error(`the backfill ended with ${status}`)
  return JSON.parse(stdout)
}

/** A file for each day of v1.csv; made once. */
async function splitByDay(folder) {
  if (existsSync(`${folder}/day-${TO}.csv`)) return
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run(`set TimeZone = 'UTC'`)
  await connection.run(
    `create table orders as select * from read_csv('${folder}/v1.csv', all_varchar = true, nullstr = '', allow_quoted_nulls = false)`,
  )
  for (const day of DAYS) {
    await connection.run(
      `copy (select * from orders where event_date = '${day}') to '${folder}/day-${day}.csv' (header, delimiter ',', quote '"', nullstr '')`,
    )
  }
  connection.closeSync()
  instance.closeSync()
}
