import type { Lab, World } from './lab.ts'
import { messageName, type Point } from './plan/points.ts'

/**
 * The points with those added that lie inside of one message: the commits of a CALL, a DO block, several statements
 * sent as one. They are found by one more run, in which every commit is stopped and counted.
 */
export async function withInnerCommits(
  points: readonly Point[],
  start: World,
  lab: Lab,
  timeLimitMs: number,
): Promise<readonly Point[]> {
  // One transaction may use several numbers (exception blocks do), but several commits use several.
  if (!points.some((point) => point.kind === 'commit' && point.transactions > 1)) return points
  const world = await lab.fork(start)
  const { commits } = await lab.run(world, { timeLimitMs, countCommits: true })
  await lab.discard(world)
  return points.flatMap((point) => {
    const count = point.kind === 'commit' ? commits.get(messageName(point)) : undefined
    if (count === undefined) return [point]
    const counted = { ...point, commits: count }
    // After the last one comes the answer, which is a point of its own.
    return [...Array.from({ length: count - 1 }, (_, at) => innerPoint(point, at + 1)), counted]
  })
}

function innerPoint(point: Point, inner: number): Point {
  const what = [`commit ${inner} inside of: ${point.what.join('; ')}`]
  return { ...point, kind: 'inner commit', shape: `${point.shape} inside`, what, inner, transactions: 1 }
}
