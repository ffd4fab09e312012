import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
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
  { cluster, programs, path }: FillContext,
  what = 'seed',
): Promise<void> {
  if (programs.psql === null) return loadWithoutPsql(file, database, cluster, what)
  const place = ['-h', cluster.socketFolder, '-p', String(cluster.port), '-U', 'postgres', '-d', database]
  const { status, complaint } = await run(
    programs.psql,
    ['-X', '-q', '-v', 'ON_ERROR_STOP=1', ...place, '-f', file],
    { PATH: path },
  )
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

/** Reads the user's database, and does nothing else to it: pg_dump, in a session that cannot write. */
async function dump(
  { url, only, exclude }: Filling & { kind: 'dump' },
  { programs, folder, path }: FillContext,
): Promise<string> {
  if (programs.pgDump === null || programs.psql === null) {
    throw new StetError('STET_CONFIG', 'Copying a database needs pg_dump and psql, and found none', {
      hint: 'Install them: apt install postgresql-client',
    })
  }
  const file = join(folder, 'from.sql')
  const patterns = [
    ...only.flatMap((pattern) => ['--table', pattern]),
    ...exclude.flatMap((pattern) => ['--exclude-table', pattern]),
  ]
  const { status, complaint } = await run(
    programs.pgDump,
    ['--no-owner', '--no-acl', '--file', file, ...patterns, '--dbname', url],
    { PATH: path, PGOPTIONS: '-c default_transaction_read_only=on' },
  )
  if (status !== 0) throw new StetError('STET_CONFIG', `Cannot copy the database: ${complaint}`)
  return file
}

async function run(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ readonly status: number | null; readonly complaint: string }> {
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
