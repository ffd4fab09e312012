import { StetError } from '../../errors.ts'
import { quoteLiteral } from '../../local/quote.ts'
import { endsFor, inSliceSql, isBigint } from '../../local/slice.ts'
import type { Contract, ContractColumn } from '../../model/columns.ts'
import type { Slice } from '../../model/slice.ts'
import { readColumnSql } from './forms.ts'

/** The column that says which slice a row belongs to. */
export function sliceColumn(contract: Contract, slice: Slice): ContractColumn {
  const column = contract.columns.find(({ name }) => name === slice.by)
  if (column !== undefined) return column
  throw new StetError(
    'STET_INTERNAL',
    `The slice ${slice.name} is cut by ${slice.by}, which the run does not load`,
  )
}

/**
 * The condition under which the target's row `stet_t` belongs to the slice; NULL or false where it does not. Bare
 * comparisons where the column allows it: by them DuckDB leaves out whole blocks of rows that it would otherwise read.
 */
export function sliceSql(contract: Contract, slice: Slice): string {
  const column = sliceColumn(contract, slice)
  const stored = readColumnSql(column)
  const native = column.asText || slice.bounds.kind === 'value' ? undefined : BOUND_TYPE[column.type.kind]
  if (native === undefined || slice.bounds.kind === 'value') return inSliceSql(column, stored, slice.bounds)
  const ends = endsFor(column.type, slice.bounds)
  // The first and the last range of a bigint reach beyond it; these two are not worth more.
  const type = native === 'BIGINT' && !(isBigint(ends.from) && isBigint(ends.to)) ? 'HUGEINT' : native
  return `${stored} >= ${quoteLiteral(ends.from)}::${type} and ${stored} < ${quoteLiteral(ends.to)}::${type}`
}

/** The same as a further line of a statement's conditions; nothing where no slice is known. */
export function andInSlice(contract: Contract, slice: Slice | null): string {
  return slice === null ? '' : `\n   and ${sliceSql(contract, slice)}`
}

/** Whole numbers all as the widest: the end of the last slice of a smallint is no smallint any more. */
const BOUND_TYPE: Readonly<Partial<Record<ContractColumn['type']['kind'], string>>> = {
  date: 'DATE',
  timestamp: 'TIMESTAMP',
  timestamptz: 'TIMESTAMP WITH TIME ZONE',
  smallint: 'BIGINT',
  integer: 'BIGINT',
  bigint: 'BIGINT',
}
