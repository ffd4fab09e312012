import type { Plugin } from 'vite'

/** A piece of the product's source and what stands in its place. */
export interface Edit {
  /** Source file below `src/`. */
  readonly file: string
  /** Text that must be there, so that a plant whose place has gone fails loudly instead of proving nothing. */
  readonly find: string
  readonly replace: string
}

/** A fault put into the product's own source for one test run, to see that the tests notice. */
export interface PlantedFault extends Edit {
  readonly name: string
  /** Further edits, where more than one guard stands between the fault and the harm. */
  readonly also?: readonly Edit[]
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
        let planted: string | null = null
        for (const edit of [fault, ...(fault.also ?? [])]) {
          if (!id.split('?')[0]?.endsWith(`/src/${edit.file}`)) continue
          if (!code.includes(edit.find))
            throw new Error(`planted fault "${fault.name}": its place in ${edit.file} has gone`)
          planted = (planted ?? code).replace(edit.find, () => edit.replace)
        }
        return planted
      },
    },
  ]
}
