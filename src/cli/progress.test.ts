import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { definePipeline } from '../pipeline/define.ts'
import { run } from '../pipeline/run.ts'
import { rows } from '../sources/rows/index.ts'
import { duckdb } from '../targets/duckdb/index.ts'
import type { Clock, Output } from './context.ts'
import { describePace, progressLine } from './progress.ts'

/** A clock that stands until it is told to go on. */
function standingClock(): Clock & { advance(ms: number): void; readonly waiting: number } {
  let now = 0
  const callbacks = new Map<() => void, number>()
  return {
    date: () => new Date(0),
    now: () => now,
    every: (intervalMs, callback) => {
      callbacks.set(callback, intervalMs)
      return () => callbacks.delete(callback)
    },
    advance: (ms) => {
      now += ms
      for (const callback of callbacks.keys()) callback()
    },
    get waiting() {
      return callbacks.size
    },
  }
}

function recordingOutput(isTerminal: boolean, columns = 100): Output & { readonly text: string } {
  let text = ''
  return {
    isTerminal,
    columns,
    write: (more) => {
      text += more
    },
    get text() {
      return text
    },
  }
}

test('a run tells what it does before the first row has come', async () => {
  const phases: string[] = []
  const seen: { atOpen?: readonly string[] } = {}
  const source = rows({ columns: { id: 'bigint' }, rows: () => [{ id: 1n }], name: 'one' })
  const pipeline = definePipeline({
    name: 'one',
    source: {
      ...source,
      open: (context) => {
        seen.atOpen = [...phases]
        return source.open(context)
      },
    },
    target: duckdb({ file: join(await mkdtemp(join(tmpdir(), 'stet-progress-')), 'x.duckdb') }),
    table: 'one',
    write: { strategy: 'upsert', key: ['id'] },
  })
  await run(pipeline, { onProgress: ({ phase }) => phases.push(phase) })
  expect(seen.atOpen).toEqual(['opening', 'reading'])
})

describe('the progress line', () => {
  test('shows rows, bytes, rate and time left', () => {
    const bytesTotal = 90_000_000
    const first = { at: 1000, progress: { phase: 'reading', rows: 0, bytes: 0, bytesTotal } } as const
    const latest = {
      at: 3000,
      progress: { phase: 'reading', rows: 1_200_000, bytes: 45_000_000, bytesTotal },
    } as const
    expect(describePace({ phaseStartedAt: 1000, first, latest }, 3100)).toBe(
      'reading the source  1,200,000 rows  45.0 MB of 90.0 MB  600,000 rows/s  2.0 s left',
    )
  })

  test('shows the rate in bytes where rows are not known', () => {
    const first = { at: 0, progress: { phase: 'reading', bytes: 0 } } as const
    const latest = { at: 1000, progress: { phase: 'reading', bytes: 10_000_000 } } as const
    expect(describePace({ phaseStartedAt: 0, first, latest }, 1000)).toBe(
      'reading the source  10.0 MB  10.0 MB/s',
    )
  })

  test('makes no rate of one number, which may be what there is to do', () => {
    const told = { at: 0, progress: { phase: 'writing', rows: 3_000_000 } } as const
    expect(describePace({ phaseStartedAt: 0, first: told, latest: told }, 2000)).toBe(
      'writing  3,000,000 rows  2.0 s',
    )
  })

  test('says nothing in the first second, rewrites one line after it, and is gone at the end', () => {
    const clock = standingClock()
    const output = recordingOutput(true)
    const line = progressLine(output, clock)
    line.listener({ phase: 'reading', rows: 10 })
    clock.advance(900)
    expect(output.text).toBe('')
    clock.advance(200)
    line.listener({ phase: 'reading', rows: 2200 })
    clock.advance(900)
    expect(output.text).toBe(
      '\r\u001b[Kreading the source  10 rows  1.1 s\r\u001b[Kreading the source  2,200 rows  1,991 rows/s',
    )
    line.end()
    expect(output.text.endsWith('\r\u001b[K')).toBe(true)
    expect(clock.waiting).toBe(0)
  })

  test('does not stand still when all bytes are in and the rows are still to be found in them', () => {
    const clock = standingClock()
    const output = recordingOutput(true)
    const line = progressLine(output, clock)
    line.listener({ phase: 'reading' })
    clock.advance(1000)
    line.listener({ phase: 'reading', bytes: 0, bytesTotal: 50_000_000 })
    clock.advance(1000)
    line.listener({ phase: 'reading', bytes: 20_000_000, bytesTotal: 50_000_000 })
    clock.advance(1000)
    line.listener({ phase: 'reading', bytes: 50_000_000, bytesTotal: 50_000_000 })
    clock.advance(2000)
    line.listener({ phase: 'reading', bytes: 10_000_000, bytesTotal: 70_000_000 })
    clock.advance(200)
    expect(output.text.split('\r\u001b[K')).toEqual([
      '',
      'reading the source  1.0 s',
      'reading the source  0 B of 50.0 MB  2.0 s',
      'reading the source  20.0 MB of 50.0 MB  20.0 MB/s  1.5 s left',
      'checking what was read  50.0 MB  2.0 s',
      'reading the source  10.0 MB of 70.0 MB  200 ms',
    ])
  })

  test('says that it works when nobody has told of anything', () => {
    const clock = standingClock()
    const output = recordingOutput(true)
    progressLine(output, clock)
    clock.advance(1500)
    expect(output.text).toBe('\r\u001b[Kworking  1.5 s')
  })

  test('measures each phase by itself', () => {
    const clock = standingClock()
    const output = recordingOutput(true)
    const line = progressLine(output, clock)
    line.listener({ phase: 'reading', rows: 10 })
    clock.advance(5000)
    line.listener({ phase: 'writing', rows: 0 })
    clock.advance(1000)
    line.listener({ phase: 'writing', rows: 1000 })
    clock.advance(200)
    expect(output.text).toContain('writing  1,000 rows  1,000 rows/s')
  })

  test('makes room for a note and comes back', () => {
    const clock = standingClock()
    const output = recordingOutput(true)
    const line = progressLine(output, clock)
    line.listener({ phase: 'waiting' })
    clock.advance(1000)
    line.interrupt(() => output.write('note: x\n'))
    clock.advance(200)
    expect(output.text).toBe('\r\u001b[Kwaiting  1.0 s\r\u001b[Knote: x\n\r\u001b[Kwaiting  1.2 s')
  })

  test('never fills the last column of a narrow terminal', () => {
    const clock = standingClock()
    const output = recordingOutput(true, 20)
    const line = progressLine(output, clock)
    line.listener({ phase: 'pulling', rows: 1 })
    clock.advance(1000)
    expect(output.text).toBe('\r\u001b[Kreading the target…')
  })

  test('is not there when nobody watches', () => {
    const clock = standingClock()
    const output = recordingOutput(false)
    const line = progressLine(output, clock)
    line.listener({ phase: 'reading', rows: 10 })
    clock.advance(10_000)
    line.end()
    expect(output.text).toBe('')
  })
})
