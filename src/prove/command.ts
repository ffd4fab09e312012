import { stat, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve } from 'node:path'
import { StetError } from '../errors.ts'
import { readReplies } from './http/replies.ts'
import type { FaultKind } from './plan/trials.ts'
import { type KeptPlace, type Progress, type Proof, prove } from './prove.ts'
import { type ProofDocument, proofDocument } from './report/document.ts'
import { formatOfReport, type ReportFormat, renderReport } from './report/formats.ts'
import { type Paint, PLAIN_PAINT } from './report/terminal.ts'
import { type Fence, openFence, openGround } from './sandbox/fence.ts'
import type { Filling } from './sandbox/fill.ts'
import { findPrograms } from './sandbox/programs.ts'
import { CLASSES, type Class, DEFAULT_FAIL_ON } from './verdict.ts'

/** What the command line of `stet prove` says. */
export interface ProveCommandOptions {
  /** How reports name the command, where it was put together from something shorter. */
  readonly shownAs?: readonly string[]
  /** A file of SQL that fills the sandbox's database. */
  readonly seed?: string
  /** A database to copy into the sandbox; it is only read. */
  readonly from?: string
  /** An archive of pg_dump to restore in the sandbox. */
  readonly template?: string
  readonly only?: readonly string[]
  readonly exclude?: readonly string[]
  /** The command's folder; default is the current one. */
  readonly work?: string
  readonly files?: readonly string[]
  /** DuckDB or SQLite files to copy into the command's folder. */
  readonly db?: readonly string[]
  readonly env?: readonly string[]
  readonly ignore?: readonly string[]
  /** A file with prepared answers for web requests. */
  readonly replies?: string
  /** SQL, or a folder of files, that corrects the source between two runs. */
  readonly change?: string
  readonly listen?: number
  /** False: file calls are not watched; default is true where strace is. */
  readonly trace?: boolean
  /** Kinds of faults to try: `crash`, `ambiguous`, `error`, `overlap`, `twice`. */
  readonly kinds?: readonly string[]
  readonly exhaustive?: boolean
  readonly all?: boolean
  readonly jobs?: number
  /** Milliseconds after which no trial is started. */
  readonly budget?: number
  /** How long a clean run may take, in milliseconds. */
  readonly timeout?: number
  /** What convicts beside that which always does; each may name several, with commas in between. */
  readonly failOn?: readonly string[]
  readonly replay?: number
  readonly keep?: boolean
  readonly allowNetwork?: boolean
  /** The folder of PostgreSQL's programs. */
  readonly postgres?: string
  /** Files to write the report to, each in the format that its name says. */
  readonly report?: readonly string[]
}

/** Everything outside that the command touches. */
export interface ProveIo {
  readonly environment: NodeJS.ProcessEnv
  readonly folder: string
  readonly onProgress: (text: string) => void
  /** Null where nobody can be asked. */
  readonly ask: ((question: string) => Promise<boolean>) | null
  /** Stops the proof, and ends the wait of `--keep`. */
  readonly signal: AbortSignal
}

export interface ProveCommandResult {
  readonly exitStatus: number
  readonly proof: Proof
  render(format: ReportFormat, paint?: Paint): string
  /** For `--json`. */
  readonly document: ProofDocument
}

const EXIT_STATUS = { survives: 0, convicted: 1, inconclusive: 3 } as const
const DEFAULT_JOBS = 2
const DEFAULT_TIMEOUT_MS = 600_000

/** Runs `stet prove`. Errors mean that nothing could be tried. */
export async function proveCommand(
  command: readonly string[],
  options: ProveCommandOptions,
  io: ProveIo,
): Promise<ProveCommandResult> {
  if (command.length === 0) {
    throw new StetError('STET_USAGE', 'Say which command is to be proved', {
      hint: 'stet prove --seed seed.sql -- python load.py',
    })
  }
  const failOn = [...new Set([...DEFAULT_FAIL_ON, ...classes(options.failOn ?? [])])]
  const reports = await reportFiles(options.report ?? [], io.folder)
  const workFolder = resolve(io.folder, options.work ?? '.')
  const programs = await findPrograms(io.environment['PATH'] ?? '', options.postgres)
  await using fence = await fenceFor(options.allowNetwork === true, io)
  const shown = options.shownAs ?? command
  const proven = await prove({
    command,
    filling: fillingOf(options, io.folder),
    workFolder,
    watched: options.files ?? [],
    databaseFiles: (options.db ?? []).map((file) => resolve(io.folder, file)),
    passed: options.env ?? [],
    environment: io.environment,
    ignore: options.ignore ?? [],
    replies: options.replies === undefined ? [] : await readReplies(resolve(io.folder, options.replies)),
    change: options.change === undefined ? null : resolve(io.folder, options.change),
    listenPort: options.listen ?? 0,
    traceFiles: options.trace !== false,
    kinds: options.kinds === undefined ? ALL_KINDS : options.kinds.flatMap(kindsNamed),
    isExhaustive: options.exhaustive === true,
    tryAll: options.all === true || options.replay !== undefined,
    jobs: options.jobs ?? DEFAULT_JOBS,
    budgetMs: options.budget ?? Number.POSITIVE_INFINITY,
    timeLimitMs: options.timeout ?? DEFAULT_TIMEOUT_MS,
    failOn,
    replay: options.replay ?? null,
    programs,
    fence,
    signal: io.signal,
    onProgress: (progress) => io.onProgress(progressText(progress)),
    onKept: options.keep === true ? (place) => showKept(place, io) : null,
  })
  const proof = { ...proven, command: shown }
  const script = await scriptOf(shown, workFolder, io.folder)
  const render = (format: ReportFormat, paint: Paint = PLAIN_PAINT) =>
    renderReport(format, proof, { failOn, script, paint })
  for (const { path, format } of reports) await writeFile(path, `${render(format)}\n`)
  return { exitStatus: EXIT_STATUS[proof.verdict], proof, render, document: proofDocument(proof, failOn) }
}

interface ReportFile {
  readonly path: string
  readonly format: ReportFormat
}

/** A proof takes minutes: a report that could not be written is refused before. */
async function reportFiles(files: readonly string[], folder: string): Promise<readonly ReportFile[]> {
  const reports = files.map((file) => ({ path: resolve(folder, file), format: formatOfReport(file) }))
  for (const { path } of reports) {
    const parent = await stat(dirname(path)).catch(() => null)
    if (parent?.isDirectory() === true) continue
    throw new StetError('STET_USAGE', `Cannot write the report "${path}": its folder is not there`, {
      hint: `Make it first: mkdir -p ${dirname(path)}`,
    })
  }
  return reports
}

/** The first word of the command that names a file of its folder, as seen from where `stet` was started. */
async function scriptOf(
  command: readonly string[],
  workFolder: string,
  folder: string,
): Promise<string | null> {
  for (const word of command) {
    const path = resolve(workFolder, word)
    const seen = relative(folder, path)
    if (seen.startsWith('..') || isAbsolute(seen)) continue
    const found = await stat(path).catch(() => null)
    if (found?.isFile() === true) return seen
  }
  return null
}

/** A job with its own connection string would run dozens of times against production: it does not get there. */
async function fenceFor(isOpenAllowed: boolean, io: ProveIo): Promise<Fence> {
  if (isOpenAllowed) return openGround()
  const fence = await openFence()
  if (!('refused' in fence)) return fence
  const risk =
    'The command will run many times, and be crashed. Nothing keeps it from servers it knows itself.'
  if (
    io.ask !== null &&
    (await io.ask(`This system has no network fence (${fence.refused}). ${risk} Go on?`))
  ) {
    return openGround()
  }
  throw new StetError('STET_CONFIG', `Cannot fence the command off from the network: ${fence.refused}`, {
    hint: `${risk} If it knows none but those of the sandbox: --allow-network`,
  })
}

function fillingOf(
  { seed, from, template, only = [], exclude = [] }: ProveCommandOptions,
  folder: string,
): Filling {
  const given = [seed, from, template].filter((one) => one !== undefined)
  if (given.length > 1) {
    throw new StetError('STET_USAGE', 'Give only one of --seed, --from and --template')
  }
  if (from !== undefined) return { kind: 'dump', url: from, only, exclude }
  if (template !== undefined) {
    if (!/^postgres(ql)?:/.test(template)) return { kind: 'archive', path: resolve(folder, template) }
    throw new StetError('STET_USAGE', '--template takes an archive of pg_dump and no address', {
      hint: 'To copy a database: --from',
    })
  }
  return seed === undefined ? { kind: 'empty' } : { kind: 'seed', file: resolve(folder, seed) }
}

const KINDS_BY_NAME: Readonly<Record<string, readonly FaultKind[]>> = {
  twice: [],
  crash: ['kill before', 'kill after'],
  ambiguous: ['cut before', 'cut after'],
  error: ['error'],
  overlap: ['overlap'],
}
const ALL_KINDS = Object.values(KINDS_BY_NAME).flat()

function kindsNamed(name: string): readonly FaultKind[] {
  const kinds = KINDS_BY_NAME[name]
  if (kinds !== undefined) return kinds
  throw new StetError('STET_USAGE', `Unknown kind of fault "${name}"`, {
    hint: `One of ${Object.keys(KINDS_BY_NAME).join(', ')}`,
  })
}

/** `overlap` and `success` are short for the classes they bring about. */
const SHORT_CLASSES: Readonly<Record<string, Class>> = {
  overlap: 'not two at once',
  success: 'claims success',
  keys: 'keys forgotten',
}

function classes(names: readonly string[]): readonly Class[] {
  return names
    .flatMap((list) => list.split(','))
    .map((word) => {
      const name = word.trim()
      const found = SHORT_CLASSES[name] ?? CLASSES.find((one) => one === name)
      if (found !== undefined) return found
      throw new StetError('STET_USAGE', `Unknown class "${name}" in --fail-on`, {
        hint: `Some of ${[...CLASSES, ...Object.keys(SHORT_CLASSES)].join(', ')}`,
      })
    })
}

function progressText(progress: Progress): string {
  switch (progress.step) {
    case 'sandbox':
      return 'making the sandbox'
    case 'clean run':
      return 'two clean runs'
    case 'second run':
      return 'running it a second time'
    case 'planned':
      return `${progress.trials} trials, about ${Math.ceil(progress.estimateMs / 1000)} s`
    case 'trial':
      return `trial ${progress.done} of ${progress.of}`
  }
}

/** The database stays until whoever wants to look at it has done so. */
async function showKept({ socketFolder, port, database }: KeptPlace, io: ProveIo): Promise<void> {
  io.onProgress(`kept until Ctrl-C: psql -h ${socketFolder} -p ${port} -U postgres ${database}`)
  await new Promise<void>((resolve) => io.signal.addEventListener('abort', () => resolve(), { once: true }))
}
