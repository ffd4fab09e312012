import { StetError } from '../errors.ts'
import type { Difference } from '../model/comparison.ts'
import type { RunCounts } from '../model/run.ts'
import type { Reject } from '../model/source.ts'
import { countOf, groupDigits } from '../model/words.ts'

/** How many rejects an error shows; the run log has more. */
const REJECTS_IN_ERROR = 10

/** Refuses a load with more rejects than the pipeline allows (G9). */
export function refuseRejects(rejected: number, rejects: readonly Reject[], allowed: number): void {
  if (rejected <= allowed) return
  const lines = rejects.slice(0, REJECTS_IN_ERROR).map((reject) => `  ${describeReject(reject)}`)
  const more = rejected > lines.length ? `\n  … ${groupDigits(rejected - lines.length)} more` : ''
  const limit = allowed === 0 ? '' : ` (${groupDigits(allowed)} allowed)`
  throw new StetError(
    'STET_REJECTED',
    `${countOf(rejected, 'row was', 'rows were')} rejected${limit} (G9); nothing was written:\n${lines.join('\n')}${more}`,
    {
      hint: 'Correct the rows, declare other types (--columns, columns in a pipeline), or allow rejects (--max-rejects N, maxRejects: N in a pipeline): they are then left out',
      details: { rejected, rejects: rejects.slice(0, REJECTS_IN_ERROR) },
    },
  )
}

/** One reject in a line: `orders.csv:3 amount '1.005' has 3 decimals …`. */
function describeReject(reject: Reject): string {
  const place = [reject.file, reject.line].filter((part) => part !== null).join(':')
  const value = reject.value === null ? '' : ` ${JSON.stringify(reject.value)}`
  return [place, reject.column === null ? '' : `${reject.column}${value}`, reject.reason]
    .filter((part) => part !== '')
    .join(' ')
}

/** Up to so many rows may go without being asked for; above, no more than a share of the live rows (G10). */
const DELETES_FREE = 100
const DELETES_SHARE = 0.1

/** What of G10 a run is allowed by name. */
interface AllowedRemovals {
  readonly empty: boolean
  readonly deletes: boolean
}

/**
 * Refuses to take rows away, or to mark them as gone, on the strength of an empty, short or partly bad extract (G10).
 *
 * @param live Live rows in scope before.
 */
export function refuseDangerousDeletes(
  difference: Difference,
  counts: Pick<RunCounts, 'read' | 'rejected' | 'afterTransform'>,
  { live, allowed, table, isKeyless }: DeleteContext,
): void {
  const removed = difference.deletes + difference.marks
  if (removed === 0) return
  const verb = difference.marks > 0 ? 'marked as gone' : 'deleted'
  const rows = `${countOf(removed, 'row')} of ${table} would be ${verb}`
  const refuse = (message: string, hint: string) => {
    throw new StetError('STET_DELETE_GUARD', `${message} (G10); nothing was written`, {
      hint,
      details: { removed, live, rejected: counts.rejected, read: counts.read },
    })
  }
  if (counts.rejected > 0) {
    refuse(
      `${countOf(counts.rejected, 'row was', 'rows were')} rejected and ${rows}`,
      'A row that could not be read may be one of those that look missing: correct the rejects first',
    )
  }
  if (counts.afterTransform === 0) {
    if (allowed.empty) return
    refuse(
      `The source is empty and ${rows}`,
      'If the rows are really gone, say so: --allow-empty (allowEmpty: true in a pipeline)',
    )
  }
  // Without a key a changed row is one that goes and one that comes.
  const net = isKeyless ? Math.max(0, removed - difference.inserts) : removed
  if (allowed.deletes || net <= DELETES_FREE || net <= live * DELETES_SHARE) return
  refuse(
    `${rows}, of ${groupDigits(live)}: more than a tenth, and more than ${DELETES_FREE}`,
    'Is the extract whole? If so, say it: --allow-deletes (allowDeletes: true in a pipeline)',
  )
}

interface DeleteContext {
  readonly live: number
  readonly allowed: AllowedRemovals
  readonly table: string
  readonly isKeyless: boolean
}

/**
 * Every row is accounted for (G6), each term counted by its own query.
 *
 * @throws {StetError} `STET_COUNTS`: a defect of Stet; nothing is committed.
 */
export function checkEquation(counts: RunCounts): void {
  const { afterTransform, rejected, duplicate, inserted, updated, unchanged, stale, frozen } = counts
  const accounted = rejected + duplicate + inserted + updated + unchanged + stale + frozen
  const landed = counts.read - counts.outside - counts.filtered + counts.added
  if (accounted === afterTransform && landed === afterTransform) return
  throw new StetError(
    'STET_COUNTS',
    `The counts do not add up (G6): ${afterTransform} rows after transform, but ${rejected} rejected + ${duplicate} duplicate + ` +
      `${inserted} inserted + ${updated} updated + ${unchanged} unchanged + ${stale} stale + ${frozen} frozen = ${accounted}; ` +
      `${counts.read} read - ${counts.outside} outside - ${counts.filtered} filtered + ${counts.added} added = ${landed}. Nothing was committed`,
    { hint: 'This is a defect of Stet: please report it with the run log entry', details: { counts } },
  )
}
