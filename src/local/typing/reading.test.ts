import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { anyText, typedTexts } from '../../../test/support/typed-texts.ts'
import { formatColumnType, parseColumnType } from '../../model/column-type.ts'
import type { ColumnType } from '../../model/columns.ts'
import { readText } from './reading.ts'

/** Casts a text and gives the value's text, or null where the cast fails. */
const CAST_FUNCTION = `
  create function cast_of(value text, type text) returns text language plpgsql as $$
  declare answer text;
  begin
    execute format('select $1::%s::text', type) into answer using value;
    return answer;
  exception when others then return null;
  end $$`

describe.each(postgresServers())('$name', ({ url }) => {
  test('gives back each value that we read in the very form in which we hold it', async () => {
    await using db = await connect(await freshDatabase(url))
    await db.client.query(CAST_FUNCTION)
    await db.client.query(`set TimeZone = 'UTC'`)
    for (const { type } of typedTexts.filter((entry) => entry.type.kind !== 'other')) {
      const name = formatColumnType(type)
      await fc.assert(
        fc.asyncProperty(fc.array(anyText(type), { minLength: 60, maxLength: 60 }), async (texts) => {
          const sendable = texts.filter((text) => !text.includes('\0'))
          const { rows } = await db.client.query<{ answer: string | null }>(
            'select cast_of(t, $2) as answer from unnest($1::text[]) with ordinality as x(t, n) order by n',
            [sendable, castOf(type)],
          )
          for (const [n, text] of sendable.entries()) {
            const reading = readText(type, text)
            if ('reason' in reading) continue
            const answer = rows[n]?.answer ?? null
            const theirs = answer === null ? null : formOf(name, answer)
            expect({ name, text, value: theirs }).toEqual({ name, text, value: formOf(name, reading.text) })
          }
        }),
        { numRuns: 8 },
      )
    }
  })

  test('would have rounded, cut or dropped what we refuse, or refuses it as well', async () => {
    await using db = await connect(await freshDatabase(url))
    await db.client.query(CAST_FUNCTION)
    const cases: [string, string, string | null][] = [
      ['numeric(12,2)', '1.005', '1.01'],
      ['numeric(12,2)', 'Infinity', null],
      ['numeric(5,-2)', '12345', '12300'],
      ['timestamp', '2024-01-01 10:00:00.1234567', '2024-01-01 10:00:00.123457'],
      ['timestamp', '2024-01-01 10:00:00+02', '2024-01-01 10:00:00'],
      ['timestamp', '2024-01-01 10:00:60', '2024-01-01 10:01:00'],
      ['date', '2024-02-29 10:00:00', '2024-02-29'],
      ['time', '10:00:00+02', '10:00:00'],
      ['varchar(3)', 'abcd', 'abc'],
      ['double precision', '1e400', null],
      ['double precision', '1e-400', null],
      ['date', '0000-01-01', null],
      ['date', '4714-11-23 BC', null],
      ['timestamptz', '2024-01-01 10:00:00+16:00', null],
      ['numeric', '1e131072', null],
      ['numeric', '1e-16384', null],
      ['jsonb', '"\\u0000"', null],
      ['jsonb', '"\\ud800"', null],
    ]
    for (const [type, text, theirs] of cases) {
      expect(readText(parseColumnType(type), text)).toHaveProperty('reason')
      const { rows } = await db.client.query('select cast_of($1, $2) as answer', [text, type])
      expect({ type, text, answer: rows[0]?.answer }).toEqual({ type, text, answer: theirs })
    }
  })

  test('holds the greatest and the least of what we take', async () => {
    await using db = await connect(await freshDatabase(url))
    await db.client.query(CAST_FUNCTION)
    await db.client.query(`set TimeZone = 'UTC'`)
    const cases: [string, string][] = [
      ['numeric', '1e131071'],
      ['numeric', '1e-16383'],
      ['date', '4714-11-24 BC'],
      ['date', '5874897-12-31'],
      ['timestamptz', '4714-11-24 00:00:00+00 BC'],
      ['timestamptz', '294276-12-31 23:59:59.999999+00'],
      ['timestamptz', '2024-01-01 10:00:00+15:59:59'],
      ['double precision', '4.9406564584124654e-324'],
      ['real', '3.4028235677973362e38'],
      ['numeric(2,5)', '0.00099'],
      ['numeric(5,-2)', '9999900'],
    ]
    for (const [type, text] of cases) {
      const reading = readText(parseColumnType(type), text)
      const { rows } = await db.client.query('select cast_of($1, $2) as answer', [text, type])
      const ours = 'text' in reading ? formOf(type, reading.text) : reading.reason
      expect({ type, text, answer: formOf(type, String(rows[0]?.answer)) }).toEqual({
        type,
        text,
        answer: ours,
      })
    }
  })
})

/** Where we take what PostgreSQL does not: an integer written `1.0`, and JSON in jsonb's form whatever its type. */
function castOf(type: ColumnType): string {
  switch (type.kind) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      return `numeric::${type.kind}`
    case 'json':
      return 'jsonb'
    default:
      return formatColumnType(type)
  }
}

/** What the type itself makes no difference of: how a float is written, and the filling of a char(n). */
function formOf(type: string, text: string): string {
  const parsed = parseColumnType(type)
  if (parsed.kind === 'char') return text.replace(/ +$/, '')
  if (parsed.kind !== 'real' && parsed.kind !== 'double') return text
  const reading = readText(parsed, text)
  return 'text' in reading ? reading.text : `unreadable: ${text}`
}
