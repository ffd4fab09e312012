import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CheckResult, check } from '../../src/check/command.ts'
import { explain, listRules, renderPage } from '../../src/check/explain.ts'
import { renderGithub } from '../../src/check/reports/github.ts'
import { renderJson } from '../../src/check/reports/json.ts'
import { renderJunit } from '../../src/check/reports/junit.ts'
import { renderSarif } from '../../src/check/reports/sarif.ts'
import { renderText } from '../../src/check/reports/text.ts'
import { RULES } from '../../src/check/rules/index.ts'

let root = ''
let result: CheckResult

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'stet-reports-'))
  writeFileSync(
    join(root, 'a & b.sql'),
    '-- stet-ignore insert-no-key: the "table" is emptied <before>\ninsert into t select * from s;\n\ncopy into x from @y force = true;\n\ninsert into u\nselect *\n  from s\n;\n',
  )
  result = await check({ root })
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('text shows the place, a code frame, the reason and the safe form', () => {
  const text = renderText(result)
  expect(text).toContain('a & b.sql:4:1 error copy-force (unsafe, doubled, confidence high)')
  expect(text).toContain('4 | copy into x from @y force = true;')
  expect(text).toContain('  | ^^^^')
  expect(text).toContain('safe: Leave FORCE out')
  expect(text).toContain('- copy into x from @y force = true;\n    + copy into x from @y;')
  expect(text).toContain('1 suppressed')
  expect(text).not.toContain('emptied <before>')
})

test('SARIF is valid against its schema, keeps suppressions with their reason, fingerprints and fixes', () => {
  const text = renderSarif(result, '0.1.0')
  const require = createRequire(import.meta.url)
  const schema = JSON.parse(
    readFileSync(require.resolve('@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json'), 'utf8'),
  ) as Record<string, unknown>
  const ajv = new Ajv({ strict: false, validateFormats: false, unicodeRegExp: false, allErrors: true })
  // The schema is written in draft 4, whose id is spelt without the dollar.
  const { $schema: _, id: _id, ...body } = schema
  const validate = ajv.compile(body)
  const document: unknown = JSON.parse(text)
  expect(validate(document) ? [] : validate.errors).toEqual([])
  expect(text).toContain('"justification": "the \\"table\\" is emptied <before>"')
  expect(text).toContain('"stetFinding/v1"')
  expect(text).toContain('"deletedRegion"')
  expect(text).toContain('"uri": "a%20&%20b.sql"')
  for (const rule of RULES) expect(text).toContain(`"id": "${rule.id}"`)
})

test('annotations escape what GitHub reads', () => {
  const text = renderGithub(result)
  expect(text).toContain('::error file=a & b.sql,line=4,endLine=4,col=1,title=stet copy-force::')
  expect(
    text
      .split('\n')
      .filter((line) => line !== '')
      .every((line) => line.startsWith('::')),
  ).toBe(true)
})

test('JUnit has a failing case a finding and a skipped one where it is suppressed', () => {
  const text = renderJunit(result)
  expect(text).toContain('name="a &amp; b.sql" tests="3" failures="2"')
  expect(text).toContain('<skipped message="the &quot;table&quot; is emptied &lt;before&gt;"/>')
})

test('JSON holds every finding with its place and fingerprint', () => {
  const document = JSON.parse(renderJson(result)) as {
    findings: { rule: string; line: number; fingerprint: string }[]
  }
  expect(document.findings.map(({ rule, line }) => `${rule} ${line}`)).toEqual([
    'insert-no-key 2',
    'copy-force 4',
    'insert-no-key 6',
  ])
  expect(new Set(document.findings.map(({ fingerprint }) => fingerprint)).size).toBe(3)
})

test('explain prints a page, and names close rules for one that does not exist', () => {
  expect(explain('insert-no-key')).toContain('# insert-no-key')
  expect(() => explain('insert')).toThrow(/no rule "insert"/)
  expect(listRules().trim().split('\n')).toHaveLength(RULES.length)
})

test.each(RULES.map((rule) => [rule.id, rule] as const))(
  'docs/rules/%s.md is the page of the rule',
  (id, rule) => {
    expect(readFileSync(join(import.meta.dirname, '../../docs/rules', `${id}.md`), 'utf8')).toBe(
      renderPage(rule),
    )
  },
)

test('docs/check.md lists every rule', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/check.md'), 'utf8')
  for (const rule of RULES)
    expect(page).toContain(`| [${rule.id}](rules/${rule.id}.md) | ${rule.title} | ${rule.anomaly} |`)
})
