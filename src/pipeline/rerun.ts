import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { StetError } from '../errors.ts'
import type { RunLogEntry } from '../model/run.ts'
import { WHOLE } from '../model/slice.ts'
import type { SourceFile } from '../model/source.ts'
import type { DefinedPipeline, RunOptions } from './types.ts'

/**
 * The options with which a run is repeated: its recorded slice, window and logical time, and nothing of the clock or of
 * the watermark, which does not move either (G4).
 *
 * @throws {StetError} `STET_USAGE` when the record does not say what the run read.
 */
export function rerunOptions(
  pipeline: DefinedPipeline,
  entry: RunLogEntry,
): Pick<RunOptions, 'slice' | 'at' | 'window' | 'rerunOf'> {
  const again = {
    // A value slice may be called `all` as well.
    slice: entry.slice === WHOLE && pipeline.write.strategy !== 'replace-partition' ? undefined : entry.slice,
    at: entry.logicalTime ?? undefined,
    rerunOf: entry.runId,
  }
  if (pipeline.incremental === undefined || again.slice !== undefined) return again
  if (entry.window !== null) return { ...again, window: entry.window }
  // A window that is open at both ends is recorded like none; only a run that has read can have had one.
  if (entry.status === 'succeeded') return { ...again, window: { from: null, to: null } }
  throw new StetError(
    'STET_USAGE',
    `Run ${entry.runId} ended before it knew what to read, so there is no window to repeat`,
    { hint: 'stet run reads from the watermark on, which that run has not moved' },
  )
}

/** What is not as it was when the run was recorded, in sentences; before anything is read. */
export function changesOfCode(entry: RunLogEntry, code: string | undefined): readonly string[] {
  if (entry.code === null || code === undefined || entry.code === code) return []
  return [
    `The pipeline's file has changed since run ${entry.runId}: it had sha256 ${entry.code.slice(0, 12)}… and now has ${code.slice(0, 12)}…`,
  ]
}

/** Files that the repeated run read and that are gone, in the sentences of {@link changesOfFiles}; before anything is read. */
export async function filesGone(entry: RunLogEntry, cwd: string): Promise<readonly string[]> {
  const isThere = (path: string) =>
    access(resolve(cwd, path)).then(
      () => true,
      (error: unknown) => !(error instanceof Error && 'code' in error && error.code === 'ENOENT'),
    )
  const paths = entry.files.map(({ path }) => path).filter((path) => path !== '-')
  const there = await Promise.all(paths.map(isThere))
  return paths.filter((_, i) => there[i] === false).map((path) => sentence(path, GONE, entry))
}

const GONE = 'is not there any more'

function sentence(path: string, what: string, { runId }: RunLogEntry): string {
  return `${path} ${what} since run ${runId}`
}

/** Files that the repeated run read and that are others now, in sentences. */
export function changesOfFiles(entry: RunLogEntry, files: readonly SourceFile[]): readonly string[] {
  const before = new Map(entry.files.map((file) => [file.path, file.sha256]))
  const after = new Map(files.map((file) => [file.path, file.sha256]))
  const changed = [...after].filter(([path, sha256]) => before.has(path) && before.get(path) !== sha256)
  const came = [...after.keys()].filter((path) => !before.has(path))
  const went = [...before.keys()].filter((path) => !after.has(path))
  const told: [string, readonly string[]][] = [
    ['has other content', changed.map(([path]) => path)],
    ['was not read by that run', came],
    [GONE, went],
  ]
  return told.flatMap(([what, paths]) => paths.map((path) => sentence(path, what, entry)))
}
