// All gates in one command, cheapest first; every one runs, so that one red line does not hide the next.
import { spawnSync } from 'node:child_process'

const gates = [
  ['format', 'biome', ['format', '.']],
  ['lint', 'biome', ['lint', '.', '--error-on-warnings']],
  ['types', 'tsc', ['--noEmit']],
  ['promises', 'oxlint', ['--type-aware']],
  ['imports', 'depcruise', ['src', '--config', '.dependency-cruiser.json', '--output-type', 'err']],
  ['build', 'npm', ['run', '--silent', 'build']],
  ['dead code', 'knip', []],
  // A type that the library's own types name and that nobody can import.
  ['api docs', 'typedoc', ['--emit', 'none']],
  ['package', 'publint', ['--strict']],
  [
    'package types',
    'attw',
    ['--pack', '.', '--profile', 'esm-only', '--exclude-entrypoints', './package.json'],
  ],
  ['tests', 'vitest', ['run']],
]
const only = process.argv.slice(2)
const failed = []
for (const [name, program, args] of gates) {
  if (only.length > 0 && !only.includes(name)) continue
  const started = performance.now()
  const command = program === 'npm' ? [program, args] : ['npx', ['--no-install', program, ...args]]
  const { status, stdout, stderr } = spawnSync(command[0], command[1], {
    encoding: 'utf8',
    stdio: name === 'tests' ? 'inherit' : 'pipe',
    maxBuffer: 1 << 28,
  })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  process.stdout.write(`${status === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)\n`)
  if (status !== 0) {
    failed.push(name)
    process.stdout.write(`${stdout ?? ''}${stderr ?? ''}\n`)
  }
}
if (failed.length > 0) {
  process.stdout.write(`\nfailed: ${failed.join(', ')}\n`)
  process.exit(1)
}
