import { checksOfContent } from './content-checks.ts'
import { checksOfFaults } from './fault-checks.ts'
import { checksOfGuards } from './guard-checks.ts'
import type { Check } from './kit.ts'
import type { Faults, Place, Scenario } from './place.ts'
import { checksOfSlices } from './slice-checks.ts'
import { checksOfWatermarks } from './watermark-checks.ts'
import { checksOfOthers } from './writer-checks.ts'

/** One sentence of the contract and how it is held to. */
export interface ContractCheck {
  readonly name: string
  /** The guarantees it stands for, as `docs/guarantees.md` numbers them. */
  readonly guarantees: readonly string[]
  readonly run: () => Promise<void>
  /** Why it does not apply to this target; printed, never silent. */
  readonly skip?: string | undefined
}

export interface ContractOptions {
  /** Makes a new, empty place. */
  readonly create: () => Promise<Place>
  /** Ways to end an attempt by force; at least one, or the contract says nothing about crashes. */
  readonly faults: readonly Faults[]
  /** Checks that cannot apply, by name, each with its reason. */
  readonly skip?: Readonly<Record<string, string>> | undefined
  /** Set to try every n-th fault point only, where a full walk is too dear. Default 1. */
  readonly faultStride?: number | undefined
  /** Further attempts to be disturbed, for what only this target can do. */
  readonly scenarios?: readonly Scenario[] | undefined
}

/**
 * The contract that every target keeps: the checks as data, for any test runner.
 *
 * @example
 * for (const check of targetContract({ create, faults, skip })) {
 *   if (check.skip === undefined) test(check.name, check.run)
 *   else test.skip(`${check.name} (${check.skip})`)
 * }
 */
export function targetContract(options: ContractOptions): readonly ContractCheck[] {
  const checks: ContractCheck[] = []
  const check: Check = (name, guarantees, body) => {
    checks.push({
      name,
      guarantees,
      skip: options.skip?.[name],
      run: async () => {
        await using place = await options.create()
        await body(place)
      },
    })
  }
  checksOfContent(check)
  checksOfGuards(check)
  checksOfSlices(check)
  checksOfWatermarks(check)
  checksOfOthers(check)
  for (const faults of options.faults) {
    checksOfFaults(check, faults, options.faultStride ?? 1, options.scenarios ?? [])
  }
  return checks
}
