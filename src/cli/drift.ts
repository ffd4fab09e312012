import { StetError } from '../errors.ts'
import type { Plan, RunResult } from '../pipeline/types.ts'
import { describeSample } from './render-run.ts'
import { countOf } from './words.ts'

const SAMPLES_SHOWN = 5

/** Of a plan's samples those of rows that have drifted. */
export function driftIn(plan: Plan): Plan['samples'] {
  return plan.samples.filter(({ op }) => op === 'drift')
}

/**
 * For `--fail-on-drift`, after the commit: a frozen slice that its source no longer agrees with is somebody's decision to
 * make (G12).
 *
 * @throws {StetError} `STET_DRIFT` with counts and a few of the rows.
 */
export function refuseDrift(
  result: Pick<RunResult, 'frozen' | 'counts' | 'pipeline' | 'slice' | 'drift'>,
): void {
  const { frozen, missing, inserted } = result.counts
  if (!result.frozen || frozen + missing === 0) return
  const found = [
    ...(frozen > 0 ? [`differing: ${countOf(frozen, 'row')}`] : []),
    ...(missing > 0 ? [`gone from the source: ${countOf(missing, 'row')}`] : []),
    ...(inserted > 0 ? [`new, and inserted: ${countOf(inserted, 'row')}`] : []),
  ]
  const samples = result.drift.slice(0, SAMPLES_SHOWN).map((sample) => `  ${describeSample(sample)}`)
  throw new StetError(
    'STET_DRIFT',
    [
      `Slice ${result.slice} of pipeline "${result.pipeline}" is frozen and has drifted (G12): ${found.join(', ')}; what was loaded stays as it is`,
      ...samples,
    ].join('\n'),
    {
      hint: `To take the source's rows over: stet thaw, with the pipeline's file and --slice ${result.slice}, and run it again`,
      details: {
        slice: result.slice,
        frozen,
        missing,
        inserted,
        samples: result.drift.slice(0, SAMPLES_SHOWN),
      },
    },
  )
}
