import type { Command } from 'commander'
import { StetError } from '../../errors.ts'
import type { RunLog, RunLogEntry } from '../../model/run.ts'
import { type Act, addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { RunLogDocument } from '../documents.ts'
import { parseCountFromOne } from '../option-values.ts'
import { renderRunDetails, renderRunLog } from '../render-run-log.ts'
import type { OutputOptions } from '../reporter.ts'
import { DEFAULT_TARGET, targetOf } from '../target-option.ts'

interface TargetOptions extends OutputOptions {
  readonly into: string
}

interface ListOptions extends TargetOptions {
  readonly pipeline?: string
  readonly last: number
}

export const makeRunsCommand: MakeCommand = (act) => {
  const command = newCommand(
    'runs',
    'show the run log of a target',
    'Shows what was run on a target, newest first: when, how long, what became of the rows. The log lies in the target, in the schema "stet".',
  )
  addTarget(command)
    .option('--pipeline <name>', 'only the runs of this pipeline')
    .option('--last <count>', 'how many runs', parseCountFromOne, 20)
  return addCommonOptions(command).addCommand(makeShowCommand(act)).action(act(list))
}

function makeShowCommand(act: Act): Command {
  const command = newCommand(
    'show',
    'show everything about one run',
    'Shows everything about one run and its attempts: counts, files with size and hash, rejected rows, the error.',
  ).argument('<run>', 'the id of a run or of an attempt, or the beginning of one')
  return addCommonOptions(addTarget(command)).action(act(show))
}

function addTarget(command: Command): Command {
  return command
    .optionsGroup('Which runs:')
    .option('--into <target>', 'the target whose log to read: postgres://… or a DuckDB file', DEFAULT_TARGET)
}

async function list(invocation: Invocation<ListOptions>): Promise<number> {
  const { reporter, options } = invocation
  const { pipeline, last } = options
  const { target, entries } = await readRunLog(invocation, (log) => log.list({ pipeline, last }))
  reporter.print(renderRunLog(entries, target, reporter.colors, pipeline))
  reporter.document({ format: 'stet-runs-1', target, runs: entries } satisfies RunLogDocument)
  return 0
}

async function show(invocation: Invocation<TargetOptions>): Promise<number> {
  const { reporter, args } = invocation
  const [id = ''] = args
  const { target, entries } = await readRunLog(invocation, (log) => log.find(id))
  if (entries.length === 0) {
    throw new StetError(
      'STET_USAGE',
      `No run in ${target} has the id "${id}", nor is there one run alone whose id begins so`,
      {
        hint: 'stet runs lists the runs; --into names another target',
      },
    )
  }
  reporter.print(renderRunDetails(entries, reporter.colors))
  reporter.document({ format: 'stet-runs-1', target, runs: entries } satisfies RunLogDocument)
  return 0
}

async function readRunLog(
  { context, options }: Invocation<TargetOptions>,
  read: (log: RunLog) => Promise<readonly RunLogEntry[]>,
): Promise<{ readonly target: string; readonly entries: readonly RunLogEntry[] }> {
  const target = await targetOf(options.into, context.cwd)
  await using log = await target.openRunLog({ signal: context.signal })
  return { target: target.description, entries: await read(log) }
}
