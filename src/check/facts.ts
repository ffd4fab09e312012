/** What is known of one file, and of the repository around it. */
import type { Catalogue } from './catalogue/index.ts'
import type { Context, RepositoryKind } from './context.ts'
import type { DbtModel, DbtProject } from './languages/dbt.ts'
import type { HostCall, HostFacts, HostFunction, HostText } from './languages/host.ts'
import type { MappedText } from './languages/mapped-text.ts'
import type { ShellCommand, ShellFacts } from './languages/shell.ts'
import type { SqlComment, TemplateTag } from './sql/lexer.ts'
import type { Statement } from './sql/statement.ts'

export type Language = 'sql' | 'dbt' | 'python' | 'typescript' | 'shell'

export type SqlDialect =
  | 'postgres'
  | 'mysql'
  | 'sqlite'
  | 'bigquery'
  | 'snowflake'
  | 'redshift'
  | 'spark'
  | 'duckdb'
  | 'clickhouse'
  | 'cassandra'
  | 'tsql'
  | 'oracle'
  | 'trino'
  | 'unknown'

/** A statement, where it stands and how it is run. */
export interface SqlUse {
  readonly statement: Statement
  readonly mapped: MappedText
  readonly origin: 'file' | 'text' | 'shell' | 'routine'
  /** Of the file. */
  readonly start: number
  readonly end: number
  readonly text: HostText | undefined
  readonly fn: HostFunction | undefined
  /** The call that runs it, if it was found. */
  readonly call: HostCall | undefined
  readonly command: ShellCommand | undefined
  /** Where it is run; orders the statements of a function. */
  readonly order: number
  /** Statements with the same id commit together. Undefined: unknown, often the caller's. */
  readonly transaction: string | undefined
  /** Known to commit by itself. */
  readonly commitsAlone: boolean
  readonly loop: boolean
  readonly context: Context
}

export interface FileFacts {
  readonly path: string
  readonly text: string
  readonly language: Language
  readonly dialect: SqlDialect
  readonly context: Context
  readonly sql: readonly SqlUse[]
  readonly host: HostFacts | undefined
  readonly shell: ShellFacts | undefined
  readonly model: DbtModel | undefined
  readonly tags: readonly TemplateTag[]
  readonly comments: readonly SqlComment[]
  /** Statements that no front end could read. */
  readonly notUnderstood: number
  contextOf(fn: HostFunction | undefined): Context
}

/** What is known before a file is read. */
export interface ReadOptions {
  readonly kind: RepositoryKind
  readonly dbt: readonly DbtProject[]
  /** Of the configuration; otherwise it is guessed. */
  readonly dialect?: SqlDialect | undefined
}

export interface CheckSettings {
  /** Tables that are emptied or filled anew by themselves: globs on the name. */
  readonly stagingTables: readonly RegExp[]
  readonly logTables: readonly RegExp[]
  /** Calls and decorators that make what is inside run once: `io.runTask`, `once`. */
  readonly safeWrappers: readonly string[]
}

export interface ProjectFacts {
  readonly kind: RepositoryKind
  readonly catalogue: Catalogue
  readonly dbt: readonly DbtProject[]
  readonly settings: CheckSettings
  /** Parameters with a default that every caller in the repository overrides: `function/parameter`. */
  readonly overridden: ReadonlySet<string>
  /** Tables that some file empties or drops, by name, with the files that do. */
  readonly emptied: ReadonlyMap<string, ReadonlySet<string>>
  /** Tables that some file drops, by name, with the files that do. */
  readonly dropped: ReadonlyMap<string, ReadonlySet<string>>
  /** Macros of the repository that ask is_incremental() themselves. */
  readonly incrementalMacros: ReadonlySet<string>
}
