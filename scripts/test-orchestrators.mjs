// Runs the recipes of examples/airflow and examples/dagster in the orchestrators themselves, installed from PyPI into
// environments of their own: `npm run test:orchestrators [-- airflow3 airflow2 dagster]`, all without names.
// Ends with 77 where there is no Python to do it with.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGES = {
  airflow3: 'apache-airflow==3.3.2',
  airflow2: 'apache-airflow==2.11.2',
  dagster: 'dagster==1.13.29',
}
const CANNOT = 77
const OLDEST_PYTHON = [3, 10]

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = join(root, 'node_modules/.cache/stet-orchestrators')
const asked = process.argv.slice(2)
const names = asked.length > 0 ? asked : Object.keys(PACKAGES)
const unknown = names.filter((name) => !(name in PACKAGES))
if (unknown.length > 0) end(2, `There is no ${unknown.join(', ')}: ${Object.keys(PACKAGES).join(', ')}`)

const python = findPython()
if (python === null)
  end(CANNOT, `no Python ${OLDEST_PYTHON.join('.')} or newer: orchestrators are not tested`)
const folders = Object.fromEntries(names.map((name) => [`STET_${name.toUpperCase()}`, install(name)]))
const { status } = spawnSync('npx', ['--no-install', 'vitest', 'run', 'test/orchestrators'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, ...folders },
})
process.exitCode = status ?? 1

function findPython() {
  for (const name of ['python3.12', 'python3.11', 'python3.10', 'python3']) {
    const { status, stdout } = spawnSync(name, ['-c', 'import sys, venv; print(*sys.version_info[:2])'], {
      encoding: 'utf8',
    })
    const [major, minor] = (stdout ?? '').split(' ').map(Number)
    if (status === 0 && major === OLDEST_PYTHON[0] && minor >= OLDEST_PYTHON[1]) return name
  }
  return null
}

/** The environment's folder of programs; made once, and again when another version is wanted. */
function install(name) {
  const folder = join(cache, PACKAGES[name].replace('==', '-'))
  const pip = join(folder, 'bin/pip')
  mkdirSync(cache, { recursive: true })
  if (!existsSync(pip)) call(python, ['-m', 'venv', folder])
  const started = performance.now()
  call(pip, ['install', '--quiet', '--disable-pip-version-check', PACKAGES[name]])
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  process.stdout.write(`${PACKAGES[name]} is there (${seconds} s)\n`)
  return join(folder, 'bin')
}

function call(program, args) {
  const { status } = spawnSync(program, args, { stdio: 'inherit' })
  if (status !== 0) end(CANNOT, `${program} ${args.join(' ')} failed: orchestrators are not tested`)
}

function end(status, message) {
  process.stdout.write(`${message}\n`)
  process.exit(status)
}
