import { deferred } from './deferred.ts'
import type { ArmedFault, At, Fault, Unit } from './unit.ts'

/** A fault that found its unit: what the connection does, and how it tells whoever armed it. */
export interface Strike {
  readonly fault: Fault
  fire(unit: Unit): void
  /** Settles when `release()` was called. */
  readonly released: Promise<void>
}

export interface Faults {
  arm(fault: Fault): ArmedFault
  /** The fault that waits for this unit, which is then no longer waiting. */
  take(unit: Unit): Strike | null
}

interface Waiting {
  readonly fits: (unit: Unit) => boolean
  readonly strike: Strike
}

/** The faults that wait for their units. */
export function waitingFaults(): Faults {
  const waiting: Waiting[] = []
  return {
    arm(fault) {
      const fired = deferred<Unit>()
      const released = deferred()
      let hasFired = false
      const strike: Strike = {
        fault,
        released: released.promise,
        fire: (unit) => {
          hasFired = true
          fired.resolve(unit)
        },
      }
      const entry = { fits: fits(fault.at), strike }
      waiting.push(entry)
      return {
        fired: fired.promise,
        get hasFired() {
          return hasFired
        },
        release: released.resolve,
        disarm: () => {
          const at = waiting.indexOf(entry)
          if (at >= 0) waiting.splice(at, 1)
        },
      }
    },
    take(unit) {
      // All are asked, so that a fault that counts units does not miss those another one takes.
      const fitting = waiting.filter((entry) => entry.fits(unit))
      const [first] = fitting
      if (first === undefined) return null
      waiting.splice(waiting.indexOf(first), 1)
      return first.strike
    },
  }
}

function fits(at: At): (unit: Unit) => boolean {
  if (typeof at === 'function') return at
  let missing = at
  return () => --missing === 0
}
