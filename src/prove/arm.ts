import type { FileTrace } from './files/trace.ts'
import type { HttpRecorder } from './http/recorder.ts'
import type { Point } from './plan/points.ts'
import { type Fault, REFUSED_CONNECTION } from './plan/trials.ts'
import type { CommitWatch } from './sandbox/commit-watch.ts'
import type { RunningCommand } from './sandbox/process.ts'
import type { Unit, WireProxy } from './wire/proxy.ts'

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
  /** For a commit inside of a message. */
  readonly commitWatch: CommitWatch | null
  readonly endBackend: (pid: number) => Promise<void>
}

/** Gets a fault ready to strike when the run comes to its point. */
export function armFault(fault: Fault, parts: ArmedParts): Strike {
  const { kind, point, code } = fault
  if (point.kind === 'file change') return killAfterChange(point, parts)
  if (point.kind === 'moment') return killAtMoment(point, parts)
  if (point.kind === 'inner commit' && kind !== 'kill before') return strikeInside(fault, parts)
  const { proxy, recorder, running, whileHeld } = parts
  const at = (one: { readonly signature: string; readonly occurrence: number }) =>
    one.signature === point.signature && one.occurrence === point.occurrence
  const arm = (how: { hold: 'before' | 'after' } | { cut: 'before' | 'after' }) =>
    point.kind === 'request' ? recorder.arm({ ...how, fits: at }) : proxy.arm({ ...how, at })
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

/** The server ends the session after one of the commits of a message; a killed client has gone just before. */
function strikeInside(
  { kind, point }: Fault,
  { proxy, running, commitWatch, endBackend }: ArmedParts,
): Strike {
  let message: Unit | null = null
  let seen = 0
  let hasFired = false
  let work: Promise<unknown> = Promise.resolve()
  const held = proxy.arm({
    hold: 'before',
    at: (unit) => unit.signature === point.signature && unit.occurrence === point.occurrence,
  })
  void held.fired.then((unit) => {
    message = unit
    held.release()
  })
  const strike = async (pid: number) => {
    if (kind === 'kill after') await running.kill()
    await endBackend(pid)
  }
  if (commitWatch !== null) {
    commitWatch.onCommit = ({ pid }) => {
      if (message === null || message.answer !== null || hasFired || ++seen < (point.inner ?? 1))
        return 'go on'
      hasFired = true
      work = strike(pid)
      return 'stay'
    }
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
