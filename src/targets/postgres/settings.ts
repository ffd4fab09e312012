import { quoteLiteral } from '../../local/quote.ts'

/**
 * What every transaction sets first. A role or database may carry other values (`alter role … set`), and then dates
 * would be read in another order, floats cut, bytes escaped, or rows hidden, on the way out and back alike, where no
 * comparison sees it. `set local` only: behind a pooler a plain `set` would leak into other clients.
 */
export function settingsSql(options: {
  readonly lockTimeoutMs: number
  readonly searchPath: string | null
}): string {
  const settings: Readonly<Record<string, string>> = {
    client_encoding: 'UTF8',
    datestyle: 'ISO, YMD',
    intervalstyle: 'postgres',
    timezone: 'UTC',
    extra_float_digits: '1',
    bytea_output: 'hex',
    xmlbinary: 'base64',
    standard_conforming_strings: 'on',
    // A policy that hides rows would make them look missing: with `off` the statement fails instead.
    row_security: 'off',
    statement_timeout: '0',
    idle_in_transaction_session_timeout: '0',
    lock_timeout: `${Math.ceil(options.lockTimeoutMs)}ms`,
    // The statements are few and large; compiling them costs more than it gives.
    jit: 'off',
  }
  const lines = Object.entries(settings).map(([name, value]) => `set local ${name} = ${quoteLiteral(value)};`)
  // Not emptied: triggers and defaults of the user look their names up through it.
  const path =
    options.searchPath === null
      ? []
      : [`select pg_catalog.set_config('search_path', ${quoteLiteral(options.searchPath)}, true);`]
  return [...lines, ...path].join('\n')
}

/**
 * Lets the planner find some rows of a large table by their keys. By default it takes a page of an index for as dear as a
 * disk with moving heads would make it, and reads the whole table for one row in a hundred (1M rows: 2.2 s against 0.1 s).
 * Where somebody has set the price, it stays.
 */
export function keyedPlansSql(): string {
  return `select pg_catalog.set_config('random_page_cost', '1.1', true)
  from pg_catalog.pg_settings
 where name = 'random_page_cost' and source = 'default';`
}
