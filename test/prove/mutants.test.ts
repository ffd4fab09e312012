// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are pieces of source text
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FaultKind } from '../../src/prove/plan/trials.ts'
import type { prove } from '../../src/prove/prove.ts'
import { hasPsql, PATIENCE_MS, proveIt } from './support.ts'

const source = fileURLToPath(new URL('../../src', import.meta.url))
const here = fileURLToPath(new URL('.', import.meta.url))

/** A defect somebody could build into the prover, and a command that only the prover without it convicts. */
interface Mutant {
  readonly defect: string
  readonly file: string
  readonly from: string
  readonly to: string
  readonly seed: string
  readonly command: string
  /** No faults are tried where the plain second run shows it. */
  readonly kinds: readonly FaultKind[]
  readonly ignore?: readonly string[]
}

const MUTANTS: readonly Mutant[] = [
  {
    defect: 'a fingerprint by XOR, in which two equal rows cancel each other out',
    file: 'prove/state/fingerprint.ts',
    from: 'sum(${hashOfRow(names, 1)}), sum(${hashOfRow(names, 2)})',
    to: 'bit_xor(${hashOfRow(names, 1)}), bit_xor(${hashOfRow(names, 2)})',
    kinds: [],
    seed: 'create table t (a int); insert into t values (5); create table done (a int)',
    command:
      "[ $(psql -Atc 'select count(*) from done') = 0 ] && psql -qc 'insert into done values (1)' || psql -qc 'insert into t values (1), (1)'",
  },
  {
    defect: 'a connection cut before the commit instead of after it',
    file: 'prove/arm.ts',
    from: "'cut after':\n      when(arm({ cut: 'after' })",
    to: "'cut after':\n      when(arm({ cut: 'before' })",
    kinds: ['cut after'],
    seed: 'create table t (a int); create table done (a int)',
    command:
      "[ -f mark ] || for n in 1 2 3; do psql -qc 'insert into t values (1)' && break; done; touch mark",
  },
  {
    defect: 'a column that varies from run to run hides the rows of its table',
    file: 'prove/state/ignore.ts',
    from: 'table: (name) => matches(name)',
    to: 'table: (name) => matches(name) || varying.some((column) => column.startsWith(`${name}.`))',
    kinds: [],
    seed: 'create table t (a int, at timestamptz default clock_timestamp()); create table u (k int primary key)',
    command: "psql -qc 'insert into t (a) values (1); insert into u values (1) on conflict do nothing'",
  },
  {
    defect:
      'a memory of states that forgets what does not count for the verdict, and yet tells a rerun what to do',
    file: 'prove/trial.ts',
    from: 'state.memory',
    to: 'state.digest',
    kinds: ['kill after'],
    ignore: ['done'],
    seed: 'create table t (a int); create table done (a int)',
    // A crash after the mark is one that a state without it has been seen to mend.
    command:
      "[ $(psql -Atc 'select count(*) from done') = 0 ] || exit 0; psql -qc 'insert into done values (1)'; psql -qc 'insert into t values (1)'",
  },
  {
    defect: 'a memory of states that does not ask whether the run claimed success',
    file: 'prove/trial.ts',
    from: 'if (hasSucceeded) {',
    to: 'if (hasSucceeded && known === undefined) {',
    kinds: ['error'],
    seed: 'create table t (a int primary key)',
    command: "psql -qc 'insert into t values (1) on conflict do nothing' || true",
  },
]

describe.skipIf(!hasPsql)('the judge is judged (it needs psql)', { timeout: PATIENCE_MS }, () => {
  let folder: string
  beforeEach(async () => {
    // Inside the project, where its packages are found.
    folder = await mkdtemp(join(here, '.mutant-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  test.each(MUTANTS)(
    '$defect would be noticed',
    async ({ file, from, to, seed, command, kinds, ignore = [] }) => {
      await cp(join(source, 'errors.ts'), join(folder, 'errors.ts'))
      await cp(join(source, 'prove'), join(folder, 'prove'), {
        recursive: true,
        filter: (path) => !path.endsWith('.test.ts'),
      })
      const mutated = join(folder, file)
      const text = await readFile(mutated, 'utf8')
      expect(text).toContain(from)
      await writeFile(mutated, text.replace(from, to))
      const { prove: mutant } = (await import(pathToFileURL(join(folder, 'prove/prove.ts')).href)) as {
        prove: typeof prove
      }
      await writeFile(join(folder, 'seed.sql'), seed)
      const options = {
        command: ['sh', '-c', command],
        workFolder: join(here, 'cases/065-commit-sent-answer-lost'),
        filling: { kind: 'seed', file: join(folder, 'seed.sql') },
        kinds,
        ignore,
      } as const
      expect((await proveIt(options)).verdict).toBe('convicted')
      const fooled = await proveIt(options, mutant)
      expect(fooled.verdict, JSON.stringify(fooled.trials.map((trial) => trial.differences))).toBe('survives')
    },
  )
})
