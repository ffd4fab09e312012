/** Where a job keeps how far it has read: a small table that is read and written back, or a variable of Airflow. */
import type { FileFacts, SqlUse } from '../facts.ts'
import type { HostCall } from '../languages/host.ts'
import { readsTable } from '../sequence.ts'
import type { Token } from '../sql/lexer.ts'

/** Names of tables that say how far a job has come. */
export const STORE: RegExp =
  /watermark|checkpoint|cursor|bookmark|high_water|sync_state|last_(?:run|sync|load|import|export)|(?:etl|load|job|sync|import)_(?:state|control|progress|status|meta)/i
const POSITION =
  /^(?:last_|latest_|max_|high_water|watermark|cursor|checkpoint|synced_|loaded_|position|value|until)/i

export interface WatermarkWrite {
  readonly start: number
  readonly end: number
  readonly order: number
  readonly name: string
  readonly use: SqlUse | undefined
  readonly call: HostCall | undefined
  readonly value: readonly Token[] | undefined
  readonly source: string
}

/** Writes of a position that the same file also reads; anything else may be a log of runs. */
export function watermarkWrites(file: FileFacts): WatermarkWrite[] {
  const found: WatermarkWrite[] = []
  for (const use of file.sql) {
    const { statement } = use
    const { target } = statement
    if (statement.kind !== 'update' || target === undefined || !STORE.test(target.parts.at(-1) ?? ''))
      continue
    const set = statement.set.find(({ column }) => POSITION.test(column))
    const isRead = file.sql.some(
      (one) =>
        one !== use && one.statement.tokens !== statement.tokens && readsTable(one.statement.tokens, target),
    )
    if (set === undefined || !isRead) continue
    found.push({
      start: use.start,
      end: use.end,
      order: use.order,
      name: target.text,
      use,
      call: use.call,
      value: set.value,
      source: set.value.map((token) => token.text).join(' '),
    })
  }
  const { host } = file
  for (const call of host?.calls ?? []) {
    if (host === undefined || call.callee !== 'Variable.set' || call.args.length < 2) continue
    const [key, value] = call.args
    if (key === undefined || value === undefined) continue
    const name = host.source(key)
    const isRead = host.calls.some(
      (one) =>
        one.callee === 'Variable.get' && one.args[0] !== undefined && host.source(one.args[0]) === name,
    )
    if (!isRead) continue
    found.push({
      start: call.start,
      end: call.end,
      order: call.start,
      name,
      use: undefined,
      call,
      value: undefined,
      source: host.source(value),
    })
  }
  return found
}
