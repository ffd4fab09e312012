import { StetError } from '../errors.ts'
import type { Contract, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Reject, SourcePart } from '../model/source.ts'
import { quoteLiteral } from './quote.ts'
import { localTypeOf, readSql, reasonSql, wideSql } from './typing.ts'

/** How a key and an order column are read; a NULL there is a reject unless the pipeline takes it as a value. */
export interface LandingRules {
  readonly nullKeys: 'reject' | 'match'
  readonly normalizeKey: 'nfc' | undefined
  /** How many rejects to keep whole, for a quarantine. Default: the first hundred, cut, for people. */
  readonly keepRejects?: number | undefined
}

/** Rows of a source, typed and checked, in the local engine. */
export interface Landed {
  /** Base table with the contract's ids as columns; only rows without fault. */
  readonly table: string
  /** Rows that the source holds, with the rejected ones. */
  readonly read: number
  readonly rejected: number
  /** The first of the rejected rows, with their place in the file; `rejected` is the count. */
  readonly rejects: readonly Reject[]
  /** Ids of columns holding valid values that the local type cannot hold; then the landing is void (see {@link Contract}). */
  readonly unheld: readonly string[]
}

/** How many rejects are looked up in the file and shown; all are counted. */
const REJECTS_SHOWN = 100
/** A longer value tells a reader nothing more. */
const VALUE_SHOWN_CHARACTERS = 200

/**
 * Lands every part of a source as text made typed and checked: a value is exactly what the source holds or its row is
 * rejected (G9). The happy path is one scan; only a part with rejects is read a second time, to say where they stand.
 */
export async function land(
  local: LocalConnection,
  parts: readonly SourcePart[],
  contract: Contract,
  rules: LandingRules,
): Promise<Landed> {
  const table = local.newName('landed')
  const columns = contract.columns
  const shown = rules.keepRejects ?? REJECTS_SHOWN
  const typed = columns.map((column) => `${column.id} ${localTypeOf(column)}`)
  await local.run(`create table ${table} (${typed.join(', ')}, part integer)`)
  for (const [index, part] of parts.entries()) {
    await landPart(local, table, part, index, columns, rules)
  }
  const readByUs = await local.count(`select count(*) from ${table}`)
  const faulty = await local.count(`select count(*) from ${table} where part < 0`)
  const refused: Reject[] = []
  for (const [index, part] of parts.entries()) {
    // A part whose every record was landed has none, and looking for them is another scan.
    const landed = await local.count(`select count(*) from ${table} where ${ofPart(index)}`)
    if (landed === part.records) continue
    const rejects = await part.rejects()
    // Not by spreading: a file may hold more rejects than a call can have arguments.
    for (const reject of rejects) refused.push(reject)
    requireAllRecords(part, landed, rejects.length)
  }
  if (faulty === 0) {
    return {
      table,
      read: readByUs + refused.length,
      rejected: refused.length,
      rejects: refused.slice(0, shown),
      unheld: [],
    }
  }
  const faultyParts = await partsWithFaults(local, table, parts)
  const unheld = await unheldColumns(local, faultyParts, columns)
  const found: Reject[] = []
  if (unheld.length === 0) {
    for (const part of faultyParts) {
      if (found.length >= shown) break
      found.push(...(await explain(local, part, columns, rules)))
    }
  }
  await local.run(`delete from ${table} where part < 0`)
  return {
    table,
    read: readByUs + refused.length,
    rejected: faulty + refused.length,
    rejects: inOrder([...refused, ...found]).slice(0, shown),
    unheld,
  }
}

/** Holds the engine's reader to the source's own count: a record is landed or rejected, never lost (G9). */
function requireAllRecords(part: SourcePart, landed: number, rejected: number): void {
  if (part.records === undefined || landed + rejected === part.records) return
  throw new StetError(
    'STET_INTERNAL',
    `${part.file?.path ?? 'The source'} holds ${part.records} records, but ${landed} were read and ${rejected} rejected (G9); nothing was written`,
    { hint: 'This is a defect of Stet: please report it with the file' },
  )
}

/** Lands one part; once more, slower and sure, when the engine's threads have not found every record. */
async function landPart(
  local: LocalConnection,
  table: string,
  part: SourcePart,
  index: number,
  columns: readonly ContractColumn[],
  rules: LandingRules,
): Promise<void> {
  const insert = (select: string) =>
    local.run(`insert into ${table} ${landingSql(select, columns, rules, index)}`)
  const wanted = names(columns)
  const isComplete = async () =>
    (await local.count(`select count(*) from ${table} where ${ofPart(index)}`)) === part.records
  const empty = () => local.run(`delete from ${table} where ${ofPart(index)}`)
  const early = await landEarly(part, wanted, insert)
  if (early === 'holds' && (await isComplete())) return
  if (early !== 'none') await empty()
  if (part.selectByOneThread === undefined) return insert(part.select(wanted))
  const complete =
    early !== 'holds' &&
    // An error of a reader that begins in the wrong place says nothing of the file.
    (await insert(part.select(wanted)).then(isComplete, () => false))
  if (complete) return
  await empty()
  await insert(part.selectByOneThread(wanted))
}

/** Lands a part while its source still looks at it: whether it could, and whether what it has read counts. */
async function landEarly(
  part: SourcePart,
  wanted: readonly string[],
  insert: (select: string) => Promise<void>,
): Promise<'none' | 'holds' | 'void'> {
  const { early } = part
  if (early === undefined) return 'none'
  // Whatever the look finds, the statement has to be over before the connection is asked for anything else.
  const [inserted, held] = await Promise.allSettled([insert(early.select(wanted)), early.holds()])
  if (held.status === 'rejected') throw held.reason
  return inserted.status === 'fulfilled' && held.value ? 'holds' : 'void'
}

/** By file as they were read, and by line within each. */
function inOrder(rejects: readonly Reject[]): Reject[] {
  const files = [...new Set(rejects.map((reject) => reject.file))]
  return rejects.toSorted(
    (a, b) => files.indexOf(a.file) - files.indexOf(b.file) || (a.line ?? 0) - (b.line ?? 0),
  )
}

function selectSurely(part: SourcePart, columns: readonly ContractColumn[]): string {
  return (part.selectByOneThread ?? part.select)(names(columns))
}

function names(columns: readonly ContractColumn[]): string[] {
  return columns.map((column) => column.name)
}

/** What stands for the source's text of a column: itself, or a key's normal form. */
function textOf(column: ContractColumn, rules: Pick<LandingRules, 'normalizeKey'>): string {
  const normalized =
    column.key && rules.normalizeKey === 'nfc' && ['text', 'varchar', 'char'].includes(column.type.kind)
  return normalized ? `nfc_normalize(s.${column.id})` : `s.${column.id}`
}

/** Whether a NULL in this column refuses the row. */
export function isRequired(column: ContractColumn, rules: Pick<LandingRules, 'nullKeys'>): boolean {
  return (column.key && rules.nullKeys === 'reject') || column.newest || (column.required ?? false) !== false
}

/**
 * The rows of a part that the landing takes, in the part's order: the row's number `n`, for each column the source's text by
 * its id, and the value as landed as `v_` and its id.
 */
export function takenRowsSql(
  part: SourcePart,
  columns: readonly ContractColumn[],
  rules: Pick<LandingRules, 'nullKeys' | 'normalizeKey'>,
): string {
  return `
    select *
      from (select s.*, ${valuesSql(columns, rules).join(', ')}
              from (select row_number() over () as n, * from (${selectSurely(part, columns)})) as s)
     where not (${faultsSql(columns, rules).join(' or ')})`
}

function valuesSql(
  columns: readonly ContractColumn[],
  rules: Pick<LandingRules, 'normalizeKey'>,
): readonly string[] {
  return columns.map((column) => `${readSql(column, textOf(column, rules))} as v_${column.id}`)
}

function faultsSql(
  columns: readonly ContractColumn[],
  rules: Pick<LandingRules, 'nullKeys'>,
): readonly string[] {
  return columns.map((column) =>
    isRequired(column, rules)
      ? `v_${column.id} is null`
      : `(v_${column.id} is null and ${column.id} is not null)`,
  )
}

/** A row at fault has the complement of its part's index: one small column says both, and costs next to nothing. */
const faulty = (part: number): number => -1 - part

function ofPart(part: number): string {
  return `part in (${part}, ${faulty(part)})`
}

/** One scan: each column's value, and where the row comes from. */
function landingSql(
  select: string,
  columns: readonly ContractColumn[],
  rules: LandingRules,
  part: number,
): string {
  return `
    select ${columns.map((column) => `v_${column.id}`).join(', ')},
           case when ${faultsSql(columns, rules).join(' or ')} then ${faulty(part)} else ${part} end
      from (select s.*, ${valuesSql(columns, rules).join(', ')}
              from (${select}) as s)`
}

/** Why a NULL refuses its row, in words that follow the value. */
export function reasonForNull(column: ContractColumn): string {
  if (column.key) return 'is NULL, and the key may not be'
  if (column.required === 'cursor') return 'is NULL, and the run reads by it'
  return column.newest
    ? 'is NULL, and decides which row is newest'
    : 'is NULL, and the table does not take NULL there'
}

async function partsWithFaults(
  local: LocalConnection,
  table: string,
  parts: readonly SourcePart[],
): Promise<readonly SourcePart[]> {
  const rows = await local.rows(
    `select distinct -1 - part as index from ${table} where part < 0 order by index`,
  )
  return rows.flatMap((row) => parts[Number(row.index)] ?? [])
}

/** Reads the parts again for columns that hold valid values which the local type cannot hold. */
async function unheldColumns(
  local: LocalConnection,
  parts: readonly SourcePart[],
  columns: readonly ContractColumn[],
): Promise<string[]> {
  const tests = columns.flatMap((column) => {
    const raw = `s.${column.id}`
    const isWide = wideSql(column, raw)
    // Only of what the engine cannot read: the test is dear. In a CASE, because AND has no order.
    const sql = `case when ${raw} is not null and (${readSql(column, raw)}) is null then ${isWide} end`
    return isWide === 'false' ? [] : [{ column, sql }]
  })
  if (tests.length === 0) return []
  const found = new Set<string>()
  for (const part of parts) {
    const [row] = await local.rows(`
      select ${tests.map(({ column, sql }) => `coalesce(bool_or(${sql}), false) as ${column.id}`).join(', ')}
        from (${selectSurely(part, columns)}) as s`)
    for (const { column } of tests) if (row?.[column.id] === true) found.add(column.id)
  }
  return [...found]
}

/** Reads a part again, in its own order, to give its rejects a place and a reason. */
async function explain(
  local: LocalConnection,
  part: SourcePart,
  columns: readonly ContractColumn[],
  rules: LandingRules,
): Promise<Reject[]> {
  const reasons = columns.map((column, position) => {
    const text = textOf(column, rules)
    const missing = reasonForNull(column)
    const reason = isRequired(column, rules)
      ? `case when s.${column.id} is null then ${quoteLiteral(missing)} else ${reasonSql(column, text)} end`
      : reasonSql(column, text)
    return `{'place': ${position}, 'value': left(s.${column.id}, ${VALUE_SHOWN_CHARACTERS}), 'reason': ${reason}}`
  })
  // A row may have several faults, and a quarantine needs every row.
  const limit = rules.keepRejects === undefined ? REJECTS_SHOWN : rules.keepRejects * columns.length
  // Row numbers mean something only in the file's own order, which the landing gives up for speed.
  await local.run('set preserve_insertion_order = true')
  const faults = await local.rows(`
    select n, fault.place as place, fault.value as value, fault.reason as reason
      from (select n, unnest([${reasons.join(', ')}]) as fault
              from (select row_number() over () as n, * from (${selectSurely(part, columns)})) as s)
     where fault.reason is not null
     order by n, place
     limit ${limit}`)
  await local.run('set preserve_insertion_order = false')
  const numbers = [...new Set(faults.map((fault) => Number(fault.n)))]
  const places = await part.locate(numbers)
  const placeOf = new Map(numbers.map((number, index) => [number, places[index]]))
  return faults.map((fault): Reject => {
    const place = placeOf.get(Number(fault.n))
    return {
      file: part.file?.path ?? null,
      line: place?.line ?? null,
      column: columns[Number(fault.place)]?.name ?? null,
      value: fault.value === null ? null : String(fault.value),
      reason: String(fault.reason),
      raw: rules.keepRejects === undefined ? place?.raw.slice(0, VALUE_SHOWN_CHARACTERS * 5) : place?.raw,
    }
  })
}
