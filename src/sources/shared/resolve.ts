import { stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { glob, isDynamicPattern } from 'tinyglobby'
import { StetError } from '../../errors.ts'

/** How the user names standard input. */
export const STANDARD_INPUT = '-'

/** A file of a load: where it is, and what the user calls it. */
export interface NamedPath {
  /** As the user would write it. */
  readonly name: string
  readonly path: string
}

/**
 * The patterns of a source that reads files.
 *
 * @throws {StetError} `STET_CONFIG` when there is none: a pipeline file is not type-checked when it runs.
 */
export function patternsOf(source: string, files: string | readonly string[]): readonly string[] {
  const patterns = typeof files === 'string' ? [files] : files
  if (Array.isArray(patterns) && patterns.length > 0) return patterns
  throw new StetError('STET_CONFIG', `${source} names no files`, {
    hint: `Write ${source}({ files: 'inbox/orders-*' })`,
  })
}

/**
 * The files that paths and patterns stand for, in the order written; the matches of one pattern in natural order
 * (`part-2` before `part-10`), so that two runs over one folder read it alike. A file that is named twice comes once.
 *
 * @throws {StetError} `STET_SOURCE` for a missing file and for a pattern that matches nothing: a wrong path must
 * never look like a quiet day (G10).
 */
export async function resolveFiles(patterns: readonly string[], cwd: string): Promise<readonly NamedPath[]> {
  if (patterns.length === 0) {
    throw new StetError('STET_CONFIG', 'Cannot read a source without files: its list of files is empty')
  }
  const byPath = new Map<string, NamedPath>()
  for (const pattern of patterns) {
    for (const file of await resolvePattern(pattern, cwd)) {
      if (!byPath.has(file.path)) byPath.set(file.path, file)
    }
  }
  return [...byPath.values()]
}

async function resolvePattern(pattern: string, cwd: string): Promise<readonly NamedPath[]> {
  if (pattern === STANDARD_INPUT) return [{ name: pattern, path: pattern }]
  const path = resolve(cwd, pattern)
  // The name as it stands comes first: `orders[1].csv` is what a browser calls a second download.
  if (await exists(path)) return [{ name: pattern, path }]
  if (!isDynamicPattern(pattern)) {
    throw new StetError('STET_SOURCE', `Cannot read "${pattern}": there is no such file`, {
      hint: /^[a-z][a-z0-9+.-]+:\/\//.test(pattern)
        ? 'Only local files are read: download it first, or pipe it in and name the file -'
        : `Looked for ${path}`,
      details: { file: pattern },
    })
  }
  const matches = await glob(pattern, { cwd, absolute: isAbsolute(pattern), expandDirectories: false })
  if (matches.length === 0) {
    throw new StetError('STET_SOURCE', `Cannot read "${pattern}": no file matches this pattern`, {
      hint: `Looked in ${cwd}`,
      details: { file: pattern },
    })
  }
  return matches.sort(compareNaturally).map((name) => ({ name, path: resolve(cwd, name) }))
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    throw error
  }
}

/** Digits by their number, all else by code unit. No collator: its order depends on the machine's locale data. */
export function compareNaturally(a: string, b: string): number {
  const left = a.split(/(\d+)/)
  const right = b.split(/(\d+)/)
  for (const [i, l] of left.entries()) {
    const r = right[i]
    if (r === undefined) return 1
    const order = i % 2 === 1 ? compareDigits(l, r) : compareUnits(l, r)
    if (order !== 0) return order
  }
  return left.length - right.length || compareUnits(a, b)
}

function compareDigits(a: string, b: string): number {
  const left = a.replace(/^0+/, '')
  const right = b.replace(/^0+/, '')
  return left.length - right.length || compareUnits(left, right)
}

function compareUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
