import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StetError } from '../../errors.ts'

/** A new folder in TMPDIR. Its name tells which process it belongs to, so that the next one can remove what a killed one left. */
export async function makeTemporaryFolder(prefix: string): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StetError('STET_CONFIG', `Cannot make a folder for the sandbox in ${tmpdir()}: ${why}`, {
      hint: 'Point TMPDIR to a folder that can be written to',
      cause,
    })
  }
}
