import type { Plan } from './types.ts'

/** Whether a run of this plan would write anything. */
export function hasChanges(plan: Plan): boolean {
  const { inserted, updated, deleted, marked } = plan.counts
  return plan.creates || inserted + updated + deleted + marked > 0
}
