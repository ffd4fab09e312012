import { StetError } from '../../src/errors.ts'
import { proveCommand } from '../../src/prove/command.ts'

/** The prover as a process of its own, for tests that interrupt or kill it. Takes its options as JSON. */
const [options = '{}', ...command] = process.argv.slice(2)
const abort = new AbortController()
process.once('SIGINT', () => abort.abort(new Error('interrupted')))
try {
  const { exitStatus, render } = await proveCommand(command, JSON.parse(options), {
    environment: process.env,
    folder: process.cwd(),
    onProgress: (progress) => process.stderr.write(`${progress}\n`),
    ask: null,
    signal: abort.signal,
  })
  process.stdout.write(`${render('text')}\n`)
  process.exitCode = exitStatus
} catch (error) {
  const hint = error instanceof StetError ? error.hint : null
  process.stderr.write(`${String(error)}\n${hint ?? ''}\n`)
  process.exitCode = 130
}
