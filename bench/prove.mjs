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

/** No machine that anybody waits for needs longer; one on which it does is too busy to measure on. */
const PROOF_LIMIT_MS = 20 * 60_000
const SAMPLES = fileURLToPath(new URL('../test/prove/samples', import.meta.url))
const JOB = `${SAMPLES}/18_bad_loop_10k_resume_by_count`
const HERE = fileURLToPath(import.meta.url)

/**
 * A proof of 10,010 commits, and the same job run straight at a server: before, after, and the median of all counts, so that
 * a slow minute of the machine does not make the proof look cheap or dear.
 */
export async function roundOfProof(note) {
  const group = 'Proof, 10,010 commits'
  const once = async () => note(group, 'limit: one run', await secondsOfOneRun())
  for (let n = 0; n < 3; n++) await once()
  const bin = fileURLToPath(new URL('../dist/cli/bin.js', import.meta.url))
  const passed = ['--env', 'N=10000', '--env', `SAMPLES_REQUIRE_FROM=${HERE}`]
  const words = [
    'prove',
    '--json',
    '--work',
    JOB,
    '--seed',
    `${SAMPLES}/common.sql`,
    ...passed,
    '--',
    'bash',
    'run',
  ]
  const { status, error, stdout, stderr } = spawnSync(process.execPath, [bin, ...words], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    timeout: PROOF_LIMIT_MS,
    // It removes its server and its folders then.
    killSignal: 'SIGINT',
  })
  for (let n = 0; n < 3; n++) await once()
  if (error?.code === 'ETIMEDOUT') {
    note(group, 'the proof, NOT ENDED within', PROOF_LIMIT_MS / 1000)
    return
  }
  if (status !== 1) throw new Error(stderr)
  const { ms, clean, counts } = JSON.parse(stdout)
  // The job's own script is written first: two changes of a file.
  const commits = clean.points.filter(({ kind }) => kind === 'commit').length
  if (commits !== 10_010) throw new Error(`${commits} commits`)
  note(group, `the proof, ${counts.planned} trials`, ms / 1000)
  note(group, 'its clean run, recorded', clean.ms / 1000)
}

async function secondsOfOneRun() {
  const folder = mkdtempSync(join(tmpdir(), 'stet-bench-'))
  const server = await openPostgres()
  try {
    const environment = { ...process.env, N: '10000', SAMPLES_REQUIRE_FROM: HERE, DATABASE_URL: server.url }
    const seeded = spawnSync('psql', ['-qX', '-f', `${SAMPLES}/common.sql`, server.url], { encoding: 'utf8' })
    if (seeded.status !== 0) throw new Error(seeded.stderr)
    const started = performance.now()
    const once = spawnSync('bash', [`${JOB}/run`], { cwd: folder, env: environment, encoding: 'utf8' })
    if (once.status !== 0) throw new Error(once.stderr)
    return (performance.now() - started) / 1000
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  }
}
