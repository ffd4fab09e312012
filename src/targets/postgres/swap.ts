import { createHash } from 'node:crypto'
import { StetError } from '../../errors.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import type { Applied } from '../../model/target.ts'
import { countOf } from '../../model/words.ts'
import { type ApplyOptions, sendDifference } from './apply.ts'
import { sqlstateOf } from './errors.ts'
import { refuseOutside } from './outside.ts'
import {
  createBesideSql,
  finishBesideSql,
  type PartitionShape,
  readShape,
  renameSql,
} from './partition-shape.ts'
import type { Partition } from './partitions.ts'
import { type Patience, withShortLocks } from './short-locks.ts'
import type { WriteContext } from './sql.ts'
import { obstaclesOf } from './swap-checks.ts'
import {
  currentStateSql,
  exchangeSql,
  fillBesideSql,
  lockWritersSql,
  outsideBesideSql,
  tableDefaultsSql,
} from './swap-sql.ts'

/** An exchange of one partition. */
export interface Swap {
  readonly context: WriteContext
  readonly old: Partition
  readonly shape: PartitionShape
  /** Column defaults of the table, by name. */
  readonly defaults: ReadonlyMap<string, string>
  readonly names: SwapNames
}

interface SwapNames {
  readonly beside: string
  readonly index: (position: number) => string
  readonly schemaPrefix: string
}

/** Reads what the exchange has to copy. */
export async function prepareSwap(
  connection: ApplyOptions['connection'],
  context: WriteContext,
  old: Partition,
  attemptId: string,
): Promise<Swap> {
  const shape = await readShape(connection, old)
  const defaults = new Map(
    (await connection.query(tableDefaultsSql, [context.table.oid])).map((row) => [
      row.name ?? '',
      row.value ?? 'null',
    ]),
  )
  return { context, old, shape, defaults, names: namesOf(old, attemptId) }
}

/** Derived from partition and attempt: no two attempts ask for one name, and all of them end with the transaction. */
function namesOf(old: Partition, attemptId: string): SwapNames {
  const hash = createHash('sha256').update(`${old.qualified} ${attemptId}`).digest('hex').slice(0, 16)
  const schemaPrefix = quoteIdentifier(old.schema)
  return {
    beside: `${schemaPrefix}.stet_swap_${hash}`,
    index: (position) => `stet_swap_${hash}_${position}`,
    schemaPrefix,
  }
}

/**
 * Builds the partition anew beside the old one and exchanges them, all in the transaction of the run: one that dies leaves
 * nothing behind. What other transactions write meanwhile is never overwritten: what was built from is compared with what is
 * there, after writers are kept out and before readers are.
 */
export async function swapPartition(
  options: ApplyOptions,
  swap: Swap,
  patience: Patience,
  frozen: boolean,
): Promise<Applied> {
  const { connection } = options
  const { context, old, shape, defaults, names } = swap
  await sendDifference(options, context)
  await connection.query(createBesideSql(shape, old, names.beside))
  const [built] = await connection.query(
    fillBesideSql(context, old.qualified, names.beside, { frozen, defaults }),
  )
  const count = (name: string) => Number(built?.[name])
  refuseDoubled(context, count('matched'), count('keys'))
  await requireBuilt(connection, names.beside, count('rows') - count('deleted') + count('inserted'))
  await revokeDefaults(connection, names.beside)
  for (const statement of finishBesideSql(shape, names.beside, names.index)) {
    await connection.query(statement)
  }
  await connection.query(`analyze ${names.beside}`)
  await exchange(options, swap, built?.state ?? '', patience)
  return {
    inserted: count('inserted'),
    updated: count('updated'),
    unchanged: frozen ? 0 : count('untouched'),
    stale: 0,
    frozen: frozen ? count('untouched') : 0,
    deleted: count('deleted'),
    marked: count('marked'),
    restored: count('restored'),
  }
}

/** Keeps out the writers, looks once more, keeps out the readers, and puts the new partition in place of the old. */
async function exchange(
  { connection }: ApplyOptions,
  swap: Swap,
  state: string,
  patience: Patience,
): Promise<void> {
  const { context, old } = swap
  const { table } = context
  await withShortLocks(connection, `exchange partition ${old.qualified}`, patience, async (tryMs) => {
    // Waiting for these holds up no reader, and must be longer than the second after which a vacuum gives way.
    const writersMs = Math.max(tryMs, Math.min(WRITERS_MS, patience.timeoutMs))
    await connection.query(
      `set local lock_timeout = '${Math.ceil(writersMs)}ms';\n${lockWritersSql(table, old.qualified)}`,
    )
    await requireUntouched(connection, swap, state)
    const outside = outsideBesideSql(context)
    if (outside !== null) refuseOutside(context, (await connection.query(outside))[0])
    await connection
      .query([`set local lock_timeout = '${tryMs}ms'`, ...exchangeStatements(swap)].join(';\n'))
      .catch((error: unknown) => {
        throw dependsOnIt(error, old)
      })
  })
}

/** Longer than the second (`deadlock_timeout`) after which the server ends an automatic vacuum that is in the way. */
const WRITERS_MS = 2_500

function exchangeStatements({ context, old, shape, names }: Swap): readonly string[] {
  const { beside, index, schemaPrefix } = names
  const tableName = quoteIdentifier(old.name)
  return [
    ...exchangeSql(context.table, old, beside),
    ...renameSql(shape, old, { beside, tableName, schemaPrefix }, index),
  ]
}

/** All that a swap sends, for people. */
export function swapStatements(swap: Swap, differenceSql: readonly string[]): readonly string[] {
  const { context, old, shape, defaults, names } = swap
  return [
    ...differenceSql,
    createBesideSql(shape, old, names.beside),
    fillBesideSql(context, old.qualified, names.beside, { frozen: false, defaults }),
    ...finishBesideSql(shape, names.beside, names.index),
    `analyze ${names.beside}`,
    lockWritersSql(context.table, old.qualified),
    currentStateSql(old.qualified),
    ...exchangeStatements(swap),
  ]
}

/** Nobody can have written since the state was read, and nobody can from here on. The definition must not have changed either. */
async function requireUntouched(
  connection: ApplyOptions['connection'],
  { context, old, shape }: Swap,
  state: string,
): Promise<void> {
  const [now] = await connection.query(currentStateSql(old.qualified))
  const refuse = (what: string) =>
    new StetError('STET_SERIALIZATION', `${what} while the partition was built anew`, {
      hint: "Nothing was written; run again. Where others write often, use apply: 'diff'",
    })
  if (now?.state !== state) throw refuse(`Another transaction wrote into ${old.qualified}`)
  const obstacles = await obstaclesOf(connection, context.table, old, null)
  if (obstacles.length > 0 || JSON.stringify(await readShape(connection, old)) !== JSON.stringify(shape)) {
    throw refuse(`Another transaction changed the definition of ${old.qualified}`)
  }
}

async function requireBuilt(
  connection: ApplyOptions['connection'],
  beside: string,
  wanted: number,
): Promise<void> {
  const [row] = await connection.query(`select count(*) as rows from ${beside}`)
  if (Number(row?.rows) === wanted) return
  throw new StetError('STET_INTERNAL', `${beside} has ${row?.rows} rows and not ${wanted}`)
}

/** Default privileges of the role may have given rights that the old partition does not give. */
async function revokeDefaults(connection: ApplyOptions['connection'], beside: string): Promise<void> {
  const rows = await connection.query(
    `select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as who
       from pg_class as c, aclexplode(c.relacl) as a
      where c.oid = $1::regclass and a.grantee <> c.relowner`,
    [beside],
  )
  for (const { who } of rows) await connection.query(`revoke all on ${beside} from ${who}`)
}

function refuseDoubled({ table }: WriteContext, matched: number, keys: number): void {
  if (matched === keys) return
  throw new StetError(
    'STET_KEY_CONSTRAINT',
    `${table.identity.qualified} has ${countOf(matched - keys, 'row')} too many of keys that the load has (G1)`,
    { hint: 'Remove them; no unique constraint of a partitioned table can forbid them' },
  )
}

/** An object that would have to go with the old partition, of a kind that is not looked for by name. */
function dependsOnIt(error: unknown, old: Partition): unknown {
  if (sqlstateOf(error) !== '2BP01') return error
  const { detail } = error as { readonly detail?: string }
  return new StetError(
    'STET_CONFIG',
    `Cannot exchange partition ${old.qualified}: ${detail ?? 'other objects depend on it'}`,
    {
      hint: "Nothing was written. Let them depend on the partitioned table, or use apply: 'diff'",
      cause: error,
    },
  )
}
