import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { run } from '../../src/index.ts'
import { startProxy, type Unit, type WireProxy } from '../../src/prove/wire/proxy.ts'
import { postgres } from '../../src/targets/postgres/index.ts'
import { optionsOf, pipelineOf } from '../../src/testing/kit.ts'
import type { Attempt, FaultPoint, Faults, Place, TargetUnderContract } from '../../src/testing/place.ts'
import { connect, freshDatabase } from './databases.ts'

/** A place in a PostgreSQL database of its own. */
export interface PostgresPlace extends Place {
  readonly url: string
}

/** Columns that Stet keeps, which differ from run to run by design. */
const KEPT = ['updated_at', 'content_hash']

/**
 * Makes an empty database on the server and looks behind the target's back by a connection of its own.
 *
 * @param pooler Port of a pooler that the target goes through. Default: none.
 */
export async function postgresPlace(server: string, pooler?: number): Promise<PostgresPlace> {
  const direct = await freshDatabase(server)
  const connection = await connect(direct)
  const pooled = new URL(direct)
  if (pooler !== undefined) pooled.port = String(pooler)
  const url = pooled.href
  const query = async (sql: string) => (await connection.client.query(sql)).rows as Record<string, unknown>[]
  return {
    url,
    target: postgres({ url }),
    execute: async (sql) => {
      await query(sql)
    },
    rows: async (table) => {
      const rows = await query(
        `select (to_jsonb(stet_row) - array[${KEPT.map((name) => `'${name}'`).join(', ')}])::text as row from ${table} as stet_row order by 1`,
      )
      return rows.map((row) => String(row.row))
    },
    versions: async (table) => {
      const rows = await query(
        `select tableoid::regclass || ' ' || ctid || ' ' || xmin || ' ' || xmax as version from ${table} order by 1`,
      )
      return rows.map((row) => String(row.version))
    },
    count: async (table) => {
      const [exists] = await query(`select to_regclass('${table}') is not null as there`)
      if (exists?.there !== true) return 0
      const [row] = await query(`select count(*)::int as n from ${table}`)
      return Number(row?.n)
    },
    leftovers: async () => {
      const rows = await query(`
        select n.nspname || '.' || c.relname as name
          from pg_class as c
          join pg_namespace as n
            on n.oid = c.relnamespace
         where c.relkind in ('r', 'p', 'S', 'v', 'm', 'f')
           and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
           and n.nspname not like 'pg\\_temp%'
           and not (n.nspname = 'stet' and c.relname in ('version', 'lease', 'run', 'watermark', 'event', 'quarantine'))
           and c.relname <> 't'
           -- partitions of the table are its own, but not under a name that they were built under
           and not (c.relispartition and c.relname not like 'stet%')
         order by 1`)
      return rows.map((row) => String(row.name))
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

/** Attempts under fault must not wait for themselves. */
const IMPATIENT = { lockTimeoutMs: 5_000, leaseTimeoutMs: 2_000 }

async function proxyTo(url: string): Promise<WireProxy> {
  const { hostname, port, pathname } = new URL(url)
  return startProxy({ upstream: { host: hostname, port: Number(port) }, database: pathname.slice(1) })
}

/** The target of a place, reached through another URL. */
type TargetAt = (url: string, place: Place) => TargetUnderContract

async function countUnits(place: Place, attempt: Attempt, targetAt: TargetAt): Promise<number> {
  await using proxy = await proxyTo(urlOf(place))
  await run(pipelineOf(targetAt(proxy.url, place), attempt), { ...optionsOf(attempt), ...IMPATIENT })
  return proxy.units().filter(changesState).length
}

/** Reading changes nothing that could be found half done, so only the other messages are points of a fault. */
function changesState({ sql }: Unit): boolean {
  return /\b(insert|update|delete|create|drop|alter|commit|copy|truncate|comment|advisory_xact_lock)\b/i.test(
    sql,
  )
}

/** The n-th message that changes state. */
function nthChange(n: number): (unit: Unit) => boolean {
  const seen = new Set<number>()
  return (unit) => {
    if (!changesState(unit)) return false
    seen.add(unit.n)
    return seen.size === n
  }
}

function urlOf(place: Place): string {
  return (place as PostgresPlace).url
}

/** The connection that carries a message is reset before the server acts on it, or before its answer is heard. */
export function cutsOf(targetAt: TargetAt): Faults {
  return {
    what: 'the connection cut',
    attemptSurvives: true,
    countOf: (place, attempt) => countUnits(place, attempt, targetAt),
    attemptWithFault: async (place, attempt, { at, side }) => {
      await using proxy = await proxyTo(urlOf(place))
      proxy.arm({ cut: side, at: nthChange(at) })
      try {
        await run(pipelineOf(targetAt(proxy.url, place), attempt), { ...optionsOf(attempt), ...IMPATIENT })
        return { claimedSuccess: true }
      } catch {
        return { claimedSuccess: false }
      }
    },
  }
}

const plainTarget: TargetAt = (url) => postgres({ url })
export const connectionCuts = cutsOf(plainTarget)

/**
 * The process is killed while a message, or the answer to it, is on its way.
 *
 * @param orderOf What the process is told beside where its target is.
 */
export function killsOf(
  targetAt: TargetAt,
  orderOf: (place: Place, attempt: Attempt) => Promise<Omit<AttemptOrder, 'where'>>,
): Faults {
  return {
    what: 'the process killed',
    attemptSurvives: false,
    countOf: (place, attempt) => countUnits(place, attempt, targetAt),
    attemptWithFault: async (place, attempt, { at, side }: FaultPoint) => {
      await using proxy = await proxyTo(urlOf(place))
      const held = proxy.arm({ hold: side, at: nthChange(at) })
      const child = forkAttempt({ ...(await orderOf(place, attempt)), where: proxy.url })
      const ended = once(child, 'exit') as Promise<[number | null]>
      const stopped = await Promise.race([held.fired.then(() => true), ended.then(() => false)])
      if (stopped) child.kill('SIGKILL')
      const [code] = await ended
      proxy.cutAll()
      return { claimedSuccess: code === 0 }
    },
  }
}

export const processKills = killsOf(plainTarget, async (_, attempt) => ({ target: 'postgres', attempt }))

/** What the child process is told. */
export interface AttemptOrder {
  readonly target: 'postgres' | 'query in postgres' | 'duckdb'
  /** URL or file. */
  readonly where: string
  readonly attempt: Attempt
  /** The table that a query in the target reads the attempt's rows from. */
  readonly rows?: string | undefined
  /** For targets without a wire: the process kills itself at this statement. */
  readonly kill?: FaultPoint | undefined
  /** Prints how many statements there were. */
  readonly count?: boolean | undefined
}

/** Starts an attempt in a process of its own, which exits 0 when it claims success. */
export function forkAttempt(order: AttemptOrder) {
  const child = fileURLToPath(new URL('./attempt-child.ts', import.meta.url))
  return fork(child, [JSON.stringify(order)], {
    execArgv: ['--import', 'jiti/register'],
    stdio: ['ignore', 'pipe', process.env.STET_TEST_DEBUG === undefined ? 'ignore' : 'inherit', 'ipc'],
  })
}
