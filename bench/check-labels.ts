/**
 * Measures `stet check` on hand-labelled places of public repositories, which are fetched and never shipped.
 *
 *   npx jiti bench/check-labels.ts labels.jsonl folder-of-checkouts [--missed]
 *
 * Each line of the labels holds repo, path, line, verdict (`unsafe`, `window`, `safe-look-alike`), rule and reason;
 * the checkout of `owner/name` is expected at `folder/owner__name`.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runEngine } from '../src/check/engine.ts'
import type { Finding } from '../src/check/finding.ts'
import { RULES } from '../src/check/rules/index.ts'

interface Label {
  readonly repo: string
  readonly path: string
  readonly line: number
  readonly verdict: 'unsafe' | 'window' | 'safe-look-alike'
  readonly rule: string
  readonly reason: string
}

const [labelFile = '', folder = '', ...flags] = process.argv.slice(2)
const labels = readFileSync(labelFile, 'utf8')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => JSON.parse(line) as Label)
const tierOf = new Map(RULES.map((rule) => [rule.id, rule.tier]))
const rows = new Map<
  string,
  { unsafe: number; found: number; windows: number; windowsFound: number; fine: number; loud: number }
>()
const notes: string[] = []

for (const repo of new Set(labels.map((label) => label.repo))) {
  const root = join(folder, repo.replace('/', '__'))
  const { findings } = await runEngine({
    root,
    paths: [],
    rules: RULES,
    settings: { stagingTables: [], logTables: [], safeWrappers: [] },
    ignore: [],
    dialects: [],
  })
  for (const label of labels.filter((one) => one.repo === repo)) judge(label, findings)
}

/** A finding of the same rule within ten lines, or whose statement holds the line, answers a label. */
function judge(label: Label, findings: readonly Finding[]): void {
  const row = rows.get(label.rule) ?? { unsafe: 0, found: 0, windows: 0, windowsFound: 0, fine: 0, loud: 0 }
  rows.set(label.rule, row)
  const near = findings.filter(
    (one) =>
      one.rule === label.rule &&
      one.path === label.path &&
      (Math.abs(one.from.line - label.line) <= 10 ||
        (one.from.line <= label.line && label.line <= one.to.line)),
  )
  const place = `${label.rule} ${label.repo} ${label.path}:${label.line}`
  if (label.verdict === 'safe-look-alike') {
    row.fine += 1
    // A finding that stands nearer to a labelled fault of the same rule is about that one.
    const faults = labels.filter(
      (one) =>
        one.repo === label.repo &&
        one.path === label.path &&
        one.rule === label.rule &&
        one.verdict !== 'safe-look-alike',
    )
    const loud = near.filter(
      ({ severity, from }) =>
        severity !== 'info' &&
        !faults.some((fault) => Math.abs(fault.line - from.line) < Math.abs(label.line - from.line)),
    )
    if (loud.length > 0) {
      row.loud += 1
      notes.push(`FALSE  ${place} (said at ${loud.map((one) => one.from.line).join(', ')}): ${label.reason}`)
    }
  } else if (label.verdict === 'window') {
    row.windows += 1
    if (near.length > 0) row.windowsFound += near.some((one) => one.class === 'unsafe') ? 0.5 : 1
    else notes.push(`MISSED ${place}: ${label.reason}`)
  } else {
    row.unsafe += 1
    if (near.length > 0) {
      row.found += 1
      if (near.every((one) => one.severity === 'info')) notes.push(`INFO   ${place}: ${label.reason}`)
    } else notes.push(`MISSED ${place}: ${label.reason}`)
  }
}

process.stdout.write(
  '| rule | tier | unsafe found | windows found | look-alikes silent |\n|---|---|---|---|---|\n',
)
const sum = {
  unsafe: 0,
  found: 0,
  tierOne: 0,
  tierOneFound: 0,
  windows: 0,
  windowsFound: 0,
  fine: 0,
  loud: 0,
}
for (const [rule, row] of [...rows].sort(([left], [right]) => left.localeCompare(right))) {
  const tier = tierOf.get(rule)
  process.stdout.write(
    `| ${rule} | ${tier ?? 'not built'} | ${row.found}/${row.unsafe} | ${row.windowsFound}/${row.windows} | ${row.fine - row.loud}/${row.fine} |\n`,
  )
  sum.unsafe += row.unsafe
  sum.found += row.found
  if (tier === 1) {
    sum.tierOne += row.unsafe
    sum.tierOneFound += row.found
  }
  sum.windows += row.windows
  sum.windowsFound += row.windowsFound
  sum.fine += row.fine
  sum.loud += row.loud
}
process.stdout.write(
  `| all | | ${sum.found}/${sum.unsafe} | ${sum.windowsFound}/${sum.windows} | ${sum.fine - sum.loud}/${sum.fine} |\n\ntier 1: ${sum.tierOneFound}/${sum.tierOne} unsafe found\n`,
)
if (flags.includes('--missed')) process.stdout.write(`${notes.join('\n')}\n`)
