export { type ContractCheck, type ContractOptions, targetContract } from './contract.ts'
export { pipelineOf } from './kit.ts'
export { literalRows } from './literal-source.ts'
export type { Attempt, FaultPoint, Faults, Place, Scenario, TargetUnderContract } from './place.ts'
