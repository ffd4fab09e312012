import type { PlantedFault } from './plant.ts'

/** Faults of the kinds that have doubled or lost data elsewhere; each must make the contract fail. */
export const PLANTED_FAULTS: readonly PlantedFault[] = []
