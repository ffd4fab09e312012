import { Command, CommanderError } from 'commander'
import { EXIT_STATUS_BY_CODE, StetError } from '../errors.ts'
import { VERSION } from '../version.ts'
import { actIn } from './command.ts'
import { COMMANDS } from './commands.ts'
import type { CliContext } from './context.ts'
import { endWithFailure, reporterFor } from './reporter.ts'

/** Runs one command line (without `node` and the script) and gives its exit status. Never throws. */
export async function main(argv: readonly string[], context: CliContext): Promise<number> {
  let status = 0
  const act = actIn(context, (ended) => {
    status = ended
  })
  // `stet help load` as people also write it.
  const words = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv
  try {
    const program = newProgram()
    const called = words.find((word) => !word.startsWith('-'))
    for (const { name, summary, load } of COMMANDS) {
      // Only the module of the command that is called is loaded; of the others the list needs one line.
      if (name === called) program.addCommand((await load())(act))
      else program.command(name).summary(summary)
    }
    writeInto(program, context)
    await program.parseAsync(words, { from: 'user' })
    return status
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    // No command at all: commander has shown the help already.
    if (error instanceof CommanderError && error.code === 'commander.help')
      return EXIT_STATUS_BY_CODE.STET_USAGE
    const reporter = reporterFor(context, {
      json: argv.includes('--json'),
      quiet: argv.includes('--quiet'),
      debug: argv.includes('--debug'),
    })
    return endWithFailure(reporter, error instanceof CommanderError ? usageError(error) : error)
  }
}

function newProgram(): Command {
  return new Command('stet')
    .description('Data pipelines that can be run again: the same load twice leaves the table as it was.')
    .usage('<command> [options]')
    .version(VERSION, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .addHelpText(
      'after',
      [
        '',
        'Examples:',
        '  stet load orders.csv --key order_ref            into the table "orders" of stet.duckdb',
        '  stet load orders.csv --key order_ref --plan     what that would do',
        '  stet runs                                       what was done',
        '',
        'Exit status: docs/exit-codes.md. Every command takes --json.',
      ].join('\n'),
    )
}

/** Lets commander throw instead of ending the process, and write where the context says. */
function writeInto(command: Command, context: CliContext): void {
  command.exitOverride()
  command.configureOutput({
    writeOut: (text) => context.stdout.write(text),
    // Usage errors are told by the reporter; only help that nobody asked for comes this way.
    writeErr: (text) => {
      if (!text.startsWith('error:')) context.stderr.write(text)
    },
    getOutHelpWidth: () => context.stdout.columns,
    getErrHelpWidth: () => context.stderr.columns,
  })
  for (const subcommand of command.commands) writeInto(subcommand, context)
}

/** Commander's complaint as one of ours: its second line is a suggestion. */
function usageError(error: CommanderError): StetError {
  const [first = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
  const hint = suggestion?.replace(/^\((.*)\)$/, '$1') ?? 'See stet --help, or --help of the command'
  return new StetError('STET_USAGE', first, { hint })
}
