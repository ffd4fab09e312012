import type { TargetColumn, TargetTable } from '../model/target.ts'
import type { DefinedPipeline } from './types.ts'

/** The table's column of this name, by the target's own rule of which names are one; undefined where there is none. */
export function tableColumn(table: TargetTable | null, name: string): TargetColumn | undefined {
  const exact = table?.columns.find((column) => column.name === name)
  if (exact !== undefined || table?.namesInAnyCase !== true) return exact
  return table.columns.find((column) => column.name.toLowerCase() === name.toLowerCase())
}

/** Whether a transform takes the source's column out, or makes another of that name: the table's says nothing of it then. */
export function isMadeAnew({ transform }: DefinedPipeline, column: string): boolean {
  return transform?.drops?.includes(column) === true || Object.hasOwn(transform?.adds ?? {}, column)
}
