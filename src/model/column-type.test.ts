import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StetError } from '../errors.ts'
import { formatColumnType, parseColumnType } from './column-type.ts'
import type { ColumnType } from './columns.ts'

test.each<[string, ColumnType]>([
  ['text', { kind: 'text' }],
  ['string', { kind: 'text' }],
  ['  BIGINT ', { kind: 'bigint' }],
  ['int8', { kind: 'bigint' }],
  ['int', { kind: 'integer' }],
  ['int4', { kind: 'integer' }],
  ['int2', { kind: 'smallint' }],
  ['decimal( 12 , 2 )', { kind: 'numeric', precision: 12, scale: 2 }],
  ['numeric', { kind: 'numeric' }],
  ['numeric(5)', { kind: 'numeric', precision: 5, scale: 0 }],
  ['numeric(5,-2)', { kind: 'numeric', precision: 5, scale: -2 }],
  ['float4', { kind: 'real' }],
  ['float(24)', { kind: 'real' }],
  ['float', { kind: 'double' }],
  ['float8', { kind: 'double' }],
  ['double', { kind: 'double' }],
  ['DOUBLE  PRECISION', { kind: 'double' }],
  ['bool', { kind: 'boolean' }],
  ['varchar', { kind: 'varchar' }],
  ['character varying(3)', { kind: 'varchar', length: 3 }],
  ['char', { kind: 'char', length: 1 }],
  ['character(5)', { kind: 'char', length: 5 }],
  ['timestamp(3)', { kind: 'timestamp', precision: 3 }],
  ['timestamp without time zone', { kind: 'timestamp' }],
  ['timestamp(3) with time zone', { kind: 'timestamptz', precision: 3 }],
  ['timestamptz(0)', { kind: 'timestamptz', precision: 0 }],
  ['time(6) without time zone', { kind: 'time', precision: 6 }],
  ['jsonb', { kind: 'jsonb' }],
  ['citext', { kind: 'other', native: 'citext' }],
  ['text[]', { kind: 'other', native: 'text[]' }],
  ['timetz', { kind: 'other', native: 'timetz' }],
  ['time with time zone', { kind: 'other', native: 'time with time zone' }],
  ['"char"', { kind: 'other', native: '"char"' }],
  ['shop."Mood (odd)"', { kind: 'other', native: 'shop."Mood (odd)"' }],
  ['interval day to second(3)', { kind: 'other', native: 'interval day to second(3)' }],
  ["ENUM('a', 'it''s')", { kind: 'other', native: "ENUM('a', 'it''s')" }],
  ['STRUCT(a INTEGER, b VARCHAR[])', { kind: 'other', native: 'STRUCT(a INTEGER, b VARCHAR[])' }],
])('%s is read as PostgreSQL reads it', (text, type) => {
  expect(parseColumnType(text)).toEqual(type)
})

test.each([
  '',
  ' ',
  'numeric(2,5,1)',
  'numeric(0)',
  'numeric(a)',
  'numeric()',
  'timestamp(9)',
  'varchar(0)',
  'text(3)',
  'bigint(20)',
  'char(1,2)',
  'float(54)',
  'mood)',
  'mood(',
  'int); drop table x',
  'int -- x',
  '"open',
  '7',
  "text default 'x",
])('%j is refused as a type, with the text in the message', (text) => {
  const attempt = () => parseColumnType(text)
  expect(attempt).toThrow(StetError)
  expect(attempt).toThrow(JSON.stringify(text))
})

const length = fc.integer({ min: 1, max: 10_485_760 })
const types: fc.Arbitrary<ColumnType> = fc.oneof(
  fc
    .constantFrom(
      'text',
      'smallint',
      'integer',
      'bigint',
      'real',
      'double',
      'boolean',
      'date',
      'uuid',
      'json',
      'jsonb',
      'bytea',
      'varchar',
      'numeric',
      'timestamp',
      'timestamptz',
      'time',
    )
    .map((kind): ColumnType => ({ kind })),
  length.map((n): ColumnType => ({ kind: 'varchar', length: n })),
  length.map((n): ColumnType => ({ kind: 'char', length: n })),
  fc
    .tuple(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: -1000, max: 1000 }))
    .map(([precision, scale]): ColumnType => ({ kind: 'numeric', precision, scale })),
  fc
    .tuple(fc.constantFrom('timestamp', 'timestamptz', 'time'), fc.integer({ min: 0, max: 6 }))
    .map(([kind, precision]): ColumnType => ({ kind, precision })),
  fc
    .constantFrom('citext', 'int4range', 'text[]', '"Mood"', 'bit varying(4)')
    .map((native): ColumnType => ({ kind: 'other', native })),
)

test('a type that is written is read back as itself', () => {
  fc.assert(
    fc.property(types, (type) => {
      expect(parseColumnType(formatColumnType(type))).toEqual(type)
    }),
  )
})
