import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { SlicesDocument } from '../documents.ts'
import { collect } from '../option-values.ts'
import { onePipeline } from '../pipeline-files.ts'
import { renderCalendar } from '../render-calendar.ts'
import type { OutputOptions } from '../reporter.ts'
import { targetOf } from '../target-option.ts'
import { countOf } from '../words.ts'

interface Options extends OutputOptions {
  readonly from?: string
  readonly to?: string
  readonly into?: string
  readonly forget?: string[]
  readonly pipeline?: string
}

export const makeSlicesCommand: MakeCommand = (act) => {
  const command = newCommand(
    'slices',
    'show where every slice of a pipeline stands',
    'Shows where every slice of a pipeline stands, as a calendar: loaded, empty, failed, running, frozen, missing. It says what the run log says, and reads neither source nor table. A slice that was never loaded, such as one that was mistyped, is taken off with --forget.',
  )
    .argument('<file>', 'pipeline.ts, whose pipeline replaces partitions or reads by a cursor')
    .optionsGroup('Which slices:')
    .option('--from <slice>', 'the first one (default: the first of the run log)')
    .option('--to <slice>', 'the last one, included (default: the last of the run log)')
    .option('--into <target>', "whose run log to read (default: the pipeline's target)")
    .option('--pipeline <name>', 'the pipeline, where the file exports several')
    .optionsGroup('What is changed:')
    .option(
      '--forget <slice>',
      'take one off that was never loaded, such as a mistyped one; on record; may be repeated',
      collect,
    )
  return addCommonOptions(command)
    .addHelpText(
      'after',
      ['', 'Example:', '  stet slices pipeline.ts --from 2026-08-01 --to 2026-08-31'].join('\n'),
    )
    .action(act(show))
}

async function show({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const { pipeline } = await onePipeline(args[0] ?? '', options.pipeline, context.cwd)
  const { slicesOf } = await import('../../pipeline/calendar.ts')
  const target = options.into === undefined ? pipeline.target : await targetOf(options.into, context.cwd)
  const { from, to, forget = [] } = options
  if (forget.length > 0) {
    const { forgetSlices } = await import('../../pipeline/forget.ts')
    await forgetSlices(pipeline, forget, { by: context.user, target, signal: context.signal })
    for (const slice of new Set(forget)) reporter.notice(`slice ${slice} is forgotten`)
  }
  const calendar = await slicesOf(pipeline, { from, to, target, signal: context.signal })
  const { slicing, slices, others } = calendar
  if (others.length > 0) {
    reporter.notice(
      `the run log also has ${countOf(others.length, 'slice')} of another size, such as ${others[0]}`,
    )
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
