import { createHash } from 'node:crypto'
import type { Reject } from '../../model/source.ts'

/**
 * What a quarantined row is known by beside its line: the hash of its file, or of the row itself where it came from none. A
 * line number alone would take another day's row for this one.
 *
 * @param sha256ByPath Of the files of the run.
 */
export function hashOfReject(reject: Reject, sha256ByPath: ReadonlyMap<string, string>): string {
  const { file, column, value, reason, raw } = reject
  const ofFile = file === null ? undefined : sha256ByPath.get(file)
  return (
    ofFile ??
    createHash('sha256')
      .update(JSON.stringify([column, value, reason, raw]))
      .digest('hex')
  )
}
