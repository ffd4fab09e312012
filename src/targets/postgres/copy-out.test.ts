import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { freshDatabase } from '../../../test/support/databases.ts'
import { openLocalEngine } from '../../local/engine.ts'
import { openConnection } from './connection.ts'
import { unframer } from './copy-out.ts'
import { loadDriver } from './driver.ts'
import { type PulledColumn, pullRows } from './pull.ts'

function message(code: string, content: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(code)
  head.writeUInt32BE(content.length + 4, 1)
  return Buffer.concat([head, content])
}

test('rows come out whole and in order, wherever the stream is cut and whatever else the server says', () => {
  const messages = fc.array(
    fc.tuple(fc.constantFrom('d', 'd', 'd', 'H', 'N', 'S'), fc.uint8Array({ maxLength: 20 })),
  )
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }), (sent, sizes) => {
      const framed = sent.map(([code, content]) => message(code, Buffer.from(content)))
      const end = Buffer.concat([message('c', Buffer.alloc(0)), message('C', Buffer.from('COPY 7\0'))])
      const stream = Buffer.concat([...framed, end])
      const take = unframer()
      const rows: Buffer[] = []
      let rest: Buffer | null = null
      let at = 0
      for (let i = 0; rest === null; i++) {
        const size = sizes[i % sizes.length] ?? 1
        const taken = take(Buffer.from(stream.subarray(at, at + size)))
        at += size
        rows.push(taken.rows)
        rest = taken.rest
      }
      expect(Buffer.concat(rows)).toEqual(
        Buffer.concat(sent.filter(([code]) => code === 'd').map(([, content]) => Buffer.from(content))),
      )
      expect(Buffer.concat([rest, stream.subarray(at)])).toEqual(end)
    }),
  )
})

const NUMBER: PulledColumn = { id: 'n', readAs: 'BIGINT', value: 'n', unheld: null }
const TEXT: PulledColumn = { id: 't', readAs: 'VARCHAR', value: 't', unheld: null }

async function open() {
  const url = await freshDatabase(inject('postgresUrl'))
  const connection = await openConnection(await loadDriver(), { connectionString: url })
  const local = await openLocalEngine()
  return {
    connection,
    local,
    [Symbol.asyncDispose]: async () => {
      await local[Symbol.asyncDispose]()
      await connection[Symbol.asyncDispose]()
    },
  }
}

test('a server that fails midway is heard, and the connection goes on', async () => {
  await using at = await open()
  const query = 'select 1, 7 / (n - 300000) from generate_series(1, 400000) as s (n)'
  await expect(pullRows(at.connection, at.local, query, [NUMBER])).rejects.toMatchObject({ code: '22012' })
  expect(await at.connection.query('select 1 as one')).toEqual([{ one: '1' }])
})

test('a statement that the server refuses at once leaves nobody waiting', async () => {
  await using at = await open()
  await expect(pullRows(at.connection, at.local, 'select 1, nothing', [NUMBER])).rejects.toMatchObject({
    code: '42703',
  })
  expect((await pullRows(at.connection, at.local, 'select 1, 2', [NUMBER])).rows).toBe(1)
})

test('an engine that cannot read the rows is heard, and the connection goes on', async () => {
  await using at = await open()
  const query = `select 1, case n when 200000 then 'x' else n::text end from generate_series(1, 400000) as s (n)`
  await expect(pullRows(at.connection, at.local, query, [NUMBER])).rejects.toThrow(/Conversion|convert/i)
  expect(await at.connection.query('select 1 as one')).toEqual([{ one: '1' }])
})

test('a line that is too long for the reader is read all the same', async () => {
  await using at = await open()
  const query = `select 1, repeat('x', case n when 60000 then 5000000 else 10 end) from generate_series(1, 100000) as s (n)`
  const { table, rows } = await pullRows(at.connection, at.local, query, [TEXT])
  expect(rows).toBe(100_000)
  expect(await at.local.count(`select sum(length(t)) from ${table}`)).toBe(99_999 * 10 + 5_000_000)
})
