import { quoteLiteral } from '../local/quote.ts'
import type { Columns } from '../model/columns.ts'
import type { Source } from '../model/source.ts'

const ROWS_A_STATEMENT = 500

/** Rows as text, `null` for NULL: the smallest source there is, for contracts and examples of faults. */
export function literalRows<C extends Columns>(
  columns: C,
  rows: readonly (readonly (string | null)[])[],
): Source<C> {
  const names = Object.keys(columns)
  return {
    kind: 'literal',
    columns,
    description: `${rows.length} literal rows`,
    // Other rows are the same source at another time.
    identity: 'literal',
    open: async ({ local }) => {
      const table = local.newName('literal')
      await local.run(
        `create table ${table} (n bigint, ${names.map((_, position) => `f${position} varchar`).join(', ')})`,
      )
      const literals = rows.map((row, index) => {
        const values = row.map((value) => (value === null ? 'null' : quoteLiteral(value)))
        return `(${[index, ...values].join(', ')})`
      })
      for (let from = 0; from < literals.length; from += ROWS_A_STATEMENT) {
        await local.run(
          `insert into ${table} values ${literals.slice(from, from + ROWS_A_STATEMENT).join(', ')}`,
        )
      }
      return {
        fields: names.map((name) => ({ name })),
        files: [],
        parts: [
          {
            file: null,
            select: (wanted) =>
              `select ${wanted.map((name, position) => `f${names.indexOf(name)} as c${position}`).join(', ')} from ${table} order by n`,
            rejects: async () => [],
            locate: async (numbers) =>
              numbers.map((line) => ({ line, raw: JSON.stringify(rows[line - 1] ?? null) })),
          },
        ],
        verify: async () => undefined,
        [Symbol.asyncDispose]: async () => undefined,
      }
    },
  }
}
