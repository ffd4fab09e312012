import { describe, expect, test } from 'vitest'
import { NO_COUNTS, type RunLogEntry } from '../model/run.ts'
import { hasChanges } from '../pipeline/changes.ts'
import type { Plan, RunResult } from '../pipeline/types.ts'
import { renderPlan } from './render-plan.ts'
import { renderRun } from './render-run.ts'
import { renderRunDetails, renderRunLog, shortIds } from './render-run-log.ts'
import { colorsFor } from './text.ts'

const PLAIN = colorsFor(false)

const RESULT: RunResult = {
  runId: '5e1f3a60-0000-4000-8000-000000000001',
  attemptId: '5e1f3a60-0000-4000-8000-000000000001',
  pipeline: 'orders',
  target: 'stet.duckdb',
  table: 'orders',
  source: 'csv orders.csv',
  strategy: 'upsert',
  truth: 'source',
  verdict: 'changed',
  slice: 'all',
  window: null,
  watermark: null,
  frozen: false,
  drift: [],
  counts: {
    ...NO_COUNTS,
    read: 1001,
    afterTransform: 1001,
    inserted: 1,
    updated: 2,
    unchanged: 997,
    duplicate: 1,
  },
  columns: [
    { name: 'order_ref', type: 'text', origin: 'target' },
    { name: 'amount', type: 'numeric(12,2)', origin: 'target' },
  ],
  files: [{ path: 'orders.csv', bytes: 41_200, sha256: 'ab'.repeat(32) }],
  rejects: [],
  notices: [],
  durationMs: 312,
}

const PLAN: Plan = {
  ...RESULT,
  format: 'stet-plan-1',
  missing: 'keep',
  obstacle: null,
  rows: null,
  creates: false,
  samples: [],
  statements: [],
  digest: 'cd'.repeat(32),
}

describe('the account of a run', () => {
  test('tells what was read, where it went and what became of it', () => {
    expect(renderRun(RESULT, PLAIN)).toBe(
      [
        'read 1,001 rows from orders.csv (41.2 kB)',
        'orders → stet.duckdb "orders": 1 inserted, 2 updated, 997 unchanged, 1 duplicate dropped (unchanged rows were not touched)',
        'took 312 ms, run 5e1f3a60-0000-4000-8000-000000000001',
      ].join('\n'),
    )
  })

  test('an empty source and an unchanged one look different', () => {
    const empty = renderRun({ ...RESULT, verdict: 'nothing read', counts: NO_COUNTS }, PLAIN)
    expect(empty).toContain('orders → stet.duckdb "orders": nothing read')
    const counts = { ...NO_COUNTS, read: 3, afterTransform: 3, unchanged: 3 }
    const unchanged = renderRun({ ...RESULT, verdict: 'unchanged', counts }, PLAIN)
    expect(unchanged).toContain('0 inserted, 0 updated, 3 unchanged (unchanged rows were not touched)')
  })

  test('every count that is there is told, each by its own word', () => {
    const counts = {
      ...RESULT.counts,
      filtered: 4,
      added: 5,
      rejected: 6,
      stale: 7,
      frozen: 8,
      deleted: 9,
    }
    const text = renderRun({ ...RESULT, counts }, PLAIN)
    for (const words of [
      '4 dropped by',
      '5 added by',
      '6 rejected',
      '7 stale',
      'stale: older',
      '8 frozen',
      'frozen: diff',
      '9 deleted',
    ])
      expect(text).toContain(words)
  })

  test('inferred types come with the option that pins all columns, ready to paste', () => {
    const columns: RunResult['columns'] = [
      { name: 'order ref', type: 'text', origin: 'inferred' },
      { name: 'amount', type: 'numeric(12,2)', origin: 'declared' },
    ]
    const text = renderRun({ ...RESULT, columns }, PLAIN)
    expect(text).toContain(`  --columns '"order ref":text,amount:numeric(12,2)'`)
    expect(renderRun(RESULT, PLAIN)).not.toContain('--columns')
  })

  test('the first ten rejects are shown with place, column, value and reason, the rest counted', () => {
    const rejects = Array.from({ length: 12 }, (_, index) => ({
      file: 'orders.csv',
      line: index + 2,
      column: 'amount',
      value: '1.005\u001b[31m',
      reason: 'has 3 decimals, numeric(12,2) holds 2',
    }))
    const text = renderRun({ ...RESULT, rejects, counts: { ...RESULT.counts, rejected: 30 } }, PLAIN)
    expect(text).toContain('30 rows rejected:')
    expect(text).toContain('  orders.csv:2  amount=1.005\\x1b[31m  has 3 decimals, numeric(12,2) holds 2')
    expect(text).not.toContain('orders.csv:12 ')
    expect(text).toContain('  … and 20 more')
  })
})

test('a row with two faults is one rejected row with two lines', () => {
  const rejects = ['amount', 'day'].map((column) => ({
    file: 'a.csv',
    line: 3,
    column,
    value: 'x',
    reason: 'no',
  }))
  const text = renderRun({ ...RESULT, rejects, counts: { ...RESULT.counts, rejected: 1 } }, PLAIN)
  expect(text).toContain('1 row rejected:\n  a.csv:3  amount=x  no\n  a.csv:3  day=x  no\n')
})

describe('a plan', () => {
  test('tells counts, strategy and truth in words, and old → new under one another', () => {
    const text = renderPlan(
      {
        ...PLAN,
        samples: [
          {
            op: 'update',
            key: { order_ref: 'A-1' },
            changes: [
              { column: 'amount', from: '12.50', to: '13.00' },
              { column: 'status', from: null, to: 'paid\n' },
            ],
          },
          {
            op: 'insert',
            key: { order_ref: 'A-2' },
            changes: [{ column: 'amount', from: null, to: '1.00' }],
          },
          {
            op: 'delete',
            key: { order_ref: 'A-3' },
            changes: [{ column: 'amount', from: '2.00', to: null }],
          },
        ],
      },
      PLAIN,
      { sql: false },
    )
    expect(text).toBe(`plan orders → stet.duckdb "orders"
read 1,001 rows from orders.csv (41.2 kB)
strategy upsert: new keys are inserted, changed rows are updated, equal rows are left alone, no row is deleted
truth source: the target follows the source

  read             1,001
  filtered             0
  added                0
  after transform  1,001  = the sum of the next seven
  rejected             0
  duplicate            1  another row of this load has their key
  inserted             1  new keys
  updated              2  the row there differs
  unchanged          997  the row there is equal; it is not touched
  stale                0
  frozen               0
  deleted              0

3 changes:
  ~ update order_ref=A-1
      amount  12.50 → 13.00
      status  NULL  → paid\\n
  + insert order_ref=A-2
      amount  1.00
  - delete order_ref=A-3
      amount  2.00

nothing was changed; a run would do the above`)
  })

  test('shows the statements only when asked', () => {
    const plan = { ...PLAN, statements: ['insert into orders\nselect 1'] }
    expect(renderPlan(plan, PLAIN, { sql: true })).toContain(
      'statements:\n  insert into orders\n  select 1\n',
    )
    expect(renderPlan(plan, PLAIN, { sql: false })).not.toContain('insert into')
  })

  test('has changes when it would write a row or make a table', () => {
    expect(hasChanges(PLAN)).toBe(true)
    const nothing = { ...PLAN, counts: { ...NO_COUNTS, read: 3, afterTransform: 3, unchanged: 3 } }
    expect(hasChanges(nothing)).toBe(false)
    expect(hasChanges({ ...nothing, creates: true })).toBe(true)
    expect(hasChanges({ ...nothing, counts: { ...nothing.counts, deleted: 1 } })).toBe(true)
  })
})

const ENTRY: RunLogEntry = {
  attemptId: RESULT.attemptId,
  runId: RESULT.runId,
  pipeline: 'orders',
  table: 'orders',
  source: 'csv orders.csv',
  slice: 'all',
  strategy: 'upsert',
  truth: 'source',
  logicalTime: null,
  code: null,
  rerunOf: null,
  window: null,
  holder: 'host:123',
  stetVersion: '0.1.0',
  status: 'succeeded',
  verdict: 'changed',
  startedAt: '2026-03-02T09:14:05.123456Z',
  finishedAt: '2026-03-02T09:14:05.523456Z',
  durationMs: 400,
  counts: RESULT.counts,
  files: RESULT.files,
  rejects: [],
  error: null,
}

const FAILED: RunLogEntry = {
  ...ENTRY,
  runId: '5e1f3a60-0000-4000-8000-0000000000ff',
  status: 'failed',
  verdict: 'failed',
  counts: null,
  error: { code: 'STET_TIE', message: 'Two rows\u0007 of one key' },
}

const RUNNING: RunLogEntry = {
  ...ENTRY,
  runId: 'nightly',
  status: 'running',
  verdict: 'running',
  finishedAt: null,
  durationMs: null,
  counts: null,
}

describe('the run log', () => {
  test('shows one run a line, with a column for every count that any of them has', () => {
    const failed = { ...FAILED, runId: 'ffffffff-0000-4000-8000-000000000001' }
    expect(renderRunLog([RUNNING, failed, ENTRY], 'stet.duckdb', PLAIN)).toBe(
      [
        'run       when (UTC)             took  pipeline  status    read  inserted  updated  unchanged  duplicate',
        'nightly   2026-03-02 09:14:05          orders    running',
        'ffffffff  2026-03-02 09:14:05  400 ms  orders    failed                                                   STET_TIE',
        '5e1f3a60  2026-03-02 09:14:05  400 ms  orders    changed  1,001         1        2        997          1',
      ].join('\n'),
    )
  })

  test('an empty log says so', () => {
    expect(renderRunLog([], 'stet.duckdb', PLAIN)).toBe('no runs recorded in stet.duckdb')
    expect(renderRunLog([], 'stet.duckdb', PLAIN, 'nope')).toBe(
      'no runs of pipeline "nope" recorded in stet.duckdb',
    )
  })

  test('made-up ids are cut as far as they stay apart, given ones stay whole', () => {
    const ids = [
      '11111111-1111-4111-8111-111111111111',
      '22222222-1111-4111-8111-111111111111',
      'manual__2026-03-02',
    ]
    expect(shortIds(ids)).toEqual(['11111111', '22222222', 'manual__2026-03-02'])
    const alike = ['11111111-1111-4111-8111-111111111111', '11111111-2111-4111-8111-111111111111']
    expect(shortIds(alike)).toEqual(['11111111-1', '11111111-2'])
  })

  test('shows of one run all there is: counts, files with size and hash, rejects, the error', () => {
    const text = renderRunDetails(
      [
        { ...FAILED, rejects: [{ file: 'a.csv', line: 3, column: null, value: null, reason: 'ragged' }] },
        ENTRY,
      ],
      PLAIN,
    )
    expect(text).toContain('orders: failed')
    expect(text).toContain('error STET_TIE: Two rows\\x07 of one key')
    expect(text).toContain('  a.csv:3  ragged')
    expect(text).toContain(`  orders.csv  41.2 kB (41,200 bytes)  sha256 ${'ab'.repeat(32)}`)
    expect(text).toContain('  after transform  1,001')
    expect(text).toContain('  finished  2026-03-02T09:14:05.523456Z')
  })
})
