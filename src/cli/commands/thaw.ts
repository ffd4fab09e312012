import { WHOLE } from '../../model/slice.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { ThawDocument } from '../documents.ts'
import { collect } from '../option-values.ts'
import { onePipeline } from '../pipeline-files.ts'
import type { OutputOptions } from '../reporter.ts'
import { escapeForTerminal } from '../text.ts'

interface Options extends OutputOptions {
  readonly slice?: string[]
  readonly pipeline?: string
}

export const makeThawCommand: MakeCommand = (act) => {
  const command = newCommand(
    'thaw',
    'let the next run change a frozen slice',
    "Lets the next run take over what the source of a frozen slice holds now (truth: 'snapshot'); that run freezes it again. Who thawed what and when stays on record.",
  )
    .argument('<file>', 'pipeline.ts, as for stet run')
    .optionsGroup('What is thawed:')
    .option('--slice <name>', 'the slice, such as 2026-08-07; may be repeated', collect)
    .option('--pipeline <name>', 'the pipeline, where the file exports several')
  return addCommonOptions(command)
    .addHelpText('after', ['', 'Example:', '  stet thaw pipeline.ts --slice 2026-08-07'].join('\n'))
    .action(act(thawSlices))
}

async function thawSlices({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const { pipeline } = await onePipeline(args[0] ?? '', options.pipeline, context.cwd)
  const { thaw } = await import('../../pipeline/thaw.ts')
  const { table, slices } = await thaw(pipeline, options.slice ?? [], {
    by: context.user,
    signal: context.signal,
  })
  for (const { slice, thawed } of slices) {
    const whole = escapeForTerminal(table)
    const name = slice === WHOLE ? whole : `slice ${escapeForTerminal(slice)} of ${whole}`
    reporter.account(thawed ? `${name} is thawed: the next run may change it` : `${name} was not frozen`)
  }
  reporter.document({ format: 'stet-thaw-1', pipeline: pipeline.name, table, slices } satisfies ThawDocument)
  return 0
}
