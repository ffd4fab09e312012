import type { Command } from 'commander'
import type { Watermark } from '../../model/slice.ts'
import type { WatermarkChange } from '../../pipeline/watermark.ts'
import { type Act, addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { WatermarkDocument } from '../documents.ts'
import { onePipeline } from '../pipeline-files.ts'
import type { OutputOptions } from '../reporter.ts'
import { escapeForTerminal } from '../text.ts'

interface Options extends OutputOptions {
  readonly pipeline?: string
}

export const makeWatermarkCommand: MakeCommand = (act) => {
  const command = newCommand(
    'watermark',
    'show or change how far a pipeline has read',
    'Shows or changes the watermark of a pipeline that reads by a cursor. A change is on record with who made it, and what a run reads after it follows from it.',
  ).usage('show|set|rewind|forget [options]')
  addCommonOptions(command)
  command.addCommand(
    makeSubcommand('show', 'show how far a pipeline has read', FILE, (invocation) => show(invocation), act),
  )
  command.addCommand(
    makeSubcommand(
      'set',
      'set it to a value, and accept the definition that the pipeline has now',
      [['<value>', 'a value of the cursor, such as 2026-08-07T12:00:00Z'], ...FILE],
      (invocation) => change(invocation, (value) => ({ kind: 'set', value })),
      act,
    ),
  )
  command.addCommand(
    makeSubcommand(
      'rewind',
      'set it back, so that the next run reads again what lies behind it',
      [['<to>', 'by a length of time (2h, 3d) where the cursor is a time, or to an earlier value'], ...FILE],
      (invocation) => change(invocation, (to) => ({ kind: 'rewind', to })),
      act,
    ),
  )
  command.addCommand(
    makeSubcommand(
      'forget',
      'take it away: the next run begins where the pipeline says, or at the beginning',
      FILE,
      (invocation) => change(invocation, () => ({ kind: 'forget' })),
      act,
    ),
  )
  return command
}

type Arguments = readonly (readonly [name: string, description: string])[]

const FILE: Arguments = [['<file>', 'pipeline.ts, as for stet run']]

function makeSubcommand(
  name: string,
  summary: string,
  parameters: Arguments,
  handler: (invocation: Invocation<Options>) => Promise<number>,
  act: Act,
): Command {
  const command = newCommand(name, summary, `${summary[0]?.toUpperCase()}${summary.slice(1)}.`)
  for (const [parameter, description] of parameters) command.argument(parameter, description)
  command
    .optionsGroup('Which pipeline:')
    .option('--pipeline <name>', 'the pipeline, where the file exports several')
  return addCommonOptions(command).action(act(handler))
}

async function show({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const { pipeline } = await onePipeline(args[0] ?? '', options.pipeline, context.cwd)
  const { watermarkOf } = await import('../../pipeline/watermark.ts')
  const watermark = await watermarkOf(pipeline, context.signal)
  reporter.print(
    watermark === null
      ? `pipeline "${escapeForTerminal(pipeline.name)}" has no watermark yet`
      : `${escapeForTerminal(pipeline.name)}: ${describe(watermark)}, set ${watermark.setAt} by ${escapeForTerminal(watermark.setBy)}`,
  )
  reporter.document({
    format: 'stet-watermark-1',
    pipeline: pipeline.name,
    before: null,
    watermark,
  } satisfies WatermarkDocument)
  return 0
}

async function change(
  { context, reporter, args, options }: Invocation<Options>,
  changeTo: (value: string) => WatermarkChange,
): Promise<number> {
  const { pipeline, inCommands } = await onePipeline(args.at(-1) ?? '', options.pipeline, context.cwd)
  const { changeWatermark } = await import('../../pipeline/watermark.ts')
  const { before, after } = await changeWatermark(pipeline, changeTo(args[0] ?? ''), {
    by: context.user,
    signal: context.signal,
    inCommands,
  })
  reporter.account(`${escapeForTerminal(pipeline.name)}: ${describe(before)} → ${describe(after)}`)
  reporter.document({
    format: 'stet-watermark-1',
    pipeline: pipeline.name,
    before,
    watermark: after,
  } satisfies WatermarkDocument)
  return 0
}

function describe(watermark: Watermark | null): string {
  return watermark === null
    ? 'no watermark'
    : `${escapeForTerminal(watermark.cursor)} ${escapeForTerminal(watermark.value)}`
}
