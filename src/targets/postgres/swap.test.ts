import { expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { load, sliceNamed } from '../../../test/support/postgres-target.ts'
import { postgres } from './index.ts'

const WRITE = { strategy: 'replace-partition', by: 'd', size: 'day', key: ['k', 'd'], apply: 'swap' } as const

for (const [position, { name, url: server }] of postgresServers().entries()) {
  /** A table of one role, loaded by another that is only a member of it. */
  async function bench(rights: string) {
    const url = await freshDatabase(server)
    const db = await connect(url)
    const suffix = `${process.pid}_${position}_${new URL(url).pathname.slice(1)}`
    const [owner, loader] = [`owner_${suffix}`, `loader_${suffix}`]
    await db.client.query(`create role ${owner}; create role ${loader} login; grant ${owner} to ${loader};
      grant create on database "${new URL(url).pathname.slice(1)}" to ${loader};
      grant create on schema public to ${rights === 'both' ? `${owner}, ` : ''}${loader};
      alter default privileges for role ${loader} grant select on tables to public;
      create table t (k text, d date, v text, primary key (k, d)) partition by range (d);
      create table t_7 partition of t for values from ('2026-08-07') to ('2026-08-08');
      insert into t values ('a', '2026-08-07', '1');
      alter table t owner to ${owner}; alter table t_7 owner to ${owner}`)
    const asLoader = new URL(url)
    asLoader.username = loader
    return {
      target: postgres({ url: asLoader.href }),
      owner,
      of: async () =>
        (
          await db.client.query(
            `select pg_get_userbyid(relowner) as owner, relacl::text as acl from pg_class where relname in ('t_7', 't_7_pkey')`,
          )
        ).rows as unknown[],
      async [Symbol.asyncDispose]() {
        await db.client.query(`drop owned by ${loader}, ${owner}; drop role ${loader}, ${owner}`)
        await db[Symbol.asyncDispose]()
      },
    }
  }
  const request = {
    table: 't',
    write: WRITE,
    columns: { k: 'text', d: 'date', v: 'text' },
    slice: sliceNamed('2026-08-07', 'd', 'day'),
    rows: [['a', '2026-08-07', '2']],
  } as const

  test(`an exchanged partition stays its owner's, also where a member of that role exchanges it (${name})`, async () => {
    await using b = await bench('both')
    expect(await load(b.target, request)).toMatchObject({ updated: 1 })
    expect(await b.of()).toMatchObject([{ owner: b.owner }, { owner: b.owner }])
    // Neither the loader nor its default privileges leave a right behind.
    expect(JSON.stringify(await b.of())).not.toMatch(/loader_|[{,]=r/)
  })

  test(`a partition whose owner may not be given a table in its schema is not exchanged, and says so (${name})`, async () => {
    await using b = await bench('loader')
    await expect(load(b.target, request)).rejects.toMatchObject({
      code: 'STET_CONFIG',
      message: expect.stringContaining(b.owner),
    })
  })
}
