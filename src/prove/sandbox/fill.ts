import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StetError } from '../../errors.ts'
import type { Cluster } from './cluster.ts'
import type { PostgresPrograms } from './programs.ts'

/** What the sandbox's database starts with. */
export type Filling =
  | { readonly kind: 'empty' }
  | { readonly kind: 'seed'; readonly file: string }
  | { readonly kind: 'archive'; readonly path: string }
  | {
      readonly kind: 'dump'
      readonly url: string
      readonly only: readonly string[]
      readonly exclude: readonly string[]
    }

export interface FillContext {
  readonly cluster: Cluster
  readonly programs: PostgresPrograms
  /** For the dump of another database. */
  readonly folder: string
  readonly path: string
}

/** A new database with the filling in it; every trial starts from a clone of it. */
export async function fill(filling: Filling, context: FillContext): Promise<string> {
  const database = await context.cluster.create()
  switch (filling.kind) {
    case 'empty':
      break
    case 'seed':
      await loadSql(filling.file, database, context)
      break
    case 'archive':
      await restore(filling.path, database, context)
      break
    case 'dump':
      if (filling.only.length > 0) await layGround(filling.url, database, context)
      await loadSql(await dump(filling, context), database, context)
      break
    default:
      filling satisfies never
  }
  return database
}

/** Runs a file of SQL; `what` names it in complaints. */
export async function loadSql(
  file: string,
  database: string,
  context: FillContext,
  what = 'seed',
): Promise<void> {
  if (context.programs.psql === null) return loadWithoutPsql(file, database, context.cluster, what)
  const { status, complaint } = await runSql(file, database, context, { stopsAtErrors: true })
  if (status !== 0) throw new StetError('STET_CONFIG', `The ${what} ${file} failed: ${complaint}`)
}

async function loadWithoutPsql(
  file: string,
  database: string,
  cluster: Cluster,
  what: string,
): Promise<void> {
  const sql = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new StetError('STET_CONFIG', `Cannot read the ${what} ${file}`, { cause })
  })
  if (/^\\|^copy\b.*\bfrom stdin\b/im.test(sql)) {
    throw new StetError(
      'STET_CONFIG',
      `The ${what} ${file} needs psql: it has COPY data or backslash commands`,
      {
        hint: 'Install it: apt install postgresql-client',
      },
    )
  }
  await using session = await cluster.open(database)
  await session.query('set search_path to public')
  await session.query(sql).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StetError('STET_CONFIG', `The ${what} ${file} failed: ${why}`, { cause })
  })
}

/** Restores what pg_dump has written in its custom, directory or tar format. */
async function restore(
  path: string,
  database: string,
  { cluster, programs, path: PATH }: FillContext,
): Promise<void> {
  if (programs.pgRestore === null) {
    throw new StetError('STET_CONFIG', 'Restoring an archive needs pg_restore, and found none', {
      hint: 'Install it: apt install postgresql-client',
    })
  }
  const place = ['-h', cluster.socketFolder, '-p', String(cluster.port), '-U', 'postgres', '-d', database]
  const { status, complaint } = await run(
    programs.pgRestore,
    ['--no-owner', '--no-acl', '--exit-on-error', ...place, path],
    { PATH },
  )
  if (status === 0) return
  throw new StetError('STET_CONFIG', `Cannot restore ${path}: ${complaint}`, {
    hint: 'It takes what pg_dump -Fc, -Fd or -Ft has written; plain SQL goes to --seed',
  })
}

async function dump(
  { url, only, exclude }: Filling & { kind: 'dump' },
  context: FillContext,
): Promise<string> {
  return pgDump(url, 'from.sql', context, [
    ...only.flatMap((pattern) => ['--table', pattern]),
    ...exclude.flatMap((pattern) => ['--exclude-table', pattern]),
  ])
}

/** From the comment that pg_dump writes above each object. */
const GROUND = /^-- Name: .*; Type: (?:SCHEMA|EXTENSION|TYPE|DOMAIN); /

/**
 * What tables stand on and are not copied with when they are named: schemas, extensions and types. Some may have nothing
 * to do with the tables and not work here, so that errors are passed over: what is missed, the tables will say.
 */
async function layGround(url: string, database: string, context: FillContext): Promise<void> {
  const withoutTables = ['--schema-only', '--section', 'pre-data', '--exclude-table', '*.*']
  const file = await pgDump(url, 'ground.sql', context, withoutTables)
  const objects = (await readFile(file, 'utf8')).split(/^--\n(?=-- Name: )/m)
  await writeFile(file, objects.filter((object) => GROUND.test(object)).join(''))
  await runSql(file, database, context, { stopsAtErrors: false })
}

/** Reads the user's database, and does nothing else to it: pg_dump, in a session that cannot write. */
async function pgDump(
  url: string,
  name: string,
  { programs, folder, path }: FillContext,
  options: readonly string[],
): Promise<string> {
  if (programs.pgDump === null || programs.psql === null) {
    throw new StetError('STET_CONFIG', 'Copying a database needs pg_dump and psql, and found none', {
      hint: 'Install them: apt install postgresql-client',
    })
  }
  const file = join(folder, name)
  const { status, complaint } = await run(
    programs.pgDump,
    ['--no-owner', '--no-acl', '--file', file, ...options, '--dbname', url],
    { PATH: path, PGOPTIONS: '-c default_transaction_read_only=on' },
  )
  if (status !== 0) throw new StetError('STET_CONFIG', `Cannot copy the database: ${complaint}`)
  return file
}

async function runSql(
  file: string,
  database: string,
  { cluster, programs, path }: FillContext,
  { stopsAtErrors }: { readonly stopsAtErrors: boolean },
): Promise<Ran> {
  const place = ['-h', cluster.socketFolder, '-p', String(cluster.port), '-U', 'postgres', '-d', database]
  const stop = stopsAtErrors ? ['-v', 'ON_ERROR_STOP=1'] : []
  return run(programs.psql ?? 'psql', ['-X', '-q', ...stop, ...place, '-f', file], { PATH: path })
}

interface Ran {
  readonly status: number | null
  readonly complaint: string
}

async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ran> {
  const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-4000)
  })
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { status, complaint: complaint.trim() }
}
