import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import type { TestProject } from 'vitest/node'
import {
  type PostgresBinaries,
  type PostgresServer,
  startPostgres,
} from '../../src/prove/sandbox/postgres-server.ts'
import { embeddedBinaries, systemBinaries } from './postgres-binaries.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser URL of the PostgreSQL from npm. */
    postgresUrl: string
    /** The same for a system PostgreSQL, null where there is none. */
    systemPostgresUrl: string | null
  }
}

/** One server of each PostgreSQL version for the whole test run; each test file makes its own databases. */
export default async function setup(project: TestProject) {
  buildWhenStale()
  const servers: PostgresServer[] = []
  const embedded = await startPostgres({ binaries: await embeddedBinaries() })
  servers.push(embedded)
  project.provide('postgresUrl', embedded.url)
  const system = systemBinaries(existsSync)
  if (system === null) project.provide('systemPostgresUrl', null)
  else {
    const server = await startPostgres({ binaries: system })
    servers.push(server)
    project.provide('systemPostgresUrl', server.url)
  }
  return async () => {
    for (const server of servers) await server[Symbol.asyncDispose]()
    const versions = system === null ? '18 (npm)' : `18 (npm), ${versionOf(system)} (system)`
    process.stdout.write(
      `PostgreSQL versions tested: ${versions}${system === null ? '; no system PostgreSQL found' : ''}\n`,
    )
  }
}

/** Its major version. */
function versionOf({ postgres }: PostgresBinaries): string {
  return /[0-9]+/.exec(execFileSync(postgres, ['--version'], { encoding: 'utf8' }))?.[0] ?? 'unknown'
}

/** Tests that start the command line run what is built, which must not be older than what is tested. */
function buildWhenStale(): void {
  const built = 'dist/cli/bin.js'
  const sources = readdirSync('src', { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const newest = Math.max(...sources.map((entry) => statSync(`${entry.parentPath}/${entry.name}`).mtimeMs))
  if (existsSync(built) && statSync(built).mtimeMs > newest) return
  try {
    execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' })
  } catch (error) {
    // Half-written code beside the part under test must not keep its tests from running; CI builds first and fails there.
    if (process.env.CI !== undefined) throw error
    process.stderr.write('The build fails: tests that start the command line run an older one\n')
  }
}
