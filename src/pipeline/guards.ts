import { StetError } from '../errors.ts'
import type { RunCounts } from '../model/run.ts'
import type { Reject } from '../model/source.ts'
import type { Difference } from '../model/target.ts'
import type { WriteStrategy } from '../model/write.ts'

/** How many rejects an error shows; the run log has more. */
const REJECTS_IN_ERROR = 10

/** Refuses a load with more rejects than the pipeline allows (G9). */
export function refuseRejects(rejected: number, rejects: readonly Reject[], allowed: number): void {
  if (rejected <= allowed) return
  const lines = rejects.slice(0, REJECTS_IN_ERROR).map((reject) => `  ${describeReject(reject)}`)
  const more = rejected > lines.length ? `\n  … ${rejected - lines.length} more` : ''
  const limit = allowed === 0 ? '' : ` (${allowed} allowed)`
  throw new StetError(
    'STET_REJECTED',
    `${rejected} ${rejected === 1 ? 'row was' : 'rows were'} rejected${limit} (G9); nothing was written:\n${lines.join('\n')}${more}`,
    {
      hint: 'Correct the rows, declare other types (--columns), or allow rejects (--max-rejects N): they are then left out',
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

/** Refuses to take rows away on the strength of an empty or partly bad extract (G10). */
export function refuseDangerousDeletes(
  write: WriteStrategy,
  difference: Difference,
  counts: Pick<RunCounts, 'read' | 'rejected' | 'afterTransform'>,
  table: string,
): void {
  if (difference.deletes === 0) return
  const rows = `${difference.deletes} ${difference.deletes === 1 ? 'row' : 'rows'} of ${table} would be deleted`
  if (counts.rejected > 0) {
    throw new StetError(
      'STET_DELETE_GUARD',
      `${counts.rejected} rows were rejected and ${rows} (G10); nothing was written`,
      {
        hint: 'A row that could not be read may be one of those that look missing: correct the rejects first',
        details: { deletes: difference.deletes, rejected: counts.rejected },
      },
    )
  }
  const allowEmpty = write.strategy === 'replace-table' && write.allowEmpty === true
  if (counts.afterTransform === 0 && !allowEmpty) {
    throw new StetError('STET_DELETE_GUARD', `The source is empty and ${rows} (G10); nothing was written`, {
      hint: 'If the table is really to be emptied, say so: --allow-empty (allowEmpty: true in the pipeline)',
      details: { deletes: difference.deletes, read: counts.read },
    })
  }
}

/**
 * Every row is accounted for (G6), each term counted by its own query.
 *
 * @throws {StetError} `STET_COUNTS`: a defect of Stet; nothing is committed.
 */
export function checkEquation(counts: RunCounts): void {
  const { afterTransform, rejected, duplicate, inserted, updated, unchanged, stale, frozen } = counts
  const accounted = rejected + duplicate + inserted + updated + unchanged + stale + frozen
  const landed = counts.read - counts.filtered + counts.added
  if (accounted === afterTransform && landed === afterTransform) return
  throw new StetError(
    'STET_COUNTS',
    `The counts do not add up (G6): ${afterTransform} rows after transform, but ${rejected} rejected + ${duplicate} duplicate + ` +
      `${inserted} inserted + ${updated} updated + ${unchanged} unchanged + ${stale} stale + ${frozen} frozen = ${accounted}; ` +
      `${counts.read} read - ${counts.filtered} filtered + ${counts.added} added = ${landed}. Nothing was committed`,
    { hint: 'This is a defect of Stet: please report it with the run log entry', details: { counts } },
  )
}
