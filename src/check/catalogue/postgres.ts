/**
 * The strict second pass for PostgreSQL: its own parser reads the DDL that the tolerant reader may have misread. It is
 * loaded with the first statement that needs it. What it refuses (another dialect, a template hole) is left to the
 * tolerant reader: its failure never takes anything away.
 */
import { nameFromText } from '../sql/name.ts'
import type { Name } from '../sql/statement.ts'
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

type Node = Readonly<Record<string, unknown>>

/** The statements of a text as PostgreSQL's parser has them: kind and body; undefined if it refuses the text. */
export async function parsePostgres(sql: string): Promise<(readonly [string, Node])[] | undefined> {
  const { parse } = await import('libpg-query')
  let tree: unknown
  try {
    tree = await parse(sql)
  } catch {
    // Not a statement of PostgreSQL, or not one as it stands.
    return undefined
  }
  return list(field(tree, 'stmts')).flatMap((one) => {
    const [kind, body] = Object.entries(record(field(one, 'stmt')))[0] ?? []
    return kind === undefined ? [] : [[kind, record(body)] as const]
  })
}

/** What one DDL statement says of its table; undefined if PostgreSQL does not take it. */
export async function readPostgresDdl(
  sql: string,
  path: string,
  start: number,
): Promise<DdlFact[] | undefined> {
  const statements = await parsePostgres(sql)
  return statements?.flatMap(([kind, body]) => {
    const fact = factOf(kind, body, path, start)
    return fact === undefined ? [] : [fact]
  })
}

function factOf(kind: string, body: Node, path: string, start: number): DdlFact | undefined {
  switch (kind) {
    case 'CreateStmt':
      return readTable(body, path, start)
    case 'CreateTableAsStmt': {
      const relation = record(field(field(body, 'into'), 'rel'))
      const table = emptyTable(relationName(relation), path, start)
      table.temporary = relation.relpersistence === 't'
      table.fromQuery = true
      return { table, parents: [] }
    }
    case 'IndexStmt':
      return body.unique === true
        ? { target: relationName(record(body.relation)), change: (table) => addIndex(body, table) }
        : undefined
    case 'AlterTableStmt': {
      const changes = list(body.cmds).flatMap((one) => changeOf(record(field(one, 'AlterTableCmd'))) ?? [])
      return {
        target: relationName(record(body.relation)),
        change: (table) => {
          for (const change of changes) change(table)
        },
      }
    }
    case 'CreateTrigStmt': {
      // Bit 4 of the events is update.
      const onUpdate = typeof body.events === 'number' && (body.events & 16) !== 0
      const named = [String(body.trigname ?? ''), ...names(body.funcname)].join(' ')
      return onUpdate && looksLikeTouch(named)
        ? {
            target: relationName(record(body.relation)),
            change: (table) => {
              table.touchTrigger = true
            },
          }
        : undefined
    }
    default:
      return undefined
  }
}

function readTable(body: Node, path: string, start: number): DdlFact {
  const relation = record(body.relation)
  const table = emptyTable(relationName(relation), path, start)
  table.temporary = relation.relpersistence === 't'
  // Children and copies have the columns and keys of another table.
  table.fromQuery = list(body.inhRelations).length > 0
  const parents: Name[] = []
  const elements = list(body.tableElts).map(record)
  for (const element of elements) {
    if ('ColumnDef' in element) readColumn(record(element.ColumnDef), table, parents)
    if ('TableLikeClause' in element) table.fromQuery = true
  }
  for (const element of elements)
    if ('Constraint' in element) readConstraint(record(element.Constraint), table, parents)
  return { table, parents }
}

const SERIAL = /^(?:small|big)?serial[248]?$/
const RANDOM = /^(?:nextval|gen_random_uuid|uuid_generate_v\w+|uuidv4|uuidv7)$/

function readColumn(definition: Node, table: TableDraft, parents: Name[]): void {
  const name = String(definition.colname ?? '').toLowerCase()
  const constraints = list(definition.constraints).map((one) => record(field(one, 'Constraint')))
  const has = (type: string): boolean => constraints.some((one) => one.contype === type)
  const fallback = constraints.find((one) => one.contype === 'CONSTR_DEFAULT')
  const generated =
    names(field(definition.typeName, 'names')).some((part) => SERIAL.test(part)) ||
    has('CONSTR_IDENTITY') ||
    names(field(field(fallback?.raw_expr, 'FuncCall'), 'funcname')).some((part) => RANDOM.test(part))
  addColumn(table, {
    name,
    notNull: has('CONSTR_NOTNULL') || has('CONSTR_PRIMARY') || generated,
    generated,
    defaulted: fallback !== undefined,
  })
  for (const constraint of constraints)
    readConstraint({ ...constraint, keys: undefined, own: name }, table, parents)
}

/** A constraint of a table, or with `own` that of one column. */
function readConstraint(constraint: Node, table: TableDraft, parents: Name[]): void {
  const columns = typeof constraint.own === 'string' ? [constraint.own] : names(constraint.keys)
  switch (constraint.contype) {
    case 'CONSTR_PRIMARY':
    case 'CONSTR_UNIQUE':
      // `using index` names no columns.
      if (columns.length > 0)
        addKey(table, columns, {
          primary: constraint.contype === 'CONSTR_PRIMARY',
          nullsNotDistinct: constraint.nulls_not_distinct === true,
        })
      break
    case 'CONSTR_FOREIGN':
      if (constraint.fk_del_action === 'c') parents.push(relationName(record(constraint.pktable)))
      break
    default:
  }
}

function addIndex(body: Node, table: TableDraft): void {
  const columns = list(body.indexParams).map((one) => {
    const element = record(field(one, 'IndexElem'))
    return typeof element.name === 'string' ? element.name.toLowerCase() : '(expression)'
  })
  addKey(table, columns, {
    nullsNotDistinct: body.nulls_not_distinct === true,
    partial: body.whereClause !== undefined,
  })
}

function changeOf(command: Node): Change | undefined {
  const definition = record(command.def)
  const name = String(command.name ?? '').toLowerCase()
  switch (command.subtype) {
    case 'AT_AddColumn':
      return (table) => readColumn(record(definition.ColumnDef), table, [])
    case 'AT_AddConstraint':
      return (table) => readConstraint(record(definition.Constraint), table, [])
    case 'AT_AddIdentity':
      return (table) => addColumn(table, { name, notNull: true, generated: true, defaulted: true })
    case 'AT_SetNotNull':
      return (table) => setNotNull(table, name, true)
    case 'AT_DropNotNull':
      return (table) => setNotNull(table, name, false)
    case 'AT_DropColumn':
      return (table) => {
        table.columns = table.columns.filter((column) => column.name !== name)
        table.keys = table.keys.filter((key) => !key.columns.includes(name))
      }
    default:
      return undefined
  }
}

function relationName(relation: Node): Name {
  return nameFromText(
    [relation.catalogname, relation.schemaname, relation.relname]
      .filter((part): part is string => typeof part === 'string')
      .join('.'),
  )
}

function isRecord(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function record(value: unknown): Node {
  return isRecord(value) ? value : {}
}

function field(value: unknown, name: string): unknown {
  return record(value)[name]
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The texts of a list of `String` nodes, in lower case. */
function names(value: unknown): string[] {
  return list(value).map((one) => String(field(field(one, 'String'), 'sval') ?? '').toLowerCase())
}
