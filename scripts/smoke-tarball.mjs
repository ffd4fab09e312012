// Packs the package, installs it into an empty folder as a user would, imports every subpath and runs the command.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
  process.stdout.write(`tarball ${filename}: ${subpaths.length} subpaths import, the command runs\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
