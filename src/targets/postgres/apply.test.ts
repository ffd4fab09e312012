import { expect, test } from 'vitest'
import { connect, postgresServers } from '../../../test/support/databases.ts'
import { bench } from '../../../test/support/postgres-bench.ts'
import { load } from '../../../test/support/postgres-target.ts'

const UPSERT = { strategy: 'upsert', key: ['k'] } as const
const COLUMNS = { k: 'text', v: 'text' }

for (const { name, url } of postgresServers()) {
  test(`case 005: an unchanged rerun leaves no trace, a changed row fires its triggers once (${name})`, async () => {
    await using b = await bench(
      url,
      `
      create table member (member_no text primary key, name text, email text, content_hash text, updated_at timestamptz);
      create table member_audit (at timestamptz default clock_timestamp(), op text, member_no text);
      create function stamp() returns trigger language plpgsql as $$ begin new.updated_at := clock_timestamp(); return new; end $$;
      create function audit() returns trigger language plpgsql as $$ begin insert into member_audit (op, member_no) values (tg_op, new.member_no); return null; end $$;
      create function audit_statement() returns trigger language plpgsql as $$ begin insert into member_audit (op) values ('statement ' || tg_op); return null; end $$;
      create trigger t1 before insert or update on member for each row execute function stamp();
      create trigger t2 after insert or update on member for each row execute function audit();`,
    )
    const columns = { member_no: 'text', name: 'text', email: 'text' }
    const write = { strategy: 'upsert', key: ['member_no'] } as const
    const rows = [
      ['M1', 'Ada', 'ada@club.test'],
      ['M2', 'Bo', 'bo@club.test'],
      ['M3', 'Cleo', 'cleo@club.test'],
      ['M4', 'Dov', 'dov@club.test'],
    ]
    const state = () =>
      b.rows('select member_no, updated_at::text, xmin::text, xmax::text, ctid::text from member order by 1')
    expect(await load(b.target, { table: 'member', write, columns, rows })).toMatchObject({
      inserted: 4,
      updated: 0,
    })
    const before = await state()
    // Statement triggers fire for a statement over no rows as well.
    await b.run(
      'create trigger t3 after insert or update or delete on member for each statement execute function audit_statement()',
    )
    expect(await load(b.target, { table: 'member', write, columns, rows })).toMatchObject({
      inserted: 0,
      updated: 0,
    })
    expect(await state()).toEqual(before)
    expect(await b.rows('select count(*) from member_audit')).toEqual([['4']])
    const changed = rows.map((row) => (row[0] === 'M3' ? ['M3', 'Cleo', 'cleo.f@club.test'] : row))
    expect(
      await load(b.target, { table: 'member', write, columns, rows: changed, notice: b.notice }),
    ).toMatchObject({ inserted: 0, updated: 1 })
    expect(await b.rows(`select count(*) from member_audit where op = 'UPDATE'`)).toEqual([['1']])
    const after = await state()
    expect(after.filter((_, n) => n !== 2)).toEqual(before.filter((_, n) => n !== 2))
    expect(after[2]).not.toEqual(before[2])
    expect(b.notices).toEqual([])
  })

  test(`a limit of the server refuses the load whole, as a row that does not fit and no defect (${name})`, async () => {
    await using b = await bench(url, 'create table t (k text primary key, v text)')
    const key = Array.from({ length: 500 }, (_, n) => `${n * 7919}`).join('-')
    const rows = [
      ['a', 'fits'],
      [key, 'a key that does not fit into a page of its index'],
    ]
    await expect(load(b.target, { table: 't', write: UPSERT, columns: COLUMNS, rows })).rejects.toMatchObject(
      {
        code: 'STET_CONSTRAINT',
        message: expect.stringMatching(/Cannot write public\.t: index row .*maximum/),
        hint: expect.stringMatching(/take a shorter key/),
      },
    )
    expect(await b.rows('select * from t')).toEqual([])
  })

  test(`a table that is published without an identity of its rows is refused as it is, not as a defect (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text unique, v text); insert into t values ('a', '1'); create publication p for table t`,
    )
    const rows = [['a', '2']]
    await expect(load(b.target, { table: 't', write: UPSERT, columns: COLUMNS, rows })).rejects.toMatchObject(
      {
        code: 'STET_CONFIG',
        message: expect.stringMatching(/replica identity/),
        hint: expect.stringMatching(/REPLICA IDENTITY/),
      },
    )
  })

  test(`case 010: a second unique column that collides is refused whole, with constraint and value (${name})`, async () => {
    await using b = await bench(
      url,
      `
      create table item (sku varchar(20) primary key, barcode varchar(20) unique, name varchar(50));
      insert into item values ('A1', '111', 'apple'), ('B2', '222', 'beer');`,
    )
    const columns = { sku: 'varchar(20)', barcode: 'varchar(20)', name: 'varchar(50)' }
    const write = { strategy: 'upsert', key: ['sku'] } as const
    const refused = load(b.target, {
      table: 'item',
      write,
      columns,
      rows: [
        ['D4', '444', 'dates'],
        ['C3', '111', 'cider'],
      ],
    })
    await expect(refused).rejects.toMatchObject({
      code: 'STET_CONSTRAINT',
      message: expect.stringMatching(/item_barcode_key.*\(barcode\)=\(111\)/s),
    })
    expect(await b.rows('select * from item order by 1')).toEqual([
      ['A1', '111', 'apple'],
      ['B2', '222', 'beer'],
    ])
    const swap = load(b.target, {
      table: 'item',
      write,
      columns,
      rows: [
        ['A1', '222', 'apple'],
        ['B2', '111', 'beer'],
      ],
    })
    await expect(swap).rejects.toMatchObject({ code: 'STET_CONSTRAINT' })
    expect(await b.rows('select * from item order by 1')).toEqual([
      ['A1', '111', 'apple'],
      ['B2', '222', 'beer'],
    ])
    await b.run(
      'alter table item drop constraint item_barcode_key, add constraint item_barcode_key unique (barcode) deferrable initially deferred',
    )
    expect(
      await load(b.target, {
        table: 'item',
        write,
        columns,
        rows: [
          ['A1', '222', 'apple'],
          ['B2', '111', 'beer'],
        ],
      }),
    ).toMatchObject({ updated: 2 })
    // What only the commit finds out is refused as well.
    const late = load(b.target, { table: 'item', write, columns, rows: [['C3', '111', 'cider']] })
    await expect(late).rejects.toMatchObject({ code: 'STET_CONSTRAINT' })
    expect(await b.rows('select sku, barcode from item order by 1')).toEqual([
      ['A1', '222'],
      ['B2', '111'],
    ])
  })

  test(`rule 15: a unique value may move from a row that goes or changes to a new one (${name})`, async () => {
    await using b = await bench(
      url,
      `
      create table item (k text primary key, v text unique);
      insert into item values ('A', '1'), ('B', '2'), ('C', '3');`,
    )
    const applied = await load(b.target, {
      table: 'item',
      write: { strategy: 'replace-table', key: ['k'] },
      columns: COLUMNS,
      rows: [
        ['B', '9'],
        ['C', '3'],
        ['D', '1'],
        ['E', '2'],
      ],
    })
    expect(applied).toMatchObject({ deleted: 1, updated: 1, inserted: 2 })
    expect(await b.rows('select * from item order by 1')).toEqual([
      ['B', '9'],
      ['C', '3'],
      ['D', '1'],
      ['E', '2'],
    ])
  })

  test(`case 012: a corrected date moves the row to its partition, and there is one row (${name})`, async () => {
    await using b = await bench(
      url,
      `
      create table booking (voucher_no text, doc_date date, amount numeric(10,2), primary key (voucher_no, doc_date)) partition by range (doc_date);
      create table booking_2025_01 partition of booking for values from ('2025-01-01') to ('2025-02-01');
      create table booking_2025_02 partition of booking for values from ('2025-02-01') to ('2025-03-01');`,
    )
    const columns = { voucher_no: 'text', doc_date: 'date', amount: 'numeric(10,2)' }
    const write = { strategy: 'upsert', key: ['voucher_no'] } as const
    const january = [
      ['V-6', '2025-01-29', '10.00'],
      ['V-7', '2025-01-30', '42.00'],
      ['V-8', '2025-01-31', '5.00'],
    ]
    const fix = [['V-7', '2025-02-02', '42.00']]
    const request = { table: 'booking', write, columns, scope: 'keys' } as const
    expect(await load(b.target, { ...request, rows: january })).toMatchObject({ inserted: 3, updated: 0 })
    expect(await load(b.target, { ...request, rows: fix })).toMatchObject({ inserted: 0, updated: 1 })
    expect(await load(b.target, { ...request, rows: fix })).toMatchObject({ inserted: 0, updated: 0 })
    expect(
      await b.rows(
        `select tableoid::regclass::text, voucher_no, doc_date::text, amount from booking order by 2`,
      ),
    ).toEqual([
      ['booking_2025_01', 'V-6', '2025-01-29', '10.00'],
      ['booking_2025_02', 'V-7', '2025-02-02', '42.00'],
      ['booking_2025_01', 'V-8', '2025-01-31', '5.00'],
    ])
    await b.run(`insert into booking values ('V-6', '2025-02-01', 1)`)
    await expect(
      load(b.target, { ...request, rows: [['V-6', '2025-01-29', '11.00']] }),
    ).rejects.toMatchObject({ code: 'STET_KEY_CONSTRAINT', message: expect.stringContaining('V-6') })
  })

  test(`rule 1: a row that another writer makes equal, newer, or inserts meanwhile is counted as what it is (${name})`, async () => {
    await using b = await bench(
      url,
      `
      create table t (k text primary key, v text, seq bigint);
      insert into t values ('equal', 'old', 1), ('newer', 'old', 1), ('gone', 'old', 1), ('plain', 'old', 1);`,
    )
    const applied = await load(b.target, {
      table: 't',
      write: { strategy: 'upsert', key: ['k'], newest: 'seq' },
      columns: { k: 'text', v: 'text', seq: 'bigint' },
      rows: [
        ['equal', 'new', '2'],
        ['newer', 'new', '2'],
        ['gone', 'new', '2'],
        ['plain', 'new', '2'],
        ['fresh', 'new', '2'],
        ['taken', 'new', '2'],
        ['taken newer', 'new', '2'],
      ],
      beforeApply: async () => {
        await b.run(`update t set v = 'new', seq = 2 where k = 'equal'`)
        await b.run(`update t set v = 'theirs', seq = 3 where k = 'newer'`)
        await b.run(`delete from t where k = 'gone'`)
        await b.run(`insert into t values ('taken', 'theirs', 1), ('taken newer', 'theirs', 3)`)
      },
    })
    expect(applied).toMatchObject({ inserted: 2, updated: 2, unchanged: 1, stale: 2, frozen: 0, deleted: 0 })
    expect(await b.rows('select * from t order by 1')).toEqual([
      ['equal', 'new', '2'],
      ['fresh', 'new', '2'],
      ['gone', 'new', '2'],
      ['newer', 'theirs', '3'],
      ['plain', 'new', '2'],
      ['taken', 'new', '2'],
      ['taken newer', 'theirs', '3'],
    ])
  })

  test(`a key that another writer inserts while this one waits for it is updated, not doubled (${name})`, async () => {
    await using b = await bench(url, 'create table t (k text primary key, v text, n serial)')
    await using other = await connect(b.url)
    await other.client.query(`begin; insert into t values ('a', 'theirs')`)
    const applied = load(b.target, {
      table: 't',
      write: UPSERT,
      columns: COLUMNS,
      rows: [
        ['a', 'ours'],
        ['b', 'ours'],
      ],
      attemptId: 'waits',
    })
    await waitFor(
      async () =>
        (
          await b.rows(
            `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'with written%'`,
          )
        ).length > 0,
    )
    await other.client.query('commit')
    expect(await applied).toMatchObject({ inserted: 1, updated: 1, unchanged: 0, stale: 0, frozen: 0 })
    expect(await b.rows('select k, v from t order by 1')).toEqual([
      ['a', 'ours'],
      ['b', 'ours'],
    ])
  })

  test(`insert-once never changes a row that is there, also one that came meanwhile (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text primary key, v text); insert into t values ('a', 'first')`,
    )
    const applied = await load(b.target, {
      table: 't',
      write: { strategy: 'insert-once', key: ['k'] },
      columns: COLUMNS,
      rows: [
        ['a', 'second'],
        ['b', 'new'],
        ['c', 'new'],
      ],
      beforeApply: async () => void (await b.run(`insert into t values ('c', 'theirs')`)),
    })
    expect(applied).toMatchObject({ inserted: 1, updated: 0, frozen: 1 })
    expect(await b.rows('select * from t order by 1')).toEqual([
      ['a', 'first'],
      ['b', 'new'],
      ['c', 'theirs'],
    ])
  })

  test(`rule 12: a row that another writer has refreshed since the pull is not deleted (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text primary key, v text); insert into t values ('a', '1'), ('b', '1'), ('c', '1')`,
    )
    const applied = await load(b.target, {
      table: 't',
      write: { strategy: 'replace-table', key: ['k'] },
      columns: COLUMNS,
      rows: [['c', '1']],
      beforeApply: async () => void (await b.run(`update t set v = '2' where k = 'b'`)),
    })
    expect(applied).toMatchObject({ deleted: 1 })
    expect(await b.rows('select * from t order by 1')).toEqual([
      ['b', '2'],
      ['c', '1'],
    ])
  })

  test(`without a key rows are a multiset: equal ones stay, too many go, also across partitions (${name})`, async () => {
    await using b = await bench(
      url,
      `
      create table t (v text, d date) partition by range (d);
      create table t_1 partition of t for values from ('2024-01-01') to ('2024-02-01');
      create table t_2 partition of t for values from ('2024-02-01') to ('2024-03-01');
      insert into t values ('x', '2024-01-01'), ('y', '2024-02-01'), (null, '2024-02-01')`,
    )
    const request = {
      table: 't',
      write: { strategy: 'replace-table' },
      columns: { v: 'text', d: 'date' },
    } as const
    const applied = await load(b.target, {
      ...request,
      rows: [
        ['y', '2024-02-01'],
        ['z', '2024-01-02'],
        ['z', '2024-01-02'],
      ],
    })
    expect(applied).toMatchObject({ deleted: 2, inserted: 2 })
    expect(await b.rows('select v, d::text from t order by 1')).toEqual([
      ['y', '2024-02-01'],
      ['z', '2024-01-02'],
      ['z', '2024-01-02'],
    ])
  })

  test(`a table of one text column survives every odd text, on the first load and after (${name})`, async () => {
    await using b = await bench(url, '')
    const odd = ['', '\\.', '\\N', '\r', '\n', '"', ',', ' ', '\ufeffx', 'NULL']
    const request = { table: 't', columns: { v: 'text' }, write: { strategy: 'replace-table' } } as const
    expect(await load(b.target, { ...request, rows: [...odd.map((v) => [v]), [null]] })).toMatchObject({
      inserted: 11,
    })
    expect((await b.rows('select v from t')).map(([v]) => v)).toEqual([...odd, null])
    expect(
      await load(b.target, { ...request, rows: [...odd.map((v) => [v]), [null], ['more']] }),
    ).toMatchObject({ inserted: 1, deleted: 0 })
  })

  test(`a trigger that suppresses rows is an error with its name, for new rows and changed ones (${name})`, async () => {
    await using b = await bench(
      url,
      `
      create table t (k text primary key, v text); insert into t values ('a', '1');
      create function nope() returns trigger language plpgsql as $$ begin if new.v = 'no' then return null; end if; return new; end $$;
      create trigger silent before insert or update on t for each row execute function nope();`,
    )
    const request = { table: 't', columns: COLUMNS, write: UPSERT } as const
    await expect(
      load(b.target, {
        ...request,
        rows: [
          ['b', 'no'],
          ['c', '1'],
        ],
      }),
    ).rejects.toMatchObject({ code: 'STET_TRIGGER', message: expect.stringContaining('"silent"') })
    await expect(load(b.target, { ...request, rows: [['a', 'no']] })).rejects.toMatchObject({
      code: 'STET_TRIGGER',
      message: expect.stringContaining('"silent"'),
    })
    expect(await b.rows('select * from t')).toEqual([['a', '1']])
  })

  test(`G2: a trigger that rewrites values is named with its column, and the rerun writes nothing (${name})`, async () => {
    await using b = await bench(
      url,
      `
      create table t (k text primary key, v text);
      create function up() returns trigger language plpgsql as $$ begin new.v := upper(new.v); return new; end $$;
      create trigger shout before insert or update on t for each row execute function up();`,
    )
    const request = {
      table: 't',
      columns: COLUMNS,
      write: UPSERT,
      rows: [['a', 'x']],
      notice: b.notice,
    } as const
    expect(await load(b.target, request)).toMatchObject({ inserted: 1 })
    expect(b.notices.splice(0)).toEqual([expect.stringMatching(/"shout".*"v".*G2/)])
    const before = await b.rows('select xmin::text, ctid::text from t')
    expect(await load(b.target, request)).toMatchObject({ inserted: 0, updated: 0, unchanged: 1 })
    expect(b.notices).toEqual([expect.stringMatching(/"shout".*G2/)])
    expect(await b.rows('select xmin::text, ctid::text from t')).toEqual(before)
  })

  test(`G2: an identity column gives out no number for rows that do not change (${name})`, async () => {
    await using b = await bench(
      url,
      'create table t (id bigint generated always as identity, k text primary key, v text)',
    )
    const request = { table: 't', columns: COLUMNS, write: UPSERT } as const
    await load(b.target, {
      ...request,
      rows: [
        ['a', '1'],
        ['b', '1'],
      ],
    })
    await load(b.target, {
      ...request,
      rows: [
        ['a', '1'],
        ['b', '1'],
      ],
    })
    await load(b.target, { ...request, rows: [['c', '1']], scope: 'keys' })
    expect(await b.rows('select id, k from t order by 1')).toEqual([
      ['1', 'a'],
      ['2', 'b'],
      ['3', 'c'],
    ])
  })

  test(`NULL in a key matches NULL where the pipeline wants it and the constraint says so (${name})`, async () => {
    await using b = await bench(url, '')
    const request = {
      table: 't',
      columns: { a: 'text', b: 'text', v: 'text' },
      write: { strategy: 'upsert', key: ['a', 'b'], nullKeys: 'match' },
    } as const
    expect(
      await load(b.target, {
        ...request,
        rows: [
          ['x', null, '1'],
          [null, null, '1'],
          ['x', 'y', '1'],
        ],
      }),
    ).toMatchObject({ inserted: 3 })
    for (const scope of ['table', 'keys'] as const) {
      expect(
        await load(b.target, {
          ...request,
          scope,
          rows: [
            ['x', null, scope],
            [null, null, '1'],
            [null, scope, '1'],
          ],
        }),
      ).toMatchObject({ inserted: 1, updated: 1 })
    }
    expect(await b.rows('select * from t order by 1, 2')).toEqual([
      ['x', 'y', '1'],
      ['x', null, 'keys'],
      [null, 'keys', '1'],
      [null, 'table', '1'],
      [null, null, '1'],
    ])
  })

  test(`columns that the load does not have are left alone, ignored ones are written with a change only (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text primary key, v text, exported text, theirs text default 'd'); insert into t values ('a', '1', 'mon', 'mine')`,
    )
    const request = {
      table: 't',
      columns: { k: 'text', v: 'text', exported: 'text' },
      write: { strategy: 'upsert', key: ['k'], ignore: ['exported'] },
    } as const
    expect(await load(b.target, { ...request, rows: [['a', '1', 'tue']] })).toMatchObject({ updated: 0 })
    expect(await b.rows('select * from t')).toEqual([['a', '1', 'mon', 'mine']])
    expect(
      await load(b.target, {
        ...request,
        rows: [
          ['a', '2', 'wed'],
          ['b', '1', 'wed'],
        ],
      }),
    ).toMatchObject({ updated: 1, inserted: 1 })
    expect(await b.rows('select * from t order by 1')).toEqual([
      ['a', '2', 'wed', 'mine'],
      ['b', '1', 'wed', 'd'],
    ])
  })

  test(`names that differ in case only, or are reserved, stay what they are (${name})`, async () => {
    await using b = await bench(url, '')
    const request = {
      table: '"Odd ""Table"""',
      columns: { A: 'text', a: 'text', select: 'text', 'x y': 'text' },
      write: { strategy: 'upsert', key: ['A'] },
    } as const
    expect(await load(b.target, { ...request, rows: [['1', '2', '3', '4']] })).toMatchObject({ inserted: 1 })
    expect(await load(b.target, { ...request, rows: [['1', '2', '3', '5']] })).toMatchObject({ updated: 1 })
    expect(await b.rows('select "A", a, "select", "x y" from "Odd ""Table"""')).toEqual([
      ['1', '2', '3', '5'],
    ])
  })
}

/** Asks again until it is so. */
async function waitFor(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
}
