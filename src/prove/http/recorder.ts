import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Server as NetServer, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { StetError } from '../../errors.ts'
import { deferred } from '../wire/deferred.ts'
import { reset } from '../wire/reset.ts'

/** A request that asks for a change. */
export interface MutatingRequest {
  readonly signature: string
  /** Which occurrence of its signature, from 1. */
  readonly occurrence: number
  readonly method: string
  /** With the host in front where it came to us as a proxy. */
  readonly path: string
  readonly body: string
  /** The Idempotency-Key header; null without. */
  readonly key: string | null
}

/** What the services behind the requests would have done by now; outlives the runs of one trial. */
export interface Ledger {
  /** How often each effect, `METHOD path body`, has happened. */
  readonly effects: Map<string, number>
  /** The answer each key was given. */
  readonly keys: Map<string, { readonly effect: string; readonly answer: Reply }>
}

export function emptyLedger(): Ledger {
  return { effects: new Map(), keys: new Map() }
}

export function copyLedger(ledger: Ledger): Ledger {
  return { effects: new Map(ledger.effects), keys: new Map(ledger.keys) }
}

interface Reply {
  readonly status: number
  readonly body: string
}

/** An answer prepared by the user for requests that fit. */
export interface CannedReply {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly body: string
}

type HttpFault = { readonly fits: (request: MutatingRequest) => boolean } & (
  | { readonly hold: 'before' | 'after' }
  | { readonly cut: 'before' | 'after' }
)

interface ArmedHttpFault {
  readonly fired: Promise<void>
  release(): void
}

export interface HttpRecorder extends AsyncDisposable {
  readonly port: number
  readonly requests: readonly MutatingRequest[]
  arm(fault: HttpFault): ArmedHttpFault
}

export interface RecorderOptions {
  /** A listening socket. */
  readonly server: NetServer
  readonly ledger: Ledger
  readonly replies: readonly CannedReply[]
  readonly onRequest?: (request: MutatingRequest) => void
}

const READING = new Set(['GET', 'HEAD', 'OPTIONS'])
const DEFAULT_BODY = '{"ok":true}'

/**
 * Stands in for every service the command calls: by base URL, or as its proxy for plain HTTP. A key seen before gets
 * its first answer again and changes nothing, as payment services do it.
 */
export function startRecorder({ server, ledger, replies, onRequest }: RecorderOptions): HttpRecorder {
  const requests: MutatingRequest[] = []
  const occurrences = new Map<string, number>()
  let waiting: { readonly fault: HttpFault; readonly fire: () => void; readonly released: Promise<void> }[] =
    []

  const take = (request: MutatingRequest) => {
    const found = waiting.find(({ fault }) => fault.fits(request))
    waiting = waiting.filter((one) => one !== found)
    return found
  }

  const record = async (incoming: IncomingMessage): Promise<MutatingRequest> => {
    const body = (await buffer(incoming)).toString('utf8')
    const path = placeOf(incoming)
    const key = incoming.headers['idempotency-key']
    const method = incoming.method ?? 'POST'
    const signature = `${method} ${path.replace(/\d+/g, '#')}`
    const occurrence = (occurrences.get(signature) ?? 0) + 1
    occurrences.set(signature, occurrence)
    return { signature, occurrence, method, path, body, key: typeof key === 'string' ? key : null }
  }

  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const method = incoming.method ?? 'GET'
    if (READING.has(method)) {
      incoming.resume()
      return send(response, replyTo(method, placeOf(incoming), replies))
    }
    const request = await record(incoming)
    requests.push(request)
    const strike = take(request)
    const when = strike === undefined ? null : 'hold' in strike.fault ? strike.fault.hold : strike.fault.cut
    const stop = async () => {
      strike?.fire()
      if (strike !== undefined && 'hold' in strike.fault) await strike.released
      else reset(incoming.socket)
    }
    if (when === 'before') await stop()
    if (incoming.socket.destroyed) return
    onRequest?.(request)
    const reply = perform(request, ledger, replies)
    if (when === 'after') await stop()
    if (!incoming.socket.destroyed) send(response, reply)
  }

  const http = createServer((incoming, response) => {
    answer(incoming, response).catch(() => incoming.socket.destroy())
  })
  http.on('clientError', (_, socket) => socket.destroy())
  // Closing an HTTP server that does not listen itself would leave its connections open.
  const sockets = new Set<Socket>()
  const onConnection = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    http.emit('connection', socket)
  }
  server.on('connection', onConnection)
  const address = server.address()
  if (address === null || typeof address === 'string') {
    throw new StetError('STET_INTERNAL', 'The recorder does not listen on a port')
  }
  return {
    port: address.port,
    requests,
    arm(fault) {
      const [fired, released] = [deferred(), deferred()]
      waiting.push({ fault, fire: fired.resolve, released: released.promise })
      return { fired: fired.promise, release: released.resolve }
    },
    [Symbol.asyncDispose]: async () => {
      server.off('connection', onConnection)
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/**
 * As a proxy we are sent the whole URL, as a server only its path. A client that asks the proxy for the recorder itself
 * means the path: the port is another one in each trial.
 */
function placeOf({ url: target = '/', socket }: IncomingMessage): string {
  const url = new URL(target, 'http://localhost')
  const path = `${url.pathname}${url.search}`
  const isOurs = ['127.0.0.1', 'localhost'].includes(url.hostname) && url.port === `${socket.localPort}`
  return target.startsWith('/') || isOurs ? path : `${url.origin}${path}`
}

function perform(request: MutatingRequest, ledger: Ledger, replies: readonly CannedReply[]): Reply {
  const { method, path, body, key } = request
  const effect = `${method} ${path} ${body}`
  const known = key === null ? undefined : ledger.keys.get(key)
  if (known !== undefined) {
    if (known.effect === effect) return known.answer
    return { status: 409, body: '{"error":"this key was used for another request"}' }
  }
  const answer = replyTo(method, path, replies)
  // Whoever refuses a request has done nothing, and may do it when it is asked again.
  if (answer.status >= 400) return answer
  ledger.effects.set(effect, (ledger.effects.get(effect) ?? 0) + 1)
  if (key !== null) ledger.keys.set(key, { effect, answer })
  return answer
}

function replyTo(method: string, path: string, replies: readonly CannedReply[]): Reply {
  const withoutHost = path.replace(/^http:\/\/[^/]+/, '')
  const canned = replies.find(
    (reply) => reply.method === method && [path, withoutHost].some((one) => one.startsWith(reply.path)),
  )
  return canned ?? { status: 200, body: DEFAULT_BODY }
}

function send(response: ServerResponse, { status, body }: Reply): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}

export interface EffectDiff {
  readonly effect: string
  readonly clean: number
  readonly here: number
}

/** Effects that happened more or less often than after a clean run. */
export function diffEffects(clean: Ledger, here: Ledger): readonly EffectDiff[] {
  const names = [...new Set([...clean.effects.keys(), ...here.effects.keys()])]
  return names
    .map((effect) => ({ effect, clean: clean.effects.get(effect) ?? 0, here: here.effects.get(effect) ?? 0 }))
    .filter((diff) => diff.clean !== diff.here)
}

export function digestOfLedger(ledger: Ledger): string {
  return [...ledger.effects].sort().join('\n')
}
