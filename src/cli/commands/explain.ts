import { explain, explainDocument, listRules } from '../../check/explain.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { OutputOptions } from '../reporter.ts'

export const makeExplainCommand: MakeCommand = (act) =>
  addCommonOptions(
    newCommand(
      'explain',
      'explain a rule of stet check',
      'Shows why a rerun breaks it, the safe form by dialect, and code that only looks like it. Without a rule, lists all.',
    ).argument('[rule]', 'the rule, as a finding names it'),
  ).action(act(show))

async function show({ reporter, args }: Invocation<OutputOptions>): Promise<number> {
  const [id] = args
  reporter.print((id === undefined ? listRules() : explain(id)).trimEnd())
  reporter.document(explainDocument(id))
  return 0
}
