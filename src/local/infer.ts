import type { ColumnType, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import { readSql } from './typing.ts'

/** A field whose type nobody has declared. */
export interface UntypedField {
  /** Its column in the relation. */
  readonly id: string
  readonly name: string
  readonly key: boolean
  /** Whether it says which of two rows is newer. */
  readonly newest?: boolean
}

/** What was chosen, and why, in a short phrase for people. */
export interface InferredType {
  readonly id: string
  readonly type: ColumnType
  readonly why: string
}

/** A digit string longer than this is more likely a number's name than a number: a card, an account, an IBAN. */
const INTEGER_DIGITS_MAX = 15
const FLOAT_DIGITS = 15
/** The local engine computes with so many digits at full speed … */
const DIGITS_FAST = 18
/** … and with so many at all. */
const DIGITS_MAX = 38
/** Digits before the point that tomorrow's values may have beyond today's, before the wider type is taken. */
const HEADROOM = 3
/** Decimals that a column of amounts has even when today's file shows fewer. */
const DECIMALS_MIN = 2

/** What one value looks like; `zeros` are digits that a number would not give back (`007`, `+49`, `1.`). */
const SHAPES = [
  'integer',
  'decimal',
  'exponent',
  'zeros',
  'boolean',
  'date',
  'timestamp',
  'timestamptz',
  'other',
] as const

type Shape = (typeof SHAPES)[number]

/** What one pass found out about a column. */
interface Findings {
  /** The shapes that its values have; empty when it has none. */
  readonly shapes: ReadonlySet<Shape>
  /** Digits before the point, at most. */
  readonly integerDigits: number
  readonly decimals: number
  /** Digits of a number that is written with an exponent, at most. */
  readonly mantissaDigits: number
  /** Asked for a field that says which row is newer, else false. */
  readonly fitsBigint: boolean
}

/**
 * Chooses types for a first load from all its values, in one pass over a relation of VARCHAR columns. Conservative: a
 * type is chosen only when every value is that and nothing else, and text is always right. Keys are text; so are digits
 * with leading zeros or more than 15 of them, and dates that could be read in two ways. Digits never become a float.
 */
export async function inferTypes(
  local: LocalConnection,
  select: string,
  fields: readonly UntypedField[],
): Promise<readonly InferredType[]> {
  const looked = fields.filter((field) => !field.key || field.newest === true)
  const findings = looked.length === 0 ? [] : await look(local, select, looked)
  return fields.map((field) => {
    const found = findings[looked.indexOf(field)]
    if (found === undefined) {
      return { id: field.id, ...text('it is part of the key, and identities are not computed with') }
    }
    return { id: field.id, ...choose(found, field.newest === true) }
  })
}

type Choice = Omit<InferredType, 'id'>

function text(why: string): Choice {
  return { type: { kind: 'text' }, why }
}

function choose(found: Findings, newest: boolean): Choice {
  const { shapes } = found
  const only = (...allowed: readonly Shape[]) => [...shapes].every((shape) => allowed.includes(shape))
  if (shapes.size === 0) return text('it has no values')
  if (only('boolean')) return { type: { kind: 'boolean' }, why: 'all values are true or false' }
  if (only('date')) return { type: { kind: 'date' }, why: 'all values are dates as YYYY-MM-DD' }
  if (only('timestamp')) {
    return { type: { kind: 'timestamp' }, why: 'all values are dates with a time and no offset' }
  }
  if (only('timestamptz')) {
    return { type: { kind: 'timestamptz' }, why: 'all values are dates with a time and an offset' }
  }
  if (only('integer')) return chooseInteger(found, newest)
  if (only('integer', 'decimal')) return chooseDecimal(found)
  if (only('integer', 'decimal', 'exponent')) return chooseFloat(found)
  if (only('integer', 'decimal', 'zeros')) {
    return text('some digits are written so that a number would not give them back, such as 007 or +49')
  }
  if (only('date', 'timestamp', 'timestamptz'))
    return text('some dates have a time or an offset and some not')
  return text(only('other') ? 'the values are of no other kind' : 'the values are of different kinds')
}

function chooseInteger({ integerDigits, fitsBigint }: Findings, newest: boolean): Choice {
  if (integerDigits <= INTEGER_DIGITS_MAX || (newest && fitsBigint)) {
    return {
      type: { kind: 'bigint' },
      why: `all values are whole numbers of at most ${counted(integerDigits, 'digit')}`,
    }
  }
  return text(`digits beyond ${INTEGER_DIGITS_MAX} are more likely a name than a number`)
}

/** As many decimals as seen, at least two, and two more where there are many: measured values vary in them. */
function chooseDecimal({ integerDigits, decimals }: Findings): Choice {
  const scale = decimals <= DECIMALS_MIN ? DECIMALS_MIN : decimals + 2
  const needed = integerDigits + scale
  if (needed + 1 > DIGITS_MAX) return text(`more digits than numeric(${DIGITS_MAX}) has room for`)
  const precision = needed + HEADROOM <= DIGITS_FAST ? DIGITS_FAST : DIGITS_MAX
  return {
    type: { kind: 'numeric', precision, scale },
    why: `all values are numbers of at most ${counted(integerDigits, 'digit')} and ${counted(decimals, 'decimal')}`,
  }
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}

/** Floats hold 15 digits of any decimal; a longer number would come back as another. */
function chooseFloat({ integerDigits, decimals, mantissaDigits }: Findings): Choice {
  return Math.max(integerDigits + decimals, mantissaDigits) <= FLOAT_DIGITS
    ? { type: { kind: 'double' }, why: 'all values are numbers, some with an exponent' }
    : text(`some numbers have an exponent, and some more than the ${FLOAT_DIGITS} digits that a float keeps`)
}

/**
 * From so many columns on, a glance at which of them hold dates or exponents at all pays for reading the rows once more:
 * the engine takes 10 ms a column to get ready for the tests of these.
 */
const COLUMNS_WIDE = 300

async function look(
  local: LocalConnection,
  select: string,
  fields: readonly UntypedField[],
): Promise<readonly Findings[]> {
  const hints = fields.length < COLUMNS_WIDE ? undefined : await glance(local, select, fields)
  const shapes = fields.map(({ id }) => `${id}, ${shapeSql(id, hints?.get(id))} as shape_${id}`)
  const columns = fields.flatMap(({ id, newest }) => {
    // A case and not a filter: the arguments of a filtered aggregate are computed for every row all the same.
    const of = (shape: Shape, sql: string) => `case when shape_${id} = ${bitOf(shape)} then ${sql} end`
    return [
      `bit_or(shape_${id}) as shapes_${id}`,
      `max(${of('integer', `strlen(ltrim(${id}, '-'))`)}) as digits_${id}`,
      `max(${of('decimal', `instr(ltrim(${id}, '-'), '.') - 1`)}) as before_point_${id}`,
      `max(${of('decimal', `strlen(${id}) - instr(${id}, '.')`)}) as decimals_${id}`,
      hints?.get(id)?.exponents === false
        ? `null as mantissa_${id}`
        : `max(${of('exponent', `strlen(regexp_replace(split_part(lower(${id}), 'e', 1), '[-.]', '', 'g'))`)}) as mantissa_${id}`,
      // Of others the length of the digits decides.
      newest === true
        ? `bool_and(${of('integer', `try_cast(${id} as bigint) is not null`)}) as bigint_${id}`
        : `false as bigint_${id}`,
    ]
  })
  const [row] = await local.rows(`
    select ${columns.join(', ')}
      from (select ${shapes.join(', ')}
              from (${select}))`)
  const number = (name: string) => Number(row?.[name] ?? 0)
  return fields.map(({ id }) => ({
    shapes: new Set(SHAPES.filter((shape) => (number(`shapes_${id}`) & bitOf(shape)) !== 0)),
    integerDigits: Math.max(number(`digits_${id}`), number(`before_point_${id}`)),
    decimals: number(`decimals_${id}`),
    mantissaDigits: number(`mantissa_${id}`),
    fitsBigint: row?.[`bigint_${id}`] === true,
  }))
}

/** Which kinds of values a column may hold. What is false holds for none of them. */
interface Hints {
  readonly dates: boolean
  readonly exponents: boolean
}

async function glance(
  local: LocalConnection,
  select: string,
  fields: readonly UntypedField[],
): Promise<ReadonlyMap<string, Hints>> {
  const columns = fields.flatMap(({ id }) => [
    `bool_or(${id} like '${DATE_LIKE}') as dates_${id}`,
    `bool_or(contains(lower(${id}), 'e')) as exponents_${id}`,
  ])
  const [row] = await local.rows(`select ${columns.join(', ')} from (${select})`)
  return new Map(
    fields.map(({ id }) => [
      id,
      { dates: row?.[`dates_${id}`] === true, exponents: row?.[`exponents_${id}`] === true },
    ]),
  )
}

const DATE_LIKE = '____-__-__%'

/** Shapes are bits, so that one aggregate gathers all of a column. */
function bitOf(shape: Shape): number {
  return 1 << SHAPES.indexOf(shape)
}

/** Cheap looks come first: most text is told from the rest by its first character, and dates by their dashes. */
function shapeSql(id: string, hints: Hints = { dates: true, exponents: true }): string {
  const reads = (type: ColumnType) => `${readSql(columnOf(id, type), id)} is not null`
  const matches = (pattern: string) => `regexp_full_match(${id}, '${pattern}')`
  const date = `
          when ${id} like '${DATE_LIKE}' then
            case when strlen(${id}) = 10 and ${reads({ kind: 'date' })} then ${bitOf('date')}
                 when strlen(${id}) = 10 then ${bitOf('other')}
                 when ${reads({ kind: 'timestamptz' })} then ${bitOf('timestamptz')}
                 when ${reads({ kind: 'timestamp' })} then ${bitOf('timestamp')}
                 else ${bitOf('other')} end`
  const exponent = `
          when ${matches('-?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)[eE][+-]?[0-9]+')} and ${reads({ kind: 'double' })} then ${bitOf('exponent')}`
  return `
    (case when ${id} is null then null
          when not ${id} between '+' and ':' then
            case when strlen(${id}) <= 5 and lower(${id}) in ('true', 'false') then ${bitOf('boolean')}
                 else ${bitOf('other')} end${hints.dates ? date : ''}
          when ${matches('0|-?[1-9][0-9]*')} then ${bitOf('integer')}
          when ${matches('-?(0|[1-9][0-9]*)?\\.[0-9]+')} then ${bitOf('decimal')}
          when ${matches('[+-]?[0-9]+(\\.[0-9]*)?')} then ${bitOf('zeros')}${hints.exponents ? exponent : ''}
          else ${bitOf('other')} end)::integer`
}

function columnOf(id: string, type: ColumnType): ContractColumn {
  return { id, name: id, type, origin: 'inferred', key: false, newest: false, ignored: false, asText: false }
}
