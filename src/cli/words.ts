export { countOf, groupDigits } from '../model/words.ts'

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** `812 B`, `1.4 MB`: powers of a thousand, as file managers and disks count. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1000
    unit++
  }
  const digits = unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)
  return `${digits} ${BYTE_UNITS[unit]}`
}

/** `12 ms`, `1.4 s`, `2 min 05 s`, `1 h 02 min`. */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${twoDigits(seconds % 60)} s`
  const minutes = Math.floor(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} min`
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}

/** `2024-05-01 10:00:07`: a moment of the run log (ISO 8601, UTC) without its fraction. */
export function formatMoment(iso: string): string {
  const [, date, time] = /^([^T ]+)[T ](\d\d:\d\d:\d\d)/.exec(iso) ?? []
  return date === undefined || time === undefined ? iso : `${date} ${time}`
}
