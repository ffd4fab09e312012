/** Tables that migrations of Knex and node-pg-migrate create. */
import { nameFromText } from '../sql/name.ts'
import { inside, partsOf, quotedNames } from './brackets.ts'
import {
  addColumn,
  addKey,
  type Change,
  type DdlFact,
  emptyTable,
  looksLikeTouch,
  setNotNull,
  type TableDraft,
} from './table.ts'

export function readJavaScriptMigrations(path: string, text: string): DdlFact[] {
  // What `down` makes is what the migration takes away.
  const down = text.search(/\bexports\.down\b|\bexport\s+(?:async\s+)?(?:function|const)\s+down\b/)
  const code = down < 0 ? text : text.slice(0, down)
  const facts: DdlFact[] = []
  for (const match of code.matchAll(/\b(pgm|schema)\s*\.\s*(\w+)\(|\.\s*(createTable|alterTable|table)\(/g)) {
    const method = match[2] ?? match[3] ?? ''
    const source = inside(code, match.index + match[0].length - 1)
    const [first = '', ...rest] = partsOf(source)
    const name = textOf(first, text)
    if (name === undefined) continue
    const target = nameFromText(name)
    const change = (apply: Change): void => {
      facts.push({ target, change: apply })
    }
    if (match[1] === 'pgm') readPgm(method, rest, name, path, match.index, facts, change)
    else if (/^createTable(?:IfNotExists)?$/.test(method)) {
      const table = emptyTable(target, path, match.index)
      readBuilder(table, rest.join(','))
      facts.push({ table, parents: [] })
    } else if (/^(?:alterTable|table)$/.test(method)) change((table) => readBuilder(table, rest.join(',')))
  }
  return facts
}

/** A quoted name, a constant of the file, or `{ schema: 's', name: 't' }`. */
function textOf(source: string, file: string): string | undefined {
  const quoted = /^['"`]([\w.]+)['"`]$/.exec(source)
  if (quoted !== null) return quoted[1]
  const object = /\bname\s*:\s*['"]([\w.]+)['"]/.exec(source)
  if (object !== null && source.startsWith('{')) {
    const schema = /\bschema\s*:\s*['"](\w+)['"]/.exec(source)
    return schema === null ? object[1] : `${schema[1]}.${object[1]}`
  }
  if (!/^\w+$/.test(source)) return undefined
  return new RegExp(`\\b(?:const|let|var)\\s+${source}\\s*=\\s*['"\`]([\\w.]+)['"\`]`).exec(file)?.[1]
}

function readPgm(
  method: string,
  rest: readonly string[],
  name: string,
  path: string,
  start: number,
  facts: DdlFact[],
  change: (apply: Change) => void,
): void {
  const [second = '', third = ''] = rest
  switch (method) {
    case 'createTable': {
      const table = emptyTable(nameFromText(name), path, start)
      readColumns(table, second)
      readConstraint(table, third)
      facts.push({ table, parents: [] })
      break
    }
    case 'addColumn':
    case 'addColumns':
      change((table) => readColumns(table, second))
      break
    case 'addConstraint':
      change((table) => readConstraint(table, third))
      break
    case 'createIndex':
    case 'addIndex':
      if (/\bunique\s*:\s*true/.test(third))
        change((table) => addKey(table, quotedNames(second), { partial: /\bwhere\s*:/.test(third) }))
      break
    case 'createTrigger': {
      const options = rest.at(-1) ?? ''
      if (/\boperation\s*:[^,}]*UPDATE/i.test(options) && looksLikeTouch(rest.join(' ')))
        change((table) => {
          table.touchTrigger = true
        })
      break
    }
    default:
  }
}

/** `{ id: 'id', day: { type: 'date', notNull: true } }` of node-pg-migrate. */
function readColumns(table: TableDraft, source: string): void {
  const keys: { column: string; primary: boolean }[] = []
  for (const part of partsOf(source.startsWith('{') ? inside(source, 0) : '')) {
    const pair = /^['"]?(\w+)['"]?\s*:\s*([\s\S]*)$/.exec(part)
    if (pair === null) continue
    const [, name = '', definition = ''] = pair
    const column = name.toLowerCase()
    const shorthand = /^['"]id['"]$/.test(definition)
    const primary = shorthand || /\bprimaryKey\s*:\s*true/.test(definition)
    const generated =
      shorthand ||
      /['"](?:big|small)?serial['"]|sequenceGenerated|(?:gen_random_uuid|uuid_generate_v\d)/.test(definition)
    addColumn(table, {
      name: column,
      notNull: primary || /\bnotNull\s*:\s*true/.test(definition),
      generated,
      defaulted: /\bdefault\s*:/.test(definition),
    })
    if (primary || /\bunique\s*:\s*true/.test(definition)) keys.push({ column, primary })
  }
  const primary = keys.filter((key) => key.primary).map((key) => key.column)
  if (primary.length > 0) addKey(table, primary, { primary: true })
  for (const key of keys) if (!key.primary) addKey(table, [key.column])
}

function readConstraint(table: TableDraft, source: string): void {
  for (const match of source.matchAll(/\b(unique|primaryKey)\s*:\s*(\[[\s\S]*?\](?:\s*\])?|['"]\w+['"])/g)) {
    const primary = match[1] === 'primaryKey'
    const groups = partsOf((match[2] ?? '').replace(/^\[|\]$/g, '')).filter((part) => part.startsWith('['))
    for (const group of groups.length > 0 ? groups : [match[2] ?? ''])
      addKey(table, quotedNames(group), { primary })
  }
}

/** `table.string('day').notNullable().unique()` of Knex. */
function readBuilder(table: TableDraft, source: string): void {
  for (const match of source.matchAll(/\b(\w+)\s*\.\s*(\w+)\(/g)) {
    const [head, , method = ''] = match
    const open = match.index + head.length - 1
    const inner = inside(source, open)
    const [first = '', second = ''] = partsOf(inner)
    const chain = source.slice(open, statementEnd(source, open))
    if (/^(?:unique|primary)$/.test(method)) {
      addKey(table, quotedNames(first), { primary: method === 'primary', partial: /predicate/.test(second) })
      continue
    }
    if (/^(?:dropNullable|setNullable)$/.test(method)) {
      setNotNull(table, quotedNames(first)[0] ?? '', method === 'dropNullable')
      continue
    }
    if (method === 'timestamps') {
      for (const name of ['created_at', 'updated_at'])
        addColumn(table, { name, notNull: false, generated: false, defaulted: true })
      continue
    }
    const name = quotedNames(first)[0] ?? (/^(?:increments|bigIncrements)$/.test(method) ? 'id' : undefined)
    if (name === undefined || /^(?:index|foreign|drop\w*|references|inTable|raw|comment)$/.test(method))
      continue
    const counted = /^(?:increments|bigIncrements)$/.test(method)
    const primary = counted ? !/primaryKey\s*:\s*false/.test(second) : /\)\s*\.primary\(/.test(chain)
    addColumn(table, {
      name,
      notNull: counted || primary || /\.notNullable\(/.test(chain),
      generated: counted || /gen_random_uuid|uuid_generate|fn\.uuid\(/.test(chain),
      defaulted: /\.defaultTo\(/.test(chain),
    })
    if (primary || /\)\s*\.unique\(|\)\s*[\s\S]*\.unique\(\s*\)/.test(chain))
      addKey(table, [name], { primary })
  }
}

/** Up to the end of a chain of calls: a line end that no dot follows. */
function statementEnd(source: string, from: number): number {
  const end = /;|\n(?!\s*\.)/.exec(source.slice(from))
  return end === null ? source.length : from + end.index
}
