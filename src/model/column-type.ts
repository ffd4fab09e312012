import { StetError } from '../errors.ts'
import type { ColumnType } from './columns.ts'

type Build = (parameters: readonly number[]) => ColumnType | null

/** PostgreSQL counts at most so many fraction digits of a second. */
const FRACTION_DIGITS_MAX = 6
const NUMERIC_PRECISION_MAX = 1000
const TEXT_LENGTH_MAX = 10_485_760

/** Each spelling with what its parameters make of it; `null` means that they make no sense. */
const BUILD_BY_NAME: ReadonlyMap<string, Build> = new Map([
  ...spelled(['text', 'string'], plain('text')),
  ...spelled(['varchar', 'character varying', 'char varying'], varchar),
  ...spelled(['char', 'character'], char),
  ...spelled(['smallint', 'int2'], plain('smallint')),
  ...spelled(['integer', 'int', 'int4'], plain('integer')),
  ...spelled(['bigint', 'int8'], plain('bigint')),
  ...spelled(['numeric', 'decimal', 'dec'], numeric),
  ...spelled(['real', 'float4'], plain('real')),
  ...spelled(['double precision', 'double', 'float8'], plain('double')),
  ...spelled(['float'], float),
  ...spelled(['boolean', 'bool'], plain('boolean')),
  ...spelled(['date'], plain('date')),
  ...spelled(['timestamp', 'timestamp without time zone'], fraction('timestamp')),
  ...spelled(['timestamptz', 'timestamp with time zone'], fraction('timestamptz')),
  ...spelled(['time', 'time without time zone'], fraction('time')),
  ...spelled(['uuid'], plain('uuid')),
  ...spelled(['json'], plain('json')),
  ...spelled(['jsonb'], plain('jsonb')),
  ...spelled(['bytea'], plain('bytea')),
])

const NAME_WITH_PARAMETERS = /^([a-z][a-z0-9 ]*?) ?(?:\(([^()]*)\) ?([a-z ]*))?$/

/** A type of the target's own: words, quoted names, balanced brackets, string literals (of an enum); never a second statement. */
const NATIVE = /^(?=[\p{L}_"])(?:[\p{L}\p{N}_$ .,]|"(?:[^"]|"")+"|'(?:[^']|'')*'|[()[\]-])*$/u

/**
 * Reads a type as PostgreSQL spells it, with the usual aliases and in any case: `int4`, `decimal(12,2)`,
 * `character varying(3)`, `timestamp(3) with time zone`. `float` and `double` are double precision, as in PostgreSQL. A name
 * that is not known is the target's own (`citext`, `text[]`, `mood`) and stays as it is written.
 *
 * @throws {StetError} `STET_CONFIG` when the text is no type (`numeric(2,5,1)`, `timestamp(9)`).
 * @example
 * parseColumnType('decimal(12, 2)') // { kind: 'numeric', precision: 12, scale: 2 }
 */
export function parseColumnType(text: string): ColumnType {
  const words = text.trim().replace(/\s+/g, ' ')
  const match = NAME_WITH_PARAMETERS.exec(words.toLowerCase())
  const name = [match?.[1], match?.[3]].filter((part) => part !== undefined && part !== '').join(' ')
  const build = BUILD_BY_NAME.get(name.trim())
  if (build === undefined) return native(text, words)
  const parameters = parametersOf(match?.[2])
  const type = parameters === null ? null : build(parameters)
  if (type === null) throw noType(text, `${name} does not take these parameters`)
  return type
}

/**
 * Writes a type in one canonical spelling, which {@link parseColumnType} reads back as the same type.
 *
 * @example
 * formatColumnType({ kind: 'double' }) // 'double precision'
 */
export function formatColumnType(type: ColumnType): string {
  switch (type.kind) {
    case 'varchar':
    case 'char':
      return withParameters(type.kind, [type.length])
    case 'numeric':
      return withParameters('numeric', [type.precision, type.scale])
    case 'timestamp':
    case 'timestamptz':
    case 'time':
      return withParameters(type.kind, [type.precision])
    case 'double':
      return 'double precision'
    case 'other':
      return type.native
    case 'text':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'real':
    case 'boolean':
    case 'date':
    case 'uuid':
    case 'json':
    case 'jsonb':
    case 'bytea':
      return type.kind
  }
}

function withParameters(name: string, parameters: readonly (number | undefined)[]): string {
  const given = parameters.filter((parameter) => parameter !== undefined)
  return given.length === 0 ? name : `${name}(${given.join(',')})`
}

function spelled(names: readonly string[], build: Build): [string, Build][] {
  return names.map((name) => [name, build])
}

function parametersOf(list: string | undefined): readonly number[] | null {
  if (list === undefined) return []
  const numbers = list.split(',').map((item) => item.trim())
  return numbers.every((item) => /^[+-]?\d{1,9}$/.test(item)) ? numbers.map(Number) : null
}

function plain(
  kind:
    | 'text'
    | 'smallint'
    | 'integer'
    | 'bigint'
    | 'real'
    | 'double'
    | 'boolean'
    | 'date'
    | 'uuid'
    | 'json'
    | 'jsonb'
    | 'bytea',
): Build {
  return (parameters) => (parameters.length === 0 ? { kind } : null)
}

function fraction(kind: 'timestamp' | 'timestamptz' | 'time'): Build {
  return ([precision, ...more]) => {
    if (precision === undefined) return { kind }
    return more.length === 0 && isWithin(precision, 0, FRACTION_DIGITS_MAX) ? { kind, precision } : null
  }
}

function varchar([length, ...more]: readonly number[]): ColumnType | null {
  if (length === undefined) return { kind: 'varchar' }
  return more.length === 0 && isWithin(length, 1, TEXT_LENGTH_MAX) ? { kind: 'varchar', length } : null
}

function char([length = 1, ...more]: readonly number[]): ColumnType | null {
  return more.length === 0 && isWithin(length, 1, TEXT_LENGTH_MAX) ? { kind: 'char', length } : null
}

/** Since version 15 PostgreSQL allows a scale below 0 (rounding before the point) and above the precision. */
function numeric([precision, scale = 0, ...more]: readonly number[]): ColumnType | null {
  if (precision === undefined) return { kind: 'numeric' }
  const sound =
    more.length === 0 &&
    isWithin(precision, 1, NUMERIC_PRECISION_MAX) &&
    isWithin(scale, -NUMERIC_PRECISION_MAX, NUMERIC_PRECISION_MAX)
  return sound ? { kind: 'numeric', precision, scale } : null
}

/** SQL's `float(n)` counts bits: up to 24 are a real. */
function float([bits = 53, ...more]: readonly number[]): ColumnType | null {
  if (more.length > 0 || !isWithin(bits, 1, 53)) return null
  return { kind: bits <= 24 ? 'real' : 'double' }
}

function isWithin(value: number, least: number, greatest: number): boolean {
  return value >= least && value <= greatest
}

/** A type's text goes into DDL as it is, so that only what can be one type is let through. */
function native(text: string, words: string): ColumnType {
  if (!NATIVE.test(words) || words.includes('--') || !isBalanced(words)) {
    throw noType(text, 'that is no name of a type')
  }
  return { kind: 'other', native: words }
}

function isBalanced(words: string): boolean {
  const open: string[] = []
  for (const character of words.replace(/"(?:[^"]|"")*"|'(?:[^']|'')*'/g, '')) {
    if (character === '(' || character === '[') open.push(character === '(' ? ')' : ']')
    else if (character === ')' || character === ']') {
      if (open.pop() !== character) return false
    } else if (character === '"' || character === "'") return false
  }
  return open.length === 0
}

function noType(text: string, reason: string): StetError {
  return new StetError('STET_CONFIG', `Cannot read ${JSON.stringify(text)} as a column type: ${reason}`, {
    hint: 'Write it as PostgreSQL does, for example text, bigint, numeric(12,2), timestamptz',
    details: { type: text },
  })
}

/** Whether values are points in time or days: what can be cut by time, and be a cursor with a clock. */
export function isTimeType({ kind }: ColumnType): boolean {
  return kind === 'date' || kind === 'timestamp' || kind === 'timestamptz'
}

/** Whether values are exact numbers: what can be cut into ranges, and be a cursor without a clock. */
export function isNumberType({ kind }: ColumnType): boolean {
  return kind === 'smallint' || kind === 'integer' || kind === 'bigint' || kind === 'numeric'
}
