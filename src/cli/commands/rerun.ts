import { StetError } from '../../errors.ts'
import type { RunLogEntry } from '../../model/run.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { RunDocument } from '../documents.ts'
import { addRemovalOptions, allowedBy, type RemovalOptions } from '../jobs.ts'
import { type LoadedPipeline, onePipeline } from '../pipeline-files.ts'
import { renderRun } from '../render-run.ts'
import type { OutputOptions } from '../reporter.ts'
import { addRunningOptions, type RunningOptions, runOptionsOf } from '../run-options.ts'
import { runJobs } from '../work.ts'

interface Options extends OutputOptions, RunningOptions, RemovalOptions {
  readonly pipeline?: string
}

export const makeRerunCommand: MakeCommand = (act) => {
  const command = newCommand(
    'rerun',
    'repeat a run with its slice, window and logical time',
    'Repeats a run of the run log with the slice, the window and the logical time that it had, never with those of now. The source is read as it is today; a notice says when its files or the file of the pipeline have changed since. The watermark stays where it is.',
  )
    .argument('<run>', 'the id of a run or of an attempt, or the beginning of one')
    .argument('<file>', 'pipeline.ts, as for stet run')
    .optionsGroup('What runs:')
    .option('--pipeline <name>', 'the pipeline, where the file exports several')
  addRemovalOptions(command)
  return addCommonOptions(addRunningOptions(command))
    .addHelpText('after', ['', 'Example:', '  stet rerun 8a1b5dfa pipeline.ts'].join('\n'))
    .action(act(rerun))
}

async function rerun({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const [id = '', file = ''] = args
  const loaded = await onePipeline(file, options.pipeline, context.cwd)
  const { pipeline, code, inCommands } = loaded
  const entry = await entryOf(id, loaded, context.signal)
  const { changesOfCode, changesOfFiles, filesGone, rerunOptions } = await import('../../pipeline/rerun.ts')
  const again = rerunOptions(pipeline, entry)
  for (const change of changesOfCode(entry, code)) reporter.notice(change)
  // Said before the run, which may fail for want of them.
  const gone = await filesGone(entry, context.cwd)
  for (const change of gone) reporter.notice(change)
  const job = {
    pipeline,
    label: undefined,
    options: {
      ...runOptionsOf(options, context, reporter),
      allow: allowedBy(options),
      ...again,
      code,
      inCommands,
    },
  }
  const { done, failures, error, status } = await runJobs([job], reporter, (result) => {
    const changes = changesOfFiles(entry, result.files).filter((change) => !gone.includes(change))
    for (const change of changes) reporter.notice(change)
    reporter.account(renderRun(result, reporter.colors))
  })
  reporter.document({ format: 'stet-run-1', results: done, failures, error } satisfies RunDocument)
  return status
}

/** The newest attempt of the run that the user means. */
async function entryOf(id: string, { pipeline }: LoadedPipeline, signal: AbortSignal): Promise<RunLogEntry> {
  await using log = await pipeline.target.openRunLog({ signal })
  const found = await log.find(id)
  const entries = found.filter((entry) => entry.pipeline === pipeline.name)
  const [newest] = entries
  if (newest === undefined) {
    const others = [...new Set(found.map((entry) => entry.pipeline))]
    throw new StetError(
      'STET_USAGE',
      others.length > 0
        ? `Run "${id}" is one of pipeline "${others.join('", "')}", not of "${pipeline.name}"`
        : `No run in ${pipeline.target.description} has the id "${id}", nor is there one run alone whose id begins so`,
      {
        hint: "A rerun looks in the log of the pipeline's own target; stet runs --into TARGET lists the runs of one",
      },
    )
  }
  const slices = new Set(entries.map((entry) => entry.slice))
  if (slices.size === 1) return newest
  throw new StetError(
    'STET_USAGE',
    `Run "${id}" has loaded ${slices.size} slices: ${[...slices].join(', ')}`,
    {
      hint: 'Name one of its attempts; stet runs --json shows their ids',
    },
  )
}
