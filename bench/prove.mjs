// What `stet prove` costs: statements and COPY through its proxy, and a whole proof against one run of the job.
// `npm run bench -- --targets prove [--rounds 5]`; direct and through the proxy take turns, so that a slow moment of the
// machine hits both.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { startProxy } from '../dist/prove/wire/proxy.js'
import { openPostgres } from './limits-postgres.mjs'

const STATEMENTS = 10_000
const COPY_CHUNKS = 800
/** 128 KiB of rows. */
const CHUNK = Buffer.from('1234\tsome text of a row of an ordinary table\n'.repeat(2913))

/** One round of each; `note(group, name, seconds)`. */
export async function roundOfProxy(note) {
  const server = await openPostgres()
  const place = new URL(server.url)
  const upstream = { host: place.hostname, port: Number(place.port) }
  const proxy = await startProxy({ upstream, database: 'postgres' })
  try {
    await server.query('create table small (a int); create table big (a int, t text)')
    const ways = [
      ['limit: direct', server.url],
      ['through the proxy', proxy.url],
    ]
    for (const [name, act] of [
      [`${STATEMENTS} small statements`, statements],
      ['COPY of 100 MB', copy],
    ]) {
      // Whoever is first pays for the warm-up.
      await act(server.url)
      await server.query('truncate small, big; checkpoint')
      for (const [way, url] of Math.random() < 0.5 ? ways : [...ways].reverse()) {
        note(`Proxy, ${name}`, way, await act(url))
        await server.query('truncate small, big; checkpoint')
      }
    }
  } finally {
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  }
}

async function statements(url) {
  return withClient(url, async (client) => {
    for (let n = 0; n < STATEMENTS; n++) await client.query(`insert into small values (${n})`)
  })
}

async function copy(url) {
  return withClient(url, async (client) => {
    const rows = Readable.from(Array.from({ length: COPY_CHUNKS }, () => CHUNK))
    await pipeline(rows, client.query(copyFrom('copy big from stdin')))
  })
}

async function withClient(url, act) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const started = performance.now()
  await act(client)
  const seconds = (performance.now() - started) / 1000
  await client.end()
  return seconds
}

/** A proof of 10,010 commits, and the same job run once, straight at a server. */
export async function roundOfProof(note) {
  const samples = fileURLToPath(new URL('../test/prove/samples', import.meta.url))
  const job = `${samples}/18_bad_loop_10k_resume_by_count`
  const bin = fileURLToPath(new URL('../dist/cli/bin.js', import.meta.url))
  const from = fileURLToPath(import.meta.url)
  const group = 'Proof, 10,010 commits'
  const folder = mkdtempSync(join(tmpdir(), 'stet-bench-'))
  const server = await openPostgres()
  try {
    const environment = { ...process.env, N: '10000', SAMPLES_REQUIRE_FROM: from, DATABASE_URL: server.url }
    const seeded = spawnSync('psql', ['-qX', '-f', `${samples}/common.sql`, server.url], { encoding: 'utf8' })
    if (seeded.status !== 0) throw new Error(seeded.stderr)
    const started = performance.now()
    const once = spawnSync('bash', [`${job}/run`], { cwd: folder, env: environment, encoding: 'utf8' })
    if (once.status !== 0) throw new Error(once.stderr)
    note(group, 'limit: one run', (performance.now() - started) / 1000)
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  }
  const passed = ['--env', 'N=10000', '--env', `SAMPLES_REQUIRE_FROM=${from}`]
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      bin,
      'prove',
      '--json',
      '--work',
      job,
      '--seed',
      `${samples}/common.sql`,
      ...passed,
      '--',
      'bash',
      'run',
    ],
    { encoding: 'utf8', maxBuffer: 1 << 28 },
  )
  if (status !== 1) throw new Error(stderr)
  const { ms, clean, counts } = JSON.parse(stdout)
  if (clean.points.length !== 10_010) throw new Error(`${clean.points.length} points`)
  note(group, `the proof, ${counts.planned} trials`, ms / 1000)
  note(group, 'its clean run', clean.ms / 1000)
}
