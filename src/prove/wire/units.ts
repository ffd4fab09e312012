import { createHash } from 'node:crypto'
import { labelOf } from './label.ts'
import type { MutableUnit } from './unit.ts'

/** Which transaction a connection is in, by the statements it sent; pipelined ones have no answer yet to go by. */
export interface TransactionTrace {
  signature: string
  first: number
  open: boolean
}

/** Numbers units and recognises them by label, place in their transaction and occurrence. */
export interface UnitCounter {
  readonly all: readonly MutableUnit[]
  next(sql: string, connection: number, trace: TransactionTrace): MutableUnit
}

const LABELS_KEPT = 1000

export function unitCounter(toLabel: (sql: string) => string = labelOf): UnitCounter {
  const all: MutableUnit[] = []
  const kinds = kindsOfUnits()
  const labels = new Map<string, string>()

  /** A loop sends one text 10,000 times. */
  const cachedLabel = (sql: string): string => {
    const known = labels.get(sql)
    if (known !== undefined) return known
    const label = toLabel(sql)
    if (labels.size >= LABELS_KEPT) labels.clear()
    if (sql.length < 10_000) labels.set(sql, label)
    return label
  }

  return {
    all,
    next(sql, connection, trace) {
      const n = all.length + 1
      const label = cachedLabel(sql)
      if (!trace.open) {
        trace.first = n
        trace.signature = ''
      }
      const kind = kinds(trace, label)
      trace.signature = kind.signature
      trace.open = kind.leavesOpen
      const unit: MutableUnit = {
        n,
        connection,
        sql,
        label,
        signature: trace.signature,
        transaction: trace.first,
        occurrence: ++kind.occurrences,
        answer: null,
      }
      all.push(unit)
      return unit
    },
  }
}

/** All units of one label in one place of their transactions. */
interface Kind {
  readonly signature: string
  /** Whether a transaction is open behind it. */
  readonly leavesOpen: boolean
  occurrences: number
}

/** What a loop sends 10,000 times is hashed once. */
function kindsOfUnits(): (trace: TransactionTrace, label: string) => Kind {
  // By what came before in the transaction, which is the empty string where none is open, and then by label.
  const known = new Map<string, Map<string, Kind>>()
  return ({ signature: before, open }, label) => {
    const next = known.get(before) ?? new Map<string, Kind>()
    known.set(before, next)
    const kind = next.get(label) ?? {
      signature: signatureOf(before, label),
      leavesOpen: staysOpen(label, open),
      occurrences: 0,
    }
    next.set(label, kind)
    return kind
  }
}

function signatureOf(before: string, label: string): string {
  return createHash('sha1').update(`${before}\0${label}`).digest('hex').slice(0, 16)
}

function staysOpen(label: string, open: boolean): boolean {
  let isOpen = open
  for (const statement of label.split('; ')) {
    if (/^(begin|start transaction)\b/.test(statement)) isOpen = true
    else if (endsTransaction(statement)) isOpen = / and chain$/.test(statement)
  }
  return isOpen
}

/** Whether a label ends a transaction, well or not. */
export function endsTransaction(label: string): boolean {
  return (
    /^(commit|end|abort|prepare transaction)\b/.test(label) ||
    (/^rollback\b/.test(label) && !/^rollback( work| transaction)? to\b/.test(label))
  )
}

export function readsCopyData(label: string): boolean {
  return /^copy\b.* from stdin\b/.test(label)
}
