import type { Point } from '../plan/points.ts'
import type { Fault } from '../plan/trials.ts'
import { escaped } from './markup.ts'
import { type TimelineStep, timelineOf } from './timeline.ts'

const ROW = 30
const LINE_X = 20
const TEXT_X = 44
const WIDTH = 720
const OUTCOME_X = WIDTH - 6
const LABEL_LENGTH = 70
const CUT_X = 200

/** The run from top to bottom: full dots are durable when the fault strikes, empty ones are not. */
export function timelineSvg(fault: Fault, points: readonly Point[]): string {
  const steps = timelineOf(fault, points)
  const height = steps.length * ROW
  const drawn = steps.map((step, at) => drawStep(step, at * ROW + ROW / 2)).join('\n')
  const line = `<line class="time" x1="${LINE_X}" y1="0" x2="${LINE_X}" y2="${height}"/>`
  return `<div class="wide"><svg class="timeline" role="img" aria-label="${escaped(spoken(steps))}" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}">${line}\n${drawn}</svg></div>`
}

function drawStep(step: TimelineStep, y: number): string {
  const text = (x: number, content: string, name: string, anchor = 'start') =>
    `<text class="${name}" x="${x}" y="${y + 4}" text-anchor="${anchor}">${escaped(content)}</text>`
  switch (step.kind) {
    case 'skipped':
      return text(TEXT_X, `… ${step.count} ${step.where === 'before' ? 'before' : 'more'}`, 'dim')
    case 'point': {
      const { n, what, outcome, isDone } = step
      const label = `${n}  ${what}`
      const shown = label.length > LABEL_LENGTH ? `${label.slice(0, LABEL_LENGTH - 1)}…` : label
      const dot = `<circle class="${isDone ? 'done' : 'undone'}" cx="${LINE_X}" cy="${y}" r="6"><title>${escaped(label)}</title></circle>`
      return `<g>${dot}${text(TEXT_X, shown, isDone ? 'label' : 'dim')}${text(OUTCOME_X, outcome, isDone ? 'label' : 'dim', 'end')}</g>`
    }
    case 'cut':
      return `<g class="cut"><line x1="4" y1="${y}" x2="${CUT_X - 8}" y2="${y}"/>${text(CUT_X, `✂ ${step.what}`, 'cut')}</g>`
  }
}

/** The drawing for those who hear it. */
function spoken(steps: readonly TimelineStep[]): string {
  return steps
    .map((step) => {
      if (step.kind === 'skipped') return `${step.count} points ${step.where}`
      return step.kind === 'cut' ? step.what : `${step.n} ${step.what}: ${step.outcome}`
    })
    .join('; ')
}
