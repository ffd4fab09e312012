import pg from 'pg'
import { inject } from 'vitest'

let made = 0

/** A new, empty database on the test server; its URL. Dropped with the server. */
export async function freshDatabase(server: string = inject('postgresUrl')): Promise<string> {
  const name = `t_${process.pid}_${++made}`
  await using admin = await connect(server)
  await admin.client.query(`create database ${name} template template0`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

/** An open client that is closed at the end of its block. */
export async function connect(url: string): Promise<AsyncDisposable & { readonly client: pg.Client }> {
  const client = new pg.Client({ connectionString: url })
  // A test that cuts connections makes the client emit errors nobody waits for.
  client.on('error', () => undefined)
  await client.connect()
  return { client, [Symbol.asyncDispose]: () => client.end() }
}

/** Every URL to test against, by name: PostgreSQL from npm, and the system's where there is one. */
export function postgresServers(): readonly { readonly name: string; readonly url: string }[] {
  const system = inject('systemPostgresUrl')
  return [
    { name: 'PostgreSQL 18', url: inject('postgresUrl') },
    ...(system === null ? [] : [{ name: 'system PostgreSQL', url: system }]),
  ]
}
