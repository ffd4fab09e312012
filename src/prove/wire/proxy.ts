import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { StetError } from '../../errors.ts'
import { carry } from './connection.ts'
import { deferred } from './deferred.ts'
import { waitingFaults } from './faults.ts'
import { errorResponse } from './frames.ts'
import { reset } from './reset.ts'
import { readStartup, type Upstream } from './startup.ts'
import type { ArmedFault, Fault, Unit } from './unit.ts'
import { unitCounter } from './units.ts'

export type { Unit } from './unit.ts'

export interface ProxyOptions {
  readonly upstream: Upstream
  /** Where clients land, whatever database they name. Default: the one they name. */
  readonly database?: string
  readonly user?: string
  /** Settings that every session starts with, whatever the client asks for. */
  readonly settings?: Readonly<Record<string, string>>
  /** The server's own socket, listening already; default is a free loopback port. */
  readonly server?: Server
  /** How statements are reduced to their shape. */
  readonly labelOf?: (sql: string) => string
  /** Sends another text in place of a statement; used to plant faults. */
  readonly rewrite?: (sql: string) => string
  /** Called after each answer of the server, before the client hears of it. */
  readonly onAnswer?: (unit: Unit) => void | Promise<void>
}

export interface WireProxy extends AsyncDisposable {
  readonly port: number
  /** For clients that take a URL. Others set host and port; user, password and database may be anything. */
  readonly url: string
  /** What went through so far, in the order it was sent. */
  units(): readonly Unit[]
  arm(fault: Fault): ArmedFault
  /**
   * Refuses the n-th connection, counted from the proxy's start, with this SQLSTATE, as a server does that has too many.
   * Settles when that has happened.
   */
  refuse(connection: number, code: string): Promise<void>
  /** How many connections to the server are open. */
  readonly connections: number
  /** Resets all connections; new ones are accepted. */
  cutAll(): void
}

/**
 * Starts a proxy that any PostgreSQL client can be pointed at, and that can fail in chosen places.
 *
 * @example
 * await using proxy = await startProxy({ upstream: { host: '127.0.0.1', port: 5432 }, database: 'trial' })
 * proxy.arm({ cut: 'after', at: (unit) => unit.label === 'commit' })
 */
export async function startProxy(options: ProxyOptions): Promise<WireProxy> {
  const { upstream, database, user, onAnswer } = options
  const units = unitCounter(options.labelOf)
  const faults = waitingFaults()
  const sockets = new Set<Socket>()
  const upstreams = new Set<Socket>()
  const parameters = {
    ...(database === undefined ? {} : { database }),
    ...(user === undefined ? {} : { user }),
    ...options.settings,
  }
  const refusals = new Map<number, { readonly code: string; readonly fire: () => void }>()
  let opened = 0

  const track = (socket: Socket, set: Set<Socket>) => {
    set.add(socket)
    socket.on('close', () => set.delete(socket)).on('error', () => undefined)
    socket.setNoDelay(true)
  }

  const accept = async (socket: Socket) => {
    track(socket, sockets)
    const startup = await readStartup(socket, upstream, parameters)
    if (startup === null) return
    const { client, packet, rest } = startup
    const id = ++opened
    const refusal = refusals.get(id)
    if (refusal !== undefined) {
      client.end(errorResponse('FATAL', refusal.code, 'connection refused (injected by stet prove)'))
      refusal.fire()
      return
    }
    const server = connect(upstream)
    track(server, upstreams)
    client.on('error', () => server.destroy())
    server.write(packet)
    const rewrite = options.rewrite ?? ((sql: string) => sql)
    carry(client, server, { id, units, faults, rewrite, onAnswer })
    if (rest.length > 0) client.unshift(rest)
    client.resume()
  }

  const listening = options.server ?? (await listen())
  const onConnection = (socket: Socket) => void accept(socket).catch(() => reset(socket))
  listening.on('connection', onConnection)
  const address = listening.address()
  if (address === null || typeof address === 'string') {
    throw new StetError('STET_INTERNAL', 'The proxy does not listen on a port')
  }
  const { port } = address

  const cutAll = () => {
    for (const socket of sockets) reset(socket)
    for (const socket of upstreams) socket.destroy()
  }
  return {
    port,
    url: `postgres://${user ?? 'postgres'}@127.0.0.1:${port}/${database ?? 'postgres'}`,
    units: () => units.all,
    arm: faults.arm,
    refuse: (connection, code) => {
      const refused = deferred()
      refusals.set(connection, { code, fire: refused.resolve })
      return refused.promise
    },
    get connections() {
      return upstreams.size
    },
    cutAll,
    [Symbol.asyncDispose]: async () => {
      listening.off('connection', onConnection)
      const closed = new Promise<void>((resolve) => listening.close(() => resolve()))
      cutAll()
      await closed
    },
  }
}

async function listen(): Promise<Server> {
  const server = createServer({ noDelay: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}
