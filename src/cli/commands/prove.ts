import { Option } from 'commander'
import type { ProveCommandOptions } from '../../prove/command.ts'
import type { ReportFormat } from '../../prove/report/formats.ts'
import type { Paint } from '../../prove/report/terminal.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import { collect, parseCount, parseDuration, parseCountFromOne } from '../option-values.ts'
import { isPipelineFile } from '../pipeline-files.ts'
import type { OutputOptions, Reporter } from '../reporter.ts'

type ProveOptions = OutputOptions &
  ProveCommandOptions & { readonly try?: readonly string[]; readonly format: ReportFormat }

export const makeProveCommand: MakeCommand = (act) => {
  const command = newCommand(
    'prove',
    'find out by experiment whether a command survives a rerun',
    'Runs any command against throw-away copies of a database: twice, and then again and again with a crash, a lost connection or an error at every place where something becomes durable, each time followed by a rerun. Says whether the end is always that of one clean run, and shows the rows if not.',
  ).argument('<command...>', 'the command and its arguments, after --; or a pipeline.ts')
  command
    .optionsGroup('The database it works on:')
    .option('--seed <file>', 'SQL that fills it')
    .option('--from <url>', 'a PostgreSQL database to copy; it is only read')
    .option('--template <dump>', 'an archive to restore: what pg_dump -Fc, -Fd or -Ft writes')
    .option('--only <pattern>', 'with --from: only these tables, repeatable', collect)
    .option('--exclude <pattern>', 'with --from: not these tables, repeatable', collect)
    .option('--db <file>', "a DuckDB or SQLite file, copied into the command's folder; repeatable", collect)
    .option('--postgres <folder>', "where PostgreSQL's programs are")
    .optionsGroup('The command:')
    .option('--env <name>', 'NAME passes a variable on, NAME={url} sets one; repeatable', collect)
    .option('--work <folder>', 'its folder, copied for each trial (default: the current one)')
    .option('--files <path>', 'files that count, repeatable (default: all of its folder)', collect)
    .option('--replies <file>', 'JSON with answers to its web requests')
    .option('--listen <port>', 'a database port that is built into it', parseCount)
    .option('--timeout <duration>', 'how long a clean run may take (default: 10min)', parseDuration)
    .option('--no-trace', 'do not watch its file calls with strace; crashes between them are left to chance')
    .option('--allow-network', 'go on where the system cannot keep it from other servers')
    .optionsGroup('What is tried:')
    .addOption(
      new Option('--try <kind>', 'only these faults, repeatable')
        .choices(['twice', 'crash', 'ambiguous', 'error', 'overlap'])
        .argParser(collect),
    )
    .option('--change <path>', 'SQL, or a folder of files, that corrects the source between two runs')
    .option('--exhaustive', 'every place, not a choice of them')
    .option('--all', 'faults too when a plain second run differs already')
    .option('--budget <duration>', 'start no trial after that time', parseDuration)
    .option('--jobs <count>', 'trials at the same time', parseCountFromOne, 2)
    .option('--replay <trial>', 'only this trial', parseCount)
    .option('--keep', 'keep the database of the first conviction until Ctrl-C')
    .optionsGroup('What counts:')
    .option(
      '--ignore <pattern>',
      "a table, 'table.column', '*.column' or file to leave out, repeatable",
      collect,
    )
    .option(
      '--fail-on <class>',
      'what convicts beside lost, doubled, different, stuck and success: overlap, keys, gap, touched, renumbered or "left behind"; repeatable',
      collect,
    )
  command
    .optionsGroup('What is shown:')
    .addOption(
      new Option('--format <format>', 'how the report is written')
        .choices(['text', 'json', 'junit', 'github', 'html'])
        .default('text'),
    )
    .option(
      '--report <file>',
      'also writes it to a .html, .xml (JUnit), .json or .txt file, repeatable',
      collect,
    )
  return addCommonOptions(command).action(act(proveIt))
}

async function proveIt({ context, reporter, args, options }: Invocation<ProveOptions>): Promise<number> {
  const { proveCommand } = await import('../../prove/command.ts')
  const { try: kinds, format, ...given } = options
  const { command, ...change } = commandOf(args, given, context.program)
  const named = { ...given, ...change, ...(kinds === undefined ? {} : { kinds }) }
  const result = await proveCommand(command, named, {
    environment: { ...context.env },
    folder: context.cwd,
    onProgress: reporter.notice,
    ask: context.ask,
    signal: context.signal,
  })
  reporter.print(result.render(format, paintOf(reporter)))
  reporter.document(result.document)
  return result.exitStatus
}

/** Stet's own pipelines are run by the same program as `stet run` does it, and judged like anybody's command. */
function commandOf(
  words: readonly string[],
  { ignore = [] }: ProveCommandOptions,
  program: readonly string[],
): ProveCommandOptions & { readonly command: readonly string[] } {
  if (!isPipelineFile(words[0] ?? '')) return { command: words }
  const shownAs = ['stet', 'run', ...words]
  // Its run log has a row for each run, by its nature.
  return { command: [...program, 'run', ...words], shownAs, ignore: [...ignore, 'stet.*'] }
}

function paintOf({ colors }: Reporter): Paint {
  return { bad: colors.red, good: colors.green, warn: colors.yellow, dim: colors.dim }
}
