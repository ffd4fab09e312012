import type { Proof } from '../prove.ts'
import type { TrialResult } from '../trial.ts'
import type { Difference } from '../verdict.ts'

export interface Cause {
  readonly why: string
  readonly cure: string
}

/** The pattern behind a finding: which trials show it says what kind of mistake it is. */
export function causeOf(difference: Difference, trials: readonly TrialResult[], proof: Proof): Cause | null {
  if (trials.some((trial) => trial.between === 'source changed')) return CHANGE_MISSED
  if (difference.class === 'keys forgotten') return KEYS_ALONE
  const isTwice = trials.some((trial) => trial.planned === null)
  const kinds = new Set(trials.map((trial) => trial.planned?.fault.kind))
  const only = (kind: string) => [...kinds].every((one) => one === kind)
  if (difference.class === 'not two at once') return NOT_TWO_AT_ONCE
  if (difference.class === 'left behind') return difference.kind === 'file' ? FILE_LEFT_BEHIND : LEFT_BEHIND
  // What a rerun that fails has not repaired is missing for that reason.
  const isStuck = trials.every((trial) => trial.differences.some((one) => one.class === 'stuck'))
  if (isStuck) return isTwice ? STUCK_TWICE : STUCK
  if (difference.kind === 'request') return requestCause(difference, isTwice)
  if (trials.every((trial) => trial.claimsSuccess)) return only('cut after') ? BLIND_RETRY : ERRORS_IGNORED
  if (isTwice) return twiceCause(difference)
  if (difference.kind === 'file') return commitsOf(proof) === 0 ? FILES_APART : STATE_AND_FILE
  if (difference.class === 'lost') return onePoint(proof) ? MARK_FIRST : STATE_BEFORE_LOAD
  return onePoint(proof) ? MARK_OUTSIDE : STATE_AFTER_LOAD
}

function twiceCause({ kind, class: name, note, clean, here }: Difference): Cause | null {
  if (kind === 'file') return APPENDED
  if (name === 'doubled') return note === null ? NO_KEY : ADDED_UP
  if (kind !== 'table') return null
  if (name === 'lost') return TAKEN_AWAY
  return here > clean ? OTHER_ROWS : BUILT_ON
}

function requestCause({ class: name }: Difference, isTwice: boolean): Cause {
  if (name === 'lost') return NOTED_BEFORE_SENT
  return isTwice ? REQUEST_REPEATED : FRESH_KEY
}

/** With one commit there is no other transaction that could hold the mark: it is outside the database. */
function onePoint(proof: Proof): boolean {
  return commitsOf(proof) <= 1
}

function commitsOf({ clean }: Proof): number {
  return clean.points.filter((point) => point.kind === 'commit').length
}

const NO_KEY: Cause = {
  why: 'rows are inserted again, and nothing says that they are there already.',
  cure: 'Give the table a key and upsert (on conflict … do update), or delete and insert the day in one transaction.',
}
const ADDED_UP: Cause = {
  why: 'the run adds to a value instead of setting it.',
  cure: 'Compute the value from its source each time, or remember in the same transaction what was added.',
}
const OTHER_ROWS: Cause = {
  why: 'a second run adds rows that a clean run does not leave: under new keys (a sequence, a uuid, the time), or the next ones.',
  cure: 'Derive the key from what is loaded and upsert by it, and let the arguments of the run say what it loads.',
}
const BUILT_ON: Cause = {
  why: 'a second run starts from what the first has left, and ends in other values.',
  cure: 'Compute each value from its source, not from the value that is there.',
}
const TAKEN_AWAY: Cause = {
  why: 'a second run removes rows of the first and does not find again what they were made from.',
  cure: 'Leave the source as it is, or take from it and fill the target in one transaction, without emptying the target.',
}
const APPENDED: Cause = {
  why: 'the run appends to a file that an earlier run has filled.',
  cure: 'Write to another file beside it and rename that over the old one at the end.',
}
const STATE_BEFORE_LOAD: Cause = {
  why: 'the run remembers how far it came before the rows are safe. A crash in between skips them for ever.',
  cure: 'Save the position in the same transaction as the rows.',
}
const MARK_FIRST: Cause = {
  why: 'the mark that the rows are loaded is set before they are safe. A crash in between skips them for ever.',
  cure: 'Keep the mark in the database and write it in the same transaction as the rows.',
}
const STATE_AFTER_LOAD: Cause = {
  why: 'rows and the note that they are loaded are committed apart. A crash in between loads them again.',
  cure: 'Put both into one transaction, or give the table a key and upsert.',
}
const MARK_OUTSIDE: Cause = {
  why: 'the rows are committed, and the note that they are loaded is made later, outside that transaction.',
  cure: 'Keep the note in the database and write it in the same transaction, or give the table a key and upsert.',
}
const STATE_AND_FILE: Cause = {
  why: 'a file and the database are changed apart. A crash in between leaves one of them behind.',
  cure: 'Make the file again from the database on every run, and rename it into place.',
}
const FILES_APART: Cause = {
  why: 'a run that finds the file, or the mark that it is done, takes it for whole. A crash in between leaves less.',
  cure: 'Write to another file beside it, rename that into place at the end, and let that one rename be the mark.',
}
const BLIND_RETRY: Cause = {
  why: 'the answer to COMMIT was lost, the run tried again, and the first attempt had arrived.',
  cure: 'Before trying again ask the database whether it arrived, or make the attempt harmless: a key and upsert.',
}
const ERRORS_IGNORED: Cause = {
  why: 'the database refused a statement and the run went on and reported success. Nobody will run it again.',
  cure: 'Stop at the first error (psql: -v ON_ERROR_STOP=1; shell: set -e) and exit with another status than 0.',
}
const FRESH_KEY: Cause = {
  why: 'the request is sent again with another Idempotency-Key, so the service takes it for a new one.',
  cure: 'Derive the key from what is asked for, such as a hash of order and amount, and never from time or chance.',
}
const NOTED_BEFORE_SENT: Cause = {
  why: 'the run notes that the request is sent before it sends it. A crash in between, and nobody sends it any more.',
  cure: 'Note what is to be sent in the same transaction as the rows, and mark it as sent after the answer; send it with a key.',
}
const REQUEST_REPEATED: Cause = {
  why: 'every run sends the request again.',
  cure: 'Note what was sent, and send an Idempotency-Key that is derived from the content.',
}
const NOT_TWO_AT_ONCE: Cause = {
  why: 'two runs at the same time do not see what the other is about to write.',
  cure: 'Take a lock first (lock table … in share row exclusive mode, or pg_advisory_xact_lock), or give the table a unique key.',
}
const LEFT_BEHIND: Cause = {
  why: 'a run that was interrupted leaves things behind that the next run does not remove.',
  cure: 'Use a temporary table, or a fixed name with: drop table if exists.',
}
const FILE_LEFT_BEHIND: Cause = {
  why: 'a run that was interrupted leaves files behind that the next run does not remove.',
  cure: 'Give the temporary file a fixed name that the next run overwrites, or remove old ones at the start.',
}
const CHANGE_MISSED: Cause = {
  why: 'a run that has succeeded once does not take over, or not wholly, what was corrected in the source since.',
  cure: 'Load the whole day again each time (delete and insert, or upsert), or find what changed by a column that moves.',
}
const KEYS_ALONE: Cause = {
  why: 'every run sends the request again and relies on the service to know its key. Services forget keys, after hours or days.',
  cure: 'Note in the database what was sent, and do not send it again; the key is for the crash in between.',
}
const STUCK_TWICE: Cause = {
  why: 'what the first run has left makes every further run fail.',
  cure: 'Let the run start with what is there already: on conflict, create … if not exists, delete before insert.',
}
const STUCK: Cause = {
  why: 'what the interrupted run left makes every further run fail until somebody cleans up.',
  cure: 'Let the run start with what may be there: on conflict, create … if not exists, delete before insert.',
}
