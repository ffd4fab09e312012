import { describe, expect, test } from 'vitest'
import { cut, displayWidth, escapeForTerminal, escapeLines, layOut, showValue, wantsColors } from './text.ts'

describe('text for a terminal', () => {
  test('a value cannot reach the terminal as a command', () => {
    expect(escapeForTerminal('\u001b[2J\u0007\u009b31m\u0000')).toBe('\\x1b[2J\\x07\\x9b31m\\x00')
  })

  test('line breaks and tabs are written out', () => {
    expect(escapeForTerminal('a\r\nb\tc')).toBe('a\\r\\nb\\tc')
  })

  test('marks that turn the direction of writing, and invisible ones, are written out', () => {
    expect(escapeForTerminal('\u202egpj\u200b.\ufeff\u2028')).toBe('\\u202egpj\\u200b.\\ufeff\\u2028')
  })

  test('half of a surrogate pair is written out, a whole one is not', () => {
    expect(escapeForTerminal('\ud800 🧾')).toBe('\\ud800 🧾')
  })

  test('a message of several lines keeps its lines', () => {
    expect(escapeLines('one\n  two\u001b[0m')).toBe('one\n  two\\x1b[0m')
  })

  test('a long value is cut before it is escaped, never within an escape', () => {
    expect(showValue('\u0001\u0001\u0001', 2)).toBe('\\x01…')
    expect(cut('🧾🧾🧾', 2)).toBe('🧾…')
  })

  test('NULL, an empty text, the text NULL and blanks at the ends all look different', () => {
    expect([null, '', 'NULL', ' a'].map((value) => showValue(value))).toEqual([
      'NULL',
      '""',
      '"NULL"',
      '" a"',
    ])
  })

  test('columns line up with wide characters, combining marks and colours', () => {
    expect(displayWidth('注文 e\u0301 \u001b[32mx\u001b[39m')).toBe(8)
    const lines = layOut(
      [{ title: 'a' }, { title: 'n', align: 'right' }],
      [
        ['注文', '1'],
        ['x', '20'],
      ],
    )
    expect(lines).toEqual(['a      n', '注文   1', 'x     20'])
  })

  test('colours: NO_COLOR beats FORCE_COLOR, which beats the lack of a terminal', () => {
    expect(wantsColors({}, true)).toBe(true)
    expect(wantsColors({}, false)).toBe(false)
    expect(wantsColors({ TERM: 'dumb' }, true)).toBe(false)
    expect(wantsColors({ FORCE_COLOR: '1' }, false)).toBe(true)
    expect(wantsColors({ FORCE_COLOR: '0' }, true)).toBe(false)
    expect(wantsColors({ NO_COLOR: '1', FORCE_COLOR: '1' }, true)).toBe(false)
  })
})
