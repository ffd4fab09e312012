import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse } from 'libpg-query'
import { afterEach, describe, expect, test } from 'vitest'
import { check } from '../../src/check/command.ts'
import { RULES } from '../../src/check/rules/index.ts'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true })
})

function repository(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'stet-check-'))
  roots.push(root)
  write(root, files)
  return root
}

function write(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

const INSERT = 'insert into orders_daily select * from stage_orders;\n'

describe('exit status', () => {
  test('0 for a clean repository, 1 for an error, 0 below --fail-on', async () => {
    expect((await check({ root: repository({ 'a.sql': 'select 1;' }) })).exitStatus).toBe(0)
    const root = repository({ 'a.sql': INSERT })
    expect((await check({ root })).exitStatus).toBe(1)
    const warned = repository({
      'a.sql': 'delete from d where x = 1;\ninsert into d select * from s where x = 1;\n',
    })
    expect((await check({ root: warned })).exitStatus).toBe(0)
    expect((await check({ root: warned, failOn: 'warning' })).exitStatus).toBe(1)
  })

  test('a finding of low confidence fails only a strict run', async () => {
    const root = repository({ 'a.sql': 'insert into {target} select * from s;\n' })
    expect((await check({ root })).exitStatus).toBe(0)
    expect((await check({ root, strict: true })).exitStatus).toBe(1)
  })

  test('a path, a rule and a revision that do not exist are refused', async () => {
    const root = repository({ 'a.sql': INSERT })
    await expect(check({ root, paths: ['nowhere'] })).rejects.toMatchObject({ code: 'STET_USAGE' })
    await expect(check({ root, rules: ['no-such'] })).rejects.toMatchObject({ code: 'STET_USAGE' })
    await expect(check({ root, diff: 'origin/main' })).rejects.toMatchObject({ code: 'STET_USAGE' })
  })
})

describe('stet-ignore', () => {
  test.each([
    ['SQL, the line above', 'a.sql', `-- stet-ignore insert-no-key: emptied by the task before\n${INSERT}`],
    [
      'SQL, the same line',
      'a.sql',
      'insert into orders_daily select 1 from s; -- stet-ignore insert-no-key: emptied before\n',
    ],
    ['the whole file', 'a.sql', `-- stet-ignore-file insert-no-key: emptied before\n\n\n${INSERT}`],
    [
      'Python',
      'jobs/a.py',
      'import pandas as pd\ndef f(df, e):\n    # stet-ignore dataframe-append: e is a fresh database\n    df.to_sql("t", e, if_exists="append")\n',
    ],
    [
      'TypeScript',
      'jobs/a.ts',
      'import { appendFile } from "node:fs/promises";\n// stet-ignore file-append: the pod is new\nexport const f = (r: string) => appendFile("rows.csv", r);\n',
    ],
    [
      'shell',
      'scripts/a.sh',
      '#!/bin/bash\n# stet-ignore append-load: the table is new\nbq load d.t gs://b/x.csv\n',
    ],
    [
      'Jinja',
      'models/a.sql',
      "{# stet-ignore dbt-unfiltered: the source is emptied #}\n{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }}\n",
    ],
  ])('%s', async (_, path, text) => {
    const { findings, exitStatus, unusedIgnores } = await check({ root: repository({ [path]: text }) })
    expect(
      findings.filter((finding) => finding.severity !== 'info').map((finding) => finding.suppressed?.by),
    ).toEqual(['comment'])
    expect(exitStatus).toBe(0)
    expect(unusedIgnores).toEqual([])
  })

  test('without a reason it is not followed, unless that is allowed', async () => {
    const root = repository({ 'a.sql': `-- stet-ignore insert-no-key\n${INSERT}` })
    const strict = await check({ root })
    expect(strict.exitStatus).toBe(1)
    expect(strict.bareIgnores).toHaveLength(1)
    expect((await check({ root, allowBareIgnore: true })).exitStatus).toBe(0)
  })

  test('one that silences nothing is told', async () => {
    const { unusedIgnores } = await check({
      root: repository({ 'a.sql': '-- stet-ignore self-increment: no\nselect 1;\n' }),
    })
    expect(unusedIgnores).toMatchObject([{ line: 1, rules: ['self-increment'] }])
  })

  test('it does not silence another rule', async () => {
    expect(
      (await check({ root: repository({ 'a.sql': `-- stet-ignore self-increment: no\n${INSERT}` }) }))
        .exitStatus,
    ).toBe(1)
  })
})

test('a named path with nothing to check is an error, not a green run', async () => {
  const root = repository({ 'a.sql': 'select 1;', 'notes/readme.txt': 'nothing' })
  await expect(check({ root, paths: ['notes'] })).rejects.toMatchObject({ code: 'STET_USAGE', exitStatus: 2 })
})

describe('baseline', () => {
  test('findings in it pass, also when lines move; new ones fail; gone ones are counted and pruned', async () => {
    const root = repository({ 'a.sql': INSERT, 'b.sql': 'insert into other select * from s;\n' })
    await check({ root, updateBaseline: true })
    expect((await check({ root })).exitStatus).toBe(0)
    write(root, { 'a.sql': `-- a line more\n\n${INSERT}` })
    expect((await check({ root })).exitStatus).toBe(0)
    write(root, { 'a.sql': `${INSERT}insert into third select * from s;\n` })
    expect((await check({ root })).failing).toBe(1)
    write(root, { 'b.sql': 'select 1;\n', 'a.sql': INSERT })
    expect((await check({ root })).baselineGone).toBe(1)
    await check({ root, pruneBaseline: true })
    expect((await check({ root })).baselineGone).toBe(0)
    expect((await check({ root })).exitStatus).toBe(0)
  })

  test('the same statement twice is two findings', async () => {
    const root = repository({ 'a.sql': INSERT })
    await check({ root, updateBaseline: true })
    write(root, { 'a.sql': INSERT + INSERT })
    expect((await check({ root })).failing).toBe(1)
  })

  test('a look at a part says nothing of the rest, and cannot change it', async () => {
    const root = repository({ 'a.sql': INSERT, 'sub/b.sql': 'insert into other select * from s;\n' })
    await check({ root, updateBaseline: true })
    expect((await check({ root, paths: ['sub'] })).baselineGone).toBe(0)
    expect((await check({ root, rules: ['run-clock'] })).baselineGone).toBe(0)
    await expect(check({ root, paths: ['sub'], pruneBaseline: true })).rejects.toMatchObject({
      code: 'STET_USAGE',
    })
    await expect(check({ root, rules: ['run-clock'], updateBaseline: true })).rejects.toMatchObject({
      code: 'STET_USAGE',
    })
  })

  test('one that cannot be read is refused', async () => {
    const root = repository({ 'a.sql': INSERT, 'stet-baseline.json': '{' })
    await expect(check({ root })).rejects.toMatchObject({ code: 'STET_CONFIG' })
  })
})

describe('--diff', () => {
  const git = (root: string, ...args: string[]): void => {
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
      cwd: root,
      stdio: 'ignore',
    })
  }

  test('only statements that the change touches, and new files', async () => {
    const root = repository({ 'a.sql': `${INSERT}\nselect 1;\n` })
    git(root, 'init', '-b', 'main')
    git(root, 'add', '.')
    git(root, 'commit', '-m', 'x')
    expect((await check({ root, diff: 'main' })).findings).toEqual([])
    write(root, {
      'a.sql': `${INSERT}\nselect 1;\ninsert into more\nselect * from s;\n`,
      'new file.sql': INSERT,
    })
    const { findings } = await check({ root, diff: 'main' })
    expect(findings.map((finding) => `${finding.path}:${finding.from.line}`).sort()).toEqual([
      'a.sql:4',
      'new file.sql:1',
    ])
  })
})

describe('--fix', () => {
  test.each([
    [
      'copy-force',
      'etl/a.sql',
      'copy into t from @s file_format = (type = csv) force = true;\n',
      'copy into t from @s file_format = (type = csv);\n',
    ],
    [
      'delete-insert-no-tx',
      'etl/a.sql',
      'select 1;\ndelete from d where x = 1;\ninsert into d select * from s where x = 1;\n',
      'select 1;\nbegin;\ndelete from d where x = 1;\ninsert into d select * from s where x = 1;\ncommit;\n',
    ],
    [
      'upsert-no-guard',
      'etl/a.sql',
      'insert into p (sku, price, updated_at) select sku, price, now() from s\non conflict (sku) do update set price = excluded.price, updated_at = now();\n',
      'insert into p (sku, price, updated_at) select sku, price, now() from s\non conflict (sku) do update set price = excluded.price, updated_at = now()\n where p.price is distinct from excluded.price;\n',
    ],
    [
      'strict-watermark',
      'models/a.sql',
      "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere t > (select max(t) from {{ this }})\n{% endif %}\n",
      "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere t >= (select max(t) from {{ this }})\n{% endif %}\n",
    ],
    [
      'ddl-no-guard',
      'ops/a.sh',
      '#!/bin/bash\nbq query "ALTER TABLE d.t ADD COLUMN f INT64"\n',
      '#!/bin/bash\nbq query "ALTER TABLE d.t ADD COLUMN if not exists f INT64"\n',
    ],
  ])('%s: the fixed file is clean on the next run and parses', async (rule, path, before, after) => {
    const root = repository({ [path]: before })
    expect(
      (await check({ root, rules: [rule] })).findings.filter((finding) => finding.fix?.safe),
    ).toHaveLength(1)
    expect((await check({ root, rules: [rule], fix: true })).fixed).toBe(1)
    const text = readFileSync(join(root, path), 'utf8')
    expect(text).toBe(after)
    expect(
      (await check({ root, rules: [rule] })).findings.filter((finding) => finding.severity !== 'info'),
    ).toEqual([])
    if (rule === 'delete-insert-no-tx' || rule === 'upsert-no-guard') await parse(text)
  })

  test('every rule that says it is fixed by itself is tried above', () => {
    const auto = RULES.filter((rule) => rule.fix === 'auto').map((rule) => rule.id)
    expect(auto.sort()).toEqual([
      'copy-force',
      'ddl-no-guard',
      'delete-insert-no-tx',
      'strict-watermark',
      'upsert-no-guard',
    ])
  })

  test('suppressed findings are left alone', async () => {
    const root = repository({
      'a.sql': '-- stet-ignore copy-force: the stage is new each time\ncopy into t from @s force = true;\n',
    })
    expect((await check({ root, fix: true })).fixed).toBe(0)
  })
})

test('--schema brings the keys of the database', async () => {
  const root = repository({
    'etl/a.sql': 'insert into shop (no, name) select no, name from s;\n',
    'dump.txt':
      'create table public.shop (no text not null, name text);\nalter table only public.shop add constraint shop_pkey primary key (no);\n',
  })
  expect((await check({ root })).exitStatus).toBe(1)
  expect((await check({ root, schema: 'dump.txt' })).exitStatus).toBe(0)
})

test('config: dialects, staging tables, ignored paths and rules', async () => {
  const root = repository({ 'etl/a.sql': INSERT, 'old/b.sql': INSERT })
  expect((await check({ root, config: { ignore: ['old/**'] } })).files).toBe(1)
  expect((await check({ root, config: { rules: { 'insert-no-key': 'off' } } })).exitStatus).toBe(0)
  expect((await check({ root, config: { rules: { 'insert-no-key': 'warning' } } })).exitStatus).toBe(0)
  expect((await check({ root, config: { dialects: { '**/*.sql': 'cassandra' } } })).exitStatus).toBe(0)
  expect((await check({ root, config: { stagingTables: ['orders_*'] } })).exitStatus).toBe(0)
})

test('what is not understood is counted by file', async () => {
  const { notUnderstood } = await check({
    root: repository({ 'a.sql': 'frobnicate the table;\nselect 1;\n' }),
  })
  expect(notUnderstood).toEqual([{ path: 'a.sql', count: 1 }])
})
