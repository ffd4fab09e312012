import { StetError } from '../../errors.ts'

/** Addresses of one trial, for placeholders such as `{url}`. */
export interface Places {
  readonly url: string
  readonly host: string
  readonly port: string
  readonly db: string
  readonly dir: string
  readonly http: string
}

/**
 * What a command gets from the caller's environment: how to find programs and how to write text. Nothing that says
 * where a database or a service is, or how to log in to it. HOME is not among them: it holds ~/.pgpass, ~/.aws, ~/.dbt.
 */
const ALLOWED = [
  ...['PATH', 'LANG', 'LANGUAGE', 'TZ', 'USER', 'LOGNAME', 'SHELL', 'TERM'],
  ...[
    'PYTHONPATH',
    'VIRTUAL_ENV',
    'PYENV_ROOT',
    'PYENV_VERSION',
    'CONDA_PREFIX',
    'RBENV_ROOT',
    'ASDF_DATA_DIR',
    'NODE_PATH',
    'JAVA_HOME',
    'GEM_PATH',
    'PERL5LIB',
    'LD_LIBRARY_PATH',
  ],
]

/** Nobody asks for it: the sandbox trusts whoever reaches it. */
export const PASSWORD = 'stet'

export interface EnvironmentOptions {
  readonly caller: NodeJS.ProcessEnv
  /** `NAME` takes the caller's value, `NAME=value` sets one; placeholders are filled in. */
  readonly passed: readonly string[]
  readonly places: Places
  readonly home: string
  readonly temporary: string
  readonly trial: string
}

/** The environment of one run of the command. */
export function environmentOf(options: EnvironmentOptions): NodeJS.ProcessEnv {
  const { caller, places } = options
  const allowed = Object.entries(caller).filter(([name]) => ALLOWED.includes(name) || name.startsWith('LC_'))
  return {
    ...Object.fromEntries(allowed),
    HOME: options.home,
    TMPDIR: options.temporary,
    STET_TRIAL: options.trial,
    PYTHONDONTWRITEBYTECODE: '1',
    DATABASE_URL: places.url,
    PGHOST: places.host,
    PGPORT: places.port,
    PGDATABASE: places.db,
    PGUSER: 'postgres',
    PGPASSWORD: PASSWORD,
    PGSSLMODE: 'disable',
    HTTP_PROXY: places.http,
    http_proxy: places.http,
    ...Object.fromEntries(options.passed.map((entry) => passedOn(entry, caller, places))),
  }
}

function passedOn(entry: string, caller: NodeJS.ProcessEnv, places: Places): readonly [string, string] {
  const at = entry.indexOf('=')
  if (at > 0) return [entry.slice(0, at), fillIn(entry.slice(at + 1), places)]
  const value = caller[entry]
  if (value === undefined) {
    throw new StetError('STET_USAGE', `--env ${entry}: the environment has no ${entry}`, {
      hint: `Give it a value: --env ${entry}={url}`,
    })
  }
  return [entry, value]
}

/** Puts a trial's addresses in place of `{url}`, `{host}`, `{port}`, `{db}`, `{dir}` and `{http}`. */
export function fillIn(text: string, places: Places): string {
  return text.replace(/\{(url|host|port|db|dir|http)\}/g, (_, name: keyof Places) => places[name])
}
