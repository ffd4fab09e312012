/** A rule's page, made from its file: for `stet explain` and for docs/rules. */
import { StetError } from '../errors.ts'
import { hintForRule } from './nearest-rule.ts'
import type { Example, Rule } from './rule.ts'
import { RULES } from './rules/index.ts'

const EFFECT = {
  doubled: 'DOUBLED: rows or values are there twice',
  lost: 'LOST: rows or values are missing',
  touched: 'TOUCHED: equal rows are written again',
  moved: 'MOVED: the same row gets another value, key or place',
  gap: 'GAP: the end state heals, but a crash or a reader in between sees rows missing',
  different: 'DIFFERENT: two runs over the same rows end differently',
} as const

/** The JSON document of `stet explain`: `schemas/explain.json`. */
export interface ExplainDocument {
  readonly format: 'stet-explain-1'
  readonly rules: readonly {
    readonly id: string
    readonly title: string
    readonly anomaly: string
    readonly fix: string
    readonly page: string
  }[]
}

export function explainDocument(id: string | undefined): ExplainDocument {
  const rules = id === undefined ? RULES : [ruleOf(id)]
  return {
    format: 'stet-explain-1',
    rules: rules.map((rule) => ({
      id: rule.id,
      title: rule.title,
      anomaly: rule.anomaly,
      fix: rule.fix,
      page: renderPage(rule),
    })),
  }
}

export function explain(id: string): string {
  return renderPage(ruleOf(id))
}

function ruleOf(id: string): Rule {
  const rule = RULES.find((one) => one.id === id)
  if (rule === undefined) {
    throw new StetError('STET_USAGE', `There is no rule "${id}"`, { hint: hintForRule(id) })
  }
  return rule
}

/** One line a rule. */
export function listRules(): string {
  const width = Math.max(...RULES.map((rule) => rule.id.length))
  return `${RULES.map((rule) => `${rule.id.padEnd(width)}  ${rule.title}`).join('\n')}\n`
}

const FENCE: Readonly<Record<string, string>> = {
  py: 'python',
  ts: 'ts',
  js: 'js',
  sh: 'sh',
  hql: 'sql',
  cql: 'sql',
  sql: 'sql',
}

export function renderPage(rule: Rule): string {
  const first = rule.bad[0]
  const out = [
    `# ${rule.id}`,
    '',
    `${rule.title}.`,
    '',
    rule.problem,
    '',
    `- What a rerun does: ${EFFECT[rule.anomaly]}`,
    `- Fix: ${fixWord(rule)}`,
    `- Shown by prove: ${rule.prove}`,
    '',
  ]
  if (first !== undefined) out.push('## Breaks', '', ...codeBlock(first), '')
  out.push('## Safe', '', rule.advice, '')
  for (const form of rule.safeForms)
    out.push(`${form.for}:`, '', `\`\`\`${guess(form.code)}`, form.code, '```', '')
  if (rule.bad.length > 1)
    out.push(
      '## Also found',
      '',
      ...rule.bad.slice(1).flatMap((example) => [`${sentence(example.why)}:`, '', ...codeBlock(example), '']),
    )
  out.push(
    '## Looks like it and is not',
    '',
    ...rule.fine.flatMap((example) => [`${sentence(example.why)}:`, '', ...codeBlock(example), '']),
  )
  out.push(
    '## What it cannot know',
    '',
    rule.limits,
    '',
    '## Silence it',
    '',
    'On the line or the one above, with a reason:',
    '',
    '```sql',
    `-- stet-ignore ${rule.id}: the table is emptied by the task before`,
    '```',
    '',
  )
  return out.join('\n')
}

function fixWord(rule: Rule): string {
  if (rule.fix === 'auto') return '`stet check --fix` applies it where the edit changes no result'
  return rule.fix === 'suggestion' ? 'by hand, after the safe form below' : 'by hand; it needs a decision'
}

function codeBlock(example: Example): string[] {
  const beside = Object.entries(example.beside ?? {}).flatMap(([path, code]) => [
    `\`\`\`${fenceOf(path)}`,
    `${commentOf(path)} ${path}`,
    code.trimEnd(),
    '```',
  ])
  return [`\`\`\`${fenceOf(example.path)}`, example.code.trimEnd(), '```', ...beside]
}

function fenceOf(path: string): string {
  const extension = path.split('.').at(-1) ?? ''
  return FENCE[extension] ?? (/ya?ml/.test(extension) ? 'yaml' : '')
}

function commentOf(path: string): string {
  return /\.sql$/.test(path) ? '--' : '#'
}

function guess(code: string): string {
  if (
    /^\s*(?:with engine|row_id|df\.|client\.|except|path =|def |headers = |load\(|GCSTo|Bash|Order\.|from |import )/m.test(
      code,
    )
  )
    return 'python'
  if (/^\s*(?:const |await |headers: )/m.test(code)) return 'ts'
  if (/^\s*(?:models:|on-run-end:)/m.test(code)) return 'yaml'
  if (/^\s*(?:bq |out=|export_)/m.test(code)) return 'sh'
  return 'sql'
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
