import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CheckConfig } from '../check/command.ts'
import { StetError } from '../errors.ts'

const NAMES = ['stet.config.ts', 'stet.config.mts', 'stet.config.js', 'stet.config.mjs']

/**
 * The `check` part of the default export of stet.config.ts; nothing where there is no such file.
 *
 * @throws {StetError} `STET_USAGE` for a named file that is missing, `STET_CONFIG` when it cannot be loaded.
 */
export async function readCheckConfig(cwd: string, named: string | undefined): Promise<CheckConfig> {
  if (named !== undefined && !existsSync(resolve(cwd, named))) {
    throw new StetError('STET_USAGE', `There is no configuration "${named}"`)
  }
  const file = named ?? NAMES.find((name) => existsSync(resolve(cwd, name)))
  if (file === undefined) return {}
  const { createJiti } = await import('jiti')
  let exported: unknown
  try {
    exported = await createJiti(import.meta.url, { fsCache: false }).import(resolve(cwd, file), {
      default: true,
    })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StetError('STET_CONFIG', `Cannot load "${file}": ${reason}`, {
      cause,
      hint: '--debug shows where',
    })
  }
  const config =
    typeof exported === 'object' && exported !== null && 'check' in exported ? exported.check : {}
  if (typeof config !== 'object' || config === null) {
    throw new StetError('STET_CONFIG', `"check" of "${file}" is not an object`, {
      hint: 'Write: export default { check: { ignore: [] } }',
    })
  }
  return config
}
