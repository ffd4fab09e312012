import { Option } from 'commander'
import { StetError } from '../../errors.ts'
import type { BackfillOptions, BackfillRange, SliceOutcome, SlicePlan } from '../../pipeline/backfill.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { BackfillDocument, BackfilledSlice } from '../documents.ts'
import { driftIn, refuseDrift } from '../drift.ts'
import { type Failure, failureOf } from '../failure.ts'
import { addRemovalOptions, allowedBy, type RemovalOptions, refuseDriftOfNothing } from '../jobs.ts'
import { parseCountFromOne } from '../option-values.ts'
import { type LoadedPipeline, onePipeline } from '../pipeline-files.ts'
import { commandFor, renderBackfill, renderOutcome, renderSlicePlans } from '../render-backfill.ts'
import type { OutputOptions, Reporter } from '../reporter.ts'
import { addRunningOptions, type RunningOptions, runOptionsOf } from '../run-options.ts'
import { gravestOf } from '../work.ts'

interface Options extends OutputOptions, RunningOptions, RemovalOptions {
  readonly from: string
  readonly to?: string
  readonly only?: BackfillRange['only']
  readonly order?: BackfillRange['order']
  readonly jobs: number
  readonly plan?: boolean
  readonly failOnDrift?: boolean
  readonly runId?: string
  readonly pipeline?: string
}

export const makeBackfillCommand: MakeCommand = (act) => {
  const command = newCommand(
    'backfill',
    'run a pipeline for many slices, each on its own',
    'Runs a pipeline once for each slice from the one to the other: every slice has a run, a commit and a verdict of its own, and one that fails does not stop the others. Stopped or killed, it goes on when the same command is started again: a slice that is done is compared and not written.',
  )
    .argument('<file>', 'pipeline.ts, whose pipeline replaces partitions or reads by a cursor')
    .optionsGroup('Which slices:')
    .requiredOption('--from <slice>', 'the first one, such as 2026-08-07')
    .option('--to <slice>', 'the last one, included (default: the last one that has ended)')
    .addOption(
      new Option(
        '--only <which>',
        'of these only: never loaded; newest attempt failed or was interrupted; would be changed',
      ).choices(['missing', 'failed', 'changed']),
    )
    .addOption(
      new Option('--order <which>', 'which comes first (default: oldest)').choices(['oldest', 'newest']),
    )
    .option('--pipeline <name>', 'the pipeline, where the file exports several')
    .option('--plan', 'show what would be done and change nothing')
    .option(
      '--fail-on-drift',
      'end with status 5 when a frozen slice differs from its source; nothing is undone',
    )
  addRemovalOptions(command)
  addRunningOptions(command)
    .option(
      '--jobs <count>',
      'slices at a time; the memory limit is divided among them',
      parseCountFromOne,
      1,
    )
    .option('--run-id <id>', 'groups attempts in the run log, each slice as ID/SLICE')
  return addCommonOptions(command)
    .addHelpText(
      'after',
      [
        '',
        'Examples:',
        '  stet backfill pipeline.ts --from 2026-08-07 --to 2026-09-06 --plan',
        '  stet backfill pipeline.ts --from 2026-08-07 --to 2026-09-06 --jobs 2 --only missing',
      ].join('\n'),
    )
    .action(act(backfillFile))
}

async function backfillFile(invocation: Invocation<Options>): Promise<number> {
  const { context, reporter, args, options } = invocation
  const loaded = await onePipeline(args[0] ?? '', options.pipeline, context.cwd)
  refuseDriftOfNothing([loaded], options)
  const backfillOptions: BackfillOptions = {
    ...runOptionsOf(options, context, reporter),
    allow: allowedBy(options),
    code: loaded.code,
    inCommands: loaded.inCommands,
    from: options.from,
    to: options.to,
    only: options.only,
    order: options.order,
    jobs: options.jobs,
    runId: options.runId,
  }
  return options.plan === true
    ? planSlices(loaded, backfillOptions, options, reporter)
    : runSlices(loaded, backfillOptions, options, reporter)
}

async function planSlices(
  loaded: LoadedPipeline,
  backfillOptions: BackfillOptions,
  options: Options,
  reporter: Reporter,
): Promise<number> {
  const { planBackfill } = await import('../../pipeline/backfill.ts')
  const planned = await planBackfill(loaded.pipeline, backfillOptions)
  reporter.endProgress()
  reporter.print(renderSlicePlans(planned, reporter.colors))
  const slices = planned.slices.map((slice) => {
    const { plan } = slice
    if (slice.error !== null) reporter.failure(slice.error, slice.slice)
    const drift = plan === null ? null : driftFailure({ ...plan, drift: driftIn(plan) }, options, reporter)
    const document = documentOf(slice)
    return { ...document, plan, error: document.error ?? drift }
  })
  return end({ ...planned, slices }, true, null, reporter)
}

async function runSlices(
  loaded: LoadedPipeline,
  backfillOptions: BackfillOptions,
  options: Options,
  reporter: Reporter,
): Promise<number> {
  const { backfill } = await import('../../pipeline/backfill.ts')
  const drifts = new Map<string, Failure>()
  const done = await backfill(loaded.pipeline, {
    ...backfillOptions,
    onSlice: (outcome, progress) => {
      reporter.account(renderOutcome(outcome, progress, reporter.colors))
      if (outcome.status === 'failed') reporter.failure(outcome.error, outcome.slice)
      const drift = outcome.result === null ? null : driftFailure(outcome.result, options, reporter)
      if (drift !== null) drifts.set(outcome.slice, drift)
    },
  })
  reporter.endProgress()
  const failed = done.slices.filter(({ status }) => status === 'failed').map(({ slice }) => slice)
  const again = failed.length === 0 ? null : commandToRunAgain(loaded, failed, options)
  reporter.account(
    renderBackfill(done, reporter.colors, { again, goOn: commandToGoOn(loaded, done.slices, options) }),
  )
  const slices = done.slices.map((slice) => {
    const document = documentOf(slice)
    return { ...document, result: slice.result, error: document.error ?? drifts.get(slice.slice) ?? null }
  })
  const interruption = done.slices.find(({ status }) => status === 'interrupted' || status === 'not started')
  if (interruption !== undefined) reporter.failure(interruptionOf(interruption.error))
  return end({ ...done, slices }, false, again, reporter)
}

function end(
  {
    pipeline,
    target,
    table,
    slices,
    notices,
  }: Pick<BackfillDocument, 'pipeline' | 'target' | 'table' | 'slices' | 'notices'>,
  planned: boolean,
  again: string | null,
  reporter: Reporter,
): number {
  const errors = slices.map((slice) => slice.error).filter((error): error is Failure => error !== null)
  const { error, status } = gravestOf(errors)
  reporter.document({
    format: 'stet-backfill-1',
    pipeline,
    target,
    table,
    planned,
    slices,
    again,
    notices,
    error,
  } satisfies BackfillDocument)
  return status
}

function documentOf({ slice, status, reason, error }: SliceOutcome | SlicePlan): BackfilledSlice {
  const isStopped = status === 'interrupted' || status === 'not started'
  const failure = error === null ? null : failureOf(isStopped ? interruptionOf(error) : error)
  return { slice, status, reason, result: null, plan: null, error: failure }
}

/** The failure that `--fail-on-drift` makes of a slice that is loaded, or planned, all the same; null where there is none. */
function driftFailure(
  result: Parameters<typeof refuseDrift>[0],
  { failOnDrift }: Options,
  reporter: Reporter,
): Failure | null {
  if (failOnDrift !== true) return null
  try {
    refuseDrift(result)
    return null
  } catch (drift) {
    // Names the slice itself.
    return reporter.failure(drift)
  }
}

/** What was thrown by the one who stopped it, in words for all slices: "the table is as it was" is true of one. */
function interruptionOf(reason: unknown): StetError {
  const message = reason instanceof Error ? (reason.message.split(';')[0] ?? '') : 'Stopped'
  return new StetError(
    'STET_INTERRUPTED',
    `${message}; slices that are done are done, the others are as they were`,
    {
      hint: 'Run the same command again',
    },
  )
}

function commandToRunAgain(
  { file, pipeline }: LoadedPipeline,
  slices: readonly string[],
  options: Options,
): string {
  return commandFor('run', file, [
    ...(options.pipeline === undefined ? [] : ['--pipeline', pipeline.name]),
    ...slices.flatMap((slice) => ['--slice', slice]),
    ...saidOfAll(options),
  ])
}

/** Null where nothing is left to do. */
function commandToGoOn(
  { file, pipeline }: LoadedPipeline,
  slices: readonly SliceOutcome[],
  options: Options,
): string | null {
  if (!slices.some(({ status }) => status === 'interrupted' || status === 'not started')) return null
  const names = slices.map(({ slice }) => slice)
  const ends = options.order === 'newest' ? [names.at(-1), names[0]] : [names[0], names.at(-1)]
  return commandFor('backfill', file, [
    ...(options.pipeline === undefined ? [] : ['--pipeline', pipeline.name]),
    ...['--from', ends[0] ?? options.from, '--to', ends[1] ?? options.from],
    ...(options.order === undefined ? [] : ['--order', options.order]),
    ...(options.jobs === 1 ? [] : ['--jobs', String(options.jobs)]),
    ...saidOfAll(options),
  ])
}

/** What the command line has said of every slice, and the command for some of them has to say again. */
function saidOfAll({ allowEmpty, allowDeletes, failOnDrift }: Options): readonly string[] {
  return [
    ...(failOnDrift === true ? ['--fail-on-drift'] : []),
    ...(allowEmpty === true ? ['--allow-empty'] : []),
    ...(allowDeletes === true ? ['--allow-deletes'] : []),
  ]
}
