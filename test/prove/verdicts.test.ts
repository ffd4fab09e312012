import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { beforeEach, describe, expect, test } from 'vitest'
import { type ProveCommandOptions, type ProveCommandResult, proveCommand } from '../../src/prove/command.ts'
import { openFence } from '../../src/prove/sandbox/fence.ts'
import { hasPsql, PATIENCE_MS } from './support.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-verdicts-'))
  await mkdir(join(folder, 'work'))
  return () => rm(folder, { recursive: true, force: true })
})

interface Told {
  readonly progress: string[]
  readonly result: ProveCommandResult
}

/** The command as `stet prove` runs it. `onProgress` may interrupt it, as Ctrl-C does. */
async function proveScript(
  script: string,
  options: ProveCommandOptions,
  onProgress: (text: string, interrupt: AbortController) => void = () => undefined,
): Promise<Told> {
  const fence = await openFence()
  const isFenced = !('refused' in fence)
  if (isFenced) await fence[Symbol.asyncDispose]()
  await writeFile(join(folder, 'seed.sql'), 'create table t (a int); create table done (a int);')
  const progress: string[] = []
  const interrupt = new AbortController()
  const result = await proveCommand(
    ['sh', '-c', script],
    { seed: 'seed.sql', work: 'work', kinds: ['crash'], allowNetwork: !isFenced, ...options },
    {
      environment: process.env,
      folder,
      onProgress: (text) => {
        progress.push(text)
        onProgress(text, interrupt)
      },
      ask: null,
      signal: interrupt.signal,
    },
  )
  return { progress, result }
}

const ask = (sql: string) => `psql -XAtqv ON_ERROR_STOP=1 -c "${sql}"`

/** Two commits: the rows, then the mark. */
const MARK_AFTER = `[ "$(${ask('select count(*) from done')})" = 0 ] || exit 0; ${ask('insert into t values (1)')} && ${ask('insert into done values (1)')}`
/** Two commits: what is between them is seen by readers, and the end is always the same. */
const TORN = `${ask('delete from t')} && ${ask('insert into t values (1)')}`

const trialsOf = ({ result }: Told) => result.proof.trials.map(({ n }) => n)

describe.skipIf(!hasPsql)('verdicts (they need psql)', { timeout: PATIENCE_MS }, () => {
  test('survives says how much was tried, and what it was kept from', async () => {
    const { progress, result } = await proveScript(TORN, {})
    const report = result.render('text')
    expect(result.exitStatus, report).toBe(0)
    expect(report).toMatch(/^ {2}network +(closed: the command could reach the sandbox|open: )/m)
    // The plain second run; a kill after the one commit of a first load and the two of a repeated one (there is something
    // to delete then), and before the first of each.
    expect(report).toMatch(/^ {2}SURVIVES 6 trials \(3 of 3 points\)$/m)
    expect(progress.slice(0, 3)).toEqual(['making the sandbox', 'two clean runs', 'running it a second time'])
    expect(progress[3]).toMatch(/^\d+ trials, about \d+ s$/)
    expect(progress.at(-1)).toMatch(/^trial (\d+) of \1$/)
  })

  test('what is only said convicts as well with --fail-on, and nothing else stops convicting', async () => {
    const { result } = await proveScript(TORN, { failOn: ['overlap,gap', 'touched'] })
    const report = result.render('text')
    expect(result.exitStatus, report).toBe(1)
    expect(report).toContain('CONVICTED  for what --fail-on names')
    const doubled = await proveScript(MARK_AFTER, { failOn: ['gap'] })
    expect(doubled.result.exitStatus, doubled.result.render('text')).toBe(1)
    expect(doubled.result.render('text')).toMatch(/CONVICTED$/)
    await expect(proveScript(TORN, { failOn: ['gap,fine'] })).rejects.toMatchObject({
      message: expect.stringContaining('Unknown class "fine"'),
    })
  })

  test('rows rewritten although equal convict with --fail-on touched', async () => {
    const upsert = ask('delete from t; insert into t values (1)')
    const { result } = await proveScript(upsert, { failOn: ['touched'], kinds: ['twice'] })
    expect(result.exitStatus, result.render('text')).toBe(1)
    expect(result.render('junit')).toContain('message="touched">rewritten although equal: t 1 of 1 rows')
    expect(result.render('github')).toMatch(/^::error .*touched::rewritten although equal: t 1 of 1 rows$/m)
    expect((await proveScript(upsert, { kinds: ['twice'] })).result.exitStatus).toBe(0)
  })

  test('a trial is repeated alone by its number, and its database kept to look at', async () => {
    const whole = await proveScript(MARK_AFTER, {})
    const convicting = whole.result.proof.trials.filter((trial) => trial.differences.length > 0)
    const n = convicting[0]?.n ?? 0
    expect(whole.result.render('text')).toContain(`again: stet prove --replay ${n} …   look: add --keep`)

    const rows: unknown[] = []
    const look = async (text: string, interrupt: AbortController) => {
      const [, host, port, database] =
        /^kept until Ctrl-C: psql -h (\S+) -p (\d+) -U postgres (\S+)$/.exec(text) ?? []
      if (host === undefined) return
      const client = new pg.Client({ host, port: Number(port), user: 'postgres', database })
      await client.connect()
      rows.push(...(await client.query('select a from t')).rows)
      await client.end()
      interrupt.abort(new Error('interrupted'))
    }
    const replayed = await proveScript(
      MARK_AFTER,
      { replay: n, keep: true },
      (text, interrupt) => void look(text, interrupt),
    )
    expect(trialsOf(replayed)).toEqual([1, n])
    expect(replayed.result.exitStatus).toBe(1)
    expect(replayed.result.proof.trials.at(-1)?.differences).toEqual(convicting[0]?.differences)
    expect(rows).toEqual([{ a: 1 }, { a: 1 }])

    await expect(proveScript(MARK_AFTER, { replay: 99 })).rejects.toMatchObject({
      code: 'STET_USAGE',
      message: 'This proof has no trial 99',
    })
  })

  test('--files limits what counts, and --all goes on after a plain second run has convicted', async () => {
    const job = `${ask('delete from t; insert into t values (1)')} && echo x >> log && mkdir -p out && cp log out/log && echo y > out/log`
    const limited = await proveScript(job, { files: ['out'], kinds: ['twice'] })
    expect(limited.result.exitStatus, limited.result.render('text')).toBe(0)
    const whole = await proveScript(job, { trace: false })
    expect(whole.result.exitStatus, whole.result.render('text')).toBe(1)
    expect(trialsOf(whole)).toEqual([1])
    expect(whole.progress.at(-1)).toBe('running it a second time')
    expect(whole.result.render('text')).toContain('DOUBLED  1 line in log')
    expect(whole.result.render('text')).toContain(
      'faults (a plain second run differs already; --all tries them)',
    )
    expect(trialsOf(await proveScript(job, { all: true, trace: false })).length).toBeGreaterThan(1)
  })

  test('a place that is not met again is not tried, and too many of them are no verdict', async () => {
    const count = join(folder, 'count')
    // From its fourth run on (two clean ones and the plain second one come first) it goes another way to the same end.
    const script = `echo >> ${count}; if [ $(wc -l < ${count}) -gt 3 ]; then ${ask('begin; delete from t; insert into t values (1); commit')}; else ${TORN}; fi`
    const { result } = await proveScript(script, { jobs: 1 })
    const report = result.render('text')
    expect(result.exitStatus, report).toBe(3)
    expect(result.proof.verdict).toBe('inconclusive')
    expect(result.proof.counts).toMatchObject({ planned: 5, notReached: 5, pointsTried: 0 })
    expect(report).toContain('INCONCLUSIVE  too many places were not met again')
    expect(result.render('junit')).toContain('skipped="5"')
  })
})
