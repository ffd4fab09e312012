import { createHash } from 'node:crypto'
import { StetError } from '../errors.ts'
import type { Watermark } from '../model/slice.ts'
import type { DefinedPipeline, Incremental, RunOptions } from './types.ts'

/** A watermark means nothing for another cursor, another key, another source or another zone. */
export function definitionOf(pipeline: DefinedPipeline, incremental: Incremental): string {
  const parts = {
    cursor: incremental.cursor,
    key: pipeline.write.key ?? [],
    source: `${pipeline.source.kind} ${pipeline.source.identity ?? withoutPlace(pipeline.source.description)}`,
    zone: incremental.zone ?? 'UTC',
  }
  // Readable, so that the message can say which of them has changed; the source may be long, so by its hash.
  const source = createHash('sha256').update(parts.source).digest('hex').slice(0, 16)
  return JSON.stringify({ ...parts, source })
}

/** A command that sets a watermark; null for a pipeline that no file has, such as that of `stet load`. */
export function commandToSet(value: string | null, inCommands: RunOptions['inCommands']): string | null {
  return inCommands === null ? null : `stet watermark set ${quoted(value)} ${inCommands ?? 'pipeline.ts'}`
}

/** To be pasted, or, where nobody knows the value, to be filled in. */
function quoted(value: string | null): string {
  return value === null ? 'VALUE' : `'${value}'`
}

export function refuseOtherDefinition(
  pipeline: DefinedPipeline,
  watermark: Watermark,
  definition: string,
  inCommands: RunOptions['inCommands'],
): void {
  if (watermark.definition === definition) return
  const before = partsOf(watermark.definition)
  const after = JSON.parse(definition) as Record<string, unknown>
  const changed = Object.keys(after).filter(
    (part) => JSON.stringify(before[part]) !== JSON.stringify(after[part]),
  )
  // How far one column has been read says nothing about another, which may not even have values of the kind.
  const isOtherCursor = changed.includes('cursor')
  const value = isOtherCursor ? null : watermark.value
  const waysOn = [`--from ${quoted(value)}`, commandToSet(value, inCommands)].filter((way) => way !== null)
  const where = isOtherCursor
    ? `Go on from a value of ${String(after.cursor)} up to which all is loaded`
    : 'Go on from where it is'
  throw new StetError(
    'STET_DEFINITION_CHANGED',
    `Pipeline "${pipeline.name}" has another ${changed.join(' and ')} than when its watermark ${watermark.value} was set (G4); nothing was read`,
    {
      hint:
        `Read all of it again: --full. ${where}: ${waysOn.join(', or ')}. ` +
        'Or give the pipeline another name',
      details: { changed, before, after, watermark: watermark.value },
    },
  )
}

/** `orders-2026-08-07.csv` and the file of the next day are one source, and so is the same file in another checkout. */
function withoutPlace(description: string): string {
  return description.replace(/[^\s,]*[\\/]/g, '').replace(/\d+/g, '#')
}

/** A definition that somebody wrote by hand is another one in every part. */
function partsOf(definition: string): Record<string, unknown> {
  try {
    const parts: unknown = JSON.parse(definition)
    return typeof parts === 'object' && parts !== null ? (parts as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
