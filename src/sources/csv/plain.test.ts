import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type PlainRecords, plainCounter } from './plain.ts'
import { type RecordShape, STOPPED } from './records.ts'

const SHAPE: RecordShape = {
  delimiters: [Buffer.from(',')],
  quote: 0x22,
  quoteEscape: 0x22,
  lineEnd: 'lf',
  skip: 0,
  comment: null,
}

/** Gives the bytes as a reader does: in blocks of these sizes, what was not taken before the next. */
function count(bytes: Buffer, sizes: readonly number[], columns: number): PlainRecords | null {
  const counter = plainCounter(SHAPE, columns, true, false)
  let taken = 0
  let end = 0
  for (let i = 0; end < bytes.length; i++) {
    end = Math.min(bytes.length, end + (sizes[i % sizes.length] ?? 1))
    const used = counter.take(Buffer.from(bytes.subarray(taken, end)), taken, false)
    if (used === STOPPED) return counter.result()
    taken += used
  }
  counter.take(Buffer.from(bytes.subarray(taken)), taken, true)
  return counter.result()
}

const pieces = fc
  .array(
    fc.oneof(
      {
        arbitrary: fc.constantFrom('a', 'bc', ',', '\n', '\n"x",', ',"y""z"\n', ',"p,q\nr,s,t",'),
        weight: 30,
      },
      { arbitrary: fc.constantFrom('"', ' ', '\r', '\0'), weight: 1 },
    ),
    { maxLength: 25 },
  )
  .map((texts) => `h,i\n${texts.join('')}`)

test('where a file is cut into blocks makes no difference', () => {
  let counted = 0
  fc.assert(
    fc.property(pieces, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (text, sizes) => {
      const bytes = Buffer.from(text)
      const whole = count(bytes, [bytes.length], 2)
      if (whole !== null && whole.records > 1) counted++
      expect(count(bytes, sizes, 2)).toEqual(whole)
    }),
    { numRuns: 2000 },
  )
  expect(counted).toBeGreaterThan(200)
})

test('records, their length and what looks like one inside a value', () => {
  expect(count(Buffer.from('a,b\n1,2\n\n4,"x\ny"'), [4], 2)).toEqual({
    records: 2,
    longest: 7,
    splittable: true,
  })
  expect(count(Buffer.from('a,b\n"x\n1,2\n",4\n'), [4], 2)).toEqual({
    records: 1,
    longest: 10,
    splittable: false,
  })
})

test.each([
  ['a CR', 'a,b\n1,2\r\n'],
  ['a NUL', 'a,b\n1,\0\n'],
  ['spaces before a quote', 'a,b\n1, "2"\n'],
  ['spaces after a quote', 'a,b\n1,"2" \n'],
  ['text after a quote', 'a,b\n1,"2"3\n'],
  ['a quote that is never closed', 'a,b\n1,"2\n'],
  ['nothing at all', ''],
])('%s needs a closer look', (_, text) => {
  expect(count(Buffer.from(text), [3], 2)).toBeNull()
})
