// One attempt in a process of its own, to be killed: `attempt-child.ts ORDER` where ORDER is the JSON of an AttemptOrder.
import { run } from '../../src/index.ts'
import type { LocalConnection } from '../../src/model/local.ts'
import type { Target } from '../../src/model/target.ts'
import { duckdb } from '../../src/targets/duckdb/index.ts'
import { postgres } from '../../src/targets/postgres/index.ts'
import { optionsOf, pipelineOf } from '../../src/testing/kit.ts'
import type { FaultPoint } from '../../src/testing/place.ts'
import type { AttemptOrder } from './postgres-place.ts'
import { remoteTarget } from './postgres-remote-place.ts'

const order = JSON.parse(process.argv[2] ?? '{}') as AttemptOrder
const plain = {
  postgres: () => postgres({ url: order.where }),
  'query in postgres': () =>
    remoteTarget(order.where, () => ({ table: order.rows ?? '', ready: Promise.resolve() })),
  duckdb: () => duckdb({ file: order.where }),
}[order.target]()
let statements = 0
const target = order.target === 'duckdb' ? counting(plain, order.kill) : plain
await run(pipelineOf(target, order.attempt), {
  ...optionsOf(order.attempt),
  lockTimeoutMs: 5_000,
  leaseTimeoutMs: 2_000,
})
if (order.count === true) process.stdout.write(String(statements))
process.exit(0)

/** The same target, whose statements in the local engine are counted, and which is killed at one of them. */
function counting(inner: Target, kill: FaultPoint | undefined): Target {
  return {
    ...inner,
    open: (options) => inner.open({ ...options, local: killing(options.local, kill) }),
  }
}

function killing(local: LocalConnection, kill: FaultPoint | undefined): LocalConnection {
  const guarded = async <Value>(sql: unknown, act: () => Promise<Value>): Promise<Value> => {
    // Reading changes nothing that could be found half done.
    if (/^\s*(select|with|set|from|describe|pragma)\b/i.test(String(sql))) return act()
    const at = ++statements
    if (kill?.at === at && kill.side === 'before') process.kill(process.pid, 'SIGKILL')
    const value = await act()
    if (kill?.at === at && kill.side === 'after') process.kill(process.pid, 'SIGKILL')
    return value
  }
  return {
    ...local,
    duckdb: new Proxy(local.duckdb, {
      get: (connection, name) => {
        const value: unknown = Reflect.get(connection, name)
        if (typeof value !== 'function') return value
        const bound = value.bind(connection) as (...args: unknown[]) => unknown
        return ['run', 'runAndReadAll', 'runAndRead', 'stream', 'runAndReadUntil'].includes(String(name))
          ? (...args: unknown[]) => guarded(args[0], async () => await bound(...args))
          : bound
      },
    }),
    run: (sql) => guarded(sql, () => local.run(sql)),
    rows: (sql) => guarded(sql, () => local.rows(sql)),
    count: (sql) => guarded(sql, () => local.count(sql)),
    connect: async () => killing(await local.connect(), kill),
  }
}
