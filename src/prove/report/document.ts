import type { Point } from '../plan/points.ts'
import type { Proof } from '../prove.ts'
import type { TrialResult } from '../trial.ts'
import type { Class, Difference } from '../verdict.ts'
import { findingsOf } from './findings.ts'

/** The JSON document of `stet prove`: `schemas/prove.json`. */
export interface ProofDocument {
  readonly format: 'stet-prove-1'
  readonly [field: string]: unknown
}

export function proofDocument(proof: Proof, failOn: readonly Class[]): ProofDocument {
  const findings = findingsOf(proof, failOn).map((finding) => ({
    class: finding.class,
    convicts: finding.convicts,
    claimsSuccess: finding.claimsSuccess,
    ...differenceJson(finding.difference),
    trial: finding.trial.n,
    also: finding.also.map(({ n }) => n),
    why: finding.cause?.why ?? null,
    cure: finding.cause?.cure ?? null,
  }))
  return {
    format: 'stet-prove-1',
    verdict: proof.verdict,
    command: proof.command,
    ms: Math.round(proof.ms),
    network: proof.isFenced ? 'closed' : 'open',
    postgres: proof.postgresVersion,
    clean: {
      ms: Math.round(proof.clean.ms),
      messages: proof.clean.messages,
      requests: proof.clean.requests,
      changes: proof.clean.changes,
      points: proof.clean.points.map(pointJson),
    },
    again: proof.again.map(pointJson),
    volatile: proof.volatile,
    touched: proof.touched,
    counts: proof.counts,
    findings,
    trials: proof.trials.map(trialJson),
    obstacle: proof.obstacle,
    notTried: proof.notTried,
  }
}

function pointJson({ kind, what }: Point): object {
  return { kind, what }
}

function differenceJson({ where, kind, count, clean, here, note, examples, changes }: Difference): object {
  return { where, kind, count, clean, here, note, examples, changes }
}

function trialJson(trial: TrialResult): object {
  const { planned, first, rerun } = trial
  return {
    n: trial.n,
    start: planned?.start ?? 'loaded',
    between: trial.between,
    fault: planned?.fault.kind ?? null,
    point: planned?.fault.position ?? null,
    code: planned?.fault.code ?? null,
    reached: trial.isReached,
    status: first.status,
    end: first.end,
    rerunStatus: rerun?.status ?? null,
    sameState: trial.isFromMemo,
    claimsSuccess: trial.claimsSuccess,
    differences: trial.differences.map((one) => ({ class: one.class, where: one.where, count: one.count })),
    gaps: trial.gaps,
  }
}
