import { Socket } from 'node:net'
import type { Client, ClientConfig } from 'pg'
import type { CopyStreamQuery } from 'pg-copy-streams'
import { StetError } from '../../errors.ts'
import { describeError } from './errors.ts'

/** The two packages that this target needs and the user installs. */
export interface Driver {
  /** Connects; the socket is ours, so that it can be cut or kept from holding the process. */
  connect(config: ClientConfig): Promise<{ readonly client: Client; readonly socket: Socket }>
  copyFrom(sql: string): CopyStreamQuery
}

const CONNECT_TIMEOUT_MS = 15_000

/**
 * Loads `pg` and `pg-copy-streams`.
 *
 * @throws {StetError} `STET_DRIVER_MISSING` with the install line.
 */
export async function loadDriver(): Promise<Driver> {
  const [{ default: pg }, copy] = await Promise.all([import('pg'), import('pg-copy-streams')]).catch(
    (cause: unknown) => {
      throw new StetError('STET_DRIVER_MISSING', 'Cannot reach PostgreSQL: its driver is not installed', {
        hint: 'Run: npm install pg pg-copy-streams',
        cause,
      })
    },
  )
  return {
    connect: async (config) => {
      const socket = new Socket()
      const client = new pg.Client({
        ...config,
        stream: () => socket,
        keepAlive: true,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        // Every value as the server wrote it: numbers, dates and booleans never become JavaScript's.
        types: { getTypeParser: () => (value: string) => value } as ClientConfig['types'],
      })
      // A socket that breaks between two statements is reported here and again by the next statement.
      client.on('error', () => undefined)
      try {
        await client.connect()
      } catch (error) {
        socket.destroy()
        throw describeError(error, 'connect to PostgreSQL')
      }
      return { client, socket }
    },
    copyFrom: copy.from,
  }
}
