import { StetError } from '../../errors.ts'
import type { Connection } from './connection.ts'
import { sampleSql } from './settle-sql.ts'
import type { WriteContext } from './sql.ts'

/** So many written rows are read again to see whether a trigger has changed them. */
const SAMPLE_ROWS = 100

/** Rows that a trigger did not let through. */
export function suppressed(what: string, event: 'onInsert' | 'onUpdate', context: WriteContext): StetError {
  const triggers = triggersOf(context, event)
  return new StetError(
    'STET_TRIGGER',
    `${what} of ${context.table.identity.qualified} were suppressed by a trigger (${triggers})`,
    {
      hint: `Nothing was written. Change ${triggers} so that it returns the row, or leave these rows out of the load`,
    },
  )
}

/** The BEFORE triggers of an event, by name. */
export function triggersOf({ table }: WriteContext, event: 'onInsert' | 'onUpdate'): string {
  const names = table.rowTriggers
    .filter((trigger) => trigger[event] && trigger.before)
    .map(({ name }) => `"${name}"`)
  return names.length === 0 ? 'a trigger' : `trigger ${names.join(', ')}`
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
  if (rewritten.length === 0) return
  const names = context.table.rowTriggers.map(({ name }) => `"${name}"`)
  notice(
    `Trigger ${names.join(', ')} on ${context.table.identity.qualified} rewrites ${rewritten
      .map(({ name }) => `"${name}"`)
      .join(', ')}: every run finds these rows changed and writes them again (G2)`,
  )
}
