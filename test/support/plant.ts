import type { Plugin } from 'vite'

/** A fault put into the product's own source for one test run, to see that the tests notice. */
export interface PlantedFault {
  readonly name: string
  /** Source file below `src/`. */
  readonly file: string
  /** Text that must be there, so that a plant whose place has gone fails loudly instead of proving nothing. */
  readonly find: string
  readonly replace: string
  /** The test file that has to fail, and the beginning of the full name of the test that catches the fault. */
  readonly test: string
  readonly caughtBy: string
}

/** The vitest plugin that plants the fault named by `STET_PLANT`. */
export function plantFault(fault: PlantedFault | undefined): Plugin[] {
  if (fault === undefined) return []
  return [
    {
      name: 'planted-fault',
      enforce: 'pre',
      transform(code, id) {
        if (!id.split('?')[0]?.endsWith(`/src/${fault.file}`)) return null
        if (!code.includes(fault.find))
          throw new Error(`planted fault "${fault.name}": its place in ${fault.file} has gone`)
        return code.replace(fault.find, () => fault.replace)
      },
    },
  ]
}
