/** Reads the files of a repository, gathers what is known across them, and lets every rule speak. */
import { createHash } from 'node:crypto'
import { isDdl, readDdl } from './catalogue/ddl.ts'
import { type CatalogueBuilder, catalogueBuilder } from './catalogue/index.ts'
import { readModels } from './catalogue/models.ts'
import type { DdlFact } from './catalogue/table.ts'
import { countSigns, repositoryKind } from './context.ts'
import { discover, readText } from './discover.ts'
import type { CheckSettings, FileFacts, ProjectFacts, SqlDialect } from './facts.ts'
import type { Finding, Report } from './finding.ts'
import { type DbtProject, readDbtProjects } from './languages/dbt.ts'
import { type MappedText, plainMapping } from './languages/mapped-text.ts'
import { lineIndex } from './lines.ts'
import { literally } from './literally.ts'
import { makesRoom } from './makes-room.ts'
import { languageOf, readFileFacts } from './read-file.ts'
import type { Rule } from './rule.ts'
import { lexSql } from './sql/lexer.ts'
import { splitStatements } from './sql/split.ts'
import type { Statement, StatementKind } from './sql/statement.ts'

export interface EngineOptions {
  readonly root: string
  readonly paths: readonly string[]
  readonly rules: readonly Rule[]
  readonly settings: CheckSettings
  readonly ignore: readonly RegExp[]
  readonly dialects: readonly (readonly [RegExp, SqlDialect])[]
  /** A schema whose keys count before those of the repository: the text of a dump, or what a database told. */
  readonly schema?: string | readonly DdlFact[] | undefined
}

export interface EngineResult {
  readonly findings: readonly Finding[]
  readonly files: number
  /** Statements and syntax that no front end could read, by file. */
  readonly notUnderstood: readonly { readonly path: string; readonly count: number }[]
  /** Files that were not read, or not by one of the rules, with the reason. */
  readonly notRead: readonly { readonly path: string; readonly reason: string }[]
  /** How often a reader or a rule failed on a file, which is a defect of Stet: what it would have found is not known. */
  readonly failures: number
  readonly texts: ReadonlyMap<string, string>
  readonly comments: ReadonlyMap<string, FileFacts>
  readonly facts: ReadonlyMap<string, FileFacts>
  readonly project: ProjectFacts
}

export async function runEngine(options: EngineOptions): Promise<EngineResult> {
  const { root } = options
  const found = discover(root, options.paths, options.ignore)
  const notRead = found.tooLarge.map((path) => ({ path, reason: 'larger than 2 MB' }))
  let failures = 0
  /** One file that a reader fails on takes nothing from all the others; it is listed with what failed. */
  const attempt = async <T>(path: string, by: string, read: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await read()
    } catch (cause) {
      failures += 1
      notRead.push({ path, reason: `${by} failed on it: ${messageOf(cause)}` })
      return undefined
    }
  }
  const texts = new Map<string, string>()
  const catalogue = catalogueBuilder()
  const signs = { pipelines: 0, applications: 0 }
  for (const path of found.all) {
    if (languageOf(path) === undefined) {
      countSigns(path, '', signs)
      if (path.endsWith('.prisma')) {
        const facts = await attempt(path, 'the reader of models', () =>
          readModels(path, readText(root, path)),
        )
        for (const fact of facts ?? []) catalogue.add(fact, path)
      }
      continue
    }
    const text = await attempt(path, 'reading', () => readText(root, path))
    if (text === undefined) continue
    const facts = await attempt(path, 'the reader of models', () => readModels(path, text))
    for (const fact of facts ?? []) catalogue.add(fact, path)
    texts.set(path, text)
    countSigns(path, text, signs)
  }
  const kind = repositoryKind(signs)
  const dbt: readonly DbtProject[] = readDbtProjects(root, found.all)

  const facts = new Map<string, FileFacts>()
  for (const [path, text] of texts) {
    const holdsDdl =
      /\bcreate\s+(?:\w+\s+){0,3}table\b|\balter\s+table\b|\bcreate\s+unique\b|\bcreate\s+(?:or\s+replace\s+)?trigger\b/i.test(
        text,
      )
    if (!found.selected.has(path) && !holdsDdl) continue
    const dialect = options.dialects.find(([pattern]) => pattern.test(path))?.[1]
    const file = await attempt(path, `the reader of ${languageOf(path)}`, () =>
      readFileFacts(path, text, { kind, dbt, dialect }),
    )
    if (file === undefined) continue
    if (found.selected.has(path)) facts.set(path, file)
    if (holdsDdl) {
      await attempt(path, 'the reader of DDL', async () => {
        for (const use of file.sql)
          await addDdl(catalogue, use.statement, use.mapped, path, file.dialect === 'postgres')
      })
    }
  }
  if (typeof options.schema === 'object') for (const fact of options.schema) catalogue.add(fact, '')
  if (typeof options.schema === 'string') {
    const dump = plainMapping(options.schema)
    for (const statement of splitStatements(lexSql(options.schema)))
      await addDdl(catalogue, statement, dump, '', true)
  }
  const project: ProjectFacts = {
    kind,
    dbt,
    catalogue: catalogue.build(),
    settings: options.settings,
    overridden: overriddenParameters(facts),
    emptied: tablesOf(facts, ['delete', 'truncate', 'drop']),
    dropped: tablesOf(facts, ['drop']),
    incrementalMacros: incrementalMacros(texts),
  }

  const findings: Finding[] = []
  for (const [path, file] of facts) {
    const reports = options.rules.flatMap((rule) => {
      const said = reportsOf(rule, file, project)
      if (Array.isArray(said))
        return said.map((report) => ({ rule, report: inWrapper(report, file, project) }))
      failures++
      notRead.push({ path, reason: said.reason })
      return []
    })
    findings.push(...locate(path, file.text, reports))
  }
  return {
    findings,
    files: facts.size,
    notUnderstood: [...facts.values()]
      .filter((file) => file.notUnderstood > 0)
      .map((file) => ({ path: file.path, count: file.notUnderstood })),
    notRead,
    failures,
    texts,
    comments: facts,
    facts,
    project,
  }
}

/** What a wrapper of the configuration runs once is only a hint. */
function inWrapper(report: Report, file: FileFacts, project: ProjectFacts): Report {
  const { host } = file
  const names = project.settings.safeWrappers
  if (host === undefined || names.length === 0) return report
  const holds = (start: number, end: number): boolean => start <= report.start && report.end <= end
  const wrapped =
    host.calls.some(
      (call) =>
        holds(call.start, call.end) && names.some((name) => call.callee === name || call.name === name),
    ) ||
    host.functions.some(
      (fn) =>
        holds(fn.node.start, fn.node.end) &&
        names.some((name) => new RegExp(`@(?:\\w+\\.)*${literally(name)}\\b`).test(fn.decorators)),
    )
  return wrapped ? { ...report, class: 'info', severity: 'info', confidence: 'low' } : report
}

/** One rule that fails on one file takes nothing from all the others; the file is listed with what failed. */
function reportsOf(
  rule: Rule,
  file: FileFacts,
  project: ProjectFacts,
): Report[] | { readonly reason: string } {
  try {
    return [...rule.check(file, project)]
  } catch (cause) {
    return {
      reason: `by the rule ${rule.id}, which failed on it: ${messageOf(cause)}`,
    }
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

/** PostgreSQL's own parser has the first word on its DDL, the tolerant reader on all other. */
async function addDdl(
  catalogue: CatalogueBuilder,
  statement: Statement,
  mapped: MappedText,
  path: string,
  isPostgres: boolean,
): Promise<void> {
  if (!isDdl(statement)) return
  if (isPostgres) {
    const { readPostgresDdl } = await import('./catalogue/postgres.ts')
    const text = mapped.text.slice(statement.start, statement.end)
    const facts = await readPostgresDdl(text, path, mapped.at(statement.start))
    if (facts !== undefined) {
      for (const fact of facts) catalogue.add(fact, path)
      return
    }
  }
  const fact = readDdl(statement, path, (offset) => mapped.at(offset))
  if (fact !== undefined) catalogue.add(fact, path)
}

function locate(path: string, text: string, reports: readonly { rule: Rule; report: Report }[]): Finding[] {
  if (reports.length === 0) return []
  const lines = lineIndex(text)
  const seen = new Map<string, number>()
  return [...reports]
    .sort(
      (left, right) => left.report.start - right.report.start || left.rule.id.localeCompare(right.rule.id),
    )
    .filter(
      ({ rule, report }, index, all) =>
        index === 0 || all[index - 1]?.rule !== rule || all[index - 1]?.report.start !== report.start,
    )
    .map(({ rule, report }) => {
      const normal = text.slice(report.start, report.end).replace(/\s+/g, ' ').trim().toLowerCase()
      const basis = `${rule.id}\n${path}\n${normal}`
      const ordinal = seen.get(basis) ?? 0
      seen.set(basis, ordinal + 1)
      return {
        ...report,
        rule: rule.id,
        anomaly: rule.anomaly,
        advice: report.advice ?? rule.advice,
        path,
        from: lines.position(report.start),
        to: lines.position(Math.max(report.start, report.end)),
        fingerprint: createHash('sha256').update(`${basis}\n${ordinal}`).digest('hex').slice(0, 20),
      }
    })
}

/** Tables that statements of these kinds are about, by name, with the files. */
function tablesOf(
  facts: ReadonlyMap<string, FileFacts>,
  kinds: readonly StatementKind[],
): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const [path, file] of facts) {
    for (const { statement } of file.sql) {
      if (!kinds.includes(statement.kind) || (statement.kind === 'delete' && !makesRoom(statement))) continue
      for (const target of [statement.target, ...statement.moreTargets]) {
        if (target === undefined || target.unknown) continue
        const name = target.parts.slice(-2).join('.')
        found.set(name, (found.get(name) ?? new Set()).add(path))
      }
    }
  }
  return found
}

function incrementalMacros(texts: ReadonlyMap<string, string>): Set<string> {
  const names = new Set<string>()
  for (const [path, text] of texts) {
    if (!path.endsWith('.sql') || !/is_incremental|\bthis\b/.test(text)) continue
    for (const [, name, body] of text.matchAll(/\{%-?\s*macro\s+(\w+)\s*\(([\s\S]*?)\{%-?\s*endmacro/g)) {
      if (name !== undefined && body !== undefined && /is_incremental|\{\{\s*this/.test(body)) names.add(name)
    }
  }
  return names
}

/** `function/parameter` of which every call in the repository says its own value. */
function overriddenParameters(facts: ReadonlyMap<string, FileFacts>): Set<string> {
  const named = new Map<string, Set<string> | undefined>()
  for (const file of facts.values()) {
    for (const call of file.host?.calls ?? []) {
      const keys = new Set(call.named.keys())
      const before = named.get(call.name)
      named.set(call.name, before === undefined ? keys : new Set([...before].filter((key) => keys.has(key))))
    }
  }
  const overridden = new Set<string>()
  for (const [name, keys] of named) for (const key of keys ?? []) overridden.add(`${name}/${key}`)
  return overridden
}
