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
/** The local engine computes with so many digits at full speed … */
const DIGITS_FAST = 18
/** … and with so many at all. */
const DIGITS_MAX = 38
/** Digits before the point that tomorrow's values may have beyond today's, before the wider type is taken. */
const HEADROOM = 3
/** Decimals that a column of amounts has even when today's file shows fewer. */
const DECIMALS_MIN = 2

/** What one value looks like; the type is that of the whole column. */
const SHAPES = [
  'integer',
  'decimal',
  'exponent',
  'boolean',
  'date',
  'timestamp',
  'timestamptz',
  'zeros',
] as const

type Shape = (typeof SHAPES)[number]

/** What one pass found out about a column. */
interface Findings {
  readonly values: number
  readonly count: Readonly<Record<Shape, number>>
  /** Digits before the point, at most. */
  readonly integerDigits: number
  readonly decimals: number
  /** Digits of a value without leading and trailing zeros, at most. */
  readonly significant: number
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
  const { values, count } = found
  const every = (...shapes: readonly Shape[]) =>
    shapes.reduce((sum, shape) => sum + count[shape], 0) === values
  if (values === 0) return text('it has no values')
  if (every('boolean')) return { type: { kind: 'boolean' }, why: 'all values are true or false' }
  if (every('date')) return { type: { kind: 'date' }, why: 'all values are dates as YYYY-MM-DD' }
  if (every('timestamp')) {
    return { type: { kind: 'timestamp' }, why: 'all values are dates with a time and no offset' }
  }
  if (every('timestamptz')) {
    return { type: { kind: 'timestamptz' }, why: 'all values are dates with a time and an offset' }
  }
  if (every('date', 'timestamp', 'timestamptz')) return text('some dates have a time or an offset, some not')
  if (count.zeros > 0 && every('integer', 'decimal', 'zeros')) {
    return text('some digits begin with 0 or +, which a number would lose')
  }
  if (every('integer')) return chooseInteger(found, newest)
  if (every('integer', 'decimal')) return chooseDecimal(found)
  if (count.exponent > 0 && every('integer', 'decimal', 'exponent')) {
    return found.significant <= INTEGER_DIGITS_MAX
      ? { type: { kind: 'double' }, why: 'all values are numbers, some with an exponent' }
      : text('some numbers have an exponent, and some more digits than a float keeps')
  }
  return text(
    SHAPES.some((shape) => count[shape] > 0)
      ? 'values of different kinds'
      : 'the values are of no other kind',
  )
}

function chooseInteger({ integerDigits, fitsBigint }: Findings, newest: boolean): Choice {
  if (integerDigits <= INTEGER_DIGITS_MAX || (newest && fitsBigint)) {
    return {
      type: { kind: 'bigint' },
      why: `all values are whole numbers of at most ${integerDigits} digits`,
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
    why: `all values are numbers of at most ${integerDigits} digits and ${decimals} decimals`,
  }
}

async function look(
  local: LocalConnection,
  select: string,
  fields: readonly UntypedField[],
): Promise<readonly Findings[]> {
  const shapes = fields.map(({ id }) => `${id}, ${shapeSql(id)} as shape_${id}`)
  const columns = fields.flatMap(({ id }) => [
    `count(${id}) as values_${id}`,
    ...SHAPES.map((shape) => `count(*) filter (shape_${id} = '${shape}') as ${shape}_${id}`),
    `max(strlen(regexp_extract(${id}, '^-?([0-9]*)', 1))) filter (shape_${id} in ('integer', 'decimal')) as digits_${id}`,
    `max(strlen(regexp_extract(${id}, '\\.([0-9]*)', 1))) filter (shape_${id} = 'decimal') as decimals_${id}`,
    `max(${significantSql(id)}) filter (shape_${id} in ('integer', 'decimal', 'exponent')) as significant_${id}`,
    `bool_and(${readSql(columnOf(id, { kind: 'bigint' }), id)} is not null) filter (shape_${id} = 'integer') as bigint_${id}`,
  ])
  const [row] = await local.rows(`
    select ${columns.join(', ')}
      from (select ${shapes.join(', ')}
              from (${select}))`)
  const number = (name: string) => Number(row?.[name] ?? 0)
  return fields.map(({ id }) => ({
    values: number(`values_${id}`),
    count: Object.fromEntries(SHAPES.map((shape) => [shape, number(`${shape}_${id}`)])) as Record<
      Shape,
      number
    >,
    integerDigits: number(`digits_${id}`),
    decimals: number(`decimals_${id}`),
    significant: number(`significant_${id}`),
    fitsBigint: row?.[`bigint_${id}`] === true,
  }))
}

/** Digits of the number, without sign, point, exponent and the zeros around. */
function significantSql(id: string): string {
  return `strlen(trim(replace(regexp_extract(${id}, '^-?([0-9.]*)', 1), '.', ''), '0'))`
}

/** Most text is told from the rest by its first character, before any pattern is tried. */
function shapeSql(id: string): string {
  const reads = (type: ColumnType) => `${readSql(columnOf(id, type), id)} is not null`
  const matches = (pattern: string) => `regexp_full_match(${id}, '${pattern}')`
  return `
    case when not (left(${id}, 1) between '+' and '9' or left(${id}, 1) in ('t', 'T', 'f', 'F')) then null
         when ${matches('0|-?[1-9][0-9]*')} then 'integer'
         when ${matches('-?(0|[1-9][0-9]*)?\\.[0-9]+')} then 'decimal'
         when ${matches('[+-]?[0-9]+(\\.[0-9]*)?')} then 'zeros'
         when ${matches('[0-9]{4}-[0-9]{2}-[0-9]{2}')} then case when ${reads({ kind: 'date' })} then 'date' end
         when ${matches('[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}.*')} then
           case when ${reads({ kind: 'timestamptz' })} then 'timestamptz'
                when ${reads({ kind: 'timestamp' })} then 'timestamp' end
         when ${matches('-?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)[eE][+-]?[0-9]+')} then
           case when ${reads({ kind: 'double' })} then 'exponent' end
         when lower(${id}) in ('true', 'false') then 'boolean' end`
}

function columnOf(id: string, type: ColumnType): ContractColumn {
  return { id, name: id, type, origin: 'inferred', key: false, newest: false, ignored: false, asText: false }
}
