import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type CannedReply,
  copyLedger,
  digestOfLedger,
  emptyLedger,
  type Ledger,
  startRecorder,
} from './http/recorder.ts'
import type { Event } from './plan/points.ts'
import type { Fault } from './plan/trials.ts'
import type { Cluster } from './sandbox/cluster.ts'
import { environmentOf, fillIn, PASSWORD, type Places } from './sandbox/environment.ts'
import type { Fence } from './sandbox/fence.ts'
import { type Outcome, type RunningCommand, startCommand } from './sandbox/process.ts'
import { copyFolder, digestOfFiles, type FileStates, filesOf } from './state/files.ts'
import { digestOf, type Fingerprint, fingerprint } from './state/fingerprint.ts'
import type { Ignore } from './state/ignore.ts'
import { labelOf } from './wire/label.ts'
import { startProxy, type Unit, type WireProxy } from './wire/proxy.ts'

/** All that outlives a run: what a crash cannot take back. */
export interface World {
  readonly name: string
  readonly database: string
  /** Holds `work`, `home` and `tmp`. */
  readonly folder: string
  readonly ledger: Ledger
}

/** What a world looks like from outside. */
export interface Observation {
  readonly world: World
  readonly database: Fingerprint
  readonly files: FileStates
  readonly digest: string
}

export interface LabOptions {
  readonly cluster: Cluster
  readonly fence: Fence
  readonly command: readonly string[]
  readonly environment: NodeJS.ProcessEnv
  readonly passed: readonly string[]
  readonly workFolder: string
  /** Which files count; none named: all of the work folder. */
  readonly watched: readonly string[]
  /** Where worlds keep their folders. */
  readonly folder: string
  readonly replies: readonly CannedReply[]
  readonly listenPort: number
  /** Ends the running commands. */
  readonly signal: AbortSignal
}

interface RunRequest {
  readonly timeLimitMs: number
  readonly fault?: Fault
  /** Asks after each answer whether a transaction has ended. Needs the cluster for itself. */
  readonly record?: boolean
  /** For `overlap`: waits while the fault holds the run. */
  readonly whileHeld?: () => Promise<void>
  /** Another run uses the same database: whoever started both waits for the end of their sessions. */
  readonly isOverlapping?: boolean
}

export interface Run {
  readonly outcome: Outcome
  readonly units: readonly Unit[]
  readonly events: readonly Event[]
  readonly requests: number
  /** Whether the fault happened. */
  readonly isReached: boolean
}

export interface Lab {
  readonly cluster: Cluster
  /** Digits in names count as one name; for jobs that make up the names of their tables. */
  foldDigits: boolean
  begin(database: string): Promise<World>
  fork(world: World): Promise<World>
  discard(world: World): Promise<void>
  run(world: World, request: RunRequest): Promise<Run>
  observe(world: World, ignore: Ignore): Promise<Observation>
}

/** Runs the command in worlds of its own, one database and one folder each. */
export function createLab(options: LabOptions): Lab {
  const { cluster, fence } = options
  let made = 0

  const newWorld = async (database: string, work: string, home: string | null, ledger: Ledger) => {
    const name = `${++made}`
    const folder = join(options.folder, `trial-${name}`)
    await mkdir(join(folder, 'tmp'), { recursive: true })
    await copyFolder(work, join(folder, 'work'))
    if (home === null) await mkdir(join(folder, 'home'))
    else await copyFolder(home, join(folder, 'home'))
    return { name, database, folder, ledger }
  }

  const lab: Lab = {
    cluster,
    foldDigits: false,
    begin: async (database) => {
      return newWorld(await cluster.clone(database), options.workFolder, null, emptyLedger())
    },
    fork: async (world) => {
      const database = await cluster.clone(world.database)
      const [work, home] = [join(world.folder, 'work'), join(world.folder, 'home')]
      return newWorld(database, work, home, copyLedger(world.ledger))
    },
    discard: async (world) => {
      await cluster.drop(world.database)
      await rm(world.folder, { recursive: true, force: true })
    },
    run: async (world, request) => {
      const events: Event[] = []
      const onAnswer = request.record === true ? await transactionCounter(cluster, events) : undefined
      const { foldDigits } = lab
      await using proxy = await startProxy({
        upstream: cluster.upstream,
        database: world.database,
        user: 'postgres',
        server: await fence.listen(options.listenPort),
        labelOf: (sql) => labelOf(sql, { foldDigits }),
        ...(onAnswer === undefined ? {} : { onAnswer }),
      })
      await using recorder = startRecorder({
        server: await fence.listen(0),
        ledger: world.ledger,
        replies: options.replies,
        onRequest: (request) => events.push({ kind: 'request', request }),
      })
      const places = placesOf(world, proxy, recorder.port)
      const running = startCommand({
        fence,
        command: options.command.map((word) => fillIn(word, places)),
        folder: places.dir,
        environment: environmentOf({
          caller: options.environment,
          passed: options.passed,
          places,
          home: join(world.folder, 'home'),
          temporary: join(world.folder, 'tmp'),
          trial: `${process.pid}-${world.name}`,
        }),
        timeLimitMs: request.timeLimitMs,
      })
      const strike = request.fault && armFault(request.fault, proxy, recorder, running, request)
      const stop = () => void running.kill()
      options.signal.addEventListener('abort', stop)
      const outcome = await running.ended
      options.signal.removeEventListener('abort', stop)
      await strike?.settled()
      options.signal.throwIfAborted()
      proxy.cutAll()
      if (request.isOverlapping !== true) await cluster.settle(world.database)
      const units = proxy.units()
      return {
        outcome,
        units,
        events,
        requests: recorder.requests.length,
        isReached: strike?.hasFired() ?? true,
      }
    },
    observe: async (world, ignore) => {
      await using session = await cluster.open(world.database)
      const database = await fingerprint(session, ignore)
      const files = await filesOf(join(world.folder, 'work'), ignore, options.watched)
      const parts = [digestOf(database), digestOfFiles(files), digestOfLedger(world.ledger)]
      return { world, database, files, digest: parts.join('\n') }
    },
  }
  return lab
}

/** With nobody else in the cluster, the next transaction's number moves exactly when one has ended that wrote. */
async function transactionCounter(cluster: Cluster, events: Event[]): Promise<(unit: Unit) => Promise<void>> {
  let before = await cluster.nextTransaction()
  return async (unit) => {
    const next = await cluster.nextTransaction()
    events.push({ kind: 'answer', unit, transactions: Number(next - before) })
    before = next
  }
}

function placesOf(world: World, proxy: WireProxy, httpPort: number): Places {
  return {
    // Some libraries want a password, and SQLAlchemy the long name of the scheme.
    url: `postgresql://postgres:${PASSWORD}@127.0.0.1:${proxy.port}/${world.database}`,
    host: '127.0.0.1',
    port: String(proxy.port),
    db: world.database,
    dir: join(world.folder, 'work'),
    http: `http://127.0.0.1:${httpPort}`,
  }
}

interface Strike {
  hasFired(): boolean
  /** Settles when what the fault started has ended. */
  settled(): Promise<void>
}

function armFault(
  { kind, point, code }: Fault,
  proxy: WireProxy,
  recorder: ReturnType<typeof startRecorder>,
  running: RunningCommand,
  { whileHeld }: RunRequest,
): Strike {
  const at = (one: { readonly signature: string; readonly occurrence: number }) =>
    one.signature === point.signature && one.occurrence === point.occurrence
  const arm = (how: { hold: 'before' | 'after' } | { cut: 'before' | 'after' }) =>
    point.kind === 'commit' ? proxy.arm({ ...how, at }) : recorder.arm({ ...how, fits: at })
  let hasFired = false
  let work: Promise<unknown> = Promise.resolve()
  const when = (fired: Promise<unknown>, act: () => Promise<unknown>) => {
    void fired.then(() => {
      hasFired = true
      work = act()
    })
  }
  switch (kind) {
    case 'kill before':
      when(arm({ hold: 'before' }).fired, running.kill)
      break
    case 'kill after':
      when(arm({ hold: 'after' }).fired, running.kill)
      break
    case 'cut before':
      when(arm({ cut: 'before' }).fired, async () => undefined)
      break
    case 'cut after':
      when(arm({ cut: 'after' }).fired, async () => undefined)
      break
    case 'error':
      when(proxy.arm({ error: code ?? '40001', at }).fired, async () => undefined)
      break
    case 'overlap': {
      const held = arm({ hold: 'before' })
      when(held.fired, async () => {
        await whileHeld?.()
        held.release()
      })
      break
    }
    default:
      kind satisfies never
  }
  return { hasFired: () => hasFired, settled: async () => void (await work) }
}
