/** dbt: the configuration of a model out of its file, its properties and the project, and its incremental blocks. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parse } from 'yaml'
import type { LexedSql, TemplateTag, Token } from '../sql/lexer.ts'
import { type ModelProperties, readManifest } from './dbt-manifest.ts'

interface DbtConfig {
  readonly materialized: string | undefined
  /** Columns or expressions; empty if none; undefined if it is set to something that cannot be read here. */
  readonly uniqueKey: readonly string[] | undefined
  readonly strategy: string | undefined
  readonly partitionBy: boolean
  readonly values: ReadonlyMap<string, unknown>
  /** A macro or variable takes part in it, so what is missing may be set there. */
  readonly opaque: boolean
  /** `config(...)` in the file, or the start of the file. */
  readonly start: number
  readonly end: number
}

export interface DbtModel {
  readonly name: string
  readonly config: DbtConfig
  /** Offsets between `{% if is_incremental() %}` and its end. */
  readonly incremental: readonly { readonly start: number; readonly end: number }[]
  readonly columns: ReadonlyMap<string, { readonly notNull: boolean; readonly unique: boolean }>
  readonly hasProperties: boolean
  /** Columns that a test holds to be unique together; such a test also sees doubled NULL keys. */
  readonly uniqueCombination: readonly (readonly string[])[]
  readonly snapshot: boolean
}

export interface DbtProject {
  /** Folder of dbt_project.yml, relative to the root of the check, '' for itself. */
  readonly folder: string
  readonly name: string
  readonly models: unknown
  readonly properties: ReadonlyMap<string, ModelProperties>
  /** Models of `target/manifest.json`, by their path: the configuration as dbt itself put it together. */
  readonly resolved: ReadonlyMap<string, ModelProperties>
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parseYaml(text: string): unknown {
  try {
    return parse(text, { logLevel: 'silent', uniqueKeys: false })
  } catch {
    // A properties file with Jinja in it, or a broken one: what it says stays unknown.
    return undefined
  }
}

/** Projects of the repository; `paths` are all its files. */
export function readDbtProjects(root: string, paths: readonly string[]): DbtProject[] {
  const projects: DbtProject[] = []
  for (const path of paths) {
    if (!/(?:^|\/)dbt_project\.ya?ml$/.test(path) || !existsSync(join(root, path))) continue
    const content = parseYaml(readFileSync(join(root, path), 'utf8'))
    const folder = dirname(path) === '.' ? '' : dirname(path)
    projects.push({
      folder,
      name: isRecord(content) && typeof content.name === 'string' ? content.name : '',
      models: isRecord(content) ? content.models : undefined,
      properties: readProperties(root, folder, paths),
      resolved: readManifest(root, folder),
    })
  }
  // Models without a project file are read all the same: properties beside them count.
  if (projects.length === 0) {
    const properties = readProperties(root, '', paths)
    if (properties.size > 0)
      projects.push({ folder: '', name: '', models: undefined, properties, resolved: new Map() })
  }
  return projects.sort((left, right) => right.folder.length - left.folder.length)
}

function readProperties(
  root: string,
  folder: string,
  paths: readonly string[],
): Map<string, ModelProperties> {
  const found = new Map<string, ModelProperties>()
  const prefix = folder === '' ? '' : `${folder}/`
  for (const path of paths) {
    if (
      !path.startsWith(prefix) ||
      !/\.ya?ml$/.test(path) ||
      /dbt_project\.ya?ml$|packages\.ya?ml$/.test(path)
    )
      continue
    const text = readFileSync(join(root, path), 'utf8')
    if (!/^(?:models|snapshots)\s*:/m.test(text)) continue
    const content = parseYaml(text)
    if (!isRecord(content)) continue
    for (const section of [content.models, content.snapshots]) {
      for (const model of Array.isArray(section) ? section : []) {
        if (isRecord(model) && typeof model.name === 'string')
          found.set(model.name, readModelProperties(model))
      }
    }
  }
  return found
}

function readModelProperties(model: Record<string, unknown>): ModelProperties {
  const columns = new Map<string, { notNull: boolean; unique: boolean }>()
  for (const column of Array.isArray(model.columns) ? model.columns : []) {
    if (!isRecord(column) || typeof column.name !== 'string') continue
    const tests = [column.tests, column.data_tests, column.constraints].flatMap((list) =>
      Array.isArray(list) ? list : [],
    )
    const names = tests.map((test) =>
      typeof test === 'string' ? test : isRecord(test) ? String(test.type ?? Object.keys(test)[0] ?? '') : '',
    )
    columns.set(column.name.toLowerCase(), {
      notNull: names.some((name) => /not_null|primary_key/.test(name)),
      unique: names.some((name) => /(?:^|\.)unique$|primary_key/.test(name)),
    })
  }
  const uniqueCombination: string[][] = []
  for (const test of [model.tests, model.data_tests].flatMap((list) => (Array.isArray(list) ? list : []))) {
    if (!isRecord(test)) continue
    const [name, options] = Object.entries(test)[0] ?? ['', undefined]
    if (!name.includes('unique_combination_of_columns') || !isRecord(options)) continue
    const named = isRecord(options.arguments) ? options.arguments : options
    const list = named.combination_of_columns
    if (Array.isArray(list)) uniqueCombination.push(list.map((column) => String(column).toLowerCase()))
  }
  return { config: isRecord(model.config) ? model.config : {}, columns, uniqueCombination }
}

const MODEL_SIGN =
  /\{\{-?\s*(?:config\s*\(|ref\s*\(|source\s*\(|this\b)|\{%-?\s*(?:snapshot|if is_incremental|macro)/

/** Whether a SQL file is a dbt model, macro or snapshot. */
export function looksLikeDbt(text: string): boolean {
  return MODEL_SIGN.test(text)
}

export function readModel(path: string, lexed: LexedSql, projects: readonly DbtProject[]): DbtModel {
  const name = (path.split('/').at(-1) ?? '').replace(/\.sql$/, '')
  const project = projects.find((one) => one.folder === '' || path.startsWith(`${one.folder}/`))
  const resolved = project?.resolved.get(project.folder === '' ? path : path.slice(project.folder.length + 1))
  const properties = merged(project?.properties.get(name), resolved)
  const inFile = readConfigCalls(lexed)
  const values = new Map<string, unknown>()
  for (const [key, value] of folderDefaults(path, project)) values.set(key, value)
  for (const [key, value] of Object.entries(properties?.config ?? {}))
    values.set(key.replace(/^\+/, ''), value)
  for (const [key, value] of inFile.values) values.set(key, value)
  // The manifest may be older than the file, so it only says what the file leaves open.
  for (const [key, value] of Object.entries(resolved?.config ?? {})) {
    const known = values.get(key)
    if (value !== null && (known === undefined || known === UNKNOWN)) values.set(key, value)
  }
  return {
    name,
    config: {
      materialized: text(values.get('materialized')),
      uniqueKey: keyOf(values),
      strategy: text(values.get('incremental_strategy')),
      partitionBy: values.has('partition_by') || values.has('partitioned_by'),
      values,
      opaque: inFile.opaque && resolved === undefined,
      start: inFile.start,
      end: inFile.end,
    },
    incremental: incrementalBlocks(lexed.tags),
    columns: properties?.columns ?? new Map(),
    hasProperties: properties !== undefined && properties.columns.size > 0,
    uniqueCombination: properties?.uniqueCombination ?? [],
    snapshot: lexed.tags.some((tag) => /^\{%-?\s*snapshot\b/.test(tag.text)),
  }
}

/** Tests of either place hold. */
function merged(
  written: ModelProperties | undefined,
  resolved: ModelProperties | undefined,
): ModelProperties | undefined {
  if (written === undefined || resolved === undefined) return written ?? resolved
  const columns = new Map(written.columns)
  for (const [name, { notNull, unique }] of resolved.columns) {
    const before = columns.get(name)
    columns.set(name, {
      notNull: notNull || (before?.notNull ?? false),
      unique: unique || (before?.unique ?? false),
    })
  }
  return {
    config: written.config,
    columns,
    uniqueCombination: [...written.uniqueCombination, ...resolved.uniqueCombination],
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value.toLowerCase() : undefined
}

function keyOf(values: ReadonlyMap<string, unknown>): readonly string[] | undefined {
  const value = values.get('unique_key')
  if (value === undefined || value === null || value === '') return []
  if (typeof value === 'string')
    return value.includes(',') ? value.split(',').map((part) => part.trim()) : [value]
  if (Array.isArray(value)) return value.map((part) => String(part))
  return undefined
}

/** `models: project: folder: +materialized: incremental` of dbt_project.yml, outer folders first. */
function folderDefaults(path: string, project: DbtProject | undefined): [string, unknown][] {
  if (project === undefined || !isRecord(project.models)) return []
  const inside = relative(project.folder === '' ? '.' : project.folder, path).split('/')
  const folders = inside.slice(1, -1)
  const model = (inside.at(-1) ?? '').replace(/\.sql$/, '')
  const found: [string, unknown][] = []
  let level: unknown = project.models
  for (const step of ['', project.name, ...folders, model]) {
    if (step !== '') level = isRecord(level) ? level[step] : undefined
    if (!isRecord(level)) break
    for (const [key, value] of Object.entries(level)) {
      const name = key.replace(/^\+/, '')
      if (
        key.startsWith('+') ||
        ['materialized', 'unique_key', 'incremental_strategy', 'partition_by'].includes(name)
      )
        found.push([name, value])
    }
  }
  return found
}

interface ConfigCall {
  readonly values: ReadonlyMap<string, unknown>
  readonly opaque: boolean
  readonly start: number
  readonly end: number
}

/** A value that only Jinja could tell. */
const UNKNOWN: unique symbol = Symbol('unknown')

function readConfigCalls(lexed: LexedSql): ConfigCall {
  const values = new Map<string, unknown>()
  let opaque = false
  let start = -1
  let end = 0
  for (const token of lexed.tokens) {
    if (token.kind !== 'hole' || !/^\{\{/.test(token.text)) continue
    const call = /^config\s*\(/.exec(token.value)
    if (call === null) {
      // `{{ incremental_config() }}` as the first thing of a file stands for a configuration.
      if (start < 0 && token.start < 40 && /config|macro|settings/i.test(token.value)) opaque = true
      continue
    }
    if (start < 0) start = token.start
    end = token.end
    const inside = token.value.slice(call[0].length, token.value.lastIndexOf(')'))
    const read = readArguments(inside)
    if (read.opaque) opaque = true
    for (const [key, value] of read.values) values.set(key, value)
  }
  const first = lexed.tokens[0]
  return {
    values,
    opaque,
    start: start < 0 ? (first?.start ?? 0) : start,
    end: start < 0 ? (first?.end ?? 0) : end,
  }
}

/** `materialized='table', unique_key=['a', 'b']` or the same as a dict. */
function readArguments(inside: string): { values: Map<string, unknown>; opaque: boolean } {
  const values = new Map<string, unknown>()
  let opaque = false
  const body = inside.trim().replace(/^\{([\s\S]*)\}$/, '$1')
  for (const part of splitTop(body)) {
    if (part.trim().startsWith('**')) {
      opaque = true
      continue
    }
    const pair = /^\s*(?:(\w+)\s*=(?!=)|['"](\w+)['"]\s*:)\s*([\s\S]*?)\s*$/.exec(part)
    if (pair === null) continue
    const key = pair[1] ?? pair[2] ?? ''
    const value = readLiteral(pair[3] ?? '')
    values.set(key, value)
    if (value === UNKNOWN && (key === 'materialized' || key === 'incremental_strategy')) opaque = true
  }
  return { values, opaque }
}

function readLiteral(source: string): unknown {
  const quoted = /^(['"])([\s\S]*)\1$/.exec(source)
  if (quoted !== null && !quoted[2]?.includes(quoted[1] ?? '')) return quoted[2]
  if (source.startsWith('[') || source.startsWith('(')) {
    return splitTop(source.slice(1, -1))
      .map((part) => readLiteral(part.trim()))
      .filter((part): part is string => typeof part === 'string' && part !== '')
  }
  if (/^(?:true|false)$/i.test(source)) return source.toLowerCase() === 'true'
  if (/^(?:none|null)$/i.test(source)) return undefined
  // `'incremental' if target.name == 'prod' else 'view'`: the first answer counts.
  const chosen = /^(['"])([^'"]*)\1\s+if\b/.exec(source)
  if (chosen !== null) return chosen[2]
  const fallback = /\b(?:var|env_var)\s*\([^,()]*,\s*(['"])([^'"]*)\1\s*\)/.exec(source)
  if (fallback !== null) return fallback[2]
  return UNKNOWN
}

function splitTop(source: string): string[] {
  const parts: string[] = []
  let depth = 0
  let quote = ''
  let from = 0
  for (let at = 0; at < source.length; at += 1) {
    const char = source.charAt(at)
    if (quote !== '') {
      if (char === quote) quote = ''
    } else if (char === "'" || char === '"') quote = char
    else if ('([{'.includes(char)) depth += 1
    else if (')]}'.includes(char)) depth -= 1
    else if (char === ',' && depth === 0) {
      parts.push(source.slice(from, at))
      from = at + 1
    }
  }
  const last = source.slice(from)
  if (last.trim() !== '') parts.push(last)
  return parts
}

/** Blocks of `{% if is_incremental() %}`, up to their `else` or end. */
function incrementalBlocks(tags: readonly TemplateTag[]): { start: number; end: number }[] {
  const blocks: { start: number; end: number }[] = []
  const open: { start: number; incremental: boolean }[] = []
  for (const tag of tags) {
    const word = /^\{%-?\s*(\w+)/.exec(tag.text)?.[1] ?? ''
    const asks = /is_incremental\s*\(|should_full_refresh|load_relation\(this\)|is_incremental\b/.test(
      tag.text,
    )
    const negated =
      /\bnot\s+is_incremental|should_full_refresh/.test(tag.text) &&
      !/not\s+should_full_refresh/.test(tag.text)
    if (word === 'if') open.push({ start: tag.end, incremental: asks && !negated })
    else if (word === 'else' || word === 'elif') {
      const top = open.pop()
      if (top === undefined) continue
      if (top.incremental) blocks.push({ start: top.start, end: tag.start })
      const flipped = asks ? !negated : word === 'else' && !top.incremental && asksBefore(tags, tag)
      open.push({ start: tag.end, incremental: flipped })
    } else if (word === 'endif') {
      const top = open.pop()
      if (top?.incremental) blocks.push({ start: top.start, end: tag.start })
    }
  }
  return blocks.sort((left, right) => left.start - right.start)
}

/** `{% if not is_incremental() %} ... {% else %}`: the second half is the incremental one. */
function asksBefore(tags: readonly TemplateTag[], tag: TemplateTag): boolean {
  let depth = 0
  for (let index = tags.indexOf(tag) - 1; index >= 0; index -= 1) {
    const text = tags[index]?.text ?? ''
    if (/^\{%-?\s*endif/.test(text)) depth += 1
    if (/^\{%-?\s*if\b/.test(text)) {
      if (depth === 0) return /not\s+is_incremental/.test(text)
      depth -= 1
    }
  }
  return false
}

/** Tokens of a model that run only on an incremental run. */
export function inIncremental(model: DbtModel, token: Token): boolean {
  // The blocks stand one behind the other; a nested one lies within its outer one.
  let low = 0
  let high = model.incremental.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((model.incremental[middle]?.start ?? 0) <= token.start) low = middle + 1
    else high = middle
  }
  for (let at = low - 1; at >= 0 && at >= low - 4; at -= 1) {
    const block = model.incremental[at]
    if (block !== undefined && token.start >= block.start && token.end <= block.end) return true
  }
  return false
}
