import { expect, test } from 'vitest'
import { postgresServers } from '../../../test/support/databases.ts'
import { bench } from '../../../test/support/postgres-bench.ts'
import { load, sliceNamed } from '../../../test/support/postgres-target.ts'

const SLICED = { strategy: 'replace-partition', by: 'd', size: 'day' } as const
const COLUMNS = { k: 'text', d: 'date', v: 'text' }
const SEVENTH = sliceNamed('2026-08-07', 'd', 'day')
const DAY = '2026-08-07'

const FUNCTIONS = `
  create function nothing() returns trigger language plpgsql as $$ begin return null; end $$;
  create function unmark() returns trigger language plpgsql as $$ begin new.gone_at := null; return new; end $$;
  create function earlier() returns trigger language plpgsql as $$ begin new.d := new.d - 1; return new; end $$;
  create function up() returns trigger language plpgsql as $$ begin new.v := upper(new.v); return new; end $$;
  create function same() returns trigger language plpgsql as $$ begin return coalesce(new, old); end $$;`

/** With the functions of the triggers. */
const benchWith = (server: string, setup: string) => bench(server, `${FUNCTIONS}\n${setup}`)

const TWO = `create table t (k text, d date, v text, gone_at timestamptz);
  insert into t values ('a', '${DAY}', '1'), ('b', '${DAY}', '1');`

for (const { name, url } of postgresServers()) {
  for (const key of [['k'], []]) {
    const write = { ...SLICED, ...(key.length === 0 ? {} : { key }) }
    const how = key.length === 0 ? 'without a key' : 'with a key'
    const unique = key.length === 0 ? '' : 'alter table t add primary key (k);'
    const request = { table: 't', columns: COLUMNS, slice: SEVENTH, rows: [['a', DAY, '1']] } as const

    test(`a trigger that keeps rows from being deleted is an error with its name, ${how} (${name})`, async () => {
      await using b = await benchWith(
        url,
        `${TWO} ${unique} create trigger keeps before delete on t for each row execute function nothing();`,
      )
      await expect(load(b.target, { ...request, write })).rejects.toMatchObject({
        code: 'STET_TRIGGER',
        message: expect.stringMatching(/1 deletes.*"keeps"/),
      })
      expect(await b.rows('select k from t order by 1')).toEqual([['a'], ['b']])
    })

    for (const does of ['nothing', 'unmark']) {
      test(`a trigger that keeps rows from being marked (${does}) is an error with its name, ${how} (${name})`, async () => {
        await using b = await benchWith(
          url,
          `${TWO} ${unique} create trigger keeps before update on t for each row execute function ${does}();`,
        )
        const marking = { ...write, missing: 'mark' } as const
        await expect(
          load(b.target, { ...request, write: marking, keep: { gone: 'gone_at' } }),
        ).rejects.toMatchObject({
          code: 'STET_TRIGGER',
          message: expect.stringMatching(/1 marks.*"keeps"/),
        })
      })
    }

    test(`a row that was refreshed before its delete is not held against a trigger, ${how} (${name})`, async () => {
      await using b = await benchWith(
        url,
        `${TWO} ${unique} create trigger lets before delete on t for each row execute function same();`,
      )
      const applied = await load(b.target, {
        ...request,
        write,
        beforeApply: async () => void (await b.run(`update t set v = '2' where k = 'b'`)),
      })
      expect(applied).toMatchObject({ deleted: 0 })
      expect(await b.rows('select k, v from t order by 1')).toEqual([
        ['a', '1'],
        ['b', '2'],
      ])
      expect(await load(b.target, { ...request, write })).toMatchObject({ deleted: 1 })
    })
  }

  test(`a trigger that moves new rows without a key out of the slice is an error, and nothing is written (${name})`, async () => {
    await using b = await benchWith(
      url,
      `create table t (k text, d date, v text);
       create trigger moves before insert on t for each row execute function earlier();`,
    )
    await expect(
      load(b.target, {
        table: 't',
        write: SLICED,
        columns: COLUMNS,
        slice: SEVENTH,
        rows: [['a', DAY, '1']],
      }),
    ).rejects.toMatchObject({ code: 'STET_TRIGGER', message: expect.stringMatching(/2026-08-07.*"moves"/) })
    expect(await b.rows('select * from t')).toEqual([])
  })

  for (const write of [SLICED, { strategy: 'replace-table' } as const]) {
    test(`G2: a trigger that rewrites values of rows without a key is named with its column (${write.strategy}, ${name})`, async () => {
      await using b = await benchWith(
        url,
        `create table t (k text, d date, v text, j json);
         create trigger shout before insert on t for each row execute function up();`,
      )
      const columns = { ...COLUMNS, j: 'json' }
      const request = { table: 't', write, columns, slice: SEVENTH, notice: b.notice } as const
      const loaded = (v: string) =>
        load(b.target, {
          ...request,
          rows: [
            ['a', DAY, v, '{}'],
            ['a', DAY, v, '{}'],
          ],
        })
      await loaded('X')
      expect(b.notices).toEqual([])
      await loaded('x')
      expect(b.notices).toEqual([expect.stringMatching(/^Trigger "shout" on public\.t rewrites "v": .*G2/)])
    })
  }

  test(`a trigger that only a partition has is found by its name (${name})`, async () => {
    await using b = await benchWith(
      url,
      `create table t (k text, d date, v text, primary key (k, d)) partition by range (d);
       create table t_7 partition of t for values from ('2026-08-07') to ('2026-08-08');
       create trigger shout before insert or update on t_7 for each row execute function up();`,
    )
    const write = { ...SLICED, key: ['k', 'd'] }
    const request = { table: 't', write, columns: COLUMNS, slice: SEVENTH, notice: b.notice } as const
    await load(b.target, { ...request, rows: [['a', DAY, 'x']] })
    expect(b.notices).toEqual([expect.stringMatching(/^Trigger "shout" of partition t_7 on public\.t/)])
    await b.run('create trigger silent before insert on t_7 for each row execute function nothing()')
    await expect(load(b.target, { ...request, rows: [['b', DAY, 'x']] })).rejects.toMatchObject({
      code: 'STET_TRIGGER',
      message: expect.stringContaining('"silent" of partition t_7'),
    })
  })

  test(`a trigger of a partitioned table is named once, not for each partition (${name})`, async () => {
    await using b = await benchWith(
      url,
      `create table t (k text, d date, v text, primary key (k, d)) partition by range (d);
       create table t_7 partition of t for values from ('2026-08-07') to ('2026-08-08');
       create trigger shout before insert or update on t for each row execute function up();`,
    )
    const write = { ...SLICED, key: ['k', 'd'] }
    const rows = [['a', DAY, 'x']]
    await load(b.target, { table: 't', write, columns: COLUMNS, slice: SEVENTH, notice: b.notice, rows })
    expect(b.notices).toEqual([expect.stringMatching(/^Trigger "shout" on public\.t/)])
  })
}
