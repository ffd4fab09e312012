/** Shell scripts: the SQL that they hand to the clients of databases. */
import { type Context, contextOfPath } from './context.ts'
import { guessDialect } from './dialect.ts'
import type { FileFacts, ReadOptions, SqlUse } from './facts.ts'
import type { MappedText } from './languages/mapped-text.ts'
import type { ShellFacts } from './languages/shell.ts'
import { lexSql } from './sql/lexer.ts'
import { splitStatements } from './sql/split.ts'
import { SQL_START, usesOf, withExplicitTransactions } from './sql-uses.ts'

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

export async function readShellFile(path: string, text: string, options: ReadOptions): Promise<FileFacts> {
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
