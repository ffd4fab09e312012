import { expect, test } from 'vitest'
import { openLocalEngine } from './engine.ts'
import { callSql } from './functions.ts'

test('every connection of an engine has the functions, several statements at once', async () => {
  await using local = await openLocalEngine({ threads: 2 })
  const other = await local.connect()
  const sum = `select sum(${callSql('decimal', `i::varchar || '.50'`)}::decimal(18,1))::varchar as s from range(50000) as r(i)`
  const answers = await Promise.all([local.rows(sum), other.rows(sum), local.rows(sum)])
  expect(answers).toEqual(Array.from({ length: 3 }, () => [{ s: '1250000000.0' }]))
})

test('an engine whose statement still calls a function can be closed', async () => {
  const local = await openLocalEngine({ threads: 2 })
  const statement = local
    .run(
      `create table t as select ${callSql('json', `'{"a":' || i || '}'`)} as j from range(100000000) as r(i)`,
    )
    .catch((error: unknown) => String(error))
  await local[Symbol.asyncDispose]()
  expect(await statement).toContain('Interrupted')
})

test('a text that begins with a byte order mark reaches a function whole', async () => {
  await using local = await openLocalEngine()
  const call = callSql('json_identity', `'"' || chr(65279) || 'a"'`)
  expect(
    await local.rows(`select length(${call})::integer as n, ${callSql('json', `chr(65279) || '1'`)} as j`),
  ).toEqual([{ n: 4, j: null }])
})
