import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Source } from '../src/index.ts'
import { type DefinedPipeline, definePipeline, run } from '../src/index.ts'
import type { WriteStrategy } from '../src/model/write.ts'
import { csv } from '../src/sources/csv/index.ts'
import { json } from '../src/sources/json/index.ts'
import { parquet } from '../src/sources/parquet/index.ts'
import { type CasePlace, eachTarget, table } from './cases/harness.ts'

// Public data from the npm package vega-datasets (BSD-3-Clause), as it really is.
const folder = fileURLToPath(new URL('../node_modules/vega-datasets/data', import.meta.url))

interface RealFile {
  readonly name: string
  readonly source: Source
  readonly write: WriteStrategy
  readonly rows: number
  /** Looks at what arrived. */
  readonly look?: (place: CasePlace) => Promise<void>
}

const files: readonly RealFile[] = [
  {
    name: 'airports.csv by iata',
    source: csv({ files: 'airports.csv' }),
    write: { strategy: 'upsert', key: ['iata'] },
    rows: 3376,
    look: async (place) => {
      const rows = await table(place, 't', ['iata', 'name', 'latitude'])
      expect(rows).toContainEqual(['00M', 'Thigpen', expect.stringMatching(/^31\.953764720*$/)])
    },
  },
  {
    name: 'zipcodes.csv with its leading zeros',
    source: csv({ files: 'zipcodes.csv' }),
    write: { strategy: 'upsert', key: ['zip_code'] },
    rows: 42049,
    look: async (place) => {
      const rows = await table(place, 't', ['zip_code', 'city'])
      expect(rows.find(([code]) => code === '00501')).toEqual(['00501', 'Holtsville'])
    },
  },
  {
    name: 'earthquakes.json, nested, by id, newest by properties.updated',
    source: json({
      files: 'earthquakes.json',
      records: 'features',
      columns: { id: 'text', mag: 'numeric(6,3)', place: 'text', updated: 'bigint', geometry: 'jsonb' },
      fields: { mag: 'properties.mag', place: 'properties.place', updated: 'properties.updated' },
    }),
    write: { strategy: 'upsert', key: ['id'], newest: 'updated' },
    rows: 1707,
    look: async (place) => {
      const rows = await table(place, 't', ['id', 'updated'])
      expect(rows).toContainEqual(['ci37868143', '1517966996303'])
    },
  },
  {
    name: 'birdstrikes.csv as a multiset',
    source: csv({ files: 'birdstrikes.csv' }),
    write: { strategy: 'replace-table' },
    rows: 10000,
  },
  {
    name: 'sp500.csv by date, whose dates stay text',
    source: csv({ files: 'sp500.csv' }),
    write: { strategy: 'upsert', key: ['date'] },
    rows: 123,
    look: async (place) => {
      const rows = await table(place, 't', ['date', 'price'])
      expect(rows.find(([date]) => date === 'Jan 1 2000')?.[1]).toMatch(/^1394\.460*$/)
    },
  },
  {
    name: 'flights-3m.parquet as a multiset',
    source: parquet({ files: 'flights-3m.parquet' }),
    write: { strategy: 'replace-table' },
    rows: 3_000_000,
  },
]

function pipelineOf(file: RealFile, place: CasePlace): DefinedPipeline {
  return definePipeline({
    name: 'real',
    source: file.source,
    target: place.target,
    table: 't',
    write: file.write as never,
  })
}

eachTarget((_, create) => {
  for (const file of files) {
    test(`${file.name}: loaded twice, the second time untouched (G1, G2, G6)`, {
      timeout: 300_000,
    }, async () => {
      await using place = await create()
      const first = await run(pipelineOf(file, place), { cwd: folder })
      expect(first.counts).toMatchObject({ read: file.rows, inserted: file.rows, rejected: 0 })
      await file.look?.(place)
      const again = await run(pipelineOf(file, place), { cwd: folder })
      expect(again.counts).toMatchObject({
        read: file.rows,
        inserted: 0,
        updated: 0,
        unchanged: file.rows,
        deleted: 0,
      })
      expect(again.verdict).toBe('unchanged')
    })
  }
})
