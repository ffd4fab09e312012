import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readFileFacts } from '../../src/check/read-file.ts'
import { RULES } from '../../src/check/rules/index.ts'
import { checkFiles } from './support.ts'

const EXAMPLES = RULES.flatMap((rule) => [...rule.bad, ...rule.fine])
/** What breaks a text in the middle: quotes, brackets, template marks, line ends, other texts. */
const SHARDS = [
  "'",
  '"',
  '`',
  '(',
  ')',
  '{{',
  '}}',
  '{%',
  '%}',
  '$$',
  '/*',
  '--',
  '\n',
  ';',
  '${',
  '"""',
  '\\',
  'select ',
  'begin',
  '\0',
  '😀',
]

test('no damaged file makes a rule throw, and every finding lies in its file', async () => {
  const damaged = fc.record({
    example: fc.constantFrom(...EXAMPLES),
    other: fc.constantFrom(...EXAMPLES),
    cut: fc.nat(400),
    length: fc.nat(60),
    shards: fc.array(fc.tuple(fc.nat(400), fc.constantFrom(...SHARDS)), { maxLength: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(damaged, async ({ example, other, cut, length, shards }) => {
      let text = example.code.slice(0, cut) + example.code.slice(cut + length)
      for (const [at, shard] of shards) text = text.slice(0, at) + shard + text.slice(at)
      text += other.code.slice(cut % 50)
      const { findings, notRead } = await checkFiles({ [example.path]: text, ...example.beside }, RULES)
      expect(notRead).toEqual([])
      const lines = text.split('\n').length
      for (const finding of findings.filter((one) => one.path === example.path)) {
        expect(finding.from.line).toBeGreaterThanOrEqual(1)
        expect(finding.to.line).toBeLessThanOrEqual(lines)
      }
    }),
    { numRuns: 120 },
  )
}, 120_000)

/** Statements that every rule has something to say of, over and over. */
const LARGE: Readonly<Record<string, (round: number) => string>> = {
  'etl/a.sql': (round) =>
    `delete from t${round} where a = 1;\ninsert into t${round} select row_number() over () as id, now() from s;\nupdate u set n = n + 1 where k = ${round};\n`,
  'dags/a.py': (round) =>
    `def f${round}(cur):\n    cur.execute("insert into t${round % 9} select * from s")\n    df.to_sql("x", e, if_exists="append")\n    requests.post("http://x", json={"now": datetime.now()})\n`,
  'dags/b.py': (round) =>
    `${round === 0 ? 'import psycopg2\ndef f(cur):\n' : ''}    cur.execute("insert into t${round % 9} select * from s")\n    cur.execute("update t set n = n + 1")\n`,
  'jobs/a.ts': (round) =>
    `async function f${round}(c) { await c.query("insert into t select 1"); await prisma.order.createMany({ data: [] }); await fetch("https://hooks.slack.com/x", { method: "POST" }) }\n`,
  'jobs/a.sh': (round) => `psql -c "insert into t${round} select 1"\necho x >> out.csv\n`,
  'dags/deletes.py': (round) =>
    `${round === 0 ? 'import psycopg2\ndef f(cur):\n' : ''}    cur.execute("DELETE FROM t_${round}")\n`,
  'etl/inserts.sql': (round) =>
    `-- ${'what the rows are '.repeat(80)}\ninsert into t${round} select * from s;\n`,
  'etl/routine.sql': (round) =>
    `${round === 0 ? 'create function f() returns void language plpgsql as $$ begin if\n' : ''}-- ${'if '.repeat(300)}\ninsert into t${round} select * from s;\n`,
  'models/a.sql': (round) =>
    `select * from x${round} {% if is_incremental() %} where a > (select max(a) from {{ this }}) {% endif %} union all\n`,
}

test.each(Object.entries(LARGE))(
  'four times the file takes no more than nine times as long: %s',
  async (path, round) => {
    const processorTime = async (rounds: number): Promise<number> => {
      const text = Array.from({ length: rounds }, (_, index) => round(index)).join('')
      const before = process.cpuUsage()
      await checkFiles({ [path]: text }, RULES)
      const used = process.cpuUsage(before)
      return used.user + used.system
    }
    await processorTime(50)
    const ratios: number[] = []
    // The better of two: what else the machine does can only add.
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const small = await processorTime(200)
      ratios.push((await processorTime(800)) / small)
    }
    expect(Math.min(...ratios)).toBeLessThan(9)
  },
  240_000,
)

test('of a bundle nothing is searched', async () => {
  const bundle = 'a=b.a;'.repeat(200_000)
  const before = process.cpuUsage()
  const { host } = await readFileFacts('dist/bundle.js', bundle, { kind: 'unknown', dbt: [] })
  const { user, system } = process.cpuUsage(before)
  expect(host).toBeUndefined()
  expect((user + system) / 1000).toBeLessThan(200)
})
