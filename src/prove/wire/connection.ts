import type { Socket } from 'node:net'
import type { Faults, Strike } from './faults.ts'
import { errorResponse, framer, message, type Piece, sqlStateOf, textsOf } from './frames.ts'
import { outletOf } from './outlet.ts'
import { pump } from './pump.ts'
import { reset } from './reset.ts'
import type { Answer, MutableUnit, Unit } from './unit.ts'
import { endsTransaction, readsCopyData, type TransactionTrace, type UnitCounter } from './units.ts'

export interface ConnectionContext {
  readonly id: number
  readonly units: UnitCounter
  readonly faults: Faults
  readonly rewrite: (sql: string) => string
  /** Called when the server has answered and the client has not heard: both wait for the promise. */
  readonly onAnswer: ((unit: Unit) => void | Promise<void>) | undefined
}

/** A unit on its way, and what is to happen to its answer. */
interface Pending {
  readonly unit: MutableUnit
  readonly isExtended: boolean
  /** A COPY is decided on at CopyDone: before that the server has nothing to make durable. */
  undecided: boolean
  after: Strike | null
  /** SQLSTATE to show in place of the server's own. */
  errorCode: string | null
  error: string | null
  readonly tags: string[]
  readonly held: Buffer[]
}

/** Extended messages are kept until their Sync, so that a fault can drop them; no longer than this many bytes. */
const BATCH_LIMIT = 8 * 1024 * 1024

const CLIENT_TYPES = 'QPBEDCSHFcfX'
const SERVER_TYPES = 'ZCEG'

/**
 * Carries one connection after its startup packet: matches what the client sends with what the server answers, unit by
 * unit, and lets faults strike between the two. COPY data and result rows pass through unlooked at.
 */
export function carry(client: Socket, server: Socket, context: ConnectionContext): void {
  const trace: TransactionTrace = { signature: '', first: 0, open: false }
  const statements = new Map<string, string>()
  const portals = new Map<string, string>()
  const pending: Pending[] = []
  let batch: Buffer[] = []
  let batchBytes = 0
  let batchSql: string[] = []
  let copy: Pending | null = null
  let isReady = false
  const toClient = outletOf(client)
  const toServer = outletOf(server)

  const cut = () => {
    // A clean end reads as an orderly shutdown in some drivers; a lost network reads as a reset.
    reset(client)
    server.destroy()
  }

  const sendBatch = (...last: readonly Buffer[]) => {
    for (const bytes of batch) toServer.write(bytes)
    for (const bytes of last) toServer.write(bytes)
    batch = []
    batchBytes = 0
  }

  const newPending = (sql: string, isExtended: boolean): Pending => {
    const unit = context.units.next(sql, context.id, trace)
    const undecided = readsCopyData(unit.label)
    return { unit, isExtended, undecided, after: null, errorCode: null, error: null, tags: [], held: [] }
  }

  /** Lets the unit through, or lets a fault strike first. `isQueued`: its answer is awaited already (COPY). */
  const decide = (one: Pending, bytes: readonly Buffer[], isQueued: boolean): void | Promise<void> => {
    const proceed = (...instead: readonly Buffer[]) => {
      if (!isQueued) pending.push(one)
      if (instead.length === 0) return sendBatch(...bytes)
      batch = []
      batchBytes = 0
      return sendBatch(...instead)
    }
    one.undecided = false
    const strike = context.faults.take(one.unit)
    if (strike === null) return proceed()
    const { fault } = strike
    if ('error' in fault) {
      strike.fire(one.unit)
      if (/^(57P|08)/.test(fault.error)) {
        // The server says so and closes: that is what a shutdown or a terminated backend looks like.
        client.end(errorResponse('FATAL', fault.error, 'terminating connection (injected by stet prove)'))
        server.destroy()
        return undefined
      }
      one.errorCode = fault.error
      if (isQueued) return proceed(message('f', 'injected by stet prove'))
      return proceed(message('Q', raising(fault.error, one.unit.label, trace.open)))
    }
    const isBefore = 'cut' in fault ? fault.cut === 'before' : fault.hold === 'before'
    if (!isBefore) {
      one.after = strike
      return proceed()
    }
    strike.fire(one.unit)
    if ('cut' in fault) return cut()
    return strike.released.then(() => proceed())
  }

  const begin = (one: Pending, bytes: readonly Buffer[]): void | Promise<void> => {
    if (!one.undecided) return decide(one, bytes, false)
    pending.push(one)
    return sendBatch(...bytes)
  }

  const fromClient = ({ type, bytes }: Piece): void | Promise<void> => {
    switch (type) {
      case 'Q': {
        const [text = ''] = textsOf(bytes, 1)
        const sql = context.rewrite(text)
        return begin(newPending(sql, false), [sql === text ? bytes : message('Q', sql)])
      }
      case 'P': {
        const [name = '', text = ''] = textsOf(bytes, 2)
        const sql = context.rewrite(text)
        statements.set(name, sql)
        const types = bytes.subarray(7 + Buffer.byteLength(name) + Buffer.byteLength(text))
        return keep(sql === text ? bytes : message('P', name, sql, types))
      }
      case 'B': {
        const [portal = '', statement = ''] = textsOf(bytes, 2)
        portals.set(portal, statements.get(statement) ?? '')
        return keep(bytes)
      }
      case 'E': {
        const [portal = ''] = textsOf(bytes, 1)
        batchSql.push(portals.get(portal) ?? '')
        return keep(bytes)
      }
      case 'D':
      case 'C':
        return keep(bytes)
      case 'S': {
        if (copy?.isExtended === true && pending[0] !== copy) {
          // The Sync sent with the COPY was ignored by the server; this one is answered.
          pending.push(copy)
          copy = null
          return sendBatch(bytes)
        }
        const sql = batchSql.join('; ')
        batchSql = []
        return begin(newPending(sql, true), [bytes])
      }
      case 'F':
        return begin(newPending('function call', false), [bytes])
      case 'c':
        return copy?.undecided === true ? decide(copy, [bytes], true) : sendBatch(bytes)
      default:
        return sendBatch(bytes)
    }
  }

  const keep = (bytes: Buffer): void => {
    batch.push(bytes)
    batchBytes += bytes.length
    if (batchBytes > BATCH_LIMIT) sendBatch()
  }

  const fromServer = ({ type, bytes }: Piece): void | Promise<void> => {
    const one = (copy?.isExtended === true ? copy : undefined) ?? pending[0]
    if (type === 'Z' && isReady && one !== undefined) return answered(one, bytes)
    if (type === 'Z') isReady = true
    if (one === undefined || !isReady) {
      toClient.write(bytes)
      return undefined
    }
    if (type === 'G') {
      copy = one
      // An extended COPY: its Sync has been swallowed by the copy mode.
      if (one.isExtended) pending.shift()
      toClient.write(bytes)
      return undefined
    }
    if (type === 'C') one.tags.push(textsOf(bytes, 1)[0] ?? '')
    let shown = bytes
    if (type === 'E') {
      one.error = one.errorCode ?? sqlStateOf(bytes)
      if (one.errorCode !== null) shown = errorResponse('ERROR', one.errorCode, 'injected by stet prove')
    } else if (one.errorCode !== null) return undefined
    if (one.after === null) toClient.write(shown)
    else if ('hold' in one.after.fault) one.held.push(shown)
    return undefined
  }

  const answered = (one: Pending, bytes: Buffer): void | Promise<void> => {
    if (pending[0] === one) pending.shift()
    if (copy === one) copy = null
    const status = String.fromCharCode(bytes[5] ?? 0) as Answer['status']
    one.unit.answer = { status, error: one.error, tags: one.tags }
    if (pending.length === 0) trace.open = status !== 'I'
    const observed = context.onAnswer?.(one.unit)
    return observed === undefined ? deliver(one, bytes) : observed.then(() => deliver(one, bytes))
  }

  const deliver = (one: Pending, bytes: Buffer): void | Promise<void> => {
    const strike = one.after
    if (strike === null) {
      toClient.write(bytes)
      return undefined
    }
    strike.fire(one.unit)
    if ('cut' in strike.fault) return cut()
    return strike.released.then(() => {
      for (const held of one.held) toClient.write(held)
      toClient.write(bytes)
    })
  }

  pump({
    from: client,
    to: server,
    outlet: toServer,
    framer: framer(CLIENT_TYPES),
    handle: fromClient,
    onFailure: cut,
  })
  pump({
    from: server,
    to: client,
    outlet: toClient,
    framer: framer(SERVER_TYPES),
    handle: fromServer,
    onFailure: cut,
  })
}

/** A statement that makes the server raise the error, with the effect on the transaction that the real one has. */
function raising(code: string, label: string, isOpen: boolean): string {
  const raise = `do $stet$ begin raise exception 'injected by stet prove' using errcode = '${code}'; end $stet$`
  // A COMMIT that fails has ended its transaction.
  if (endsTransaction(label)) return `rollback; ${raise}`
  return /^(begin|start transaction)\b/.test(label) && !isOpen ? `begin; ${raise}` : raise
}
