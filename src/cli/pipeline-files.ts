import { createHash } from 'node:crypto'
import { lstat, mkdir, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Option } from 'commander'
import { StetError } from '../errors.ts'
import { isPipeline } from '../pipeline/define.ts'
import type { DefinedPipeline } from '../pipeline/types.ts'
import { VERSION } from '../version.ts'
import { quoteForShell } from './columns-option.ts'
import { collect } from './option-values.ts'

/** Whether a path names a pipeline file rather than data. */
export function isPipelineFile(path: string): boolean {
  return /\.[cm]?[jt]sx?$/i.test(path)
}

/** A pipeline and the file that exports it. */
export interface LoadedPipeline {
  readonly pipeline: DefinedPipeline
  /** As the user wrote it. */
  readonly file: string
  /** The file in a command line, with `--pipeline` where it exports several. */
  readonly inCommands: string
  /** sha256 of the file's bytes; what it imports is not part of it. */
  readonly code: string
}

/**
 * The pipelines that files export, in the order written: the default export, or any named ones, or lists of them.
 *
 * @throws {StetError} `STET_USAGE` for a missing file, `STET_CONFIG` when it cannot be loaded or exports no pipeline, or
 * when two pipelines have one name.
 */
export async function pipelinesOf(files: readonly string[], cwd: string): Promise<readonly LoadedPipeline[]> {
  const pipelines: LoadedPipeline[] = []
  for (const file of files) pipelines.push(...(await pipelinesOfFile(file, cwd)))
  const names = pipelines.map(({ pipeline }) => pipeline.name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) {
    throw new StetError('STET_CONFIG', `Two pipelines are named "${repeated}"`, {
      hint: 'The run log tells them apart by their names: give each its own',
    })
  }
  return pipelines
}

/** `--only name`, as `--pipeline` of `run` and `plan` is also written; `--only` of a backfill is about slices. */
export function onlyOption(): Option {
  return new Option('--only <name>').argParser(collect).hideHelp()
}

/** The pipelines that a command line names; undefined for all. */
export function namesOf(options: {
  readonly pipeline?: readonly string[]
  readonly only?: readonly string[]
}): readonly string[] | undefined {
  const named = [...(options.pipeline ?? []), ...(options.only ?? [])]
  return named.length === 0 ? undefined : named
}

/** Those of the pipelines that `--pipeline` names. */
export function onlyNamed(
  pipelines: readonly LoadedPipeline[],
  only: readonly string[] | undefined,
): readonly LoadedPipeline[] {
  if (only === undefined) return pipelines
  const names = pipelines.map(({ pipeline }) => pipeline.name)
  const unknown = only.find((name) => !names.includes(name))
  if (unknown !== undefined) {
    throw new StetError('STET_USAGE', `There is no pipeline "${unknown}"`, {
      hint: `There is ${names.join(', ')}`,
    })
  }
  return pipelines.filter(({ pipeline }) => only.includes(pipeline.name))
}

/**
 * The one pipeline that a command is about.
 *
 * @param name Of `--pipeline`; needed where the file exports several.
 */
export async function onePipeline(
  file: string,
  name: string | undefined,
  cwd: string,
): Promise<LoadedPipeline> {
  const all = await pipelinesOf([file], cwd)
  const named = onlyNamed(all, name === undefined ? undefined : [name])
  const [first] = named
  if (first !== undefined && named.length === 1) return first
  throw new StetError(
    'STET_USAGE',
    `"${file}" exports ${named.length} pipelines, and this command is about one`,
    {
      hint: `Name it: ${named.map(({ pipeline }) => `--pipeline ${quoteForShell(pipeline.name)}`).join(', or ')}`,
    },
  )
}

async function pipelinesOfFile(file: string, cwd: string): Promise<readonly LoadedPipeline[]> {
  const path = resolve(cwd, file)
  if (!(await isFile(path))) {
    throw new StetError('STET_USAGE', `There is no pipeline file "${file}"`, {
      hint: 'stet init writes one; stet load needs none',
    })
  }
  const code = createHash('sha256')
    .update(await readFile(path))
    .digest('hex')
  const exported = await importTypeScript(path, file)
  const pipelines = new Set<DefinedPipeline>()
  for (const value of Object.values(exported)) {
    for (const candidate of Array.isArray(value) ? value : [value]) {
      if (isPipeline(candidate)) pipelines.add(candidate)
    }
  }
  if (pipelines.size === 0) {
    throw new StetError('STET_CONFIG', `"${file}" exports no pipeline`, {
      hint: 'Write: export default definePipeline({ … })',
    })
  }
  const inCommands = ({ name }: DefinedPipeline) =>
    [file, ...(pipelines.size > 1 ? ['--pipeline', name] : [])].map(quoteForShell).join(' ')
  return [...pipelines].map((pipeline) => ({ pipeline, file, code, inCommands: inCommands(pipeline) }))
}

async function importTypeScript(path: string, file: string): Promise<Readonly<Record<string, unknown>>> {
  const { createJiti } = await import('jiti')
  const jiti = createJiti(import.meta.url, {
    // A pipeline file may lie outside of any package, and must get this Stet and no second copy of it.
    alias: { stet: fileURLToPath(new URL('..', import.meta.url)).replace(/[/\\]$/, '') },
    fsCache: await cacheFolder(tmpdir()),
    interopDefault: false,
  })
  try {
    return await jiti.import<Record<string, unknown>>(path)
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'StetError') throw cause
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StetError('STET_CONFIG', `Cannot load the pipeline file "${file}": ${reason}`, {
      cause,
      hint: '--debug shows where',
    })
  }
}

/**
 * Where translated files are kept. The default, node_modules/.cache, belongs to somebody else where Stet is installed for
 * all users. In a temporary folder anybody could have put down this name, and code in it, before: then nothing is kept.
 *
 * @returns false where the folder is not this user's alone.
 */
export async function cacheFolder(parent: string): Promise<string | false> {
  const own = process.getuid?.()
  const folder = join(parent, `stet-jiti-${VERSION}-${own ?? 'user'}`)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const found = await lstat(folder)
    const othersMayWrite = own !== undefined && (found.uid !== own || (found.mode & 0o022) !== 0)
    return found.isDirectory() && !othersMayWrite ? folder : false
  } catch {
    return false
  }
}

async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found?.isFile() === true
}
