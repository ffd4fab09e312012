export { type ContractCheck, type ContractOptions, pipelineOf, targetContract } from './contract.ts'
export { literalRows } from './literal-source.ts'
export type { Attempt, FaultPoint, Faults, Place } from './place.ts'
