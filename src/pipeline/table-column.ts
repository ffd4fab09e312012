import type { TargetColumn, TargetTable } from '../model/target.ts'

/** The table's column of this name, by the target's own rule of which names are one; undefined where there is none. */
export function tableColumn(table: TargetTable | null, name: string): TargetColumn | undefined {
  const exact = table?.columns.find((column) => column.name === name)
  if (exact !== undefined || table?.namesInAnyCase !== true) return exact
  return table.columns.find((column) => column.name.toLowerCase() === name.toLowerCase())
}
