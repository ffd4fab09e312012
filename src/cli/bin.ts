#!/usr/bin/env node
import { hostname, userInfo } from 'node:os'
import { StetError } from '../errors.ts'
import { VERSION } from '../version.ts'
import type { CliContext, Output } from './context.ts'

const argv = process.argv.slice(2)

// The version is asked for by scripts, often: nothing else is loaded for it.
if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
  process.stdout.write(`${VERSION}\n`)
} else {
  const { main } = await import('./main.ts')
  const status = await main(argv, contextOfProcess())
  // A pipeline file may have left a connection open, which would keep a finished process alive for ever.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(status)))
}

function contextOfProcess(): CliContext {
  return {
    stdout: outputOf(process.stdout),
    stderr: outputOf(process.stderr),
    env: process.env,
    cwd: process.cwd(),
    user: `${userName()}@${hostname()}`,
    clock: {
      date: () => new Date(),
      now: () => performance.now(),
      every: (intervalMs, callback) => {
        const timer = setInterval(callback, intervalMs)
        timer.unref()
        return () => clearInterval(timer)
      },
    },
    signal: signalOfProcess(),
  }
}

/** A container's user often has a number and no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}

function outputOf(stream: NodeJS.WriteStream): Output {
  // `stet runs | head` closes the pipe early. What was read is read; the work goes on, and nothing is said.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') throw error
  })
  return {
    write: (text) => {
      stream.write(text)
    },
    isTerminal: stream.isTTY === true,
    get columns() {
      // 0 where the terminal does not know.
      return stream.columns || 80
    },
  }
}

/** Fires at the first SIGINT or SIGTERM; the second one finds no handler any more and kills at once. */
function signalOfProcess(): AbortSignal {
  const controller = new AbortController()
  const stop = (signal: NodeJS.Signals) => {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
    controller.abort(
      new StetError('STET_INTERRUPTED', `Stopped by ${signal}; the table is as it was`, {
        hint: 'Run the same command again',
      }),
    )
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  return controller.signal
}
