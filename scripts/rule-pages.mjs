// Writes docs/rules and the list of rules in docs/check.md out of the rule files: npx jiti scripts/rule-pages.mjs
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { renderPage } from '../src/check/explain.ts'
import { RULES } from '../src/check/rules/index.ts'

const docs = new URL('../docs/', import.meta.url)
const folder = new URL('rules/', docs)
mkdirSync(folder, { recursive: true })
for (const rule of RULES) writeFileSync(new URL(`${rule.id}.md`, folder), renderPage(rule))

const page = new URL('check.md', docs)
const text = readFileSync(page, 'utf8')
const heading = '## Rules\n'
const rows = RULES.map((rule) => `| [${rule.id}](rules/${rule.id}.md) | ${rule.title} | ${rule.anomaly} |`)
const list = `\n| rule | | a rerun |\n| --- | --- | --- |\n${rows.join('\n')}\n`
writeFileSync(page, text.slice(0, text.indexOf(heading) + heading.length) + list)
