/**
 * This moment, by the clock that the engine's own `now()` reads. `now()` itself stands still from the beginning of a
 * transaction, and a run's rows are written in the one that ends it.
 */
export function hostTime(): string {
  return `timestamptz '${new Date().toISOString()}'`
}

/** A moment of the record as ISO 8601 in UTC with microseconds. */
export function isoSql(column: string): string {
  return `strftime(${column} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')`
}
