// Speed of `stet check` on 1,000 mixed files made from the examples of its rules: `npm run bench -- --targets check` (after npm run build)
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { check } from '../dist/check/command.js'
import { RULES } from '../dist/check/rules/index.js'

const FILES = 1000
const examples = RULES.flatMap((rule) => [...rule.bad, ...rule.fine])
const root = mkdtempSync(join(tmpdir(), 'stet-bench-check-'))
let bytes = 0
try {
  for (let index = 0; index < FILES; index += 1) {
    const example = examples[index % examples.length]
    // Filled up to the size of real files, about 4 kB on average.
    const code = example.code + fillerFor(example.path).repeat(Math.ceil((4000 - example.code.length) / 220))
    const path = join(root, `part_${index % 20}`, `${index}_${example.path.replaceAll('/', '_')}`)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, code)
    bytes += code.length
  }
  const started = performance.now()
  const { files, findings } = await check({ root })
  const seconds = (performance.now() - started) / 1000
  const used = process.cpuUsage()
  const cpu = (used.user + used.system) / 1e6
  const memory = Math.round(process.resourceUsage().maxRSS / 1024)
  process.stdout.write(
    `${files} files, ${(bytes / 1e6).toFixed(1)} MB, ${findings.length} findings: ${seconds.toFixed(2)} s (${cpu.toFixed(2)} s of processor time), ${memory} MB\n`,
  )

  const single = join(root, 'single')
  mkdirSync(single)
  writeFileSync(join(single, 'a.sql'), 'insert into t select * from s;\n')
  const best = (args) => Math.min(...Array.from({ length: 7 }, () => timeOf(args)))
  const program = `import { check } from ${JSON.stringify(new URL('../dist/check/command.js', import.meta.url).href)}; await check({ root: ${JSON.stringify(single)} })`
  const bare = best(['-e', '0'])
  const cold = best(['--input-type=module', '-e', program])
  process.stdout.write(
    `cold start for one SQL file: ${Math.round(cold)} ms, ${Math.round(cold - bare)} ms over bare Node\n`,
  )
} finally {
  rmSync(root, { recursive: true, force: true })
}

/** Some 220 characters of a language that mean nothing to any rule. */
function fillerFor(path) {
  if (path.endsWith('.py'))
    return `\ndef helper(rows, limit=10):\n    """Takes the first rows of a list."""\n    chosen = [row for row in rows if row.amount > limit and row.state in ("open", "paid")]\n    return sorted(chosen, key=lambda row: (row.day, row.number))[:limit]\n`
  if (/\.[jt]s$/.test(path))
    return `\nfunction helper(rows, limit = 10) {\n  const chosen = rows.filter((row) => row.amount > limit && ["open", "paid"].includes(row.state));\n  return chosen.map((row) => ({ ...row, total: row.amount * 2 })).slice(0, limit);\n}\n`
  if (path.endsWith('.sh'))
    return `\nif [ -f "$FILE" ]; then\n  echo "reading $FILE"\n  wc -l "$FILE" | awk '{ print $1 }'\nfi\n`.repeat(
      2,
    )
  return `\nselect o.order_no, o.day, sum(l.amount) as amount, count(*) as lines\n  from orders as o\n  join lines as l on l.order_no = o.order_no\n where o.day between '2025-01-01' and '2025-02-01'\n group by o.order_no, o.day;\n`
}

function timeOf(args) {
  const started = performance.now()
  spawnSync(process.execPath, args)
  return performance.now() - started
}
