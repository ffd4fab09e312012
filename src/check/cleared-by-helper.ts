/** What a file's own helper does to a table that is handed to it. */
import type { FileFacts, SqlUse } from './facts.ts'
import type { HostCall, HostFacts, HostFunction } from './languages/host.ts'
import { makesRoom } from './makes-room.ts'
import { callsIn } from './sequence.ts'
import type { Name } from './sql/statement.ts'

/**
 * The call before a statement whose function deletes from the same table: `empty(engine, table)`, and then
 * `copy into {table}`. The two commit apart unless the caller sees to it, which one file does not show.
 */
export function clearedByHelper(file: FileFacts, use: SqlUse): HostCall | undefined {
  const { host } = file
  const { target } = use.statement
  if (host === undefined || target === undefined || use.origin !== 'text' || use.fn === undefined)
    return undefined
  const emptying = file.sql.filter(
    (one) =>
      one.fn !== undefined &&
      one.fn !== use.fn &&
      one.fn.name !== '' &&
      makesRoom(one.statement) &&
      one.statement.target !== undefined,
  )
  if (emptying.length === 0) return undefined
  return callsIn(host, use.fn).find(
    (call) =>
      call.start < use.order &&
      emptying.some(
        (one) =>
          one.fn?.name === call.name &&
          one.statement.target !== undefined &&
          handsOver(call, one.fn, one.statement.target, target, host),
      ),
  )
}

/** Whether the call gives the helper, for the name it deletes from, the name that is filled behind it. */
function handsOver(
  call: HostCall,
  helper: HostFunction,
  emptied: Name,
  filled: Name,
  host: HostFacts,
): boolean {
  const parameter = holeOf(emptied)
  if (parameter === undefined) return emptied.parts.at(-1) === filled.parts.at(-1)
  const own = helper.parameters.filter((name) => name !== 'self' && name !== 'cls')
  const place = own.findIndex((name) => name.toLowerCase() === parameter)
  const given = call.named.get(own[place] ?? '') ?? call.args[place]
  return place >= 0 && given !== undefined && meansTable(host.source(given), filled)
}

/** Whether an expression of the host stands for the table: the literal name, or the expression in its hole. */
function meansTable(expression: string, name: Name): boolean {
  const written = spellingsOf(expression)
  return spellings(name).some((one) => written.includes(one))
}

/** What {@link meansTable} compares, to look many of them up: the hole with its brackets, and the last name. */
export function spellings(name: Name): readonly string[] {
  const hole = holeOf(name)
  const last = name.parts.at(-1) ?? ''
  return hole === undefined ? [last] : [last, `{${hole}}`]
}

export function spellingsOf(expression: string): readonly string[] {
  const text = expression.replace(/^[fr]?['"`]|['"`]$/g, '').toLowerCase()
  return [text.split('.').at(-1) ?? '', `{${text.replace(/\s+/g, '')}}`]
}

/** `load.table` of a name whose last part is the hole `{load.table}`. */
function holeOf(name: Name): string | undefined {
  return /^(?:\{\$?\{?|⟦)([^{}⟦⟧]+?)(?:\}+|⟧)$/.exec(name.parts.at(-1) ?? '')?.[1]?.toLowerCase()
}
