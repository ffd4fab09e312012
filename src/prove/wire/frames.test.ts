import { expect, test } from 'vitest'
import { errorResponse, framer, message, sqlStateOf } from './frames.ts'

const stream = Buffer.concat([
  message('d', Buffer.alloc(10, 1)),
  message('Q', 'select 1'),
  message('d', Buffer.alloc(3, 2)),
  message('d', Buffer.alloc(0)),
  message('S'),
])

test('whatever the chunks, wanted messages come whole and nothing else is lost', () => {
  for (let size = 1; size <= stream.length; size++) {
    const frame = framer('QS')
    const pieces = []
    for (let at = 0; at < stream.length; at += size) pieces.push(...frame(stream.subarray(at, at + size)))
    expect(Buffer.concat(pieces.map((piece) => piece.bytes))).toEqual(stream)
    const wanted = pieces.filter((piece) => piece.type !== '')
    expect(wanted.map((piece) => piece.type)).toEqual(['Q', 'S'])
    expect(wanted[0]?.bytes).toEqual(message('Q', 'select 1'))
  }
})

test('the code of an error is read back', () => {
  expect(sqlStateOf(errorResponse('ERROR', '40001', 'no'))).toBe('40001')
})
