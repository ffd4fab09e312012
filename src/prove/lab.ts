import { mkdir, realpath, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { armFault } from './arm.ts'
import { copyDatabase } from './datafiles/load.ts'
import { type DataFileReader, dataFileReader } from './datafiles/reader.ts'
import { type FileTrace, startFileTrace } from './files/trace.ts'
import {
  type CannedReply,
  copyLedger,
  digestOfLedger,
  emptyLedger,
  type Ledger,
  startRecorder,
} from './http/recorder.ts'
import { type Event, messageName } from './plan/points.ts'
import type { Fault } from './plan/trials.ts'
import { type Cluster, DISK_FULL, diskFull } from './sandbox/cluster.ts'
import { WATCHED_SESSION } from './sandbox/commit-watch.ts'
import { environmentOf, fillIn, PASSWORD, type Places } from './sandbox/environment.ts'
import type { Fence } from './sandbox/fence.ts'
import { type Outcome, startCommand } from './sandbox/process.ts'
import {
  copyFolder,
  digestOfFiles,
  digestOfFolder,
  type FileStates,
  filesOf,
  isToolPath,
} from './state/files.ts'
import { digestOf, type Fingerprint, fingerprint } from './state/fingerprint.ts'
import { type Ignore, ignoring } from './state/ignore.ts'
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
  readonly dataFiles: DataFileReader
  /** Equal for equal states, as far as they count. */
  readonly digest: string
  /** Equal where a rerun finds the same: what does not count for the verdict may still tell it what to do. */
  readonly memory: string
}

export interface LabOptions {
  readonly cluster: Cluster
  readonly fence: Fence
  readonly command: readonly string[]
  readonly environment: NodeJS.ProcessEnv
  readonly passed: readonly string[]
  readonly workFolder: string
  /** Databases from elsewhere, to be copied into it. */
  readonly databaseFiles: readonly string[]
  /** Which files count; none named: all of the work folder. */
  readonly watched: readonly string[]
  /** What the user leaves out. */
  readonly ignore: readonly string[]
  /** Where worlds keep their folders. */
  readonly folder: string
  readonly replies: readonly CannedReply[]
  readonly listenPort: number
  /** Whether file calls can be seen and stopped after. */
  readonly canTrace: boolean
  /** Ends the running commands. */
  readonly signal: AbortSignal
}

interface RunRequest {
  readonly timeLimitMs: number
  readonly fault?: Fault
  /** Looks for points; asks after each answer whether a transaction has ended. Needs the cluster for itself. */
  readonly record?: boolean
  /** Stops every commit, and counts those of each message. */
  readonly countCommits?: boolean
  /** How much longer than usual a file call is held, when others got ahead of the kill. Default: 1. */
  readonly patience?: number
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
  /** With `countCommits`: how many commits each message had, by `messageName`. */
  readonly commits: ReadonlyMap<string, number>
  /** Whether the fault happened. */
  readonly isReached: boolean
  /** Whether more files were changed than should have been by then. */
  readonly isOvershot: boolean
}

export interface Lab {
  readonly cluster: Cluster
  readonly canTrace: boolean
  /** Digits in names count as one name; for jobs that make up the names of their tables. */
  foldDigits: boolean
  /** The same for files. */
  foldFiles: boolean
  begin(database: string): Promise<World>
  fork(world: World): Promise<World>
  discard(world: World): Promise<void>
  run(world: World, request: RunRequest): Promise<Run>
  observe(world: World, ignore: Ignore): Promise<Observation>
}

/** Runs the command in worlds of its own, one database and one folder each. */
export function createLab(options: LabOptions): Lab {
  const { cluster, fence } = options
  const dataFiles = dataFileReader(options.folder)
  const ignored = ignoring(options.ignore)
  let made = 0
  /** How often recorded runs made each system call: so often a delay is paid. */
  const usualCalls = new Map<string, number>()

  const newWorld = async (database: string, work: string, home: string | null, ledger: Ledger) => {
    const name = `${++made}`
    await mkdir(join(options.folder, `trial-${name}`, 'tmp'), { recursive: true })
    // The kernel tells of files by their real paths.
    const folder = await realpath(join(options.folder, `trial-${name}`))
    await copyFolder(work, join(folder, 'work'))
    if (home === null) await mkdir(join(folder, 'home'))
    else await copyFolder(home, join(folder, 'home'))
    return { name, database, folder, ledger }
  }

  /** Watching costs time: only where points are looked for, or a fault needs it. */
  const traceFor = async (world: World, { record, fault, patience = 1 }: RunRequest, events: Event[]) => {
    const point = fault?.point
    const isNeeded = record === true || point?.kind === 'file change'
    const call = point?.change?.call
    if (!options.canTrace || !isNeeded) return null
    return startFileTrace({
      folder: world.folder,
      work: join(world.folder, 'work'),
      home: join(world.folder, 'home'),
      foldNames: lab.foldFiles,
      // The index of a write-ahead log is made again by whoever opens it next.
      counts: (path) => !isToolPath(path) && !path.endsWith('-shm') && !ignored.file(path),
      onChange: (change) => events.push({ kind: 'file change', change }),
      delay: call === undefined ? null : { call, ms: delayFor(call, usualCalls) * patience },
    })
  }

  const lab: Lab = {
    cluster,
    canTrace: options.canTrace,
    foldDigits: false,
    foldFiles: false,
    begin: async (database) => {
      const world = await newWorld(await cluster.clone(database), options.workFolder, null, emptyLedger())
      for (const file of options.databaseFiles)
        await copyDatabase(file, join(world.folder, 'work', basename(file)))
      return world
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
      const stopsCommits = request.countCommits === true || request.fault?.point.kind === 'inner commit'
      await using commitWatch = stopsCommits ? cluster.watchCommits(world.database) : null
      const commits = new Map<string, number>()
      await using proxy = await startProxy({
        upstream: cluster.upstream,
        database: world.database,
        user: 'postgres',
        server: await fence.listen(options.listenPort),
        labelOf: (sql) => labelOf(sql, { foldDigits }),
        ...(commitWatch === null ? {} : { settings: WATCHED_SESSION }),
        ...(onAnswer === undefined ? {} : { onAnswer }),
      })
      await using recorder = startRecorder({
        server: await fence.listen(0),
        ledger: world.ledger,
        replies: options.replies,
        onRequest: (request) => events.push({ kind: 'request', request }),
      })
      const places = placesOf(world, proxy, recorder.port)
      await using trace = await traceFor(world, request, events)
      const [program = '', ...args] = options.command.map((word) => fillIn(word, places))
      const running = startCommand({
        fence,
        command: trace?.wrap({ program, args }) ?? { program, args },
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
      if (commitWatch !== null) commitWatch.onCommit = () => countCommit(proxy.units(), commits)
      const { endBackend } = cluster
      const { whileHeld } = request
      const parts = { proxy, recorder, trace, running, whileHeld, commitWatch, endBackend }
      const strike = request.fault && armFault(request.fault, parts)
      const stop = () => void running.kill()
      options.signal.addEventListener('abort', stop)
      const outcome = await running.ended
      options.signal.removeEventListener('abort', stop)
      await strike?.settled()
      await trace?.settled()
      if (request.record === true) noteCalls(usualCalls, trace)
      options.signal.throwIfAborted()
      proxy.cutAll()
      if (request.isOverlapping !== true) await cluster.settle(world.database)
      const units = proxy.units()
      if (units.some(({ answer }) => answer?.error === DISK_FULL)) throw diskFull()
      return {
        outcome,
        units,
        events,
        requests: recorder.requests.length,
        commits,
        isReached: strike?.hasFired() ?? true,
        isOvershot: strike?.isOvershot() ?? false,
      }
    },
    observe: async (world, ignore) => {
      await using session = await cluster.open(world.database)
      const database = await fingerprint(session, ignore)
      const files = await filesOf(join(world.folder, 'work'), ignore, options.watched, dataFiles)
      const ledger = digestOfLedger(world.ledger)
      const digest = [digestOf(database), digestOfFiles(files), ledger].join('\n')
      const whole = [
        digestOf(await fingerprint(session, ignore.nothing)),
        digestOfFiles(await filesOf(join(world.folder, 'work'), ignore.nothing, [], dataFiles)),
        await digestOfFolder(join(world.folder, 'home')),
      ]
      return { world, database, files, dataFiles, digest, memory: [...whole, ledger].join('\n') }
    },
  }
  return lab
}

/** Notes a commit with the message that is under way. */
function countCommit(units: readonly Unit[], commits: Map<string, number>): 'go on' {
  const unit = units.findLast((one) => one.answer === null)
  if (unit !== undefined) commits.set(messageName(unit), (commits.get(messageName(unit)) ?? 0) + 1)
  return 'go on'
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

const LONGEST_DELAY_MS = 10
/** What all delays of one run may cost together. */
const DELAYS_MS = 500

function delayFor(call: string, usual: ReadonlyMap<string, number>): number {
  return Math.min(LONGEST_DELAY_MS, DELAYS_MS / Math.max(1, usual.get(call) ?? 1))
}

function noteCalls(usual: Map<string, number>, trace: FileTrace | null): void {
  for (const [name, count] of trace?.calls ?? []) usual.set(name, Math.max(count, usual.get(name) ?? 0))
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
