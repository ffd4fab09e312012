/** Tables of Python: models of Django and SQLAlchemy, and what Alembic's migrations create. */
import { nameFromText } from '../sql/name.ts'
import { inside, partsOf, quotedNames } from './brackets.ts'
import { addColumn, addKey, type Change, type DdlFact, emptyTable, type TableDraft } from './table.ts'

export function readPythonModels(path: string, text: string): DdlFact[] {
  const facts: DdlFact[] = []
  if (/\bmodels\.Model\b/.test(text)) facts.push(...readDjango(path, text))
  if (/__tablename__|\bTable\(/.test(text) && /sqlalchemy|db\.Model|SQLModel/.test(text))
    facts.push(...readSqlAlchemy(path, text))
  if (/\bop\.(?:create_table|create_unique_constraint|create_index|add_column)\(/.test(text))
    facts.push(...readAlembic(path, text))
  return facts
}

interface ClassBlock {
  readonly name: string
  readonly bases: string
  readonly body: string
  readonly start: number
}

/** Classes with all lines that are indented below them. */
function classesOf(text: string): ClassBlock[] {
  const found: ClassBlock[] = []
  for (const match of text.matchAll(/^class\s+(\w+)\s*\(([^)]*)\)\s*:[^\n]*\n/gm)) {
    const from = match.index + match[0].length
    const end = /^\S/m.exec(text.slice(from))
    found.push({
      name: match[1] ?? '',
      bases: match[2] ?? '',
      body: text.slice(from, end === null ? text.length : from + end.index),
      start: match.index,
    })
  }
  return found
}

/** The assignments of a class body: `name = Call(...)`, also with an annotation. */
function* fieldsOf(body: string): Iterable<{ name: string; call: string; source: string }> {
  for (const match of body.matchAll(/^[ \t]+(\w+)\s*(?::[^=\n]+)?=\s*([\w.]+)\(/gm)) {
    const open = match.index + match[0].length - 1
    yield { name: match[1] ?? '', call: match[2] ?? '', source: inside(body, open) }
  }
}

function readDjango(path: string, text: string): DdlFact[] {
  const app = path.split('/').at(path.includes('/models/') ? -3 : -2) ?? ''
  return classesOf(text).flatMap(({ name, bases, body, start }) => {
    if (!/\bmodels\.Model\b/.test(bases) || /\babstract\s*=\s*True/.test(body)) return []
    const inDatabase =
      /\bdb_table\s*=\s*['"]([^'"]+)['"]/.exec(body)?.[1]?.replaceAll('"', '') ??
      `${app}_${name}`.toLowerCase()
    return [inDatabase, name].map((one) => {
      const table = emptyTable(nameFromText(one), path, start)
      const keys: string[][] = []
      for (const { name: property, call, source } of fieldsOf(body)) {
        if (!/^(?:\w+\.)?\w+(?:Field|Key)$/.test(call)) continue
        const column =
          /\bdb_column\s*=\s*['"]([^'"]+)['"]/.exec(source)?.[1] ??
          (/ForeignKey$|OneToOneField$/.test(call) ? `${property}_id` : property)
        const primary = /\bprimary_key\s*=\s*True/.test(source)
        addColumn(table, {
          name: column.toLowerCase(),
          notNull: !/\bnull\s*=\s*True/.test(source),
          generated: /AutoField$/.test(call) || (primary && /\bdefault\s*=\s*uuid\.uuid[14]\b/.test(source)),
          defaulted: /\bdefault\s*=/.test(source),
        })
        if (primary) addKey(table, [column.toLowerCase()], { primary })
        else if (/\bunique\s*=\s*True/.test(source) || /OneToOneField$/.test(call))
          keys.push([column.toLowerCase()])
      }
      if (!table.keys.some((key) => key.primary)) {
        addColumn(table, { name: 'id', notNull: true, generated: true, defaulted: true })
        addKey(table, ['id'], { primary: true })
      }
      for (const columns of keys) addKey(table, columns)
      for (const columns of djangoConstraints(body))
        addKey(
          table,
          columns.map((one) => foreign(table, one)),
        )
      return { table, parents: [] }
    })
  })
}

/** `unique_together` and `UniqueConstraint` without a condition. */
function djangoConstraints(body: string): string[][] {
  const found: string[][] = []
  const together = /\bunique_together\s*=\s*([([{])/.exec(body)
  if (together !== null) {
    const source = inside(body, together.index + together[0].length - 1)
    const groups = partsOf(source).filter((part) => /^[([]/.test(part))
    for (const group of groups.length > 0 ? groups : [source]) found.push(quotedNames(group))
  }
  for (const match of body.matchAll(/\bUniqueConstraint\(/g)) {
    const source = inside(body, match.index + match[0].length - 1)
    const fields = /\bfields\s*=\s*[([]([^)\]]*)/.exec(source)?.[1]
    if (fields !== undefined && !/\bcondition\s*=/.test(source)) found.push(quotedNames(fields))
  }
  return found
}

/** The column of a foreign key has another name than its property. */
function foreign(table: TableDraft, name: string): string {
  return table.columns.some((column) => column.name === `${name}_id`) ? `${name}_id` : name
}

function readSqlAlchemy(path: string, text: string): DdlFact[] {
  const facts: DdlFact[] = []
  for (const { name, body, start } of classesOf(text)) {
    const mapped = /__tablename__\s*=\s*['"]([^'"]+)['"]/.exec(body)?.[1]
    if (mapped === undefined) continue
    for (const one of [mapped, name]) {
      const table = emptyTable(nameFromText(one), path, start)
      for (const { name: property, call, source } of fieldsOf(body)) {
        if (!/(?:^|\.)(?:Column|mapped_column|Field)$/.test(call)) continue
        const given = /^\s*['"](\w+)['"]/.exec(source)?.[1]
        readColumn(table, given ?? property, source)
      }
      readConstraints(table, body)
      facts.push({ table, parents: [] })
    }
  }
  for (const match of text.matchAll(/\bTable\(\s*['"](\w+)['"]\s*,/g)) {
    const source = inside(text, match.index + match[0].indexOf('('))
    facts.push({ table: fromColumns(match[1] ?? '', source, path, match.index), parents: [] })
  }
  return facts
}

/** `upgrade` only: what `downgrade` creates is what the migration takes away. */
function readAlembic(path: string, text: string): DdlFact[] {
  const down = text.search(/^def downgrade\b/m)
  const code = down < 0 ? text : text.slice(0, down)
  const facts: DdlFact[] = []
  for (const match of code.matchAll(/\bop\.(\w+)\(/g)) {
    const source = inside(code, match.index + match[0].length - 1)
    const [first = '', second = '', third = ''] = partsOf(source)
    const named = (part: string): string => quotedNames(part)[0] ?? ''
    const schema = /\bschema\s*=\s*['"](\w+)['"]/.exec(source)?.[1]
    const target = (name: string) => nameFromText(schema === undefined ? name : `${schema}.${name}`)
    const change = (name: string, apply: Change): void => {
      if (name !== '') facts.push({ target: target(name), change: apply })
    }
    switch (match[1]) {
      case 'create_table': {
        const table = fromColumns(named(first), source, path, match.index)
        facts.push({ table: { ...table, name: target(named(first)) }, parents: [] })
        break
      }
      case 'create_unique_constraint':
        change(named(second), (table) => addKey(table, quotedNames(third)))
        break
      case 'create_primary_key':
        change(named(second), (table) => addKey(table, quotedNames(third), { primary: true }))
        break
      case 'create_index':
        if (/\bunique\s*=\s*True/.test(source))
          change(named(second), (table) =>
            addKey(table, quotedNames(third), { partial: /_where\s*=/.test(source) }),
          )
        break
      case 'add_column': {
        const column = /Column\(/.exec(source)
        if (column === null) break
        const definition = inside(source, column.index + column[0].length - 1)
        change(named(first), (table) => readColumn(table, named(definition), definition))
        break
      }
      default:
    }
  }
  return facts
}

/** `Table('t', meta, Column(...), UniqueConstraint(...))` and `op.create_table('t', sa.Column(...), ...)`. */
function fromColumns(name: string, source: string, path: string, start: number): TableDraft {
  const table = emptyTable(nameFromText(name), path, start)
  for (const part of partsOf(source)) {
    const call = /^(?:\w+\.)*Column\(/.exec(part)
    if (call === null) continue
    const definition = inside(part, call[0].length - 1)
    const column = quotedNames(partsOf(definition)[0] ?? '')[0]
    if (column !== undefined) readColumn(table, column, definition)
  }
  readConstraints(table, source)
  return table
}

function readColumn(table: TableDraft, name: string, source: string): void {
  const column = name.toLowerCase()
  const primary = /\bprimary_key\s*=\s*True/.test(source)
  const generated =
    /\bautoincrement\s*=\s*True|\bIdentity\(|\b(?:server_)?default\s*=\s*(?:lambda[^,]*|[\w.]*\(?['"]?)?(?:uuid\.?)?(?:uuid[14]|gen_random_uuid|uuid_generate)/.test(
      source,
    ) ||
    // A single integer key counts by itself.
    (primary &&
      /\b(?:Big|Small)?Integer\b|\bint\b/.test(source) &&
      !/autoincrement\s*=\s*False|ForeignKey/.test(source))
  addColumn(table, {
    name: column,
    notNull: primary || /\bnullable\s*=\s*False/.test(source),
    generated,
    defaulted: /\b(?:server_)?default\s*=/.test(source),
  })
  if (primary) {
    // Several columns with primary_key=True make one key.
    const before = table.keys.find((key) => key.primary)
    table.keys = table.keys.filter((key) => key !== before)
    addKey(table, [...(before?.columns ?? []), column], { primary })
  } else if (/\bunique\s*=\s*True/.test(source)) addKey(table, [column])
}

function readConstraints(table: TableDraft, source: string): void {
  for (const match of source.matchAll(/\b(UniqueConstraint|PrimaryKeyConstraint)\(/g)) {
    const inner = inside(source, match.index + match[0].length - 1)
    const columns = quotedNames(
      partsOf(inner)
        .filter((part) => /^['"]/.test(part))
        .join(','),
    )
    if (columns.length > 0) addKey(table, columns, { primary: match[1] === 'PrimaryKeyConstraint' })
  }
}
