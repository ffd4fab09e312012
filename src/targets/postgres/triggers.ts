import { StetError } from '../../errors.ts'
import type { ContractColumn } from '../../model/columns.ts'
import { groupDigits } from '../../model/words.ts'
import type { CatalogTable } from './catalog.ts'
import type { Connection } from './connection.ts'
import { sampleSql } from './settle-sql.ts'
import type { WriteContext } from './sql.ts'

type TriggerEvent = 'onInsert' | 'onUpdate' | 'onDelete'

/** So many written rows are read again to see whether a trigger has changed them. */
const SAMPLE_ROWS = 100

/** Rows that a trigger did not let through. */
export function suppressed(what: string, event: TriggerEvent, context: WriteContext): StetError {
  return stopped(`${what} of ${context.table.identity.qualified} were suppressed`, event, context)
}

/** New rows that a trigger has put into another slice: every run would miss them there and write them again (G2). */
export function movedOut(rows: number, slice: string, context: WriteContext): StetError {
  const what = `${groupDigits(rows)} new rows of ${context.table.identity.qualified} were moved out of slice ${slice}`
  return stopped(what, 'onInsert', context)
}

function stopped(what: string, event: TriggerEvent, context: WriteContext): StetError {
  const triggers = triggersOf(context, event)
  const cure =
    event === 'onDelete'
      ? 'so that it returns the old row, or do not let the pipeline delete'
      : 'so that it returns the row as it is, or leave these rows out of the load'
  return new StetError('STET_TRIGGER', `${what} by a trigger (${triggers})`, {
    hint: `Nothing was written. Change ${triggers} ${cure}`,
  })
}

/** Whether rows may be changed or stopped before an event. */
export function hasTriggerBefore({ rowTriggers }: CatalogTable, event: TriggerEvent): boolean {
  return rowTriggers.some((trigger) => trigger[event] && trigger.before)
}

/** The BEFORE triggers of an event, by name. */
export function triggersOf({ table }: WriteContext, event: TriggerEvent): string {
  return named(table.rowTriggers.filter((trigger) => trigger[event] && trigger.before))
}

function named(triggers: CatalogTable['rowTriggers']): string {
  // One that many partitions have is named with the first of them.
  const names = new Map<string, string>()
  for (const { name, partition } of triggers) {
    if (!names.has(name))
      names.set(name, partition === null ? `"${name}"` : `"${name}" of partition ${partition}`)
  }
  return names.size === 0 ? 'a trigger' : `trigger ${[...names.values()].join(', ')}`
}

/**
 * A trigger that rewrites a value makes the row differ from its source for ever, and every run would write it again (G2).
 * Some of the written rows are read once more, and what was changed is said.
 */
export async function sayWhatTriggersChanged(
  connection: Connection,
  context: WriteContext,
  notice: (message: string) => void,
): Promise<void> {
  const [sample] = await connection.query(sampleSql(context, SAMPLE_ROWS))
  if (sample === undefined) return
  if (Number(sample.gone) > 0) throw suppressed(`${sample.gone} written rows`, 'onInsert', context)
  const rewritten = context.contract.columns.filter(({ id }) => Number(sample[id] ?? 0) > 0)
  sayRewritten(context, rewritten, notice)
}

/** Says which columns hold something else than what was sent; nothing where none does. */
export function sayRewritten(
  { table }: WriteContext,
  rewritten: readonly ContractColumn[],
  notice: (message: string) => void,
): void {
  if (rewritten.length === 0) return
  const triggers = named(table.rowTriggers)
  notice(
    `${triggers.charAt(0).toUpperCase()}${triggers.slice(1)} on ${table.identity.qualified} rewrites ${rewritten
      .map(({ name }) => `"${name}"`)
      .join(', ')}: every run finds these rows changed and writes them again (G2)`,
  )
}
