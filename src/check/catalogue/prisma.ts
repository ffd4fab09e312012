/** Models of a Prisma schema as tables, under their own name and the name they are mapped to. */
import { nameFromText } from '../sql/name.ts'
import { inside } from './brackets.ts'
import { addColumn, addKey, type DdlFact, emptyTable } from './table.ts'

export function readPrisma(path: string, text: string): DdlFact[] {
  const facts: DdlFact[] = []
  for (const match of text.matchAll(/^[ \t]*model\s+(\w+)\s*\{/gm)) {
    const [head, model = ''] = match
    const start = match.index + head.indexOf('model')
    const body = inside(text, match.index + head.length - 1)
    const mapped = /@@map\(\s*(?:name:\s*)?"([^"]+)"/.exec(body)?.[1]
    for (const name of new Set([model, mapped ?? model]))
      facts.push({ table: readModel(name, body, path, start), parents: [] })
  }
  return facts
}

function readModel(name: string, body: string, path: string, start: number): ReturnType<typeof emptyTable> {
  const table = emptyTable(nameFromText(name), path, start)
  const columnOf = new Map<string, string>()
  const keys: { columns: string[]; primary: boolean }[] = []
  for (const line of body.split('\n')) {
    const code = line.replace(/\/\/.*$/, '').trim()
    const list = /^@@(id|unique)\(\s*(?:fields:\s*)?\[([^\]]*)\]/.exec(code)
    if (list !== null) {
      const columns = (list[2] ?? '').split(',').map((part) => part.trim().replace(/\(.*$/, ''))
      keys.push({ columns, primary: list[1] === 'id' })
      continue
    }
    const field = /^(\w+)\s+(\w+)(\?|\[\])?\s*(.*)$/.exec(code)
    // A relation is no column of its own.
    if (field === null || code.includes('@relation') || field[3] === '[]') continue
    const [, property = '', , optional, attributes = ''] = field
    const column = (/@map\(\s*(?:name:\s*)?"([^"]+)"/.exec(attributes)?.[1] ?? property).toLowerCase()
    columnOf.set(property, column)
    const primary = /@id\b/.test(attributes)
    addColumn(table, {
      name: column,
      notNull: optional !== '?',
      generated:
        /@default\(\s*(?:autoincrement|uuid|cuid|nanoid|ulid|dbgenerated\("(?:gen_random_uuid|uuid_generate))/.test(
          attributes,
        ),
      defaulted: attributes.includes('@default'),
    })
    if (primary || /@unique\b/.test(attributes)) keys.push({ columns: [property], primary })
  }
  for (const { columns, primary } of keys)
    addKey(
      table,
      columns.map((property) => columnOf.get(property) ?? property.toLowerCase()),
      { primary },
    )
  return table
}
