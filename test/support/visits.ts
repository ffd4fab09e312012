import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What the source of a slice does before it is opened; set by a test, for runs within its process. */
type BeforeSlice = (slice: string | undefined) => Promise<void>

declare global {
  var beforeSlice: BeforeSlice | undefined
}

export interface VisitsOptions {
  /** Of a fresh folder; files lie in `inbox/`. */
  readonly cwd: string
  /** A file is loaded once in a process: a pipeline that changes needs another name. Default `visits.ts`. */
  readonly file?: string
  /** Expression of the target. Default: a DuckDB file in the folder. */
  readonly target?: string
  /** More of the pipeline, as its text. */
  readonly more?: string
  /** Instead of replacing days: the text of `write`. */
  readonly write?: string
  /** Pattern of the files. Default: one for each slice. */
  readonly files?: string
}

/** Writes `visits.ts`, a pipeline over files of days, into the folder. */
export async function writeVisits({
  cwd,
  file = 'visits.ts',
  target,
  more = '',
  write,
  files,
}: VisitsOptions): Promise<void> {
  await mkdir(join(cwd, 'inbox'), { recursive: true })
  await writeFile(
    join(cwd, file),
    `import { join } from 'node:path'
import { definePipeline } from 'stet'
import { csv } from 'stet/sources/csv'
import { duckdb } from 'stet/targets/duckdb'
import { postgres } from 'stet/targets/postgres'

const here = ${JSON.stringify(cwd)}
const files = csv({
  files: join(here, 'inbox', ${JSON.stringify(files ?? '{slice}.csv')}),
  columns: { id: 'bigint', day: 'date', page: 'text', changed: 'timestamptz' },
})
export default definePipeline({
  name: 'visits',
  source: {
    ...files,
    open: async (context: Parameters<typeof files.open>[0]) => {
      await globalThis.beforeSlice?.(context.slice?.name)
      if (process.env.HALT_AT !== undefined && process.env.HALT_AT === context.slice?.name) {
        process.stdout.write('halted')
        await new Promise(() => setInterval(() => {}, 1_000_000))
      }
      return files.open(context)
    },
  },
  target: ${target ?? "duckdb({ file: join(here, 'stet.duckdb') })"},
  table: 'visits',
  write: ${write ?? "{ strategy: 'replace-partition', by: 'day', size: 'day', key: ['id'] }"},
  ${more}
})
`,
  )
}

/** The pipeline read on by its cursor instead, in all files of the folder; `incremental` beside the cursor, as its text. */
export function byCursor(incremental = ''): Required<Pick<VisitsOptions, 'files' | 'write' | 'more'>> {
  return {
    files: '*.csv',
    write: `{ strategy: 'upsert', key: ['id'] }`,
    more: `incremental: { cursor: 'changed', ${incremental} },`,
  }
}

/** Writes the file of a day: a visit for each page, with an id made from the day. */
export async function writeDay(cwd: string, day: string, pages: readonly string[]): Promise<void> {
  const rows = pages.map((page, index) => `${day.slice(8)}${index},${day},${page},${day} 12:0${index}:00+00`)
  await writeFile(join(cwd, 'inbox', `${day}.csv`), `${['id,day,page,changed', ...rows].join('\n')}\n`)
}
