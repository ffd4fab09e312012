import { Command, Option } from 'commander'
import type { CliContext } from './context.ts'
import { collect } from './option-values.ts'
import { endWithFailure, type OutputOptions, type Reporter, reporterFor } from './reporter.ts'

/** What a command's module gives: a command for commander, which its help and `docs/cli.md` are made from. */
export type MakeCommand = (act: Act) => Command

/** Turns a handler into an action of commander. */
export type Act = <O extends OutputOptions>(
  handler: (invocation: Invocation<O>) => Promise<number>,
) => (...parameters: unknown[]) => Promise<void>

/** One call of a command. */
export interface Invocation<O extends OutputOptions> {
  readonly context: CliContext
  readonly reporter: Reporter
  readonly args: readonly string[]
  readonly options: O
  /** The options that stand on the command line, by their flags; the others have their defaults. */
  readonly given: readonly string[]
}

export function newCommand(name: string, summary: string, description: string): Command {
  // A word that is one too many must not be passed over in silence.
  return new Command(name).summary(summary).description(description).allowExcessArguments(false)
}

/**
 * The heading under which help lists the options that all commands have.
 *
 * @public for scripts/make-cli-docs.mjs
 */
export const COMMON_OPTIONS = 'Every command:'

/** Adds the options that all commands have; last, as help lists them in the order they came. */
export function addCommonOptions(command: Command): Command {
  refuseRepetition(command)
  return command
    .optionsGroup(COMMON_OPTIONS)
    .option('--json', 'one JSON document on stdout, see schemas/')
    .option('--quiet', 'no notes, no progress, no account of what was done; errors only')
    .option('--debug', 'show the stack of an error (also: STET_DEBUG=1)')
    .addHelpOption(new Option('-h, --help', 'show this help').helpGroup(COMMON_OPTIONS))
}

/** The last one would win in silence: `--key region --key no` would load by half of the key. */
function refuseRepetition(command: Command): void {
  for (const option of command.options) {
    if (option.isBoolean() || option.variadic || option.parseArg === collect) continue
    let seen = 0
    command.on(`option:${option.name()}`, () => {
      if (++seen > 1)
        command.error(
          `error: ${option.long ?? option.name()} is given twice; several values go into one, with commas`,
        )
    })
  }
}

/** Runs handlers with their context and gives the status on to `end`. Every error ends here, in words. */
export function actIn(context: CliContext, end: (status: number) => void): Act {
  return (handler) =>
    async (...parameters) => {
      const command = parameters.at(-1)
      if (!(command instanceof Command)) throw new TypeError('commander did not pass the command')
      // A command takes its options before and after its subcommand, so that `runs show` finds them in its parent.
      const options = command.optsWithGlobals<Parameters<typeof handler>[0]['options']>()
      const reporter = reporterFor(context, options)
      try {
        const args: readonly string[] = command.processedArgs.flat()
        end(await handler({ context, reporter, args, options, given: givenOptions(command) }))
      } catch (error) {
        end(endWithFailure(reporter, error))
      }
    }
}

function givenOptions(command: Command): readonly string[] {
  return command.options
    .filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
    .map((option) => option.long ?? option.flags)
}
