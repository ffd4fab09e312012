import { EXIT_STATUS_BY_CODE, isStetError, type StetErrorCode } from '../errors.ts'
import { redact } from './redact.ts'
import { type Colors, escapeForTerminal, escapeLines } from './text.ts'

/** An error as the command line shows it: `error` of every JSON document, and three lines for people. */
export interface Failure {
  readonly code: StetErrorCode
  readonly message: string
  readonly hint: string | null
  readonly details: Readonly<Record<string, unknown>> | null
}

/** What is to be told of anything that was thrown. */
export function failureOf(error: unknown): Failure {
  if (isStetError(error)) {
    return {
      code: error.code,
      message: redact(error.message),
      hint: error.hint === undefined ? null : redact(error.hint),
      details: error.details ?? null,
    }
  }
  return {
    code: 'STET_INTERNAL',
    message: redact(error instanceof Error ? error.message : String(error)),
    hint: 'This is a defect of Stet or of a pipeline file; --debug shows where',
    details: null,
  }
}

export function exitStatusOf(failure: Failure): number {
  return EXIT_STATUS_BY_CODE[failure.code]
}

/** Three lines: what failed (and of which of several runs), what to do, and the word that programs read. */
export function renderFailure(failure: Failure, colors: Colors, pipeline?: string, atLeast = 1): string {
  const of = pipeline === undefined ? '' : `${colors.bold(escapeForTerminal(pipeline))}: `
  const lines = [
    `${colors.red(colors.bold('error:'))} ${of}${escapeLines(withoutName(failure.message, pipeline))}`,
  ]
  if (failure.hint !== null) lines.push(`${colors.cyan('hint:')}  ${indent(escapeLines(failure.hint))}`)
  lines.push(colors.dim(`code:  ${failure.code} (exit status ${Math.max(atLeast, exitStatusOf(failure))})`))
  return lines.join('\n')
}

/** Further lines stand under the first: one that was printed by another command could be taken for one of this. */
function indent(text: string): string {
  return text.replaceAll('\n', `\n${' '.repeat('hint:  '.length)}`)
}

/** `Pipeline "orders" replaces …` behind a label that says so already. */
function withoutName(message: string, label: string | undefined): string {
  const [, name, rest] = /^Pipeline "([^"]*)":? (.*)$/s.exec(message) ?? []
  const isSaid = name !== undefined && (label === name || label?.startsWith(`${name} `) === true)
  return isSaid && rest !== undefined ? rest : message
}

/** The stacks of an error and of its causes, for `--debug`. */
export function renderStack(error: unknown): string {
  const stacks: string[] = []
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    stacks.push(cause.stack ?? String(cause))
  }
  return escapeLines(redact(stacks.join('\ncaused by: ')))
}

const GRAVEST_FIRST: readonly number[] = [130, 76, 1, 2, 3, 4, 75, 5, 0]

/** The status of several runs in one: that of the gravest. Interrupted and unknown come before failed. */
export function worstStatus(statuses: readonly number[]): number {
  return GRAVEST_FIRST.find((status) => statuses.includes(status)) ?? Math.max(0, ...statuses)
}
