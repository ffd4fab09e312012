import { describe, expect, test } from 'vitest'
import type { Columns } from '../model/columns.ts'
import type { Source } from '../model/source.ts'
import type { Target } from '../model/target.ts'
import { definePipeline, isPipeline } from './define.ts'

const target: Target = {
  kind: 'nowhere',
  description: 'nowhere',
  capabilities: {
    strategies: ['upsert', 'insert-once', 'replace-table', 'replace-partition'],
    transactional: true,
    identifierBytesMax: 63,
  },
  open: () => Promise.reject(new Error('a definition opens nothing')),
  openRunLog: () => Promise.reject(new Error('a definition opens nothing')),
  openRecord: () => Promise.reject(new Error('a definition opens nothing')),
}

function source<const C extends Columns>(columns: C): Source<C> {
  return {
    kind: 'none',
    description: 'none',
    columns,
    open: () => Promise.reject(new Error('a definition opens nothing')),
  }
}

const declared = source({ order_ref: 'text', amount: 'numeric(12,2)', load_seq: 'bigint' })
const undeclared: Source = { kind: 'none', description: 'none', open: declared.open }

describe('a misspelt column does not compile', () => {
  // Each `@ts-expect-error` is an assertion of `npm run check`: without the error the compiler complains.
  test('in the key, in newest, in ignore', () => {
    expect(() =>
      definePipeline({
        name: 'o',
        source: declared,
        target,
        table: 'o',
        // @ts-expect-error order_reff is no column
        write: { strategy: 'upsert', key: ['order_reff'] },
      }),
    ).toThrow('order_reff')
    expect(() =>
      definePipeline({
        name: 'o',
        source: declared,
        target,
        table: 'o',
        // @ts-expect-error load_sequence is no column
        write: { strategy: 'upsert', key: ['order_ref'], newest: 'load_sequence' },
      }),
    ).toThrow('load_sequence')
    expect(() =>
      definePipeline({
        name: 'o',
        source: declared,
        target,
        table: 'o',
        // @ts-expect-error exported_at is no column
        write: { strategy: 'upsert', key: ['order_ref'], ignore: ['exported_at'] },
      }),
    ).toThrow('exported_at')
  })

  test('columns that a transform declares may be used, others not', () => {
    const transform = { row: (row: unknown) => row as never, adds: { day: 'date' } } as const
    definePipeline({
      name: 'o',
      source: declared,
      target,
      table: 'o',
      transform,
      write: { strategy: 'upsert', key: ['order_ref', 'day'] },
    })
    expect(() =>
      definePipeline({
        name: 'o',
        source: declared,
        target,
        table: 'o',
        transform,
        // @ts-expect-error week is declared nowhere
        write: { strategy: 'upsert', key: ['week'] },
      }),
    ).toThrow('week')
  })

  test('in what a transform reads and drops', () => {
    definePipeline({
      name: 'o',
      source: declared,
      target,
      table: 'o',
      write: { strategy: 'upsert', key: ['order_ref'] },
      transform: {
        row: (row) => {
          // @ts-expect-error amout is no column
          const misspelt = row.amout
          return { ...row, misspelt: misspelt ?? row.amount }
        },
        adds: { misspelt: 'text' },
      },
    })
    expect(() =>
      definePipeline({
        name: 'o',
        source: declared,
        target,
        table: 'o',
        write: { strategy: 'upsert', key: ['order_ref'] },
        // @ts-expect-error amout is no column
        transform: { row: (row) => row, drops: ['amout'] },
      }),
    ).toThrow('the transform drops amout, which is no declared column')
  })

  test('a source without declared columns takes any name', () => {
    definePipeline({
      name: 'o',
      source: undeclared,
      target,
      table: 'o',
      write: { strategy: 'upsert', key: ['whatever'] },
      transform: { row: ({ gone, ...row }) => ({ ...row, kept: row.kept ?? gone ?? null }), drops: ['gone'] },
    })
  })
})

describe('a definition that contradicts itself is refused before anything is opened', () => {
  const define = (more: object) => () =>
    definePipeline({
      name: 'orders',
      source: undeclared,
      target,
      table: 'orders',
      write: { strategy: 'upsert', key: ['id'] },
      ...more,
    } as never)

  test.each([
    ['a blank name', { name: ' ' }, 'has no name'],
    ['a blank table', { table: '' }, 'names no table'],
    [
      'no key where one is needed',
      { write: { strategy: 'upsert', key: [] } },
      'a rerun would append every row again',
    ],
    ['no key for insert-once', { write: { strategy: 'insert-once', key: [] } }, 'needs a key'],
    ['a key that names a column twice', { write: { strategy: 'upsert', key: ['a', 'a'] } }, 'names a twice'],
    ['newest without a key', { write: { strategy: 'replace-table', newest: 'v' } }, 'there is no key'],
    [
      'a key column that is ignored',
      { write: { strategy: 'upsert', key: ['a'], ignore: ['a'] } },
      'cannot be ignored',
    ],
    [
      'newest that is ignored',
      { write: { strategy: 'upsert', key: ['a'], newest: 'v', ignore: ['v'] } },
      'cannot be ignored',
    ],
    [
      'a misspelt option, as a file that nobody type-checked may hold',
      { maxReject: 3 },
      'no option maxReject',
    ],
    [
      'a misspelt option of write',
      { write: { strategy: 'upsert', key: ['a'], newset: 'v' } },
      'no option write.newset',
    ],
    ['a key that is no list', { write: { strategy: 'upsert', key: 'id' } }, 'not a list of columns'],
    ['a transform that is a function', { transform: (row: unknown) => row }, 'neither { sql } nor { row }'],
    ['a negative number of rejects', { maxRejects: -1 }, '0 or more'],
    ['half a reject', { maxRejects: 0.5 }, 'whole number'],
    [
      'a strategy that the target has not',
      { write: { strategy: 'append', key: ['a'] } },
      'no strategy append',
    ],
    [
      'a type that is none',
      { source: { ...undeclared, columns: { id: 'numeric(2,5,1)' } } },
      'numeric(2,5,1)',
    ],
  ])('%s', (_, more, words) => {
    expect(define(more)).toThrow(
      expect.objectContaining({ code: 'STET_CONFIG', message: expect.stringContaining(words) }),
    )
  })

  test('replace-table needs no key', () => {
    expect(define({ write: { strategy: 'replace-table' } })).not.toThrow()
  })
})

test('a pipeline is recognised, also by another copy of Stet, and other exports are not', () => {
  const pipeline = definePipeline({
    name: 'o',
    source: undeclared,
    target,
    table: 'o',
    write: { strategy: 'upsert', key: ['id'] },
  })
  expect(isPipeline(pipeline)).toBe(true)
  expect(isPipeline({ ...pipeline })).toBe(false)
  expect(isPipeline({ name: 'o', write: {} })).toBe(false)
  expect(isPipeline(null)).toBe(false)
  expect(Symbol.for('stet.pipeline') in pipeline).toBe(true)
})
