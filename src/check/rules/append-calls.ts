/** Bulk loads of Python that append: what `append-load`, `dataframe-append` and `delete-insert-no-tx` have in common. */
import type { HostCall, HostFacts } from '../languages/host.ts'
import type { SyntaxNode } from '../languages/tree.ts'
import { oncePer } from '../per-file.ts'

export interface AppendCall {
  readonly call: HostCall
  readonly kind: 'frame' | 'load'
  /** The table as written, if it is. */
  readonly target: string | undefined
  readonly start: number
  readonly end: number
}

export const appendCalls: (host: HostFacts) => readonly AppendCall[] = oncePer((host: HostFacts) =>
  host.language === 'python' ? host.calls.flatMap((call) => readAppend(host, call) ?? []) : [],
)

function readAppend(host: HostFacts, call: HostCall): AppendCall | undefined {
  const { name, named } = call
  const literal = (node: SyntaxNode | undefined): string | undefined =>
    node === undefined ? undefined : (host.textOf(node) ?? host.source(node))
  const at = (node: SyntaxNode, kind: AppendCall['kind'], target: string | undefined): AppendCall => ({
    call,
    kind,
    target,
    start: node.start,
    end: node.end,
  })
  if (name === 'to_sql' || name === 'to_gbq' || name === 'write_database') {
    const mode = named.get('if_exists') ?? named.get('if_table_exists')
    if (mode === undefined || host.textOf(mode) !== 'append') return undefined
    return at(
      call.node,
      'frame',
      literal(named.get('name') ?? named.get('con_table') ?? named.get('destination_table') ?? call.args[0]),
    )
  }
  if (
    name === 'saveAsTable' ||
    name === 'save' ||
    name === 'insertInto' ||
    name === 'jdbc' ||
    name === 'parquet' ||
    name === 'csv' ||
    name === 'json' ||
    name === 'orc' ||
    name === 'toTable'
  ) {
    return sparkAppend(host, call, at, literal)
  }
  if (/^(?:wr|awswrangler)\./.test(call.callee) && literal(named.get('mode')) === 'append') {
    return at(call.node, 'frame', literal(named.get('table') ?? named.get('path')))
  }
  const disposition = named.get('write_disposition')
  if (
    disposition !== undefined &&
    /^(?:['"]?|.*\.)(?:WRITE_APPEND|append)['"]?$/i.test(host.source(disposition))
  ) {
    const target =
      named.get('destination_project_dataset_table') ??
      named.get('destination_dataset_table') ??
      named.get('destination') ??
      named.get('table_name')
    // A job configuration only names its table in the call that it is handed to.
    return at(disposition, 'load', /JobConfig$/.test(name) ? undefined : literal(target))
  }
  // An operator of the repository's own that takes BigQuery's word for it.
  const mode = named.get('mode') ?? named.get('write_mode') ?? named.get('if_exists')
  if (
    mode !== undefined &&
    /(?:Operator|Task)$/.test(name) &&
    /^['"]WRITE_APPEND['"]$/.test(host.source(mode))
  ) {
    return at(
      mode,
      'load',
      literal(named.get('output_table') ?? named.get('table') ?? named.get('destination_table')),
    )
  }
  return undefined
}

/** `df.write.mode('append')...`: the mode stands anywhere in the chain. */
function sparkAppend(
  host: HostFacts,
  call: HostCall,
  at: (node: SyntaxNode, kind: AppendCall['kind'], target: string | undefined) => AppendCall,
  literal: (node: SyntaxNode | undefined) => string | undefined,
): AppendCall | undefined {
  if (!/\bwrite\b/.test(call.receiver)) return undefined
  const chain = host.source(call.node)
  const mode = call.named.get('mode')
  const appends =
    /\.mode\(\s*(?:saveMode\s*=\s*)?['"]append['"]\s*\)/i.test(chain) ||
    (mode !== undefined && literal(mode) === 'append')
  if (call.name === 'insertInto') {
    const overwrites = call.named.get('overwrite') ?? call.args[1]
    if (
      /\.mode\(\s*['"]overwrite/.test(chain) ||
      (overwrites !== undefined && /^True$/i.test(host.source(overwrites)))
    )
      return undefined
    return at(call.node, 'frame', literal(call.args[0]))
  }
  return appends ? at(call.node, 'frame', literal(call.args[0])) : undefined
}
