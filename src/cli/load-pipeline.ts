import { StetError } from '../errors.ts'
import type { WriteStrategy } from '../model/write.ts'
import type { DefinedPipeline, Incremental, Pipeline } from '../pipeline/types.ts'
import { parseNames } from './columns-option.ts'
import { sourceOf } from './file-source.ts'
import type { LoadOptions } from './load-options.ts'
import { tableNameFor } from './table-name.ts'
import { targetOf } from './target-option.ts'

/** The pipeline that these files and options describe, and what to tell of how it was read. */
export async function pipelineOf(
  files: readonly string[],
  options: LoadOptions,
  cwd: string,
): Promise<{ readonly pipeline: DefinedPipeline; readonly notices: readonly string[] }> {
  const write = writeOf(options)
  const { table, notices } = tableOf(files, options)
  const [{ definePipeline }, source, target] = await Promise.all([
    import('../pipeline/define.ts'),
    sourceOf(files, options),
    targetOf(options.into, cwd),
  ])
  const keep = {
    ...(options.keepUpdatedAt === undefined ? {} : { updatedAt: options.keepUpdatedAt }),
    ...(options.keepContentHash === undefined ? {} : { contentHash: options.keepContentHash }),
    ...(options.keepGone === undefined ? {} : { gone: options.keepGone }),
  }
  const pipeline = definePipeline({
    name: table,
    source,
    target,
    table,
    write,
    keep,
    maxRejects: options.maxRejects,
    onReject: options.onReject,
    truth: options.truth,
    incremental: incrementalOf(options),
  } satisfies Pipeline)
  return { pipeline, notices }
}

function writeOf(options: LoadOptions): WriteStrategy {
  const { strategy, missing } = options
  const key = options.key === undefined ? [] : parseNames(options.key, '--key')
  refuseForeignToStrategy(options)
  const reading = {
    newest: options.newest,
    ignore: options.ignore === undefined ? undefined : parseNames(options.ignore, '--ignore'),
    nullKeys: options.nullKeys,
    normalizeKey: options.normalizeKeys,
  }
  const optionalKey = key.length === 0 ? undefined : key
  if (strategy === 'replace-table') return { strategy, ...reading, key: optionalKey }
  if (strategy === 'replace-partition') {
    const { partitionBy: by, partitionSize: size = 'day', zone } = options
    if (by === undefined) {
      throw new StetError('STET_USAGE', '--strategy replace-partition needs the column of its slices', {
        hint: 'Name it: --partition-by event_date, and the slice: --slice 2026-08-07',
      })
    }
    return { strategy, ...reading, key: optionalKey, by, size, zone, missing }
  }
  if (key.length === 0) {
    throw new StetError(
      'STET_USAGE',
      `--strategy ${strategy} needs a key; without one a rerun would append every row again`,
      {
        hint: 'Name the columns that identify a row: --key order_ref. To hold exactly what the files hold: --strategy replace-table',
      },
    )
  }
  return strategy === 'upsert' ? { strategy, key, ...reading, missing } : { strategy, key, ...reading }
}

/** An option that would be passed over in silence is refused: the user thinks that it does something. */
function refuseForeignToStrategy(options: LoadOptions): void {
  const { strategy, missing } = options
  const removes =
    strategy === 'replace-table' ||
    strategy === 'replace-partition' ||
    (strategy === 'upsert' && (missing === 'delete' || missing === 'mark'))
  const foreign: readonly (readonly [flag: string, given: boolean, means: boolean, why: string])[] = [
    ['--allow-empty', options.allowEmpty === true, removes, ', which deletes nothing'],
    ['--allow-deletes', options.allowDeletes === true, removes, ', which deletes nothing'],
    ['--missing', missing !== undefined, strategy === 'upsert' || strategy === 'replace-partition', ''],
    ['--partition-by', options.partitionBy !== undefined, strategy === 'replace-partition', ''],
    ['--partition-size', options.partitionSize !== undefined, strategy === 'replace-partition', ''],
  ]
  for (const [flag, given, means, why] of foreign) {
    if (!given || means) continue
    throw new StetError('STET_USAGE', `${flag} has no meaning with --strategy ${strategy}${why}`)
  }
  if (options.zone !== undefined && options.cursor === undefined && strategy !== 'replace-partition') {
    throw new StetError(
      'STET_USAGE',
      '--zone has no meaning without --cursor or --strategy replace-partition',
    )
  }
}

function incrementalOf(options: LoadOptions): Incremental | undefined {
  const { cursor, grace, start, settle, zone } = options
  if (cursor !== undefined) return { cursor, grace, start, settle, zone }
  const given = Object.entries({ grace, start, settle }).find(([, value]) => value !== undefined)
  if (given === undefined) return undefined
  throw new StetError('STET_USAGE', `--${given[0]} has no meaning without --cursor`)
}

function tableOf(
  files: readonly string[],
  options: LoadOptions,
): { readonly table: string; readonly notices: readonly string[] } {
  if (options.table?.trim() === '') {
    throw new StetError('STET_USAGE', '--table names no table: it is empty', {
      hint: 'Write --table orders, or leave it out: then the table is named after the file. A variable that is not set?',
    })
  }
  if (options.table !== undefined) return { table: options.table, notices: [] }
  const { name, dropped } = tableNameFor(files)
  if (dropped !== '' && options.strategy === 'replace-table') {
    // Last month's file under the same name would take this month's rows away.
    throw new StetError(
      'STET_USAGE',
      `Refused to replace the table "${name}", named after "${files[0]}" without its "${dropped}"`,
      { hint: `Name the table that may be replaced: --table ${name}` },
    )
  }
  const without = dropped === '' ? '' : ` without "${dropped}"`
  return {
    table: name,
    notices:
      dropped === '' ? [] : [`table "${name}", named after ${files[0]}${without}; --table names another`],
  }
}
