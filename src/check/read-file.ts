/** Reads one file into {@link FileFacts}: chooses the front end, finds the SQL in it and how each statement is run. */
import {
  contextOfHost,
  contextOfPath,
  contextOfSqlFile,
  type Context,
  type RepositoryKind,
} from './context.ts'
import type { FileFacts, Language, SqlDialect, SqlUse } from './facts.ts'
import { type DbtProject, looksLikeDbt, readModel } from './languages/dbt.ts'
import type { HostCall, HostFacts, HostFunction, HostText } from './languages/host.ts'
import { type MappedText, plainMapping } from './languages/mapped-text.ts'
import type { ShellCommand, ShellFacts } from './languages/shell.ts'
import { ancestor } from './languages/tree.ts'
import { lexSql } from './sql/lexer.ts'
import { splitStatements } from './sql/split.ts'
import type { Statement } from './sql/statement.ts'
import { commitOf } from './transactions.ts'

export interface ReadOptions {
  readonly kind: RepositoryKind
  readonly dbt: readonly DbtProject[]
  readonly dialect?: SqlDialect | undefined
}

export function languageOf(path: string): Language | undefined {
  if (/\.(?:sql|hql|ddl|pgsql|mysql|bq|cql|psql|sql\.j2|sql\.jinja2?)$/i.test(path)) return 'sql'
  if (/\.py$/.test(path)) return 'python'
  if (/\.[cm]?[jt]sx?$/.test(path) && !/\.(?:d|min)\.[cm]?[jt]s$/.test(path)) return 'typescript'
  if (/\.(?:sh|bash|ksh)$/.test(path)) return 'shell'
  return undefined
}

/**
 * The words without one of which no rule can find anything in a host file. A plain search over the text costs a
 * hundredth of the parse, and most files of a repository hold none of them.
 */
const PYTHON_TRIGGER =
  /\binsert\b|\bdelete\s+from\b|\bmerge\s+into\b|\btruncate\b|\bcreate\s+(?:temp\w*\s+|or\s+replace\s+)?table\b|\bcopy\s+[\w.{"]+|\bto_sql\b|\bto_gbq\b|WRITE_APPEND|saveAsTable|\.mode\(|\binsertInto\b|insert_rows|insertAll|\bupdate\s+[\w."{`]+\s+set\b|['"]ab?\+?['"]|\buuid[14]\b|token_hex|(?:now|today|utcnow|time)\(\)|\.now\(|get_last_dagrun|idempotency|write_pandas|load_table|smtp|send_email|slack|requests\.post|bulk_create|add_all|if_exists|\bselect\b[^\n]*\bmax\s*\(/i
const TYPESCRIPT_TRIGGER =
  /\binsert\s*(?:into|\(|ignore|or\b)|\bdelete\s+from\b|\bmerge\s+into\b|\btruncate\b|\bcreate\s+table\b|appendFile|createWriteStream|writeFile|PutObjectCommand|putObject|writeToS3|insertAll|\.insert\(|insertMany|insertOne|createMany|\bupdate\s+[\w."$`{]+\s+set\b|\bincrement\s*:|\$inc\b|idempotency|Idempotency|helpers\.insert|['"`]BEGIN|sendMessage|webhook|sendMail|resend|chat\.postMessage|MessageDeduplicationId|stripe|dedup/i

const SQL_START =
  /^\s*(?:(?:--[^\n]*\n|\/\*[\s\S]*?\*\/|⟦[^⟧]*⟧)\s*)*(?:insert\s+(?:\w+\s+){0,3}[\w."`⟦[{$]|delete\s+from\b|merge\s+(?:into\b)?|update\s+[\s\S]{1,120}?\bset\b|truncate\s+(?:table\s+)?[\w."`⟦{$]|copy\s+(?:into\s+)?[\w."`⟦{$][\s\S]*\bfrom\b|replace\s+into\b|create\s+[\w\s]{0,40}(?:table|index|view|trigger|function|procedure)\b|alter\s+table\b|drop\s+(?:table|view)\b|begin\s*(?:;|transaction\b|work\b|$)|start\s+transaction\b|commit\s*(?:;|$)|rollback\s*(?:;|$)|load\s+data\b|with\s+[\w"⟦`]+\s*(?:\([^)]*\)\s*)?as\s*(?:(?:not\s+)?materialized\s*)?\(|select\b[\s\S]*\bfrom\b|upsert\s+into\b|declare\b[\s\S]*;)/i

const LOGGERS =
  /^(?:writeFile|writeFileSync|write_text|write|print|log|info|debug|warning|warn|error|exception|critical|echo|append|ValueError|Exception|Error|RuntimeError|fail|test|it|describe|startswith|includes|endswith|replace|match|search|sub|compile|getLogger|assert\w*|expect|add_argument|help)$/

export async function readFileFacts(path: string, text: string, options: ReadOptions): Promise<FileFacts> {
  const language = languageOf(path)
  const byPath = contextOfPath(path)
  if (language === 'python' || language === 'typescript') {
    if (byPath === 'test' || !(language === 'python' ? PYTHON_TRIGGER : TYPESCRIPT_TRIGGER).test(text))
      return empty(path, text, language)
    // Bundles and generated code: lines of a length that nobody writes.
    if (text.length > 400_000 || (text.length > 20_000 && text.length / (text.split('\n').length + 1) > 400))
      return empty(path, text, language)
    return readHost(path, text, language, options)
  }
  if (language === 'shell') return readShellFile(path, text, options)
  return readSqlFile(path, text, options)
}

function empty(path: string, text: string, language: Language): FileFacts {
  return {
    path,
    text,
    language,
    dialect: 'unknown',
    context: contextOfPath(path),
    sql: [],
    host: undefined,
    shell: undefined,
    model: undefined,
    tags: [],
    comments: [],
    notUnderstood: 0,
    contextOf: () => contextOfPath(path),
  }
}

interface UseOptions {
  readonly origin: SqlUse['origin']
  readonly context: Context
  readonly text?: HostText
  readonly fn?: HostFunction | undefined
  readonly call?: HostCall | undefined
  readonly command?: ShellCommand
  readonly transaction?: string | undefined
  readonly commitsAlone?: boolean
  readonly loop?: boolean
  readonly order?: number
}

function usesOf(statements: readonly Statement[], mapped: MappedText, options: UseOptions): SqlUse[] {
  const uses: SqlUse[] = []
  for (const statement of statements) {
    const start = mapped.at(statement.start)
    uses.push({
      statement,
      mapped,
      origin: options.origin,
      start,
      end: mapped.at(Math.max(statement.start, statement.end - 1)) + 1,
      text: options.text,
      fn: options.fn,
      call: options.call,
      command: options.command,
      // Statements of one text run at one place, one after the other.
      order: (options.order ?? start) + statement.start / 1e7,
      transaction: options.transaction,
      commitsAlone: options.commitsAlone ?? false,
      loop: options.loop ?? false,
      context: options.context,
    })
    uses.push(...routineUses(statement, mapped, options))
  }
  return uses
}

/** The body of `create function ... as $$ ... $$` and `do $$ ... $$`, which is atomic with its caller. */
function routineUses(statement: Statement, mapped: MappedText, options: UseOptions): SqlUse[] {
  const isDo = statement.tokens[0]?.value === 'do'
  if (statement.kind !== 'create-routine' && !isDo) return []
  const uses: SqlUse[] = []
  for (const token of statement.tokens) {
    if (token.kind !== 'string' || !token.text.startsWith('$')) continue
    const offset = token.start + token.text.indexOf('$', 1) + 1
    const inner: MappedText = { text: token.value, at: (at) => mapped.at(offset + at) }
    const trigger = statement.tokens.some((one) => one.kind === 'word' && one.value === 'trigger')
    uses.push(
      ...usesOf(splitStatements(lexSql(token.value)), inner, {
        ...options,
        origin: 'routine',
        context: trigger ? 'request' : options.context,
        transaction: `routine ${mapped.at(token.start)}`,
        commitsAlone: false,
      }),
    )
  }
  return uses
}

/** Gives the statements between `BEGIN` and `COMMIT` one transaction. */
function withExplicitTransactions(
  uses: readonly SqlUse[],
  sameSession: (left: SqlUse, right: SqlUse) => boolean,
): SqlUse[] {
  let open: SqlUse | undefined
  return uses.map((use) => {
    const { kind } = use.statement
    if (kind === 'begin') open = use
    if (open !== undefined && sameSession(open, use)) {
      const transaction = `begin ${open.start}`
      if (kind === 'commit' || kind === 'rollback') open = undefined
      return { ...use, transaction, commitsAlone: false }
    }
    return use
  })
}

function readSqlFile(path: string, text: string, options: ReadOptions): FileFacts {
  const lexed = lexSql(text)
  const statements = splitStatements(lexed)
  const dbt = looksLikeDbt(text)
  const model = dbt ? readModel(path, lexed, options.dbt) : undefined
  const context = contextOfSqlFile(path, options.kind)
  const dialect = options.dialect ?? guessDialect(path, text)
  const uses = usesOf(statements, plainMapping(text), { origin: 'file', context })
  const notUnderstood = dbt
    ? 0
    : statements.filter((statement) => statement.kind === 'other' && !isQuiet(statement)).length
  return {
    path,
    text,
    language: dbt ? 'dbt' : 'sql',
    dialect,
    context,
    sql: withExplicitTransactions(uses, (left, right) => left.origin === right.origin),
    host: undefined,
    shell: undefined,
    model,
    tags: lexed.tags,
    comments: lexed.comments,
    notUnderstood,
    contextOf: () => context,
  }
}

/** Statements of no interest for a rerun, known by their first word. */
function isQuiet(statement: Statement): boolean {
  const first = statement.tokens[0]
  if (first === undefined || first.kind === 'hole') return true
  return /^(?:use|show|describe|desc|comment|analyze|vacuum|refresh|msck|add|declare|end|if|else|then|return|returns|raise|do|lock|unlock|pragma|attach|detach|install|copy|put|get|list|explain|reset|print|go|grant|revoke|for|while|loop|perform|execute|fetch|open|close|exception|prepare|deallocate|notify|listen|checkpoint|cluster|reindex|set|let|values|table|optimize|cache|uncache|assert|delimiter|repair|elsif|elseif|when|case|exit|continue|null|\(|\)|discard|savepoint|release|kill|flush|repeat|until|import|unload|suspend|resume|undrop|call|begin|with|from|security|label)$/.test(
    first.value,
  )
}

async function readHost(
  path: string,
  text: string,
  language: 'python' | 'typescript',
  options: ReadOptions,
): Promise<FileFacts> {
  // Loaded with the grammar only when a file needs it: a run over SQL alone starts in a fraction of the time.
  const facts: HostFacts =
    language === 'python'
      ? await (await import('./languages/python.ts')).readPython(text)
      : await (await import('./languages/typescript.ts')).readTypeScript(path, text)
  const contexts = new Map<HostFunction | undefined, Context>()
  const contextOf = (fn: HostFunction | undefined): Context => {
    const known = contexts.get(fn)
    if (known !== undefined) return known
    const found = contextOfHost(path, facts, fn, options.kind)
    contexts.set(fn, found)
    return found
  }
  const uses: SqlUse[] = []
  let broken = 0
  for (const one of facts.texts) {
    const { mapped } = one
    if (mapped.text.length < 5 || !SQL_START.test(mapped.text)) continue
    if (one.call !== undefined && LOGGERS.test(one.call.name)) continue
    const whole = withAppended(one, facts)
    const run = one.call ?? runOf(one, facts)
    const fn = run?.fn ?? one.fn
    const commit = run === undefined ? { transaction: undefined, commitsAlone: false } : commitOf(run, facts)
    const statements = splitStatements(lexSql(whole.text))
    broken += statements.filter(
      (statement) =>
        statement.kind === 'other' &&
        /^(?:insert|merge|update|delete)$/.test(statement.tokens[0]?.value ?? ''),
    ).length
    // One call sends its statements together; PostgreSQL and MySQL drivers wrap a list in one transaction as well.
    const together =
      statements.length > 1 && commit.commitsAlone && !/bigquery|snowflake/i.test(facts.imports)
    uses.push(
      ...usesOf(statements, whole, {
        origin: 'text',
        context: contextOf(fn),
        text: one,
        fn,
        call: run,
        transaction:
          together || (one.inList && commit.commitsAlone)
            ? `call ${run?.start ?? one.start}`
            : commit.transaction,
        commitsAlone: commit.commitsAlone && !together && !one.inList,
        loop: run?.loop ?? false,
        order: run === undefined ? one.start : run.start + Math.max(one.start - run.start, 0),
      }),
    )
  }
  uses.sort((left, right) => left.order - right.order)
  return {
    path,
    text,
    language,
    dialect: options.dialect ?? guessDialect(path, text),
    context: contextOf(undefined),
    sql: withExplicitTransactions(
      uses,
      (left, right) => left.fn === right.fn && left.call?.receiver === right.call?.receiver,
    ),
    host: facts,
    shell: undefined,
    model: undefined,
    tags: [],
    comments: [],
    notUnderstood: facts.errors + broken,
    contextOf,
  }
}

/** `sql += " where ..."` behind it belongs to the text. */
function withAppended(one: HostText, facts: HostFacts): MappedText {
  if (one.variable === undefined) return one.mapped
  const more = facts.assignments.filter(
    (later) => later.name === one.variable && later.fn === one.fn && later.start > one.start && later.appends,
  )
  if (more.length === 0) return one.mapped
  const added = more.map((later) => facts.textOf(later.value) ?? '').join(' ')
  const { length } = one.mapped.text
  return {
    text: `${one.mapped.text} ${added}`,
    at: (offset) => one.mapped.at(Math.min(offset, Math.max(0, length - 1))),
  }
}

/** The call that a text is handed to by its variable: `sql = "insert ..."`, later `cur.execute(sql, rows)`. */
function runOf(one: HostText, facts: HostFacts): HostCall | undefined {
  if (one.variable === undefined) return returnedTo(one, facts)
  const name = one.variable.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const takes = new RegExp(
    `^(?:await\\s+)?(?:[\\w.]+\\()*(?:self\\.|\\w+\\.)?${name.replace(/^self\\\./, '')}(?:$|[\\s.,)\\[%])`,
  )
  return facts.calls.find((call) => {
    if (call.start <= one.start && one.fn !== undefined) return false
    if (one.fn !== undefined && !within(call.fn, one.fn)) return false
    if (LOGGERS.test(call.name) || call.name === 'format') return false
    return [...call.args, ...call.named.values()].some((argument) => {
      const source = facts.source(argument)
      return source.length < 400 && takes.test(source)
    })
  })
}

/** `execute(insert_sql(points))` where `insert_sql` returns the text. */
function returnedTo(one: HostText, facts: HostFacts): HostCall | undefined {
  const { fn } = one
  if (
    fn === undefined ||
    fn.name === '' ||
    ancestor(one.node, 'return_statement', ...FUNCTION_TYPES)?.type !== 'return_statement'
  )
    return undefined
  const inner = facts.calls.find((call) => call.name === fn.name && call.fn !== fn)
  if (inner === undefined) return undefined
  const outer = inner.node.parent?.parent
  return (outer === undefined ? undefined : facts.callOf(outer)) ?? inner
}

const FUNCTION_TYPES = [
  'function_definition',
  'lambda',
  'arrow_function',
  'function_declaration',
  'method_definition',
  'function_expression',
]

function within(fn: HostFunction | undefined, outer: HostFunction): boolean {
  for (let at = fn; at !== undefined; at = at.parent) if (at === outer) return true
  return false
}

const SQL_FLAGS = /^(?:-c|--command|-e|--execute|-q|--query|-Q|--sql|--statement|--query-string)$/
const SQL_COMMANDS = new Set([
  'psql',
  'mysql',
  'mariadb',
  'bq',
  'snowsql',
  'sqlite3',
  'duckdb',
  'hive',
  'beeline',
  'clickhouse-client',
  'clickhouse',
  'sqlcmd',
  'spark-sql',
  'trino',
  'presto',
  'athena',
  'aws',
  'cqlsh',
  'impala-shell',
  'snow',
])

async function readShellFile(path: string, text: string, options: ReadOptions): Promise<FileFacts> {
  const { readShell } = await import('./languages/shell.ts')
  const shell: ShellFacts = await readShell(text)
  const byPath = contextOfPath(path)
  const context: Context = byPath === 'test' || byPath === 'migration' ? byPath : 'script'
  const uses: SqlUse[] = []
  for (const command of shell.commands) {
    if (!SQL_COMMANDS.has(command.name)) continue
    const single = command.args.some((one) => /^(?:-1|--single-transaction)$/.test(one.text))
    const add = (mapped: MappedText): void => {
      if (!SQL_START.test(mapped.text)) return
      const statements = splitStatements(lexSql(mapped.text))
      // psql runs the statements of one -c as one transaction.
      const together = single || (command.name === 'psql' && command.heredoc !== mapped)
      uses.push(
        ...usesOf(statements, mapped, {
          origin: 'shell',
          context,
          command,
          transaction: together ? `command ${command.start}` : undefined,
          commitsAlone: !together || statements.length === 1,
          loop: command.loop,
        }),
      )
    }
    for (const [index, argument] of command.args.entries()) {
      const before = command.args[index - 1]?.text ?? ''
      if (SQL_FLAGS.test(before) || /\s/.test(argument.text)) add(argument.mapped)
    }
    if (command.heredoc !== undefined) add(command.heredoc)
  }
  return {
    path,
    text,
    language: 'shell',
    dialect: options.dialect ?? guessDialect(path, text),
    context,
    sql: withExplicitTransactions(uses, (left, right) => left.command === right.command),
    host: undefined,
    shell,
    model: undefined,
    tags: [],
    comments: [],
    notUnderstood: shell.errors,
    contextOf: () => context,
  }
}

const DIALECT_SIGNS: readonly (readonly [SqlDialect, RegExp])[] = [
  ['cassandra', /\bcassandra\b|\bcql\b|create\s+keyspace|\bUSING\s+TTL\b/i],
  ['clickhouse', /MergeTree\b|clickhouse/i],
  [
    'spark',
    /\.hql$|\busing\s+(?:delta|iceberg|parquet)\b|insert\s+overwrite\s+table|tblproperties|stored\s+as\s+(?:parquet|orc)|\bpyspark\b/i,
  ],
  [
    'bigquery',
    /bigquery|\bbq\s+(?:query|load)\b|`[\w${}-]+\.[\w${}]+\.[\w${}]+`|\bsafe_cast\b|_table_suffix/i,
  ],
  ['snowflake', /snowflake|\bcopy\s+into\b|\bvariant\b|\bflatten\s*\(|file_format\s*=/i],
  ['redshift', /redshift|\bdistkey\b|\bsortkey\b|\bdiststyle\b/i],
  ['mysql', /\bon\s+duplicate\s+key\b|engine\s*=\s*innodb|\bauto_increment\b|mysql|insert\s+ignore\b/i],
  ['sqlite', /sqlite|insert\s+or\s+(?:replace|ignore)|\bautoincrement\b|\bpragma\b/i],
  [
    'postgres',
    /\bon\s+conflict\b|psycopg|postgres|\bbigserial\b|\bserial\b|\bjsonb\b|\$\$|from ['"]pg['"]|require\(['"]pg['"]\)/i,
  ],
  ['tsql', /\bgetdate\(\)|\bnvarchar\b|^go\s*$|\[dbo\]|pyodbc|mssql/im],
  ['duckdb', /duckdb/i],
  ['trino', /trino|presto/i],
]

function guessDialect(path: string, text: string): SqlDialect {
  const sample = text.length > 30_000 ? text.slice(0, 30_000) : text
  for (const [dialect, sign] of DIALECT_SIGNS) if (sign.test(path) || sign.test(sample)) return dialect
  return 'unknown'
}
