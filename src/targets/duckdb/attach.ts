import { setTimeout as wait } from 'node:timers/promises'
import { StetError } from '../../errors.ts'
import { quoteIdentifier, quoteLiteral } from '../../local/quote.ts'
import type { LocalConnection } from '../../model/local.ts'
import { lookAtFile, notADatabase } from './file.ts'
import { takeTurn } from './turn.ts'

export interface AttachOptions {
  readonly local: LocalConnection
  /** As {@link realPathOf} gives it. */
  readonly path: string
  /** As the user wrote it. */
  readonly shown: string
  readonly readOnly: boolean
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly notice: (message: string) => void
}

/** A database file attached to the local engine. Nobody else, in this process or another, has it until it is released. */
export interface AttachedFile {
  /** The catalog's name in the local engine, as a quoted identifier. */
  readonly catalog: string
  /** Writes what is committed into the file proper and gives it up. May be called more than once. */
  release(): Promise<void>
}

/** DuckDB answers at once that a file is locked and offers no waiting, so its lock is asked for again and again. */
const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 250
/** A file is empty for the moment between its making and its first write by another process. */
const EMPTY_FILE_GRACE_MS = 500

/**
 * Attaches a database file to the local engine, making it when it is missing; waits for another run of this process and
 * for other processes. Null when the file is missing and only to be read.
 *
 * @throws {StetError} `STET_CONFIG` when the file is no database, `STET_LOCKED` when others hold it for too long.
 */
export async function attachFile(options: AttachOptions): Promise<AttachedFile | null> {
  const { local, path, shown, readOnly, timeoutMs, signal, notice } = options
  const deadline = performance.now() + timeoutMs
  const endTurn = await takeTurn(path, {
    timeoutMs,
    signal,
    onWait: () => notice(`Waiting for another run in this process that holds ${shown}`),
  })
  const name = local.newName('stet_target')
  try {
    const found = await attachWhenFree()
    if (!found) {
      endTurn()
      return null
    }
  } catch (error) {
    endTurn()
    throw error
  }
  let released: Promise<void> | undefined
  return {
    catalog: quoteIdentifier(name),
    release: () => {
      released ??= local.run(`detach ${quoteIdentifier(name)}`).finally(endTurn)
      return released
    },
  }

  async function attachWhenFree(): Promise<boolean> {
    let pauseMs = FIRST_PAUSE_MS
    let told = false
    const emptyUntil = performance.now() + Math.min(EMPTY_FILE_GRACE_MS, timeoutMs)
    while (true) {
      signal.throwIfAborted()
      const state = await lookAtFile(path, shown)
      if (state === 'missing' && readOnly) return false
      if (state === 'empty') {
        if (performance.now() > emptyUntil) throw notADatabase(shown, 'it is empty')
      } else {
        try {
          // With its type named: DuckDB opens a small CSV file as a database in memory, in which all that is written is lost.
          await local.run(
            `attach ${quoteLiteral(path)} as ${quoteIdentifier(name)} (type duckdb${readOnly ? ', read_only' : ''})`,
          )
          return true
        } catch (error) {
          const holder = holderOf(error)
          if (holder === null) throw describeAttachError(error, shown)
          if (performance.now() > deadline) throw locked(shown, holder, timeoutMs, error)
          if (!told) notice(`Waiting for ${holder}, which holds ${shown}`)
          told = true
        }
      }
      await wait(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted())
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    }
  }
}

/** Who holds the file, in words, when that is what DuckDB complains about. */
function holderOf(error: unknown): string | null {
  const message = error instanceof Error ? error.message : String(error)
  if (!message.includes('Could not set lock on file')) return null
  const named = /held in (.+?) \(PID (\d+)\)/.exec(message)
  return named === null ? 'another process' : `another process (${named[1]}, PID ${named[2]})`
}

function locked(shown: string, holder: string, timeoutMs: number, cause: unknown): StetError {
  const pid = /PID (\d+)/.exec(holder)?.[1]
  return new StetError(
    'STET_LOCKED',
    `Cannot open ${shown}: ${holder} still holds it after ${timeoutMs} ms (G7); nothing was written`,
    {
      hint: 'DuckDB lets one process at a time use a file, also for reading. Wait for that process, or end it if it hangs',
      details: { file: shown, ...(pid === undefined ? {} : { pid: Number(pid) }) },
      cause,
    },
  )
}

function describeAttachError(error: unknown, shown: string): unknown {
  const message = error instanceof Error ? error.message : String(error)
  if (message.includes('we can only read versions')) {
    return new StetError('STET_CONFIG', `Cannot open ${shown}: it was written by a DuckDB of another age`, {
      hint: 'Update Stet, or export the tables with the DuckDB that wrote the file',
      cause: error,
    })
  }
  if (/valid DuckDB database file/.test(message)) return notADatabase(shown, 'it does not begin like one')
  if (/encrypt/i.test(message)) {
    return new StetError(
      'STET_CONFIG',
      `Cannot open ${shown}: it is encrypted, which Stet does not support`,
      { cause: error },
    )
  }
  return new StetError('STET_CONFIG', `Cannot open ${shown}: ${message}`, { cause: error })
}
