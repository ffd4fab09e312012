import { relative, resolve } from 'node:path'
import { Option } from 'commander'
import { type CheckOptions, type CheckResult, check } from '../../check/command.ts'
import type { Severity } from '../../check/finding.ts'
import { renderGithub } from '../../check/reports/github.ts'
import { checkDocument, renderJson } from '../../check/reports/json.ts'
import { renderJunit } from '../../check/reports/junit.ts'
import { renderSarif } from '../../check/reports/sarif.ts'
import { renderText } from '../../check/reports/text.ts'
import { VERSION } from '../../version.ts'
import { readCheckConfig } from '../check-config.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import { collect } from '../option-values.ts'
import { endWithFailure, type OutputOptions } from '../reporter.ts'
import { wantsColors } from '../text.ts'
import { countOf } from '../words.ts'

type Format = 'text' | 'json' | 'sarif' | 'github' | 'junit'

interface Options extends OutputOptions {
  readonly format: Format
  readonly failOn: Severity
  readonly strict?: boolean
  readonly all?: boolean
  readonly rule?: readonly string[]
  readonly diff?: string
  readonly fix?: boolean
  readonly schema?: string
  readonly witness?: boolean
  readonly allowBareIgnore?: boolean
  readonly baseline?: string
  readonly updateBaseline?: boolean
  readonly pruneBaseline?: boolean
  readonly config?: string
}

export const makeCheckCommand: MakeCommand = (act) => {
  const command = newCommand(
    'check',
    'find what will not survive a rerun, in code that is already there',
    'Reads SQL, dbt, Python, TypeScript and shell, and shows the places that double, lose or touch rows on a rerun, with the reason and the safe form. Ends with 1 when a finding fails the run.',
  ).argument('[paths...]', 'files and folders; all of the working directory when none is named')
  command
    .optionsGroup('What is shown:')
    .addOption(
      new Option('--format <format>', 'how findings are written')
        .choices(['text', 'json', 'sarif', 'github', 'junit'])
        .default('text'),
    )
    .option('--all', 'also hints and what is suppressed')
    .option('--rule <rules>', 'only these rules, separated by commas; may be given again', collect)
    .option('--diff <revision>', 'only what the change since this git revision adds')
    .option('--witness', 'run some findings on invented rows in an embedded DuckDB')
    .optionsGroup('What fails the run:')
    .addOption(
      new Option('--fail-on <severity>', 'from which severity on')
        .choices(['error', 'warning', 'info'])
        .default('error'),
    )
    .option('--strict', 'also findings of low confidence')
    .option('--baseline <file>', 'findings that are known (default: stet-baseline.json, if it is there)')
    .option('--update-baseline', 'write all findings of now to the baseline')
    .option('--prune-baseline', 'take findings that are gone out of the baseline')
    .option('--allow-bare-ignore', 'follow stet-ignore comments that give no reason')
    .optionsGroup('What is known:')
    .option(
      '--schema <file or URL>',
      'keys and nullability: a schema dump, or postgres://..., which is only read',
    )
    .option('--config <file>', 'where the configuration lies (default: stet.config.ts, if it is there)')
    .optionsGroup('What is changed:')
    .option('--fix', 'make the edits that change no result')
  return addCommonOptions(command).action(act(run))
}

/** 1 means findings here, so a defect of Stet ends with 2, as a wrong command line does. */
async function run(invocation: Invocation<Options>): Promise<number> {
  try {
    return await checkAndReport(invocation)
  } catch (error) {
    return endWithFailure(invocation.reporter, error, 2)
  }
}

async function checkAndReport({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const config = await readCheckConfig(context.cwd, options.config)
  const {
    rule,
    failOn,
    strict,
    allowBareIgnore,
    baseline,
    updateBaseline,
    pruneBaseline,
    diff,
    fix,
    schema,
    witness,
  } = options
  const given: CheckOptions = { root: resolve(context.cwd), paths: args, config, failOn }
  const result = await check({
    ...given,
    ...(rule === undefined ? {} : { rules: rule.flatMap((one) => one.split(',').map((id) => id.trim())) }),
    ...(baseline === undefined ? {} : { baseline }),
    ...(diff === undefined ? {} : { diff }),
    ...(schema === undefined ? {} : { schema }),
    strict: strict === true,
    allowBareIgnore: allowBareIgnore === true,
    updateBaseline: updateBaseline === true,
    pruneBaseline: pruneBaseline === true,
    fix: fix === true,
    witness: witness === true,
  })
  const { baselineWritten } = result
  if (baselineWritten !== null) {
    const path = relative(context.cwd, baselineWritten.path)
    reporter.notice(
      `${path} holds ${countOf(baselineWritten.findings, 'finding')} now; hints, and what a comment silences, are no part of it`,
    )
  }
  const color = wantsColors(context.env, context.stdout.isTerminal)
  if (options.format === 'text')
    reporter.account(renderText(result, { color, all: options.all === true }).trimEnd())
  else reporter.print(render(result, options.format).trimEnd())
  reporter.document(checkDocument(result))
  return result.exitStatus
}

function render(result: CheckResult, format: Exclude<Format, 'text'>): string {
  switch (format) {
    case 'json':
      return renderJson(result)
    case 'sarif':
      return renderSarif(result, VERSION)
    case 'github':
      return renderGithub(result)
    case 'junit':
      return renderJunit(result)
  }
}
