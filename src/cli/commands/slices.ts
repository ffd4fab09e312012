import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { SlicesDocument } from '../documents.ts'
import { onePipeline } from '../pipeline-files.ts'
import { renderCalendar } from '../render-calendar.ts'
import type { OutputOptions } from '../reporter.ts'
import { targetOf } from '../target-option.ts'

interface Options extends OutputOptions {
  readonly from?: string
  readonly to?: string
  readonly into?: string
  readonly onlyPipeline?: string
}

export const makeSlicesCommand: MakeCommand = (act) => {
  const command = newCommand(
    'slices',
    'show where every slice of a pipeline stands',
    'Shows where every slice of a pipeline stands, as a calendar: loaded, empty, failed, running, frozen, missing. It says what the run log says, and reads neither source nor table.',
  )
    .argument('<file>', 'pipeline.ts, whose pipeline replaces partitions or reads by a cursor')
    .optionsGroup('Which slices:')
    .option('--from <slice>', 'the first one (default: the first of the run log)')
    .option('--to <slice>', 'the last one, included (default: the last of the run log)')
    .option('--into <target>', "whose run log to read (default: the pipeline's target)")
    .option('--only-pipeline <name>', 'the pipeline, where the file exports several')
  return addCommonOptions(command)
    .addHelpText(
      'after',
      ['', 'Example:', '  stet slices pipeline.ts --from 2026-08-01 --to 2026-08-31'].join('\n'),
    )
    .action(act(show))
}

async function show({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const { pipeline } = await onePipeline(args[0] ?? '', options.onlyPipeline, context.cwd)
  const { slicesOf } = await import('../../pipeline/calendar.ts')
  const target = options.into === undefined ? pipeline.target : await targetOf(options.into, context.cwd)
  const { from, to } = options
  const calendar = await slicesOf(pipeline, { from, to, target, signal: context.signal })
  const { slicing, slices, others } = calendar
  if (others.length > 0) {
    reporter.notice(`the run log also has ${others.length} slices of another size, such as ${others[0]}`)
  }
  reporter.print(renderCalendar(pipeline.name, calendar, reporter.colors))
  reporter.document({
    format: 'stet-slices-1',
    pipeline: pipeline.name,
    target: target.description,
    slicing,
    slices,
    others,
  } satisfies SlicesDocument)
  return 0
}
