import { describe, expect, test } from 'vitest'
import { csv, tsv } from '../src/sources/csv/index.ts'
import { json } from '../src/sources/json/index.ts'
import { parquet } from '../src/sources/parquet/index.ts'
import { postgres as postgresQuery } from '../src/sources/postgres/index.ts'
import { rows } from '../src/sources/rows/index.ts'
import { duckdb } from '../src/targets/duckdb/index.ts'
import { postgres } from '../src/targets/postgres/index.ts'

// A pipeline file is not type-checked when it runs: `delimeter: ';'` would be read with the delimiter that is guessed.
describe('an option that does not exist is refused when the pipeline is made', () => {
  test.each([
    ['csv', () => csv({ files: 'a.csv', delimeter: ';' } as never), 'delimeter', 'delimiter'],
    ['tsv', () => tsv({ files: 'a.tsv', column: {} } as never), 'column', 'columns'],
    ['json', () => json({ files: 'a.json', record: 'features' } as never), 'record', 'records'],
    ['parquet', () => parquet({ file: 'a.parquet' } as never), 'file', 'files'],
    ['postgres', () => postgresQuery({ url: 'x', query: 'y', schema: 'z' } as never), 'schema', 'query'],
    ['rows', () => rows({ columns: { a: 'text' }, row: () => [] } as never), 'row', 'rows'],
    ['duckdb', () => duckdb({ path: 'a.duckdb' } as never), 'path', 'file'],
    ['postgres', () => postgres({ uri: 'postgres://x' } as never), 'uri', 'url'],
    ['query', () => postgres().query('select 1', { types: {} } as never), 'types', 'columns'],
  ])('%s', (taker, make, option, known) => {
    expect(make).toThrow(
      expect.objectContaining({
        code: 'STET_CONFIG',
        message: `${taker} has no option ${option}`,
        hint: expect.stringContaining(known),
      }),
    )
  })

  test.each([
    ['csv', csv],
    ['tsv', tsv],
    ['json', json],
    ['parquet', parquet],
  ])('%s without files, and without options', (taker, source) => {
    expect(() => source({} as never)).toThrow(`${taker} names no files`)
    expect(() => source({ files: [] })).toThrow(`${taker} names no files`)
    expect(() => source(undefined as never)).toThrow(`${taker} takes an object of options`)
  })
})
