import { quoteIdentifier } from '../../local/quote.ts'
import type { Contract } from '../../model/columns.ts'
import { inSliceSql } from './slice-sql.ts'
import {
  assignments,
  comparedColumns,
  DIFFERENCE,
  EXISTING,
  inDifference,
  inExcluded,
  inTable,
  keyMatch,
  keyOf,
  notSettled,
  ownedSql,
  PRESENT,
  rowDiffers,
  rowMatch,
  tableIsNewer,
  WRITTEN,
  type WriteContext,
} from './sql.ts'
import { hasTriggerBefore } from './triggers.ts'

/** A table of the target's own types, typmods and collations for the rows that differ. */
export function createDifferenceSql({ table, contract }: Pick<WriteContext, 'table' | 'contract'>): string {
  const columns = contract.columns.map((column) => `${inTable('t')(column)} as ${column.id}`)
  return `create temp table stet_difference on commit drop as
select null::bigint as n, null::text as op, null::text as row_id, null::text as content_hash,
       ${columns.join(', ')}
  from ${table.identity.qualified} as t
  with no data`
}

/** `table (columns)` of the difference, in the order in which the local engine gives them. */
export function differenceTarget(contract: Contract): string {
  return `${DIFFERENCE} (n, op, row_id, content_hash, ${contract.columns.map(({ id }) => id).join(', ')})`
}

/** Tables for what the database found and did. */
export function createWorkTablesSql({ contract }: WriteContext): string {
  const key = keyOf(contract).map((column) => `${column.id}`)
  return `create temp table stet_existing (n bigint, round integer, was_gone boolean) on commit drop;
create temp table stet_written on commit drop as
select null::text as op, ${key.join(', ')}
  from ${DIFFERENCE}
  with no data`
}

/** Keeps other writers out, where the unique index does not by itself. Readers are not held up. */
export function lockTableSql({ table }: WriteContext): string {
  return `lock table ${table.identity.qualified} in share row exclusive mode`
}

/**
 * Finds which keys the table has and locks those rows, in key order, so that two writers never wait for each other in a
 * ring. What is decided about them afterwards cannot change before the commit.
 */
export function lookUpSql(context: WriteContext, round: 1 | 2): string {
  const { table, contract } = context
  const { gone } = contract.keep
  const order = keyOf(contract).map(inDifference).join(', ')
  const unsettled = round === 1 ? '' : `\n     and ${notSettled(context)}`
  return `insert into ${EXISTING} (n, round, was_gone)
  select d.n, ${round}, ${gone === null ? 'false' : `t.${quoteIdentifier(gone)} is not null`}
    from ${DIFFERENCE} as d
    join ${table.identity.qualified} as t
      on ${rowMatch(context)}
   where ${PRESENT}${unsettled}
   order by ${order}
     for update of t`
}

interface Written {
  readonly names: readonly string[]
  readonly values: readonly string[]
}

function writtenColumns({ contract }: WriteContext): Written {
  const { updatedAt, contentHash } = contract.keep
  const names = contract.columns.map((column) => quoteIdentifier(column.name))
  const values = contract.columns.map(inDifference)
  if (contentHash !== null) {
    names.push(quoteIdentifier(contentHash))
    values.push('d.content_hash')
  }
  if (updatedAt !== null) {
    names.push(quoteIdentifier(updatedAt))
    values.push('now()')
  }
  return { names, values }
}

/**
 * Writes the rows whose key is there. The guards are repeated: only a row that differs is touched, none that is newer, and
 * none outside the slice. `on conflict` also shows what BEFORE INSERT triggers make of a row, so that one which they make
 * equal is left alone.
 */
export function updateSql(context: WriteContext, round: 1 | 2): string {
  const { table, contract, enforcement, write } = context
  const { names, values } = writtenColumns(context)
  const key = keyOf(contract)
  const returning = key.map(inTable('t')).join(', ')
  const guards = (value: typeof inExcluded) => {
    const newer = tableIsNewer(context, value)
    return [
      rowDiffers(context, value),
      ...(newer === null ? [] : [`not ${newer}`]),
      ...(write.strategy === 'replace-partition' ? ownedSql(context) : []),
    ].join('\n     and ')
  }
  if (enforcement === 'table lock') {
    // No index names the key alone. A plain update also moves a row to the partition where it belongs now.
    return `with written as (
  update ${table.identity.qualified} as t
     set ${assignments(context, inDifference, 'd.content_hash')}
    from ${DIFFERENCE} as d
    join ${EXISTING} as e
      on e.n = d.n
   where e.round = ${round}
     and ${keyMatch(key, 't', 'd')}
     and ${guards(inDifference)}
  returning ${returning})
insert into ${WRITTEN}
select 'update', * from written`
  }
  return `with written as (
  insert into ${table.identity.qualified} as t (${names.join(', ')})
  select ${values.join(', ')}
    from ${DIFFERENCE} as d
    join ${EXISTING} as e
      on e.n = d.n
   where e.round = ${round}
   order by ${key.map(inDifference).join(', ')}
      on conflict (${key.map((column) => quoteIdentifier(column.name)).join(', ')}) do update
     set ${assignments(context, inExcluded, `excluded.${quoteIdentifier(contract.keep.contentHash ?? '')}`)}
   where ${guards(inExcluded)}
  returning ${returning})
insert into ${WRITTEN}
select 'update', * from written`
}

/** Inserts the rows whose key is not there. One that another writer has put there meanwhile is left for the second look. */
export function insertSql(context: WriteContext): string {
  const { table, contract, enforcement } = context
  const { names, values } = writtenColumns(context)
  const key = keyOf(contract)
  const conflict =
    enforcement === 'index'
      ? `\n      on conflict (${key.map((column) => quoteIdentifier(column.name)).join(', ')}) do nothing`
      : ''
  return `with written as (
  insert into ${table.identity.qualified} as t (${names.join(', ')})
  select ${values.join(', ')}
    from ${DIFFERENCE} as d
   where ${PRESENT}
     and not exists (select from ${EXISTING} as e where e.n = d.n)
   order by ${key.map(inDifference).join(', ')}${conflict}
  returning ${key.map(inTable('t')).join(', ')})
insert into ${WRITTEN}
select 'insert', * from written`
}

/**
 * Inserts rows that have no key. Where a trigger may change them on the way, also counts those that are not in the slice any
 * more, and, by column, the values that were not sent. Without a key nothing tells which row was which.
 */
export function appendSql(context: WriteContext): string {
  const { table, contract, slice } = context
  const { names, values } = writtenColumns(context)
  const isChecked = hasTriggerBefore(table, 'onInsert')
  const returned = contract.columns.map(inTable('t')).join(', ')
  const counts = ['(select count(*) from written) as rows']
  if (isChecked) {
    if (slice !== null && contract.columns.some(({ name }) => name === slice.by)) {
      const inSlice = inSliceSql(table, slice, 't')
      counts.push(`(select count(*) from written as t where (${inSlice}) is not true) as outside`)
    }
    // By text, because not every type can be compared, as many times as it is there.
    for (const column of comparedColumns(contract)) {
      counts.push(`(select count(*)
          from (select ${inTable('t')(column)}::text collate "C" from written as t
                except all
                select ${inDifference(column)}::text collate "C" from ${DIFFERENCE} as d where d.op = 'insert') as other) as ${column.id}`)
    }
  }
  return `with written as (
  insert into ${table.identity.qualified} as t (${names.join(', ')})
  select ${values.join(', ')}
    from ${DIFFERENCE} as d
   where d.op = 'insert'
  returning ${isChecked ? returned : '1'})
select ${counts.join(',\n       ')}`
}
