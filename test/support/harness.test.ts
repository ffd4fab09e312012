import { expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from './databases.ts'

test('each PostgreSQL gives out an empty UTF-8 database', async () => {
  for (const { url } of postgresServers()) {
    await using db = await connect(await freshDatabase(url))
    const { rows } = await db.client.query(
      'select pg_encoding_to_char(encoding) as e from pg_database where datname = current_database()',
    )
    expect(rows).toEqual([{ e: 'UTF8' }])
  }
})
