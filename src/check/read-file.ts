/** Reads one file into {@link FileFacts}: chooses the front end, finds the SQL in it and how each statement is run. */
import { contextOfPath, contextOfSqlFile } from './context.ts'
import { guessDialect } from './dialect.ts'
import type { FileFacts, Language, ReadOptions, SqlDialect } from './facts.ts'
import { looksLikeDbt, readModel } from './languages/dbt.ts'
import { plainMapping } from './languages/mapped-text.ts'
import { readHost } from './read-host.ts'
import { readShellFile } from './read-shell.ts'
import { lexSql } from './sql/lexer.ts'
import { splitStatements } from './sql/split.ts'
import type { Statement } from './sql/statement.ts'
import { usesOf, withExplicitTransactions } from './sql-uses.ts'

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
  /\binsert\b|\bdelete\s+from\b|\bmerge\s+into\b|\btruncate\b|\bcreate\s+(?:temp\w*\s+|or\s+replace\s+)?table\b|\bcopy\s+[\w.{"]+|\bto_sql\b|\bto_gbq\b|WRITE_(?:APPEND|TRUNCATE)|saveAsTable|\.mode\(|\binsertInto\b|insert_rows|insertAll|\bupdate\s+[\w."{`}]+(?:\s+(?:as\s+)?\w+)?\s+set\b|['"]ab?\+?['"]|\buuid[14]\b|token_hex|(?:now|today|utcnow|time)\(\)|\.now\(|get_last_dagrun|idempotency|write_pandas|load_table|smtp|send_email|slack|requests\.post|bulk_create|add_all|insert_one|insert_many|Variable\.set|MergeInto|['"]_index['"]|\.index\(index|if_exists|session\.(?:add|commit)\b|to_csv\(|to_parquet\(|json\.dump\(|\bselect\b[^\n]*\bmax\s*\(/i
const TYPESCRIPT_TRIGGER =
  /\binsert\s*(?:into|\(|ignore|or\b)|\bdelete\s+from\b|\bmerge\s+into\b|\btruncate\b|\bcreate\s+table\b|appendFile|createWriteStream|writeFile|PutObjectCommand|putObject|writeToS3|insertAll|\.insert\(|insertMany|insertOne|Variable|createMany|find(?:Unique|First|One|ById|ByPk)\w*\(|\.create\(\s*\{\s*data|\.values\(|\bupdate\s+[\w."$`{}]+(?:\s+(?:as\s+)?\w+)?\s+set\b|\bincrement\s*:|\$inc\b|idempotency|Idempotency|helpers\.insert|['"`]BEGIN|sendMessage|webhook|sendMail|resend|chat\.postMessage|MessageDeduplicationId|\.(?:key|file_?name|file_?path)\s*=[^=]|stripe|dedup|exports\.handler|export\s+(?:const|async\s+function|function)\s+handler\b/i

/** `count = d.count` and then `count += 1`: a number of a record is moved on. */
const MOVES_ON = /\b(\w+)\s*=\s*\w+\.\1\b[\s\S]{0,1500}?\b\1\s*\+=/

export async function readFileFacts(path: string, text: string, options: ReadOptions): Promise<FileFacts> {
  const language = languageOf(path)
  const byPath = contextOfPath(path)
  if (language === 'python' || language === 'typescript') {
    const trigger = language === 'python' ? PYTHON_TRIGGER : TYPESCRIPT_TRIGGER
    // Bundles and generated code: lines of a length that nobody writes.
    if (text.length > 400_000 || (text.length > 20_000 && text.length / (text.split('\n').length + 1) > 400))
      return empty(path, text, language)
    if (byPath === 'test' || (!trigger.test(text) && !MOVES_ON.test(text))) return empty(path, text, language)
    return bounded(await readHost(path, text, language, options))
  }
  if (language === 'shell') return bounded(await readShellFile(path, text, options))
  return bounded(await readSqlFile(path, text, options))
}

/** More statements than anybody writes by hand: a dump. The rest is counted as not understood. */
const STATEMENT_LIMIT = 4000

function bounded(file: FileFacts): FileFacts {
  const over = file.sql.length - STATEMENT_LIMIT
  if (over <= 0) return file
  return { ...file, sql: file.sql.slice(0, STATEMENT_LIMIT), notUnderstood: file.notUnderstood + over }
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

async function readSqlFile(path: string, text: string, options: ReadOptions): Promise<FileFacts> {
  const lexed = lexSql(text)
  const statements = splitStatements(lexed)
  const dbt = looksLikeDbt(text)
  const model = dbt ? readModel(path, lexed, options.dbt) : undefined
  const context = contextOfSqlFile(path, options.kind)
  const dialect = options.dialect ?? guessDialect(path, text)
  const uses = usesOf(statements, plainMapping(text), { origin: 'file', context })
  const open = dbt ? [] : statements.filter((statement) => statement.kind === 'other' && !isQuiet(statement))
  const notUnderstood = await stillUnread(open, text, dialect)
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

/**
 * Of the statements that the recogniser does not know, those that PostgreSQL does not know either, or that would change
 * rows by its reading.
 */
async function stillUnread(
  statements: readonly Statement[],
  text: string,
  dialect: SqlDialect,
): Promise<number> {
  if (statements.length === 0 || (dialect !== 'postgres' && dialect !== 'unknown')) return statements.length
  const { parsePostgres } = await import('./catalogue/postgres.ts')
  let left = 0
  for (const { start, end } of statements) {
    const parsed = await parsePostgres(text.slice(start, end))
    if (parsed === undefined || parsed.some(([kind]) => /^(?:Insert|Update|Delete|Merge)Stmt$/.test(kind)))
      left += 1
  }
  return left
}

/** Statements of no interest for a rerun, known by their first word. */
function isQuiet(statement: Statement): boolean {
  const first = statement.tokens[0]
  if (first === undefined || first.kind === 'hole') return true
  // Of a table it is read; of a view, type, role or session it changes no rows.
  if (first.value === 'alter') return true
  return /^(?:use|show|describe|desc|comment|analyze|vacuum|refresh|msck|add|declare|end|if|else|then|return|returns|raise|do|lock|unlock|pragma|attach|detach|install|copy|put|get|list|explain|reset|print|go|grant|revoke|for|while|loop|perform|execute|fetch|open|close|exception|prepare|deallocate|notify|listen|checkpoint|cluster|reindex|set|let|values|table|optimize|cache|uncache|assert|delimiter|repair|elsif|elseif|when|case|exit|continue|null|\(|\)|discard|savepoint|release|kill|flush|repeat|until|import|unload|suspend|resume|undrop|call|begin|with|from|security|label)$/.test(
    first.value,
  )
}
