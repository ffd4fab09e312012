import { classesOf, type Proof } from '../prove.ts'
import type { TrialResult } from '../trial.ts'
import type { Class } from '../verdict.ts'
import { escaped } from './markup.ts'
import { pointsAt, trialText } from './wording.ts'

const CELL = 22
const LABELS = 210
const WIDTH = 720
const HEAD = 26

type Start = 'seed' | 'loaded'

/** Where the run was interrupted and how, and what came of it: a row for each kind of fault, left to right as time goes. */
export function mapOf(proof: Proof, failOn: readonly Class[]): string {
  const maps = (['seed', 'loaded'] as const).map((start) => mapFrom(start, proof, failOn)).join('\n')
  if (maps.trim() === '') return ''
  const legend = [
    ['equal', 'as after a clean run'],
    ['convicts', 'convicts'],
    ['warns', 'warns'],
    ['unmet', 'not met again'],
  ]
    .map(([name, text]) => `<li><span class="key ${name}"></span>${text}</li>`)
    .join('')
  return `<section class="map"><h2>Where it was interrupted</h2>${maps}<ul class="legend">${legend}</ul></section>`
}

function mapFrom(start: Start, proof: Proof, failOn: readonly Class[]): string {
  const trials = proof.trials.filter(({ planned }) => planned?.start === start)
  if (trials.length === 0) return ''
  const kinds = [...new Set(trials.map(kindOf))]
  const positions = [...new Set(trials.map(positionOf))].sort((a, b) => a - b)
  const x = (position: number) => LABELS + positions.indexOf(position) * CELL + CELL / 2
  const y = (kind: string) => HEAD + kinds.indexOf(kind) * CELL + CELL / 2
  const width = Math.max(WIDTH, LABELS + positions.length * CELL + 10)
  const height = HEAD + kinds.length * CELL + 4
  const heads = positions.map(
    (position) => `<text class="dim" x="${x(position)}" y="16" text-anchor="middle">${position}</text>`,
  )
  const rows = kinds.map(
    (kind) =>
      `<text class="label" x="0" y="${y(kind) + 4}">${escaped(kind)}</text><line class="time" x1="${LABELS}" y1="${y(kind)}" x2="${LABELS + positions.length * CELL}" y2="${y(kind)}"/>`,
  )
  const dots = trials.map((trial) => {
    const found = classesOf(trial)
    const title = `trial ${trial.n}: ${trialText(trial, proof)}: ${trial.isReached ? found.join(', ') || 'equal' : 'not met again'}`
    return `<circle class="${lookOf(trial, failOn)}" cx="${x(positionOf(trial))}" cy="${y(kindOf(trial))}" r="7"><title>${escaped(title)}</title></circle>`
  })
  const name = start === 'seed' ? 'the first load' : 'a repeated load'
  const of = pointsAt(start, proof).length
  const caption = `${name}: ${positions.length} of its ${of} point${of === 1 ? '' : 's'}`
  return `<figure><figcaption>${escaped(caption)}</figcaption><div class="wide"><svg role="img" aria-label="${escaped(caption)}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${[...heads, ...rows, ...dots].join('\n')}</svg></div></figure>`
}

function lookOf(trial: TrialResult, failOn: readonly Class[]): string {
  if (!trial.isReached) return 'unmet'
  const found = classesOf(trial)
  if (found.some((one) => failOn.includes(one))) return 'convicts'
  return found.some((one) => one !== 'renumbered') ? 'warns' : 'equal'
}

function kindOf({ planned }: TrialResult): string {
  const { kind, code } = planned?.fault ?? {}
  const names: Readonly<Record<string, string>> = {
    'kill before': 'killed before',
    'kill after': 'killed after',
    'cut before': 'connection lost before',
    'cut after': 'answer lost',
    overlap: 'a second run meanwhile',
  }
  return kind === 'error' ? `error ${code ?? ''}` : (names[kind ?? ''] ?? kind ?? '')
}

function positionOf({ planned }: TrialResult): number {
  return planned?.fault.position ?? 0
}
