import type { Command } from 'commander'
import { StetError } from '../errors.ts'
import type { DefinedPipeline, RunOptions } from '../pipeline/types.ts'
import { quoteForShell } from './columns-option.ts'
import { collect } from './option-values.ts'
import { type Orchestrated, orchestratedBy, sliceOfPartition } from './orchestrator.ts'

/** Which part of a pipeline runs, and what a run may take away. `run`, `plan` and `load` share them. */
export interface SliceOptions {
  readonly slice?: string[]
  readonly at?: string
  readonly from?: string
  readonly full?: boolean
  readonly failOnDrift?: boolean
}

export interface RemovalOptions {
  readonly allowEmpty?: boolean
  readonly allowDeletes?: boolean
}

export function addSliceOptions(command: Command, { several }: { readonly several: boolean }): Command {
  return command
    .optionsGroup('Which part:')
    .option(
      '--slice <name>',
      `the slice to load, such as 2026-08-07${several ? '; may be repeated' : ''}`,
      collect,
    )
    .option('--at <time>', 'the logical time (ISO 8601 with an offset), which falls into the slice to load')
    .option('--from <value>', 'with a cursor: begin at this value of it, in place of the watermark')
    .option('--full', 'read everything, as if there were no watermark')
    .option(
      '--fail-on-drift',
      'end with status 5 when a frozen slice differs from its source; nothing is undone',
    )
}

export function addRemovalOptions(command: Command): Command {
  return command
    .optionsGroup('What may be taken away:')
    .option('--allow-empty', 'let an empty source empty the table or the slice')
    .option(
      '--allow-deletes',
      'let a load take away more than a tenth of the rows, where that is more than 100',
    )
}

export function allowedBy({ allowEmpty, allowDeletes }: RemovalOptions): RunOptions['allow'] {
  return { empty: allowEmpty, deletes: allowDeletes }
}

/** One run of a command line that may hold several. */
export interface Job {
  readonly pipeline: DefinedPipeline
  readonly options: RunOptions
  /** Tells the job from the others in messages; absent where there is one. */
  readonly label: string | undefined
}

/** A pipeline and what is known of the file that it comes from. */
export interface PipelineWithCode {
  readonly pipeline: DefinedPipeline
  /** sha256 of the file's bytes. */
  readonly code?: string | undefined
  /** The pipeline in a command line, for hints; absent where no file has it. */
  readonly inCommands?: string
}

/**
 * The runs of a command line: of each pipeline each slice that is named, or the one of the logical time. What nobody has
 * said is taken from the orchestrator's environment, aloud, and never from the clock.
 */
export async function jobsOf(
  pipelines: readonly PipelineWithCode[],
  options: SliceOptions & { readonly runId?: string },
  common: RunOptions,
  env: Readonly<Record<string, string | undefined>>,
  notice: (message: string) => void,
): Promise<readonly Job[]> {
  const { slice: slices = [], at } = options
  if (slices.length > 0 && at !== undefined) {
    throw new StetError('STET_USAGE', '--slice and --at both say which slice is to be loaded', {
      hint: 'Give one of them',
    })
  }
  refuseDriftOfNothing(pipelines, options)
  const told = await orchestratedBy(env)
  const runId = options.runId ?? told.runId?.value
  if (options.runId === undefined && told.runId !== null) {
    notice(`run id ${told.runId.value}, from ${told.runId.from}`)
  }
  const jobs: Job[] = []
  for (const { pipeline, code, inCommands = null } of pipelines) {
    const parts = await partsOf({ pipeline, inCommands }, options, told, notice)
    for (const part of parts) {
      jobs.push({
        pipeline,
        label: labelOf(
          pipelines.length > 1 ? pipeline.name : undefined,
          parts.length > 1 ? part.slice : undefined,
        ),
        options: {
          ...common,
          ...part,
          code,
          inCommands,
          from: options.from,
          full: options.full,
          // Attempts are grouped by it, and those of two slices are no attempts at one thing.
          runId: runId !== undefined && parts.length > 1 ? `${runId}/${part.slice}` : runId,
        },
      })
    }
  }
  return jobs
}

/** What is never frozen cannot drift: whoever waits for the status would wait for ever. */
export function refuseDriftOfNothing(
  pipelines: readonly PipelineWithCode[],
  { failOnDrift }: Pick<SliceOptions, 'failOnDrift'>,
): void {
  if (failOnDrift !== true || pipelines.some(({ pipeline }) => pipeline.truth === 'snapshot')) return
  const [first] = pipelines
  const what = pipelines.length === 1 ? `"${first?.pipeline.name}" freezes` : 'these pipelines freeze'
  throw new StetError('STET_USAGE', `--fail-on-drift has no meaning: ${what} nothing, so nothing can drift`, {
    hint: "Freeze what was loaded first: --truth snapshot (truth: 'snapshot' in a pipeline), or leave --fail-on-drift out",
  })
}

async function partsOf(
  { pipeline, inCommands }: { readonly pipeline: DefinedPipeline; readonly inCommands: string | null },
  { slice: slices = [], at }: SliceOptions,
  told: Orchestrated,
  notice: (message: string) => void,
): Promise<readonly Pick<RunOptions, 'slice' | 'at'>[]> {
  if (slices.length > 0) return slices.map((slice) => ({ slice }))
  if (at !== undefined || pipeline.write.strategy !== 'replace-partition') return [{ at }]
  const { slicingOf } = await import('../pipeline/selection.ts')
  const slicing = slicingOf(pipeline)
  if (slicing === null) return [{}]
  if (told.range !== null) {
    const ends = [told.range.start, told.range.end].map((key) =>
      quoteForShell(sliceOfPartition(key, slicing)),
    )
    throw new StetError(
      'STET_USAGE',
      `Dagster names the partitions ${told.range.start} to ${told.range.end}, and a run loads one`,
      {
        hint: `Load them with stet backfill ${inCommands ?? 'pipeline.ts'} --from ${ends[0]} --to ${ends[1]}`,
      },
    )
  }
  if (told.partition !== null) {
    const slice = sliceOfPartition(told.partition.value, slicing)
    notice(`slice ${slice}, from ${told.partition.from}`)
    return [{ slice }]
  }
  const isOfTime = typeof slicing.size === 'string' && slicing.size !== 'value'
  if (told.at === null || !isOfTime) return [{}]
  notice(`logical time ${told.at.value}, from ${told.at.from}`)
  return [{ at: told.at.value }]
}

function labelOf(...words: readonly (string | undefined)[]): string | undefined {
  const known = words.filter((word) => word !== undefined)
  return known.length === 0 ? undefined : known.join(' ')
}
