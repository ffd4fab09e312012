import { StetError } from '../errors.ts'

/**
 * Refuses options that do not exist. A pipeline file is not type-checked when it runs, and an option that nobody reads
 * protects nobody.
 *
 * @param taker What takes the options, as its user writes it: `csv`.
 * @param known Every option there is. Its type keeps the list and the interface in step.
 * @throws {StetError} `STET_CONFIG`
 */
export function refuseUnknownOptions<Options extends object>(
  taker: string,
  options: Options,
  known: Readonly<Record<keyof Options, true>>,
): void {
  const names = Object.keys(known)
  if (typeof options !== 'object' || options === null) {
    throw new StetError('STET_CONFIG', `${taker} takes an object of options, and was given none`, {
      hint: `Options here: ${names.join(', ')}`,
    })
  }
  const unknown = unknownOption(options, names)
  if (unknown === undefined) return
  throw new StetError('STET_CONFIG', `${taker} has no option ${unknown}`, {
    hint: `Options here: ${names.join(', ')}`,
    details: { option: unknown },
  })
}

/** The first option that does not exist; undefined where all do. */
export function unknownOption(options: object, known: readonly string[]): string | undefined {
  return Object.keys(options).find((option) => !known.includes(option))
}
