/** `stet check` as a function: what the command line, a hook or another program calls. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { StetError } from '../errors.ts'
import { applyFixes } from './apply-fixes.ts'
import { applyBaseline, readBaseline, writeBaseline } from './baseline.ts'
import type { DdlFact } from './catalogue/table.ts'
import { changedLines, isChanged } from './changed-lines.ts'
import { type EngineResult, runEngine } from './engine.ts'
import type { SqlDialect } from './facts.ts'
import type { Finding, Severity } from './finding.ts'
import { globToRegExp } from './glob.ts'
import { hintForRule } from './nearest-rule.ts'
import { RULES } from './rules/index.ts'
import { applySuppressions, readSuppressions, type Suppression } from './suppressions.ts'

/** The part of `stet.config.ts` that `stet check` reads. */
export interface CheckConfig {
  /** Dialect by glob on the path, first match wins. */
  readonly dialects?: Readonly<Record<string, SqlDialect>>
  /** Globs on table names that are emptied or made anew by each run. */
  readonly stagingTables?: readonly string[]
  /** Globs on table names that are logs of attempts. */
  readonly logTables?: readonly string[]
  /** Calls and decorators that run what is inside them once, as `io.runTask` or `once`: findings there are hints. */
  readonly safeWrappers?: readonly string[]
  /** Globs on paths that are not checked. */
  readonly ignore?: readonly string[]
  /** Rules that are switched off, or given another severity. */
  readonly rules?: Readonly<Record<string, 'off' | Severity>>
}

export interface CheckOptions {
  /** Root of the repository; paths of findings are relative to it. Default: the working directory. */
  readonly root?: string
  /** Files and folders, relative to the root. Default: all. */
  readonly paths?: readonly string[]
  readonly config?: CheckConfig
  /** Only these rules. */
  readonly rules?: readonly string[]
  /** Severity from which a finding fails the run. Default: error. */
  readonly failOn?: Severity
  /** Also let findings of low confidence fail the run. */
  readonly strict?: boolean
  readonly allowBareIgnore?: boolean
  /** Path of the baseline. Default: stet-baseline.json in the root, if it is there. */
  readonly baseline?: string
  readonly updateBaseline?: boolean
  readonly pruneBaseline?: boolean
  /** Only findings on lines changed since this git revision. */
  readonly diff?: string
  readonly fix?: boolean
  /** Keys and nullability: the path of a schema dump, or the URL of a PostgreSQL database, which is only read. */
  readonly schema?: string
  /** Run witnesses in embedded DuckDB. */
  readonly witness?: boolean
}

export interface CheckResult {
  readonly root: string
  /** All findings, suppressed ones included. */
  readonly findings: readonly Finding[]
  readonly files: number
  readonly notUnderstood: readonly { readonly path: string; readonly count: number }[]
  readonly notRead: readonly { readonly path: string; readonly reason: string }[]
  readonly unusedIgnores: readonly Suppression[]
  readonly bareIgnores: readonly Suppression[]
  readonly baselineGone: number
  /** What `updateBaseline` or `pruneBaseline` wrote, else null. */
  readonly baselineWritten: { readonly path: string; readonly findings: number } | null
  readonly fixed: number
  /** Findings that fail the run. */
  readonly failing: number
  /** 0: nothing fails the run. 1: a finding does. 2: a rule has failed, so that nobody knows. */
  readonly exitStatus: 0 | 1 | 2
  /** Texts of the files with findings, for code frames. */
  readonly texts: ReadonlyMap<string, string>
}

const RANK: Readonly<Record<Severity, number>> = { info: 0, warning: 1, error: 2 }

/**
 * Finds what will not survive a rerun.
 *
 * @throws {StetError} `STET_USAGE` for a path, rule or revision that does not exist.
 * @throws {StetError} `STET_CONFIG` for a baseline that cannot be read.
 * @example
 * const { findings, exitStatus } = await check({ root: '.', paths: ['models', 'dags'] })
 */
export async function check(options: CheckOptions = {}): Promise<CheckResult> {
  const root = resolve(options.root ?? '.')
  const config = options.config ?? {}
  const rules = chosenRules(options.rules, config)
  const result = await runEngine({
    root,
    paths: options.paths ?? [],
    rules,
    settings: {
      stagingTables: (config.stagingTables ?? []).map((glob) => globToRegExp(glob)),
      logTables: (config.logTables ?? []).map((glob) => globToRegExp(glob)),
      safeWrappers: config.safeWrappers ?? [],
    },
    ignore: (config.ignore ?? []).map((glob) => globToRegExp(glob)),
    dialects: Object.entries(config.dialects ?? {}).map(
      ([glob, dialect]) => [globToRegExp(glob), dialect] as const,
    ),
    schema: options.schema === undefined ? undefined : await readSchema(root, options.schema),
  })

  // A pipeline that checks nothing must not be green.
  if (result.files === 0 && (options.paths ?? []).length > 0) {
    throw new StetError(
      'STET_USAGE',
      `Nothing to check in ${(options.paths ?? []).join(', ')}: no SQL, dbt, Python, TypeScript or shell files there`,
      {
        hint: `Paths are looked for below ${root}; run stet check in the repository that holds them`,
      },
    )
  }

  const suppressions = [...result.facts.keys()].flatMap((path) =>
    readSuppressions(path, result.texts.get(path) ?? ''),
  )
  const weighed = result.findings.map((finding) => withSeverity(finding, config))
  const suppressed = applySuppressions(weighed, suppressions, options.allowBareIgnore ?? false)

  // Findings outside of what was looked at are not gone.
  const isPart = (options.paths ?? []).length > 0 || options.rules !== undefined
  if (isPart && (options.pruneBaseline || options.updateBaseline)) {
    throw new StetError(
      'STET_USAGE',
      'The baseline is about the whole repository, and only a part of it would be looked at',
      {
        hint: 'Leave out paths and --rule',
      },
    )
  }
  const baselinePath = resolve(root, options.baseline ?? 'stet-baseline.json')
  const before = readBaseline(baselinePath)
  if (options.updateBaseline) writeBaseline(baselinePath, suppressed.findings, undefined)
  else if (options.pruneBaseline)
    writeBaseline(baselinePath, suppressed.findings, before ?? { version: 1, findings: {} })
  const written = options.updateBaseline || options.pruneBaseline ? readBaseline(baselinePath) : undefined
  const compared = applyBaseline(suppressed.findings, written ?? before)

  let findings: readonly Finding[] = compared.findings
  if (options.diff !== undefined) {
    const changed = changedLines(root, options.diff)
    findings = findings.filter((finding) => isChanged(finding, changed))
  }
  if (options.witness) {
    // Loads DuckDB, so only when it is asked for.
    const { withWitnesses } = await import('./witness/index.ts')
    findings = await withWitnesses(findings, result.facts)
  }
  const fixed = options.fix ? writeFixes(root, findings, result.texts) : new Set<string>()
  const left = findings.filter(
    (finding) => !(fixed.has(finding.path) && finding.fix?.safe && finding.suppressed === undefined),
  )
  const failing = left.filter((finding) => fails(finding, options)).length
  const withFindings = new Set(findings.map((finding) => finding.path))
  return {
    root,
    findings: left,
    files: result.files,
    notUnderstood: result.notUnderstood,
    notRead: result.notRead,
    // Tests are full of texts that are about such comments.
    unusedIgnores:
      options.rules === undefined
        ? suppressed.unused.filter((one) => result.facts.get(one.path)?.context !== 'test')
        : [],
    bareIgnores: suppressed.bare,
    baselineGone: isPart ? 0 : compared.gone,
    baselineWritten:
      written === undefined ? null : { path: baselinePath, findings: Object.keys(written.findings).length },
    fixed: findings.length - left.length,
    failing,
    exitStatus: exitStatusOf(result, failing),
    texts: new Map([...result.texts].filter(([path]) => withFindings.has(path))),
  }
}

function chosenRules(wanted: readonly string[] | undefined, config: CheckConfig): typeof RULES {
  for (const id of [...(wanted ?? []), ...Object.keys(config.rules ?? {})]) {
    if (!RULES.some((rule) => rule.id === id)) {
      throw new StetError('STET_USAGE', `There is no rule "${id}"`, { hint: hintForRule(id) })
    }
  }
  return RULES.filter(
    (rule) => (wanted === undefined || wanted.includes(rule.id)) && config.rules?.[rule.id] !== 'off',
  )
}

function withSeverity(finding: Finding, config: CheckConfig): Finding {
  const severity = config.rules?.[finding.rule]
  // A hint stays a hint: another severity is for what the rule is sure enough to warn about.
  return severity === undefined || severity === 'off' || finding.severity === 'info'
    ? finding
    : { ...finding, severity }
}

/** Whether it fails the run: at or above the severity, and sure enough. */
function fails(
  finding: Finding,
  { failOn = 'error', strict = false }: Pick<CheckOptions, 'failOn' | 'strict'>,
): boolean {
  return (
    finding.suppressed === undefined &&
    RANK[finding.severity] >= RANK[failOn] &&
    (strict || finding.confidence !== 'low')
  )
}

function isDatabaseUrl(schema: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(schema)
}

async function readSchema(root: string, schema: string): Promise<string | readonly DdlFact[]> {
  if (isDatabaseUrl(schema)) {
    const { readDatabase } = await import('./catalogue/database.ts')
    return readDatabase(schema)
  }
  const path = resolve(root, schema)
  if (!existsSync(path))
    throw new StetError('STET_USAGE', `Cannot read the schema ${path}: there is no such file`)
  return readFileSync(path, 'utf8')
}

function writeFixes(
  root: string,
  findings: readonly Finding[],
  texts: ReadonlyMap<string, string>,
): Set<string> {
  const written = new Set<string>()
  for (const path of new Set(findings.map((finding) => finding.path))) {
    const text = texts.get(path)
    if (text === undefined) continue
    const fixed = applyFixes(
      path,
      text,
      findings.filter((finding) => finding.path === path),
    )
    if (fixed === undefined) continue
    writeFileSync(join(root, path), fixed.text)
    written.add(path)
  }
  return written
}

/** A check that did not look at everything must not be green, and is no verdict on the code either. */
export function exitStatusOf({ failures }: Pick<EngineResult, 'failures'>, failing: number): 0 | 1 | 2 {
  if (failures > 0) return 2
  return failing > 0 ? 1 : 0
}
