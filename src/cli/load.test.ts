import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { connect, freshDatabase } from '../../test/support/databases.ts'
import { type Ran, runCli } from '../../test/support/run-cli.ts'
import { violations } from '../../test/support/schemas.ts'

const ORDERS = `order_ref,amount,status,load_seq
A-1,12.50,open,1
A-2,3.00,paid,2
A-3,7.25,paid,3
`
const NEXT = `order_ref,amount,status,load_seq
A-1,12.50,open,1
A-1,12.50,paid,4
A-2,3.00,paid,2
A-3,7.25,paid,3
`

let cwd = ''
let into: readonly string[] = []

beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stet-cli-'))
  // The default target lies in the folder of the process, which tests share.
  into = ['--into', join(cwd, 'stet.duckdb')]
})

async function load(csv: string, ...options: readonly string[]): Promise<Ran> {
  await writeFile(join(cwd, 'orders.csv'), csv)
  return runCli(['load', 'orders.csv', ...KEY, ...into, ...options], { cwd })
}

const KEY = ['--key', 'order_ref', '--newest', 'load_seq']

function stet(...argv: readonly string[]): Promise<Ran> {
  return runCli(argv, { cwd })
}

describe('stet load', () => {
  test('tells a first load, the same again, a change with a duplicate, and an old file replayed', async () => {
    const first = await load(ORDERS)
    expect(first).toMatchObject({ status: 0, stderr: '' })
    expect(first.stdout).toMatch(
      /^read 3 rows from orders\.csv \(\d+ B\)\norders → .*"orders": 3 inserted, 0 updated, 0 unchanged\n/,
    )
    const again = await load(ORDERS)
    expect(again.stdout).toContain('0 inserted, 0 updated, 3 unchanged (unchanged rows were not touched)')
    expect(again.stdout).not.toContain('--columns')
    expect((await load(NEXT)).stdout).toContain('0 inserted, 1 updated, 2 unchanged, 1 duplicate dropped')
    expect((await load(ORDERS)).stdout).toContain('0 inserted, 0 updated, 2 unchanged, 1 stale')
  })

  test('the types of a first load can be pinned by the option that it prints', async () => {
    const { stdout } = await load(ORDERS)
    const columns = /--columns (\S+)/.exec(stdout)?.[1]?.replaceAll("'", '') ?? ''
    const other = join(cwd, 'other.duckdb')
    const pinned = await stet('load', 'orders.csv', ...KEY, '--into', other, '--columns', columns, '--json')
    expect(pinned.document()).toMatchObject({ counts: { inserted: 3 } })
    const plain = await load(ORDERS, '--json')
    const typesOf = (ran: Ran) =>
      (ran.document().columns as { name: string; type: string }[]).map(({ name, type }) => `${name} ${type}`)
    expect(typesOf(pinned)).toEqual(typesOf(plain))
  })

  test('--json gives the published document, and nothing else on stdout', async () => {
    const ran = await load(ORDERS, '--json', '--run-id', 'nightly')
    const document = ran.document()
    expect(violations('load.json', document)).toEqual([])
    expect(document).toMatchObject({
      format: 'stet-load-1',
      runId: 'nightly',
      table: 'orders',
      verdict: 'changed',
      counts: { read: 3, inserted: 3 },
    })
  })

  test('--quiet says nothing when all is well', async () => {
    expect(await load(ORDERS, '--quiet')).toMatchObject({ status: 0, stdout: '', stderr: '' })
  })

  test('a date in the name does not count, and it says so', async () => {
    await writeFile(join(cwd, 'orders-2026-03-02.csv'), ORDERS)
    const ran = await stet('load', 'orders-2026-03-02.csv', ...KEY, ...into)
    expect(ran.stdout).toContain('"orders": 3 inserted')
    expect(ran.stderr).toContain(
      'note: table "orders", named after orders-2026-03-02.csv without "-2026-03-02"',
    )
  })

  test('rejects end it with 4, by place, column and value, and nothing is written', async () => {
    await load(ORDERS)
    const bad = `${ORDERS}A-4,1.005\u001b[2J,open,5\n`
    const ran = await load(
      bad,
      '--columns',
      'order_ref:text,amount:numeric(12,2),status:text,load_seq:bigint',
    )
    expect(ran).toMatchObject({ status: 4, stdout: '' })
    expect(ran.stderr).toContain('orders.csv:5')
    expect(ran.stderr).toContain('code:  STET_REJECTED (exit status 4)')
    expect(ran.stderr).not.toContain('\u001b')
    const again = await load(bad, '--json')
    expect(violations('error.json', again.document())).toEqual([])
    expect(again.document()).toMatchObject({ error: { code: 'STET_REJECTED', details: { rejected: 1 } } })
    expect((await load(ORDERS)).stdout).toContain('0 inserted, 0 updated, 3 unchanged')
  })

  test('an empty name of a table is a wrong command line, not a pipeline without a name', async () => {
    const ran = await load(ORDERS, '--table', '')
    expect(ran.status).toBe(2)
    expect(ran.stderr).toContain('--table names no table: it is empty')
  })

  test('allowed rejects are left out and listed', async () => {
    await load(ORDERS)
    const ran = await load(`${ORDERS}A-4,x,open,5\n`, '--max-rejects', '1')
    expect(ran.status).toBe(0)
    expect(ran.stdout).toContain('3 unchanged, 1 rejected')
    expect(ran.stdout).toMatch(/1 row rejected:\n {2}orders\.csv:5 {2}amount=x {2}\S/)
  })

  test('an empty source empties a table only when allowed', async () => {
    const [head = ''] = ORDERS.split('\n')
    const replace = ['--strategy', 'replace-table']
    await load(ORDERS, ...replace)
    const refused = await load(`${head}\n`, ...replace)
    expect(refused.status).toBe(3)
    expect(refused.stderr).toContain('--allow-empty')
    const allowed = await load(`${head}\n`, ...replace, '--allow-empty')
    expect(allowed.stdout).toContain('0 inserted, 0 updated, 3 deleted')
  })

  test('rows that tie are shown with file and line, in whatever way the file is read', async () => {
    const tied = await load(`${ORDERS}A-1,12.50,paid,1\nA-9,1.00,open,9\nA-9,1.00,open,9\n`)
    expect(tied.status).toBe(3)
    expect(tied.stderr).toContain('\n  orders.csv:5 order_ref=A-1 amount=12.50 status=paid load_seq=1\n')
    expect(tied.stderr).toContain('\n  orders.csv:2 order_ref=A-1 amount=12.50 status=open load_seq=1\n')
    expect(tied.stderr).not.toContain('A-9')
    await writeFile(join(cwd, 'a.ndjson'), '{"id":"e\u0301","v":1}\n')
    await writeFile(join(cwd, 'b.ndjson'), '\n{"id":"x","v":1}\n{"id":"\u00e9","v":2}\n')
    const lines = await stet(
      ...['load', '*.ndjson', '--table', 't', '--key', 'id', '--normalize-keys', 'nfc', ...into, '--json'],
    )
    expect(lines.document()).toMatchObject({
      error: {
        code: 'STET_TIE',
        details: {
          places: expect.arrayContaining([
            { file: 'a.ndjson', line: 1 },
            { file: 'b.ndjson', line: 3 },
          ]),
        },
      },
    })
  })

  test('counts have digits in groups in every message, and are plain numbers for programs', async () => {
    const many = (from: number) =>
      `order_ref,amount,status,load_seq\n${Array.from({ length: 1500 }, (_, n) => `A-${from + n},1.00,open,1\n`).join('')}`
    await load(many(0))
    const gone = ['--missing', 'delete']
    const refused = await load(many(5000), ...gone)
    expect(refused.stderr).toContain('1,500 rows of orders would be deleted, of 1,500: more than a tenth')
    const { error } = (await load(many(5000), ...gone, '--json')).document()
    expect(error).toMatchObject({ details: { removed: 1500, live: 1500 } })
  })

  test('tab-separated, JSON and delimiter options reach their source', async () => {
    await writeFile(join(cwd, 'a.tsv'), 'id\tv\n1\tx\n')
    await writeFile(join(cwd, 'b.json'), '{"data":{"items":[{"id":1,"v":"x"},{"id":2,"v":"y"}]}}')
    await writeFile(join(cwd, 'c.ndjson'), '{"id":1,"v":"x"}\n')
    await writeFile(join(cwd, 'd.csv'), "id;v\n1;'x;y'\n2;-\n")
    const keyed = [...into, '--key', 'id', '--json']
    const inserted = async (...argv: readonly string[]) =>
      (await stet('load', ...argv, ...keyed)).document().counts
    expect(await inserted('a.tsv')).toMatchObject({ inserted: 1 })
    expect(await inserted('b.json', '--records', 'data.items')).toMatchObject({ inserted: 2 })
    const nested = ['--field', 'v=p.v', '--table', 'nested']
    await writeFile(join(cwd, 'n.json'), '[{"id":1,"p":{"v":"deep"}}]')
    expect(await inserted('n.json', ...nested, '--columns', 'id:bigint,v:text')).toMatchObject({
      inserted: 1,
    })
    expect(await inserted('c.ndjson')).toMatchObject({ inserted: 1 })
    expect(await inserted('d.csv', '--delimiter', ';', '--quote', "'", '--null', '-')).toMatchObject({
      inserted: 2,
    })
    await writeFile(join(cwd, 'e.csv'), 'made by a machine\n# a comment\n1\tx\n')
    const bare = ['--delimiter', '\\t', '--header', 'id,v', '--skip', '1', '--comment', '#']
    expect(await inserted('e.csv', ...bare)).toMatchObject({ inserted: 1 })
  })

  test('files that were joined with their headers: a reject with its line, never a row and never a text column (G9)', async () => {
    await writeFile(join(cwd, 'joined.csv'), 'id,n\n1,2\nid,n\n3,4\n')
    const keyed = ['joined.csv', ...into, '--key', 'id']
    const refused = await stet('load', ...keyed)
    expect([refused.status, refused.stderr]).toEqual([
      4,
      expect.stringContaining('joined.csv:3 repeats the header, as in files that were joined'),
    ])
    const allowed = await stet('load', ...keyed, '--max-rejects', '1', '--json')
    expect(allowed.document()).toMatchObject({
      counts: { read: 3, rejected: 1, inserted: 2 },
      columns: expect.arrayContaining([expect.objectContaining({ name: 'n', type: 'bigint' })]),
    })
    const asRow = await stet('load', ...keyed, '--table', 't', '--repeated-header', 'row', '--json')
    expect(asRow.document()).toMatchObject({ counts: { read: 3, rejected: 0, inserted: 3 } })
    const parquet = await stet('load', 'p.parquet', '--key', 'id', '--repeated-header', 'row')
    expect(parquet.stderr).toContain('--repeated-header has no meaning for parquet files')
  })

  test('columns that Stet keeps can be named and switched off', async () => {
    const ran = await load(ORDERS, '--keep-updated-at', 'changed_at', '--keep-content-hash', 'none')
    expect(ran.status).toBe(0)
    await using engine = await openFile(join(cwd, 'stet.duckdb'))
    expect(await engine.columns('orders')).toEqual([
      'order_ref',
      'amount',
      'status',
      'load_seq',
      'changed_at',
    ])
  })
})

describe('stet load --plan', () => {
  test('shows what would be done, changes nothing, and tells pending changes by its status', async () => {
    const pending = await load(ORDERS, '--plan', '--detailed-exitcode', '--sql')
    expect(pending.status).toBe(5)
    expect(pending.stdout).toContain('(the table will be created)')
    expect(pending.stdout).toMatch(/inserted +3 {2}new keys/)
    expect(pending.stdout).toContain('statements:\n')
    expect(await readdir(cwd)).toEqual(['orders.csv'])

    await load(ORDERS)
    const before = await runsOf()
    const nothing = await load(ORDERS, '--plan', '--detailed-exitcode')
    expect(nothing.status).toBe(0)
    expect(nothing.stdout).toContain('a run would change nothing')
    const changed = await load(NEXT, '--plan')
    expect(changed.status).toBe(0)
    expect(changed.stdout).toMatch(/~ update order_ref=A-1\n +status +open → paid\n +load_seq +1 +→ 4\n/)
    expect(await runsOf()).toEqual(before)
  })

  test.each([
    [[], 'are left alone, no row is deleted\n'],
    [['--missing', 'delete'], 'are left alone, rows that the load does not have are deleted\n'],
    [['--missing', 'mark'], 'are left alone, rows that the load does not have are marked as gone\n'],
  ])('with %j says what becomes of rows that are gone, also where none is', async (missing, words) => {
    await load(ORDERS, ...missing)
    expect((await load(ORDERS, ...missing, '--plan')).stdout).toContain(words)
  })

  test('--json gives the published document', async () => {
    await load(ORDERS)
    const { document } = await load(NEXT, '--plan', '--json', '--sql')
    expect(violations('plan.json', document())).toEqual([])
    expect(document()).toMatchObject({ creates: false, counts: { updated: 1, duplicate: 1 } })
  })
})

describe('stet runs', () => {
  test('lists every run with its word, newest first, and shows one by the beginning of its id', async () => {
    const [head = ''] = ORDERS.split('\n')
    await load(ORDERS)
    await load(ORDERS)
    await load(`${head}\n`)
    await load('order_ref,amount,status,load_seq\nA-1,1.00,a,9\nA-1,2.00,b,9\n')
    const listed = await stet('runs', ...into)
    expect(listed).toMatchObject({ status: 0, stderr: '' })
    const words = listed.stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => / orders +(changed|unchanged|nothing read|failed)\b/.exec(line)?.[1])
    expect(words).toEqual(['failed', 'nothing read', 'unchanged', 'changed'])

    const id = listed.stdout.split('\n')[4]?.split(' ')[0] ?? ''
    const shown = await stet('runs', 'show', id, ...into)
    expect(shown.stdout).toContain('orders: changed')
    expect(shown.stdout).toMatch(/orders\.csv .*sha256 [0-9a-f]{64}/)
    expect((await stet('runs', ...into, 'show', id)).stdout).toBe(shown.stdout)
    expect(await stet('runs', 'show', 'no-such-run', ...into)).toMatchObject({ status: 2, stdout: '' })
  })

  test('--json, --last and --pipeline', async () => {
    await load(ORDERS)
    await load(NEXT, '--table', 'others')
    const all = await stet('runs', ...into, '--json')
    expect(violations('runs.json', all.document())).toEqual([])
    expect(all.document().runs).toHaveLength(2)
    expect((await stet('runs', ...into, '--json', '--last', '1')).document().runs).toMatchObject([
      { pipeline: 'others' },
    ])
    expect((await stet('runs', ...into, '--last', '0')).stderr).toContain('a whole number, 1 or more')
    const some = await stet('runs', '--pipeline', 'orders', ...into, '--json')
    expect(some.document().runs).toMatchObject([{ pipeline: 'orders', verdict: 'changed' }])
    const [entry] = all.document().runs as { runId: string }[]
    const shown = await stet('runs', 'show', entry?.runId ?? '', ...into, '--json')
    expect(violations('runs.json', shown.document())).toEqual([])
  })

  test('a target without a log is an error with a next step', async () => {
    expect(await stet('runs', ...into)).toMatchObject({ status: 2, stdout: '' })
  })
})

describe('pipelines in files', () => {
  const pipeline = (name: string, file: string) => `definePipeline({
    name: '${name}',
    source: csv({ files: '${file}', columns: { order_ref: 'text', amount: 'numeric(12,2)', status: 'text', load_seq: 'bigint' } }),
    target: duckdb({ file: '${join(cwd, 'stet.duckdb')}' }),
    table: '${name}',
    write: { strategy: 'upsert', key: ['order_ref'], newest: 'load_seq' },
  })`
  const IMPORTS = `import { definePipeline } from 'stet'
import { csv } from 'stet/sources/csv'
import { duckdb } from 'stet/targets/duckdb'
`

  beforeEach(async () => {
    await writeFile(join(cwd, 'orders.csv'), ORDERS)
  })

  test('run in order, one after another; one that fails keeps none from running and gives the status', async () => {
    await writeFile(
      join(cwd, 'pipelines.ts'),
      `${IMPORTS}
export const first = ${pipeline('first', 'orders.csv')}
export const rest = [${pipeline('second', 'missing.csv')}, ${pipeline('third', 'orders.csv')}]
export const note: string = 'no pipeline'
export default first
`,
    )
    const ran = await stet('run', 'pipelines.ts', '--json')
    expect(ran.status).toBe(1)
    expect(violations('run.json', ran.document())).toEqual([])
    expect(ran.document()).toMatchObject({
      results: [{ pipeline: 'first' }, { pipeline: 'third' }],
      failures: [{ pipeline: 'second', error: { code: 'STET_SOURCE' } }],
      error: { code: 'STET_SOURCE' },
    })
    expect(ran.stderr).toContain('error: second: ')

    const only = await stet('run', 'pipelines.ts', '--pipeline', 'third', '--run-id', 'r1', '--json')
    expect(only.document()).toMatchObject({
      results: [{ pipeline: 'third', runId: 'r1', counts: { unchanged: 3 } }],
      error: null,
    })
    // Before `--only` had one meaning, the slices of a backfill.
    for (const command of ['run', 'plan']) {
      const short = await stet(command, 'pipelines.ts', '--only', 'third', '--json')
      expect(short.document()).toMatchObject({ failures: [], error: null })
    }
    const unknown = await stet('run', 'pipelines.ts', '--pipeline', 'fourth')
    expect(unknown.stderr).toContain('There is first, second, third')
  })

  test('a saved plan is kept to', async () => {
    await writeFile(join(cwd, 'p.ts'), `${IMPORTS}export default ${pipeline('orders', 'orders.csv')}\n`)
    const planned = await stet('plan', 'p.ts', '--out', 'plan.json', '--detailed-exitcode', '--json')
    expect(planned.status).toBe(5)
    expect(violations('plans.json', planned.document())).toEqual([])
    expect(JSON.parse(await readFile(join(cwd, 'plan.json'), 'utf8'))).toEqual(planned.document())
    expect((await stet('run', 'p.ts', '--plan', 'plan.json')).stdout).toContain('3 inserted')
    // Run again, it leaves nothing to do.
    expect((await stet('run', 'p.ts', '--plan', 'plan.json')).status).toBe(0)
    await writeFile(
      join(cwd, 'orders.csv'),
      `${await readFile(join(cwd, 'orders.csv'), 'utf8')}A-9,9.00,paid,9\n`,
    )
    const refused = await stet('run', 'p.ts', '--plan', 'plan.json')
    expect(refused.status).toBe(3)
    expect(refused.stderr).toContain('STET_PLAN_DIFFERS')
    // Four rows in place of three, of which three are there by now.
    expect(refused.stderr).toContain('Planned: 3 inserted, 0 updated')
    expect(refused.stderr).toContain('Now: 1 inserted, 0 updated')
    expect((await stet('run', 'p.ts', '--plan', 'orders.csv')).stderr).toContain('holds no plan of this Stet')
  })

  test('a load keeps to the plan of a load', async () => {
    const load = (...more: string[]) => stet('load', 'orders.csv', '--key', 'order_ref', ...into, ...more)
    expect((await load('--plan', '--out', 'plan.json')).status).toBe(0)
    const file = join(cwd, 'orders.csv')
    const text = await readFile(file, 'utf8')
    await writeFile(file, `${text}A-9,9.00,paid,9\n`)
    const refused = await load('--as-planned', 'plan.json')
    expect(refused.status).toBe(3)
    expect(refused.stderr).toContain('STET_PLAN_DIFFERS')
    await writeFile(file, text)
    expect((await load('--as-planned', 'plan.json')).stdout).toContain('3 inserted')
    const other = await load('--as-planned', 'plan.json', '--table', 'other')
    expect(other.stderr).toContain('holds no plan of a load into "other"')
  })

  test.each([
    ['export const x = 1', '"p.ts" exports no pipeline'],
    ['export const x: number = ', 'Cannot load the pipeline file "p.ts"'],
    [`import { definePipeline } from 'stet'\ndefinePipeline({} as never)`, 'A pipeline has no name'],
  ])('%j is refused', async (text, message) => {
    await writeFile(join(cwd, 'p.ts'), text)
    const ran = await stet('run', 'p.ts')
    expect(ran.status).toBe(2)
    expect(ran.stderr).toContain(message)
    expect(ran.stderr).toContain('STET_CONFIG')
  })

  test('the starter of stet init runs as it is, from anywhere, twice', async () => {
    await stet('init', 'starter')
    expect((await stet('run', 'starter/pipeline.ts')).stdout).toContain('3 inserted')
    expect((await stet('run', 'starter/pipeline.ts')).stdout).toContain('0 inserted, 0 updated, 3 unchanged')
    expect((await readdir(join(cwd, 'starter'))).sort()).toEqual(['orders.csv', 'pipeline.ts', 'stet.duckdb'])
  })
})

describe('into PostgreSQL', () => {
  test('loads, plans and lists, and never prints the password', async () => {
    const url = new URL(await freshDatabase())
    url.password ||= 'hunter2'
    into = ['--into', url.href]
    const ran = [
      await load(ORDERS),
      await load(ORDERS),
      await load(NEXT, '--plan', '--sql'),
      await load(NEXT, '--json'),
      await stet('runs', ...into),
      await stet('runs', ...into, '--json'),
    ]
    expect(ran.map(({ status }) => status)).toEqual([0, 0, 0, 0, 0, 0])
    expect(ran[1]?.stdout).toContain('0 inserted, 0 updated, 3 unchanged')
    expect(ran[3]?.document()).toMatchObject({ counts: { updated: 1, duplicate: 1 } })
    expect(violations('runs.json', ran[5]?.document())).toEqual([])
    for (const { stdout, stderr } of ran) expect(stdout + stderr).not.toContain(url.password)
    await using database = await connect(url.href)
    const { rows } = await database.client.query('select count(*)::int as n from orders')
    expect(rows).toEqual([{ n: 3 }])
  })

  test('a server that is not there is retryable, and its password stays unsaid', async () => {
    into = ['--into', 'postgres://app:hunter2@127.0.0.1:1/none']
    const ran = await load(ORDERS)
    expect(ran.status).toBe(75)
    expect(ran.stdout + ran.stderr).not.toContain('hunter2')
  })
})

async function openFile(path: string) {
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(path)
  const connection = await instance.connect()
  return {
    columns: async (table: string) => {
      const reader = await connection.runAndReadAll(
        `select column_name from duckdb_columns() where table_name = $1 order by column_index`,
        [table],
      )
      return reader.getRows().map(([name]) => name)
    },
    [Symbol.asyncDispose]: async () => {
      connection.closeSync()
      instance.closeSync()
    },
  }
}

async function runsOf(): Promise<unknown> {
  return (await stet('runs', ...into, '--json')).document().runs
}
