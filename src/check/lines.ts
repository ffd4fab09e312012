import type { Position } from './finding.ts'

/** Offsets to lines and columns, both from 1. */
export interface LineIndex {
  readonly count: number
  position(offset: number): Position
  /** The text of a line, without its end. */
  line(number: number): string
  startOf(number: number): number
}

export function lineIndex(text: string): LineIndex {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  const startOf = (number: number): number => starts[Math.max(0, Math.min(starts.length, number) - 1)] ?? 0
  return {
    count: starts.length,
    position(offset) {
      let low = 0
      let high = starts.length - 1
      while (low < high) {
        const middle = (low + high + 1) >> 1
        if ((starts[middle] ?? 0) <= offset) low = middle
        else high = middle - 1
      }
      return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 }
    },
    line(number) {
      const end = number < starts.length ? (starts[number] ?? text.length) - 1 : text.length
      return text.slice(startOf(number), Math.max(startOf(number), end)).replace(/\r$/, '')
    },
    startOf,
  }
}
