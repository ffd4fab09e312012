/** The files of a check: what git knows, or all of a folder without the usual vendored parts. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { globSync } from 'tinyglobby'
import { StetError } from '../errors.ts'

const VENDORED =
  /(?:^|\/)(?:node_modules|bower_components|vendor|third_party|dist|build|out|target|\.venv|venv|site-packages|dbt_packages|dbt_modules|\.git|\.next|\.tox|__pycache__|coverage|\.terraform|\.cache)\//
const CHECKED =
  /\.(?:sql|hql|ddl|pgsql|cql|bq|mysql|psql|j2|jinja2?|py|[cm]?[jt]sx?|sh|bash|ksh|ya?ml|prisma)$/i
/** Larger files are data or generated. */
const SIZE_LIMIT = 2_000_000

export interface Discovered {
  /** All files of the root that can hold something to know, with `/`. */
  readonly all: readonly string[]
  /** Those asked for. */
  readonly selected: ReadonlySet<string>
  readonly tooLarge: readonly string[]
}

export function discover(root: string, paths: readonly string[], ignore: readonly RegExp[]): Discovered {
  const wanted = paths.map((path) => {
    const absolute = resolve(root, path)
    if (!existsSync(absolute)) {
      throw new StetError('STET_USAGE', `Cannot check ${path}: there is no such file or folder`)
    }
    return relative(root, absolute).split(sep).join('/')
  })
  const listed = (listByGit(root) ?? listByWalk(root)).filter(
    (path) =>
      CHECKED.test(path) && !VENDORED.test(`/${path}`) && !ignore.some((pattern) => pattern.test(path)),
  )
  // A file that is named is checked, whatever git or an ignore says of it.
  const all = new Set(listed)
  for (const path of wanted)
    if (path !== '' && !path.startsWith('..') && statSync(join(root, path)).isFile()) all.add(path)
  const tooLarge: string[] = []
  const kept = [...all].sort().filter((path) => {
    const size = statSync(join(root, path), { throwIfNoEntry: false })?.size
    if (size === undefined) return false
    if (size > SIZE_LIMIT) tooLarge.push(path)
    return size <= SIZE_LIMIT
  })
  const selected = new Set(
    kept.filter(
      (path) =>
        wanted.length === 0 || wanted.some((one) => one === '' || path === one || path.startsWith(`${one}/`)),
    ),
  )
  return { all: kept, selected, tooLarge }
}

function listByGit(root: string): string[] | undefined {
  try {
    const out = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '.'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return out.split('\0').filter((path) => path !== '')
  } catch {
    // Not a checkout, or git is not installed.
    return undefined
  }
}

function listByWalk(root: string): string[] {
  return globSync('**/*', {
    cwd: root,
    dot: false,
    onlyFiles: true,
    ignore: ['**/node_modules/**', '**/.git/**'],
  })
}

export function readText(root: string, path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
