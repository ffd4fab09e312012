// Packs the package, installs it into an empty folder as a user would, imports every subpath and runs the command.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stet-smoke-'))
const inFolder = (program, args) =>
  execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
try {
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }).replace(/^[^[]*/, ''),
  )
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'smoke', private: true, type: 'module' }),
  )
  inFolder('npm', [
    'install',
    '--no-fund',
    '--no-audit',
    `./${filename}`,
    `pg@${devDependencies.pg}`,
    `pg-copy-streams@${devDependencies['pg-copy-streams']}`,
  ])

  const parts = (kind) =>
    readdirSync(join(folder, 'node_modules/stet/dist', kind))
      .filter((name) => name !== 'shared' && !name.includes('.'))
      .map((name) => `stet/${kind}/${name}`)
  const subpaths = ['stet', 'stet/testing', ...parts('sources'), ...parts('targets')]
  writeFileSync(
    join(folder, 'imports.mjs'),
    `for (const path of ${JSON.stringify(subpaths)}) { const found = Object.keys(await import(path)); if (found.length === 0) throw new Error(path + ' exports nothing'); console.log(path, found.join(' ')) }`,
  )
  process.stdout.write(inFolder(process.execPath, ['imports.mjs']))

  writeFileSync(join(folder, 'orders.csv'), 'id,amount\na,1.50\nb,2.00\n')
  process.stdout.write(inFolder('npx', ['--no-install', 'stet', 'load', 'orders.csv', '--key', 'id']))
  const again = JSON.parse(
    inFolder('npx', ['--no-install', 'stet', 'load', 'orders.csv', '--key', 'id', '--json']),
  )
  if (again.counts.unchanged !== 2 || again.counts.inserted !== 0)
    throw new Error(`the rerun said ${JSON.stringify(again.counts)}`)
  fixModel(join(folder, 'shop'))
  process.stdout.write(`tarball ${filename}: ${subpaths.length} subpaths import, the commands run\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** The way of docs/check.md, from a dbt project to a fixed finding: told, explained, fixed, clean. */
function fixModel(project) {
  mkdirSync(join(project, 'models'), { recursive: true })
  writeFileSync(join(project, 'dbt_project.yml'), 'name: shop\nversion: 1.0.0\nprofile: shop\n')
  const model = (config) =>
    writeFileSync(
      join(project, 'models/orders_daily.sql'),
      `{{ config(${config}) }}
select order_id, amount, updated_at from {{ ref('orders') }}
{% if is_incremental() %} where updated_at >= (select max(updated_at) from {{ this }}) {% endif %}
`,
    )
  const stet = (...words) =>
    spawnSync('npx', ['--no-install', 'stet', ...words], { cwd: project, encoding: 'utf8' })
  model("materialized='incremental'")
  const told = stet('check')
  if (told.status !== 1 || !told.stdout.includes('dbt-no-key')) throw new Error(`check: ${told.stdout}`)
  if (!stet('explain', 'dbt-no-key').stdout.includes('unique_key')) throw new Error('explain says no cure')
  model("materialized='incremental', unique_key='order_id'")
  const fixed = stet('check')
  if (fixed.status !== 0) throw new Error(`check of the cure: ${fixed.stdout}`)
  process.stdout.write(fixed.stdout)
}
