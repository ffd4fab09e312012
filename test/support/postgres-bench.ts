import { postgres } from '../../src/targets/postgres/index.ts'
import { connect, freshDatabase } from './databases.ts'

/** A database with a setup, a target on it, and a way to look. */
export async function bench(server: string, setup: string) {
  const url = await freshDatabase(server)
  const db = await connect(url)
  await db.client.query(setup)
  const notices: string[] = []
  return {
    url,
    target: postgres({ url }),
    notices,
    notice: (message: string) => void notices.push(message),
    rows: async (sql: string) => (await db.client.query({ text: sql, rowMode: 'array' })).rows as unknown[][],
    run: (sql: string) => db.client.query(sql),
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  }
}
