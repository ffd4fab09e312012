import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { SourceContext, SourceFile } from '../../model/source.ts'
import { beginReading, type InputFile, type UnreadFile } from '../shared/files.ts'
import { copyRecords } from './copy.ts'
import type { Layout } from './layout.ts'
import { type Measured, measure, measurePlain, namesOfPlain } from './measure.ts'
import type { Dialect } from './options.ts'
import { type RecordShape, readBlocks } from './records.ts'
import { lineEndOf, shapeOf } from './shape.ts'

/** A file that has been measured, and what DuckDB reads in its place. */
export interface MeasuredFile {
  readonly file: SourceFile
  /** The records as they stand in the file. */
  readonly original: Layout
  /** The same records as DuckDB gets to see them; the same layout where the file is read in place. */
  readonly readable: Layout
  readonly records: number
  readonly longest: number
  /** See `Measured.splittable`. */
  readonly splittable: boolean
}

/** What of a measured file makes the select that reads it. */
export type Expected = Pick<MeasuredFile, 'readable' | 'longest' | 'splittable'>

/** A file of a load. */
export interface PartFile {
  /** As the user would write it. */
  readonly path: string
  readonly names: readonly string[]
  readonly dialect: Dialect
  readonly delimiter: string
  /** Null until it has been looked at. */
  measured(): MeasuredFile | null
  /** What the look will find, as far as the beginning of the file shows; null where it has been looked at already. */
  readonly expected: Expected | null
  /** Resolves when it has been looked at. */
  looked(): Promise<void>
}

/** The looks at the files of a load, one after the other, while others do other things. */
export interface Looks extends AsyncDisposable {
  readonly context: SourceContext
  add<T>(look: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Lets the first one begin. They share this thread with everything that is asked of the engine until then. */
  begin(): void
  /** Resolves after the last one; throws what the first one that failed has thrown. */
  done(): Promise<void>
}

/** Makes an empty list of looks. Disposing ends them. */
export function lookOneByOne(context: SourceContext): Looks {
  const closing = new AbortController()
  const signal = AbortSignal.any([context.signal, closing.signal])
  let begin = () => {}
  let last = new Promise<void>((resolve) => {
    begin = resolve
  })
  return {
    context,
    begin: () => begin(),
    add: (look) => {
      const found = last.then(() => look(signal))
      last = found.then(() => undefined)
      // Whoever waits for it hears of its failure; there may be nobody yet.
      last.catch(() => undefined)
      return found
    },
    done: () => {
      begin()
      return last
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort()
      begin()
      await last.catch(() => undefined)
    },
  }
}

/**
 * Makes a file ready to be read by DuckDB. One that begins as a plain file is looked at while it is being read: nearly all
 * are as they begin, and what was read of the others is thrown away.
 */
export async function prepareFile(
  input: InputFile | UnreadFile,
  dialect: Dialect,
  delimiter: string,
  looks: Looks,
): Promise<PartFile> {
  const { context } = looks
  const shape = shapeOf(dialect, [delimiter], await lineEndOf(input.path, dialect, [delimiter]))
  if ('file' in input) return known(await measureFile(input, shape, dialect, context), dialect, delimiter)
  const names = await namesOfPlain(input, shape, dialect.header, context.signal)
  if (names === null) {
    const reading = beginReading(input, context)
    const { signal } = context
    await readBlocks(input.path, { signal, look: reading.look }, (block) => block.length)
    return known(await measureFile(reading.end(), shape, dialect, context), dialect, delimiter)
  }
  const layout = { path: input.path, shape, hasHeader: dialect.header === null, columns: names.length }
  const readable = await inPlace({ ...layout, isUtf8: true }, context)
  let found: MeasuredFile | null = null
  const look = looks.add(async (signal) => {
    const reading = beginReading(input, context)
    const options = { signal, look: reading.look }
    const plain = await measurePlain(input, shape, dialect.header, names, options)
    const file = reading.end()
    found =
      plain === null || file.invalidUtf8At !== null
        ? (await measureFile(file, shape, dialect, { ...context, signal })).measured
        : { file: file.file, original: plain.layout, readable, ...countsOf(plain) }
  })
  look.catch(() => undefined)
  return {
    path: input.name,
    names,
    dialect,
    delimiter,
    measured: () => found,
    expected: { readable, longest: 0, splittable: true },
    looked: () => {
      looks.begin()
      return look
    },
  }
}

interface NamedAndMeasured {
  readonly names: readonly string[]
  readonly measured: MeasuredFile
}

function known({ names, measured }: NamedAndMeasured, dialect: Dialect, delimiter: string): PartFile {
  return {
    path: measured.file.path,
    names,
    dialect,
    delimiter,
    measured: () => measured,
    expected: null,
    looked: async () => undefined,
  }
}

/** Measures a file, and copies what DuckDB would not read as we do. */
async function measureFile(
  input: InputFile,
  shape: RecordShape,
  dialect: Dialect,
  context: SourceContext,
): Promise<NamedAndMeasured> {
  const file = { name: input.file.path, path: input.path, isUtf8: input.invalidUtf8At === null }
  const measured = await measure(file, shape, dialect.header, context.signal)
  const readable = measured.plain ? await inPlace(measured.layout, context) : await copied(measured, context)
  return {
    names: measured.names,
    measured: { file: input.file, original: measured.layout, readable, ...countsOf(measured) },
  }
}

function countsOf({ records, longest, splittable }: Measured) {
  return { records, longest, splittable }
}

/** DuckDB takes `orders[1].csv` for a pattern, so such a file is read by another name. */
async function inPlace(layout: Layout, context: SourceContext): Promise<Layout> {
  if (!/[*?[\]{}\\]/.test(layout.path)) return layout
  const path = join(context.local.directory, context.local.newName('link'))
  await symlink(layout.path, path)
  return { ...layout, path }
}

async function copied(measured: Measured, context: SourceContext): Promise<Layout> {
  const shape = { ...measured.layout.shape, lineEnd: 'lf', skip: 0, comment: null } as const
  return {
    ...measured.layout,
    path: await copyRecords(measured, context),
    shape,
    hasHeader: false,
    isUtf8: true,
  }
}
