import { extname } from 'node:path'
import { StetError } from '../../errors.ts'
import type { Proof } from '../prove.ts'
import type { Class } from '../verdict.ts'
import { proofDocument } from './document.ts'
import { githubReport } from './github.ts'
import { htmlReport } from './html.ts'
import { junitReport } from './junit.ts'
import { type Paint, terminalReport } from './terminal.ts'

export type ReportFormat = 'text' | 'json' | 'junit' | 'github' | 'html'

export interface RenderOptions {
  readonly failOn: readonly Class[]
  /** The file that the command runs; null when none is known. */
  readonly script: string | null
  readonly paint: Paint
}

/** A report in the format asked for, without the line break at its end. */
export function renderReport(
  format: ReportFormat,
  proof: Proof,
  { failOn, script, paint }: RenderOptions,
): string {
  switch (format) {
    case 'text':
      return terminalReport(proof, failOn, paint)
    case 'json':
      return JSON.stringify(proofDocument(proof, failOn), null, 2)
    case 'junit':
      return junitReport(proof, failOn)
    case 'github':
      return githubReport(proof, failOn, script)
    case 'html':
      return htmlReport(proof, failOn).trimEnd()
  }
}

const FORMAT_BY_EXTENSION: Readonly<Record<string, ReportFormat>> = {
  '.txt': 'text',
  '.json': 'json',
  '.xml': 'junit',
  '.html': 'html',
  '.htm': 'html',
}

/** The format of a report's file, by its name. */
export function formatOfReport(file: string): ReportFormat {
  const format = FORMAT_BY_EXTENSION[extname(file).toLowerCase()]
  if (format !== undefined) return format
  throw new StetError('STET_USAGE', `Cannot tell the format of the report "${file}" by its name`, {
    hint: 'Name it .html for a page, .xml for JUnit, .json for programs, .txt for text',
  })
}
