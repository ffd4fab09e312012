// Writes docs/rules out of the rule files: npx jiti scripts/rule-pages.mjs
import { mkdirSync, writeFileSync } from 'node:fs'
import { renderPage } from '../src/check/explain.ts'
import { RULES } from '../src/check/rules/index.ts'

const folder = new URL('../docs/rules/', import.meta.url)
mkdirSync(folder, { recursive: true })
for (const rule of RULES) writeFileSync(new URL(`${rule.id}.md`, folder), renderPage(rule))
