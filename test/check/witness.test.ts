import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { check } from '../../src/check/command.ts'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
})

async function witnessOf(rule: string, sql: string): Promise<{ shown: boolean; text: string }> {
  const root = mkdtempSync(join(tmpdir(), 'stet-witness-'))
  roots.push(root)
  writeFileSync(join(root, 'load.sql'), sql)
  const { findings } = await check({ root, rules: [rule], witness: true })
  const witness = findings[0]?.witness
  return { shown: witness?.shown ?? false, text: witness?.lines.join('\n') ?? '' }
}

test('the insert itself is run twice and doubles its rows', async () => {
  const { shown, text } = await witnessOf(
    'insert-no-key',
    'insert into orders_daily (day, amount) select day, amount from stage_orders;',
  )
  expect(shown).toBe(true)
  expect(text).toContain('the statement itself')
  expect(text).toContain('after run 1: 2 row(s)')
  expect(text).toContain('after run 2: 4 row(s)')
  expect(text).toContain('2 row(s) after run 1, 2 after run 2')
})

test('an insert with template holes is run with values in their place', async () => {
  const { shown, text } = await witnessOf(
    'insert-no-key',
    'insert into {{ params.table }} (day, n) values (%s, {n});',
  )
  expect(shown).toBe(true)
  expect(text).toContain('the statement itself')
})

test('an insert that DuckDB cannot run is shown by its shape, and says so', async () => {
  const { shown, text } = await witnessOf(
    'insert-no-key',
    'insert into d.t (a, b) select a, parse_json(b):x from s lateral flatten(input => y);',
  )
  expect(shown).toBe(true)
  expect(text).toContain('a statement of its shape')
})

test('a total that is added to moves with the second run', async () => {
  const { shown, text } = await witnessOf(
    'self-increment',
    'update account set balance = balance + 5 where no = 1;',
  )
  expect(shown).toBe(true)
  expect(text).toContain('the statement itself')
})

test('an update whose condition meets no invented row is shown without it', async () => {
  const { shown } = await witnessOf(
    'self-increment',
    'update account set balance = balance + 5 where no = 77;',
  )
  expect(shown).toBe(true)
})

test('a witness that shows nothing takes the confidence away', async () => {
  const root = mkdtempSync(join(tmpdir(), 'stet-witness-'))
  roots.push(root)
  writeFileSync(join(root, 'load.sql'), 'update account set balance = balance + 0;')
  const { findings, failing } = await check({ root, rules: ['self-increment'], witness: true })
  expect(findings[0]?.witness?.shown).toBe(false)
  expect(findings[0]?.confidence).toBe('low')
  expect(failing).toBe(0)
})

test('an upsert touches an equal row, with a condition it does not', async () => {
  const { shown, text } = await witnessOf(
    'upsert-no-guard',
    'insert into product (sku, price, updated_at) select sku, price, now() from s on conflict (sku) do update set price = excluded.price, updated_at = now();',
  )
  expect(shown).toBe(true)
  expect(text).toContain('2025-01-02')
})
