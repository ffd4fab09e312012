import { expect, test } from 'vitest'
import { type Point, samePoints, withoutEngineSteps } from './points.ts'
import { type FaultKind, planTrials, thin } from './trials.ts'

const ALL: readonly FaultKind[] = ['kill before', 'kill after', 'cut before', 'cut after', 'error', 'overlap']

function points(...signatures: readonly string[]): readonly Point[] {
  const seen = new Map<string, number>()
  return signatures.map((signature) => {
    const occurrence = (seen.get(signature) ?? 0) + 1
    seen.set(signature, occurrence)
    const place = { signature, occurrence, shape: signature, what: [signature], connection: 1 }
    return { kind: 'commit', ...place, transactions: 1 }
  })
}

test('of 10,010 commits of a loop with checkpoints, 14 stand for all', () => {
  const loop = Array.from({ length: 10 }, () => [...Array<string>(1000).fill('row'), 'mark']).flat()
  const chosen = thin(points(...loop))
  expect(loop.length).toBe(10_010)
  expect(chosen.length).toBe(14)
  expect(chosen[0]?.position).toBe(1)
  expect(chosen.at(-1)?.position).toBe(10_010)
})

test('a few points are all tried, whatever they are', () => {
  expect(thin(points('a', 'b', 'c', 'a')).map(({ position }) => position)).toEqual([1, 2, 3, 4])
})

test('trials are numbered the same in every proof, and 1 is the plain second run', () => {
  const traces = { seed: points('a', 'b'), loaded: points('b') }
  const plan = () => planTrials(traces, { kinds: ALL, isExhaustive: false })
  expect(plan()).toEqual(plan())
  expect(plan()[0]?.n).toBe(2)
  expect(new Set(plan().map(({ n }) => n)).size).toBe(plan().length)
})

test('errors, lost connections and overlaps are tried once for each kind of point', () => {
  const plan = planTrials(
    { seed: points('a', 'a', 'a', 'b'), loaded: [] },
    { kinds: ALL, isExhaustive: true },
  )
  const count = (kind: FaultKind) => plan.filter(({ fault }) => fault.kind === kind).length
  expect(ALL.map((kind) => [kind, count(kind)])).toEqual([
    ['kill before', 1],
    ['kill after', 4],
    ['cut before', 2],
    ['cut after', 4],
    ['error', 7],
    ['overlap', 2],
  ])
})

test('each kind of commit meets every error, and each connection is refused once, before its first commit', () => {
  const seed = points('a', 'b', 'a', 'b').map((point, at) => ({ ...point, connection: at < 2 ? 1 : 2 }))
  const plan = planTrials({ seed, loaded: points('a') }, { kinds: ['error'], isExhaustive: false })
  expect(plan.map(({ start, fault }) => `${start} ${fault.position} ${fault.code}`)).toEqual([
    'seed 1 40001',
    'seed 2 40001',
    'loaded 1 40001',
    'seed 1 40P01',
    'seed 1 57P01',
    'seed 2 40P01',
    'seed 2 57P01',
    'seed 1 53300',
  ])
})

test('only the kinds asked for are planned', () => {
  const plan = planTrials(
    { seed: points('a'), loaded: points('a') },
    { kinds: ['cut after'], isExhaustive: false },
  )
  expect(plan.map(({ start, fault }) => [start, fault.kind])).toEqual([
    ['seed', 'cut after'],
    ['loaded', 'cut after'],
  ])
})

test('two traces are the same in whatever order a pool sent them', () => {
  expect(samePoints(points('a', 'b'), points('b', 'a'))).toBe(true)
  expect(samePoints(points('a', 'b'), points('a', 'a'))).toBe(false)
})

test('of many changes of unlike files some of each stretch are tried, also of two that take turns', () => {
  const changes = Array.from({ length: 400 }, (_, n): Point => {
    const place = { signature: `write ${n}`, occurrence: 1, shape: `write ${n}`, what: [`write ${n}`] }
    return { kind: 'file change', ...place, transactions: 0 }
  })
  const positions = thin([...changes, ...points('commit')]).map(({ position }) => position)
  expect(positions.length).toBe(26)
  expect(positions.slice(-2)).toEqual([400, 401])
  const odd = positions.filter((position) => position % 2 === 1).length
  expect(odd).toBeGreaterThan(6)
  expect(odd).toBeLessThan(20)
})

test('at a change of a file there is no connection to lose and no error to answer with', () => {
  const change: Point = {
    kind: 'file change',
    signature: 'a',
    occurrence: 1,
    shape: 'a',
    what: ['a'],
    transactions: 0,
  }
  const plan = planTrials({ seed: [change], loaded: [] }, { kinds: ALL, isExhaustive: false })
  expect(plan.map(({ fault }) => fault.kind)).toEqual(['kill after'])
})

test('of a transaction of an embedded database only the end counts', () => {
  const step = (verb: 'open' | 'write' | 'remove', file: string, isTorn = false): Point => {
    const what = `${verb} ${file}`
    const place = { signature: what, occurrence: 1, shape: what, what: [what], transactions: 0 }
    return { kind: 'file change', ...place, change: { call: 'write', verb, file, isTorn } }
  }
  const all = [
    step('open', 'app.db'),
    step('write', 'app.db-wal', true),
    step('write', 'app.db-wal'),
    step('write', 'out.csv', true),
    step('remove', 'app.db-journal'),
  ]
  expect(withoutEngineSteps(all, new Set(['app.db'])).map(({ what }) => what.join())).toEqual([
    'write app.db-wal',
    'write out.csv',
    'remove app.db-journal',
  ])
})
