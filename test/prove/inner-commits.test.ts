import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Proof, ProveOptions } from '../../src/prove/prove.ts'
import { findPrograms } from '../../src/prove/sandbox/programs.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { embeddedBinaries } from '../support/postgres-binaries.ts'
import { hasPsql, PATIENCE_MS, proveIt } from './support.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-inner-'))
  await mkdir(join(folder, 'work'))
  return () => rm(folder, { recursive: true, force: true })
})

/** `load()` commits row by row and stops where there is any row: interrupted inside, it never makes up for it. */
const SEED = `
create table t (n int);
create procedure load() language plpgsql as $$
begin
  if exists (select from t) then return; end if;
  for n in 1..5 loop insert into t values (n); commit; end loop;
end $$;
create procedure reload() language plpgsql as $$
begin
  delete from t; commit;
  for n in 1..3 loop insert into t values (n); commit; end loop;
end $$;`

async function proveSql(sql: string, options: Partial<ProveOptions> = {}): Promise<Proof> {
  const seed = join(folder, 'seed.sql')
  await writeFile(seed, SEED)
  await writeFile(join(folder, 'work', 'job.sh'), `psql -X -v ON_ERROR_STOP=1 -qc "${sql}"\n`)
  return proveIt({
    command: ['sh', 'job.sh'],
    workFolder: join(folder, 'work'),
    filling: { kind: 'seed', file: seed },
    kinds: ['kill after'],
    isExhaustive: true,
    jobs: 1,
    ...options,
  })
}

const lostIn = (proof: Proof) =>
  proof.trials
    .filter(({ planned }) => planned?.fault.point.kind === 'inner commit')
    .map(({ differences }) => differences.map((one) => `${one.class} ${one.count}`).join())

describe.skipIf(!hasPsql)('commits inside of one message (they need psql)', { timeout: PATIENCE_MS }, () => {
  test.each([
    ['a CALL', 'call load()'],
    [
      'a DO block',
      "do 'begin if exists (select from t) then return; end if; for n in 1..5 loop insert into t values (n); commit; end loop; end'",
    ],
    [
      'several statements in one message',
      [
        'select 1',
        ...[1, 2, 3, 4, 5].map(
          (n) => `begin; insert into t select ${n} where not exists (select from t where n >= ${n}); commit`,
        ),
      ].join('; '),
    ],
  ])('%s is interrupted after each of its commits, exactly', async (_, sql) => {
    const proof = await proveSql(sql)
    const report = terminalReport(proof, DEFAULT_FAIL_ON)
    expect(
      proof.clean.points.map(({ kind }) => kind),
      report,
    ).toEqual([...Array<string>(4).fill('inner commit'), 'commit'])
    expect(proof.counts.notReached, report).toBe(0)
    const inside = proof.trials.filter(({ planned }) => planned?.fault.point.kind === 'inner commit')
    expect(
      inside.map(({ gaps }) => gaps.map(({ visible, of }) => `${visible} of ${of}`).join()),
      report,
    ).toEqual(['1 of 5', '2 of 5', '3 of 5', '4 of 5'])
    expect(proof.notTried.join(), report).not.toContain('CALL')
  })

  test.each(['system', 'npm'])(
    'a procedure that is done when it has begun is convicted by nothing else (%s)',
    async (kind) => {
      const programs = await findPrograms(process.env.PATH ?? '')
      const newest = kind === 'npm' ? { ...programs, ...(await embeddedBinaries()) } : programs
      const proof = await proveSql('call load()', { programs: newest })
      const report = terminalReport(proof, DEFAULT_FAIL_ON)
      expect(proof.verdict, report).toBe('convicted')
      expect(lostIn(proof), report).toEqual(['lost 4', 'lost 3', 'lost 2', 'lost 1'])
      expect(report).toContain('killed after inner commit 1 of 5')
      expect(report).toContain('commit 2 inside of: call load ()')
    },
  )

  test('a procedure that starts again from nothing survives, also when only its session ends', async () => {
    const proof = await proveSql('call reload()', { kinds: ['kill after', 'cut after'] })
    const report = terminalReport(proof, DEFAULT_FAIL_ON)
    expect(proof.verdict, report).toBe('survives')
    expect(
      proof.again.map(({ kind }) => kind),
      report,
    ).toEqual([...Array<string>(3).fill('inner commit'), 'commit'])
    const ended = proof.trials.filter(
      ({ planned }) => planned?.fault.point.kind === 'inner commit' && planned.fault.kind === 'cut after',
    )
    expect(ended.map(({ first }) => first.output).join(), report).toContain('terminating connection')
  })

  test('savepoints and exception blocks use transaction numbers, and are no commits', async () => {
    const proof = await proveSql(
      "do 'begin delete from t; for n in 1..5 loop begin insert into t values (n); exception when others then null; end; end loop; end'",
    )
    expect(proof.clean.points.map(({ kind, transactions }) => [kind, transactions > 1])).toEqual([
      ['commit', true],
    ])
  })

  test('a job that sets synchronous_commit itself does not wait for ever', async () => {
    const proof = await proveSql('set synchronous_commit to on; delete from t; insert into t values (1)', {
      timeLimitMs: 20_000,
    })
    expect(proof.verdict).toBe('survives')
  })
})
