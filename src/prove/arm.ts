import type { FileTrace } from './files/trace.ts'
import type { HttpRecorder } from './http/recorder.ts'
import type { Point } from './plan/points.ts'
import { type Fault, REFUSED_CONNECTION } from './plan/trials.ts'
import type { RunningCommand } from './sandbox/process.ts'
import type { WireProxy } from './wire/proxy.ts'

/** A fault that waits for its place. */
export interface Strike {
  hasFired(): boolean
  /** Whether the run changed more files before it was dead. */
  isOvershot(): boolean
  /** Settles when what the fault started has ended. */
  settled(): Promise<void>
}

export interface ArmedParts {
  readonly proxy: WireProxy
  readonly recorder: HttpRecorder
  readonly trace: FileTrace | null
  readonly running: RunningCommand
  /** Of an overlap: settles when the other run is over, or waits for this one. */
  readonly whileHeld: (() => Promise<void>) | undefined
}

/** Gets a fault ready to strike when the run comes to its point. */
export function armFault(fault: Fault, parts: ArmedParts): Strike {
  const { kind, point, code } = fault
  if (point.kind === 'file change') return killAfterChange(point, parts)
  if (point.kind === 'moment') return killAtMoment(point, parts)
  const { proxy, recorder, running, whileHeld } = parts
  const at = (one: { readonly signature: string; readonly occurrence: number }) =>
    one.signature === point.signature && one.occurrence === point.occurrence
  const arm = (how: { hold: 'before' | 'after' } | { cut: 'before' | 'after' }) =>
    point.kind === 'commit' ? proxy.arm({ ...how, at }) : recorder.arm({ ...how, fits: at })
  let hasFired = false
  let work: Promise<unknown> = Promise.resolve()
  const when = (fired: Promise<unknown>, act: () => Promise<unknown>) => {
    void fired.then(() => {
      hasFired = true
      work = act()
    })
  }
  switch (kind) {
    case 'kill before':
      when(arm({ hold: 'before' }).fired, running.kill)
      break
    case 'kill after':
      when(arm({ hold: 'after' }).fired, running.kill)
      break
    case 'cut before':
      when(arm({ cut: 'before' }).fired, async () => undefined)
      break
    case 'cut after':
      when(arm({ cut: 'after' }).fired, async () => undefined)
      break
    case 'error':
      if (code === REFUSED_CONNECTION) {
        when(proxy.refuse(point.connection ?? 1, code), async () => undefined)
      } else when(proxy.arm({ error: code ?? '40001', at }).fired, async () => undefined)
      break
    case 'overlap': {
      const held = arm({ hold: 'before' })
      when(held.fired, async () => {
        await whileHeld?.()
        held.release()
      })
      break
    }
    default:
      kind satisfies never
  }
  return { hasFired: () => hasFired, isOvershot: () => false, settled: async () => void (await work) }
}

function killAfterChange(point: Point, { trace, running }: ArmedParts): Strike {
  let changes: number | null = null
  let killed: Promise<unknown> = Promise.resolve()
  trace?.when(
    (change) => change.signature === point.signature && change.occurrence === point.occurrence,
    () => {
      changes = trace.changes
      killed = running.kill()
    },
  )
  return {
    hasFired: () => changes !== null,
    isOvershot: () => changes !== null && trace !== null && trace.changes > changes,
    settled: async () => void (await killed),
  }
}

function killAtMoment({ afterMs }: Point, { running }: ArmedParts): Strike {
  let hasFired = false
  let killed: Promise<unknown> = Promise.resolve()
  const timer = setTimeout(() => {
    hasFired = true
    killed = running.kill()
  }, afterMs)
  void running.ended.then(() => clearTimeout(timer))
  return { hasFired: () => hasFired, isOvershot: () => false, settled: async () => void (await killed) }
}
