import { InvalidArgumentError } from 'commander'
import type { SliceSize } from '../model/slice.ts'

/** A whole number of 0 or more. */
export function parseCount(text: string): number {
  const count = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count)) {
    throw new InvalidArgumentError('It is a whole number, 0 or more.')
  }
  return count
}

/** A whole number of 1 or more. */
export function parseCountFromOne(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It is a whole number, 1 or more.')
  return parseCount(text)
}

const MS_BY_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, m: 60_000, h: 3_600_000 }

/** `500ms`, `30s`, `5min`, `1h` in milliseconds. A bare number is refused: seconds and milliseconds differ too much. */
export function parseDuration(text: string): number {
  const [, value, unit] = /^(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)$/.exec(text) ?? []
  const factor = unit === undefined ? undefined : MS_BY_UNIT[unit]
  if (value === undefined || factor === undefined) {
    throw new InvalidArgumentError('Write a number with a unit: 500ms, 30s, 5min, 1h.')
  }
  return Math.round(Number(value) * factor)
}

/** `2GB`, `512MiB`, in DuckDB's own words. */
export function parseMemory(text: string): string {
  if (!/^\d+(\.\d+)?\s*(B|[KMGT]i?B)$/i.test(text)) {
    throw new InvalidArgumentError('Write a size with a unit: 512MB, 2GB, 1.5GiB.')
  }
  return text
}

/** A name, or `none` for false. */
export function parseNameOrNone(text: string): string | false {
  if (text === '') throw new InvalidArgumentError('Write a column name, or none.')
  return text === 'none' ? false : text
}

/** `hour`, `day`, `month`, `value`, or the length of ranges of whole numbers. */
export function parseSliceSize(text: string): SliceSize {
  if (text === 'hour' || text === 'day' || text === 'month' || text === 'value') return text
  if (/^[1-9]\d*$/.test(text) && Number.isSafeInteger(Number(text))) return { range: Number(text) }
  throw new InvalidArgumentError('Write hour, day, month, value, or a whole number such as 1000.')
}

/** `2h` for a cursor of time, a number for one of numbers. */
export function parseGrace(text: string): string | number {
  return /^\d+$/.test(text) ? Number(text) : text
}

/** The values of an option that may be repeated. */
export function collect(text: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), text]
}

/** A character, with `\t` for the one that is hard to type. */
export function parseTab(text: string): string {
  return text === '\\t' ? '\t' : text
}
