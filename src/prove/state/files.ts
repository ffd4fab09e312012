import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { cp, lstat, mkdir, readdir, readFile, readlink, stat, symlink } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { StetError } from '../../errors.ts'
import { COMPANIONS } from '../datafiles/load.ts'
import type { DataFileReader, DataState } from '../datafiles/reader.ts'
import type { TableState } from './fingerprint.ts'
import type { Ignore } from './ignore.ts'

interface FileState {
  readonly bytes: number
  /** Of its bytes, or of its rows where it holds tables. */
  readonly hash: string
  /** Null for a file that is compared as bytes. */
  readonly data: DataState | null
  /** Why a file that looks like tables is compared as bytes. */
  readonly complaint?: string
}

export type FileStates = ReadonlyMap<string, FileState>

/**
 * Folders of tools: linked, not copied, and no effects of a pipeline. A symbolic link lets a program find its modules
 * where it expects them.
 */
const TOOL_FOLDERS = new Set([
  'node_modules',
  '.git',
  '.venv',
  'venv',
  '.tox',
  '.cache',
  '__pycache__',
  '.idea',
])
const MOST_FILES = 20_000
const MOST_BYTES = 512 * 1024 * 1024

/** Copies a work folder for one trial. */
export async function copyFolder(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  let [files, bytes] = [0, 0]
  await cp(from, to, {
    recursive: true,
    preserveTimestamps: true,
    verbatimSymlinks: true,
    filter: async (source) => {
      if (isTool(source)) return false
      const info = await lstat(source)
      files += 1
      bytes += info.isFile() ? info.size : 0
      if (files > MOST_FILES || bytes > MOST_BYTES) {
        throw new StetError(
          'STET_CONFIG',
          `The work folder ${from} is too large to be copied for each trial`,
          {
            hint: 'Name a smaller one with --work, and pass other files by their absolute path',
          },
        )
      }
      return !info.isSocket() && !info.isFIFO()
    },
  })
  for (const name of await readdir(from)) {
    if (!TOOL_FOLDERS.has(name)) continue
    const source = join(from, name)
    const target = (await lstat(source)).isSymbolicLink() ? await readlink(source) : source
    await symlink(target, join(to, name)).catch(ignoreExisting)
  }
}

/** Whether a file, by its path in a work folder, is inside one of those. */
export function isToolPath(path: string): boolean {
  return path.split('/').some((name) => TOOL_FOLDERS.has(name))
}

function isTool(path: string): boolean {
  return TOOL_FOLDERS.has(path.split('/').at(-1) ?? '')
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
}

/** Everything in a folder, byte by byte. */
export async function digestOfFolder(folder: string): Promise<string> {
  const hash = createHash('sha256')
  const walk = async (at: string): Promise<void> => {
    const entries = await readdir(at, { withFileTypes: true })
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(at, entry.name)
      hash.update(`${relative(folder, path)}\n`)
      if (entry.isDirectory() && !TOOL_FOLDERS.has(entry.name)) await walk(path)
      else if (entry.isFile()) for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
    }
  }
  await walk(folder)
  return hash.digest('hex')
}

/** Every file below a folder, by its path in it. */
export async function filesOf(
  folder: string,
  ignore: Ignore,
  below: readonly string[],
  dataFiles: DataFileReader,
): Promise<FileStates> {
  const states = new Map<string, FileState>()
  const walk = async (at: string): Promise<void> => {
    for (const entry of await readdir(at, { withFileTypes: true })) {
      const path = join(at, entry.name)
      const name = relative(folder, path)
      if (TOOL_FOLDERS.has(entry.name) || ignore.file(name)) continue
      if (entry.isDirectory()) await walk(path)
      else if (!isBelow(name, below)) continue
      else if (entry.isSymbolicLink()) {
        states.set(name, { bytes: 0, hash: `link to ${await readlink(path)}`, data: null })
      } else if (entry.isFile()) {
        const data = await dataFiles.read(path, name, ignore)
        if (data !== null && 'tables' in data) states.set(name, { bytes: 0, hash: data.hash, data })
        else states.set(name, { ...(await stateOfBytes(path)), ...data })
      }
    }
  }
  await walk(folder)
  for (const [name, { data }] of [...states]) {
    // They belong to the database beside them, and have been read with it.
    if (data !== null) for (const ending of COMPANIONS) states.delete(`${name}${ending}`)
  }
  return new Map([...states].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function isBelow(name: string, folders: readonly string[]): boolean {
  if (folders.length === 0) return true
  return folders.some((folder) => name === folder || name.startsWith(`${folder.replace(/\/+$/, '')}/`))
}

async function stateOfBytes(path: string): Promise<FileState> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return { bytes: (await stat(path)).size, hash: hash.digest('hex'), data: null }
}

/** The tables of all files that hold some. */
export function tablesOfFiles(files: FileStates): ReadonlyMap<string, TableState> {
  return new Map([...files.values()].flatMap(({ data }) => [...(data?.tables ?? [])]))
}

export function databasesOf(files: FileStates): ReadonlySet<string> {
  return new Set([...files].flatMap(([name, { data }]) => (data?.isDatabase === true ? [name] : [])))
}

export function sameFiles(one: FileStates, other: FileStates): boolean {
  return digestOfFiles(one) === digestOfFiles(other)
}

/** Files that are on one side only, or not the same on both. */
export function differingFiles(one: FileStates, other: FileStates): readonly string[] {
  const names = [...new Set([...one.keys(), ...other.keys()])]
  return names.filter((name) => one.get(name)?.hash !== other.get(name)?.hash)
}

export function digestOfFiles(files: FileStates): string {
  return [...files].map(([name, { hash }]) => `${name} ${hash}`).join('\n')
}

/** Files without tables that two clean runs leave differently. */
export function volatileFiles(one: FileStates, other: FileStates): readonly string[] {
  return [...one].flatMap(([name, state]) => {
    const twin = other.get(name)
    return twin !== undefined && isBytes(state) && isBytes(twin) && twin.hash !== state.hash ? [name] : []
  })
}

function isBytes({ data, complaint }: FileState): boolean {
  return data === null && complaint === undefined
}

export interface FileDiff {
  readonly file: string
  readonly kind: 'doubled' | 'lost' | 'different' | 'left behind'
  /** For a text: how many lines each side has. */
  readonly lines: { readonly clean: number; readonly here: number } | null
}

/** How the files of a trial differ from those of a clean run. */
export async function diffFiles(
  clean: { readonly folder: string; readonly files: FileStates },
  here: { readonly folder: string; readonly files: FileStates },
): Promise<readonly FileDiff[]> {
  const diffs: FileDiff[] = []
  for (const [file, state] of clean.files) {
    const other = here.files.get(file)
    if (other === undefined) diffs.push({ file, kind: 'lost', lines: null })
    else if (other.hash !== state.hash) {
      const [before, after] = [
        await readFile(join(clean.folder, file)),
        await readFile(join(here.folder, file)),
      ]
      const isDoubled = after.equals(Buffer.concat([before, before]))
      const isText = !before.includes(0) && !after.includes(0)
      const lines = isText ? { clean: lineCount(before), here: lineCount(after) } : null
      diffs.push({ file, kind: isDoubled ? 'doubled' : 'different', lines })
    }
  }
  for (const file of here.files.keys()) {
    if (!clean.files.has(file)) diffs.push({ file, kind: 'left behind', lines: null })
  }
  return diffs
}

function lineCount(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines += 1
  return lines
}
