import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readReplies } from '../../src/prove/http/replies.ts'
import { classesOf, type Proof, type ProveOptions } from '../../src/prove/prove.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { hasPsql, PATIENCE_MS, proveIt } from './support.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-between-'))
  await mkdir(join(folder, 'work'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const report = (proof: Proof) => terminalReport(proof, DEFAULT_FAIL_ON)
const classes = (proof: Proof) => [...new Set(proof.trials.flatMap((trial) => classesOf(trial)))].sort()

async function file(name: string, content: string): Promise<string> {
  await writeFile(join(folder, name), content)
  return join(folder, name)
}

async function proveScript(
  program: string,
  script: string,
  options: Partial<ProveOptions> = {},
): Promise<Proof> {
  const path = await file('job', script)
  return proveIt({
    command: [program, path],
    workFolder: join(folder, 'work'),
    passed: ['SHOP={http}'],
    // What is tried at points is tried elsewhere.
    kinds: [],
    ...options,
  })
}

const SEED =
  'create table source (id int, v int); insert into source values (1, 10), (2, 20); create table fact (id int primary key, v int);'

describe('between two clean runs', { timeout: PATIENCE_MS }, () => {
  const post = (path: string) =>
    `await fetch(process.env.SHOP + '${path}', { method: 'POST', headers: { 'idempotency-key': 'order-1' }, body: '1' })`

  test('requests that only their keys keep from being done twice are done twice when these are forgotten', async () => {
    const work = await mkdtemp(join(folder, 'requests-'))
    await writeFile(
      join(work, 'job.mjs'),
      `await import('node:fs').then((fs) => fs.writeFileSync('out', 'x'))\n${post('/charges')}`,
    )
    const options = { command: ['node', 'job.mjs'], workFolder: work, passed: ['SHOP={http}'], kinds: [] }
    const proof = await proveIt(options)
    expect(proof.verdict, report(proof)).toBe('survives')
    expect(classes(proof), report(proof)).toEqual(['keys forgotten'])
    expect(report(proof)).toContain('1 request POST /charges 1')
    const strict = await proveIt({ ...options, failOn: [...DEFAULT_FAIL_ON, 'keys forgotten'] })
    expect(strict.verdict).toBe('convicted')
    const replay = await proveIt({ ...options, replay: proof.trials.at(-1)?.n ?? 0 })
    expect(replay.trials.map(({ between }) => between)).toEqual(['nothing', 'keys forgotten'])
  })

  test('a request that is refused has no effect, and prepared answers come from a file', async () => {
    const replies = await file(
      'replies.json',
      '[{"path": "/charges", "status": 402, "body": {"error": "card"}}, {"method": "GET", "path": "/rates", "body": [1]}]',
    )
    const work = await mkdtemp(join(folder, 'replies-'))
    await writeFile(
      join(work, 'job.mjs'),
      `import { writeFileSync } from 'node:fs'
const answer = ${post('/charges')}
const rates = await fetch(process.env.SHOP + '/rates')
writeFileSync('out', answer.status + await answer.text() + await rates.text())
if (answer.status !== 402 || (await (await fetch(process.env.SHOP + '/rates')).text()) !== '[1]') process.exit(1)`,
    )
    const proof = await proveIt({
      command: ['node', 'job.mjs'],
      workFolder: work,
      passed: ['SHOP={http}'],
      kinds: [],
      replies: await readReplies(replies),
      onKept: null,
    })
    expect(proof.verdict, report(proof)).toBe('survives')
    // Two clean runs and a second one were refused: nothing was done, so nothing depends on a key.
    expect(classes(proof)).toEqual([])
    expect(proof.trials.length).toBe(1)
  })

  test('replies that are none are refused with their place', async () => {
    await expect(readReplies(await file('bad.json', '[{"status": 200}]'))).rejects.toThrow(
      'entry 1: it has no path',
    )
    await expect(readReplies(await file('bad.json', '{'))).rejects.toThrow('are not JSON')
    await expect(readReplies(join(folder, 'absent.json'))).rejects.toThrow('Cannot read the replies')
  })

  describe.skipIf(!hasPsql)('a source that was corrected (needs psql)', () => {
    const load = (conflict: string) =>
      `psql -qc "insert into fact select * from source on conflict (id) do ${conflict}"`
    const change = 'update source set v = 99 where id = 2; insert into source values (3, 30);'

    test('is missed by a run that leaves alone what is there', async () => {
      const options = {
        filling: { kind: 'seed', file: await file('seed.sql', SEED) },
        change: await file('change.sql', change),
      } as const
      const proof = await proveScript('sh', load('nothing'), options)
      expect(proof.verdict, report(proof)).toBe('convicted')
      expect(report(proof)).toContain('run, the source changed, and run again')
      expect(report(proof)).toMatch(/id 2 +v +99 +20/)
      const cured = await proveScript('sh', load('update set v = excluded.v'), options)
      expect(cured.verdict, report(cured)).toBe('survives')
      expect(cured.trials.length).toBe(2)
    })

    test('may be a folder of files; one that changes nothing proves nothing', async () => {
      const work = await mkdtemp(join(folder, 'files-'))
      await writeFile(join(work, 'in.csv'), '1\n')
      await writeFile(join(work, 'job.sh'), '[ -f out.csv ] || cp in.csv out.csv')
      const corrected = await mkdtemp(join(folder, 'change-'))
      await writeFile(join(corrected, 'in.csv'), '2\n')
      const options = { command: ['sh', 'job.sh'], workFolder: work, kinds: [], change: corrected }
      const proof = await proveIt(options)
      expect(proof.verdict, report(proof)).toBe('convicted')
      await expect(proveIt({ ...options, change: work })).rejects.toThrow('makes no difference')
    })
  })
})
