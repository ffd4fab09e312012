import type { MakeCommand } from './command.ts'

/** A command as the list of commands shows it; its module is loaded when it is called. */
export interface ListedCommand {
  readonly name: string
  readonly summary: string
  load(): Promise<MakeCommand>
}

export const COMMANDS: readonly ListedCommand[] = [
  {
    name: 'load',
    summary: 'load files into a table, safe to run again',
    load: async () => (await import('./commands/load.ts')).makeLoadCommand,
  },
  {
    name: 'run',
    summary: 'run pipelines written in TypeScript',
    load: async () => (await import('./commands/run.ts')).makeRunCommand,
  },
  {
    name: 'plan',
    summary: 'show what a run would do, without changing anything',
    load: async () => (await import('./commands/plan.ts')).makePlanCommand,
  },
  {
    name: 'runs',
    summary: 'show the run log of a target',
    load: async () => (await import('./commands/runs.ts')).makeRunsCommand,
  },
  {
    name: 'backfill',
    summary: 'run a pipeline for many slices, each on its own',
    load: async () => (await import('./commands/backfill.ts')).makeBackfillCommand,
  },
  {
    name: 'slices',
    summary: 'show where every slice of a pipeline stands',
    load: async () => (await import('./commands/slices.ts')).makeSlicesCommand,
  },
  {
    name: 'rerun',
    summary: 'repeat a run with its slice, window and logical time',
    load: async () => (await import('./commands/rerun.ts')).makeRerunCommand,
  },
  {
    name: 'thaw',
    summary: 'let the next run change a frozen slice',
    load: async () => (await import('./commands/thaw.ts')).makeThawCommand,
  },
  {
    name: 'watermark',
    summary: 'show or change how far a pipeline has read',
    load: async () => (await import('./commands/watermark.ts')).makeWatermarkCommand,
  },
  {
    name: 'prove',
    summary: 'find out by experiment whether a command survives a rerun',
    load: async () => (await import('./commands/prove.ts')).makeProveCommand,
  },
  {
    name: 'check',
    summary: 'find what will not survive a rerun, in code that is already there',
    load: async () => (await import('./commands/check.ts')).makeCheckCommand,
  },
  {
    name: 'explain',
    summary: 'explain a rule of stet check',
    load: async () => (await import('./commands/explain.ts')).makeExplainCommand,
  },
  {
    name: 'init',
    summary: 'write a starter pipeline that runs',
    load: async () => (await import('./commands/init.ts')).makeInitCommand,
  },
]
