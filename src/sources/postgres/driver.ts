import { Socket } from 'node:net'
import type pgPackage from 'pg'
import type { Client, ClientConfig } from 'pg'
import type { CopyToStreamQuery, to as copyTo } from 'pg-copy-streams'
import { StetError } from '../../errors.ts'

/** The packages that this source needs and the user installs. */
export interface Driver {
  /** A client that is not connected yet; the socket is ours, so that it can be cut. */
  createClient(url: string): { readonly client: Client; readonly socket: Socket }
  copyTo(sql: string): CopyToStreamQuery
}

type Packages = readonly [{ readonly default: typeof pgPackage }, { readonly to: typeof copyTo }]

const CONNECT_TIMEOUT_MS = 15_000

/**
 * Loads `pg` and `pg-copy-streams`.
 *
 * @throws {StetError} `STET_DRIVER_MISSING` with the install line.
 */
export async function loadDriver(
  load: () => Promise<Packages> = () => Promise.all([import('pg'), import('pg-copy-streams')]),
): Promise<Driver> {
  const [{ default: pg }, copy] = await load().catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new StetError('STET_DRIVER_MISSING', 'Cannot query PostgreSQL: its driver is not installed', {
      hint: 'Run: npm install pg pg-copy-streams',
      cause,
    })
  })
  return {
    createClient: (url) => {
      const socket = new Socket()
      const client = new pg.Client({
        connectionString: url,
        application_name: 'stet',
        stream: () => socket,
        keepAlive: true,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        // Every answer as the server wrote it.
        types: { getTypeParser: () => (value: string) => value } as ClientConfig['types'],
      })
      // Reported again by the statement that finds the connection gone.
      client.on('error', () => undefined)
      return { client, socket }
    },
    copyTo: copy.to,
  }
}
