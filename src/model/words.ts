// Counts as people read them, the same in every message. Programs find them as plain numbers in documents and details.

/** `1,001`: digits in groups, the same in every locale. */
export function groupDigits(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** `1 row`, `1,001 rows`. */
export function countOf(count: number, singular: string, plural: string = `${singular}s`): string {
  return `${groupDigits(count)} ${count === 1 ? singular : plural}`
}
