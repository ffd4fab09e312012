import { mkdir, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { StetError } from '../../errors.ts'
import { quoteForShell } from '../columns-option.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { InitDocument } from '../documents.ts'
import type { OutputOptions } from '../reporter.ts'
import { STARTER_FILES } from '../starter.ts'

export const makeInitCommand: MakeCommand = (act) =>
  addCommonOptions(
    newCommand(
      'init',
      'write a starter pipeline that runs',
      'Writes a commented pipeline and a small CSV file for it to load. Refuses to overwrite anything.',
    ).argument('[folder]', 'where to write; made when it is not there', '.'),
  ).action(act(init))

async function init({ context, reporter, args }: Invocation<OutputOptions>): Promise<number> {
  const [folder = '.'] = args
  const paths = Object.keys(STARTER_FILES).map((name) => join(folder, name))
  // All are looked for before any is written: half a starter helps nobody.
  for (const path of paths) await refuseToOverwrite(path, context.cwd)
  await mkdir(resolve(context.cwd, folder), { recursive: true })
  for (const [name, text] of Object.entries(STARTER_FILES)) {
    await writeFile(resolve(context.cwd, folder, name), text, { flag: 'wx' })
  }
  const command = `stet run ${quoteForShell(join(folder, 'pipeline.ts'))}`
  reporter.account(
    [
      ...paths.map((path) => `wrote ${path}`),
      '',
      'Run it, twice:',
      `  ${reporter.colors.cyan(command)}`,
    ].join('\n'),
  )
  reporter.document({ format: 'stet-init-1', files: paths } satisfies InitDocument)
  return 0
}

async function refuseToOverwrite(path: string, cwd: string): Promise<void> {
  const found = await stat(resolve(cwd, path)).catch(() => null)
  if (found === null) return
  throw new StetError('STET_USAGE', `Refused to overwrite "${path}"`, {
    hint: 'Name another folder: stet init my-pipeline',
  })
}
