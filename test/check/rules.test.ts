import { describe, expect, test } from 'vitest'
import { RULES } from '../../src/check/rules/index.ts'
import { checkFiles } from './support.ts'

describe.each(RULES.map((rule) => [rule.id, rule] as const))('%s', (_, rule) => {
  test.each(rule.bad.map((example) => [example.why, example] as const))(
    'speaks: %s',
    async (_why, example) => {
      const { findings } = await checkFiles({ [example.path]: example.code, ...example.beside }, [rule])
      const here = findings.filter((finding) => finding.path === example.path)
      expect(here.map((finding) => finding.from.line)).toEqual(example.lines)
    },
  )
  test.each(rule.fine.map((example) => [example.why, example] as const))(
    'is silent: %s',
    async (_why, example) => {
      const { findings, notRead } = await checkFiles({ [example.path]: example.code, ...example.beside }, [
        rule,
      ])
      expect(notRead).toEqual([])
      const loud = findings.filter((finding) => finding.path === example.path && finding.severity !== 'info')
      expect(loud.map((finding) => `${finding.from.line}: ${finding.message}`)).toEqual([])
    },
  )
  test('has a bad example and one that only looks like it', () => {
    expect(rule.bad.length).toBeGreaterThan(0)
    expect(rule.fine.length).toBeGreaterThan(0)
  })
})
