import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { proveCommand } from '../../src/prove/command.ts'
import type { Proof } from '../../src/prove/prove.ts'
import { type ReportFormat, renderReport } from '../../src/prove/report/formats.ts'
import { PLAIN_PAINT } from '../../src/prove/report/terminal.ts'
import { openFence } from '../../src/prove/sandbox/fence.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { violations } from '../support/schemas.ts'
import { hasPsql, PATIENCE_MS, proveIt } from './support.ts'

/** Two commits; a crash in between doubles rows whose values try to get out of every format. */
const JOB = `#!/bin/sh
set -e
ask() { psql -XAtq -v ON_ERROR_STOP=1 -c "$1"; }
[ "$(ask 'select count(*) from done')" = 0 ] || exit 0
ask 'insert into "sales,<b>:%" select * from source'
ask 'insert into done values (1)'
`
const HOSTILE = [
  '<script>window.owned=1</script>',
  ']]>&amp;"%0A::error::x',
  '\u001b[2J',
  '<img src=http://127.0.0.1:9/x>',
]
const SEED = `
create table source (name text, amount numeric);
insert into source values ${HOSTILE.map((value, at) => `(e'${value.replaceAll('\u001b', '\\x1b')}', ${at})`).join(', ')};
create table "sales,<b>:%" (name text, amount numeric);
create table done (n int);`

interface Contrast {
  readonly ratio: number
  readonly text: string
}
/** Runs in the page, so it is a text here. */
const leastContrast = readFileSync(new URL('page/least-contrast.js', import.meta.url), 'utf8')

let folder: string
let convicted: Proof
let survives: Proof
let unproved: Proof

const render = (format: ReportFormat, proof: Proof) =>
  renderReport(format, proof, { failOn: DEFAULT_FAIL_ON, script: 'jobs/job,1.sh', paint: PLAIN_PAINT })

const browserProgram = ['chromium', 'chromium-browser', 'google-chrome']
  .flatMap((name) => (process.env['PATH'] ?? '').split(delimiter).map((at) => join(at, name)))
  .find((path) => existsSync(path))

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-reports-'))
  await mkdir(join(folder, 'work'))
  await writeFile(join(folder, 'work', 'job.sh'), JOB)
  await writeFile(join(folder, 'seed.sql'), SEED)
  if (!hasPsql) return
  const filling = { kind: 'seed', file: join(folder, 'seed.sql') } as const
  const base = { workFolder: join(folder, 'work'), filling }
  convicted = await proveIt({ ...base, command: ['sh', 'job.sh'] })
  const upsert = 'psql -qc "delete from done; insert into done values (1)"'
  survives = await proveIt({ ...base, command: ['sh', '-c', upsert], kinds: ['kill after', 'overlap'] })
  unproved = await proveIt({ ...base, command: ['psql', '-c', 'select 1'] })
}, PATIENCE_MS)
afterAll(() => rm(folder, { recursive: true, force: true }))

describe.skipIf(!hasPsql)('the reports of real proofs (they need psql)', () => {
  test('the text shows no character that a terminal obeys', () => {
    const text = render('text', convicted)
    expect(text).toContain('DOUBLED  4 rows in sales,<b>:%')
    expect(text).toContain('�[2J')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/)
  })

  test('GitHub gets one annotation for each finding, at the script, with its marks escaped', () => {
    const lines = render('github', convicted).split('\n')
    expect(
      lines.every((line) => /^::(error|warning|notice) file=jobs\/job%2C1\.sh,line=1,title=/.test(line)),
    ).toBe(true)
    expect(lines[0]).toContain(
      '::error file=jobs/job%2C1.sh,line=1,title=stet prove%3A doubled%2C 4 rows in sales%2C<b>%3A%25::',
    )
    expect(lines[0]).toContain(
      'the first load, killed after commit 1 of 2 (trial 2)%0Aafter the rerun: 8 rows where a clean run leaves 4',
    )
    expect(lines.at(-1)).toContain('sh job.sh: CONVICTED')
    expect(render('github', survives)).toMatch(/^::notice .*SURVIVES/)
    expect(render('github', unproved)).toMatch(/^::error .*NOTHING PROVED::/)
  })

  test('JUnit has a case for the clean run and for each trial', () => {
    const xml = render('junit', convicted)
    const failing = convicted.trials.filter((trial) =>
      trial.differences.some((one) => DEFAULT_FAIL_ON.includes(one.class)),
    )
    expect(failing.length).toBeGreaterThan(0)
    expect(xml.match(/<testcase /g)).toHaveLength(convicted.trials.length + 1)
    expect(xml.match(/<failure /g)).toHaveLength(failing.length)
    expect(xml).toContain(`tests="${convicted.trials.length + 1}" failures="${failing.length}" errors="0"`)
    expect(xml).toContain('name="trial 2: the first load, killed after commit 1 of 2"')
    expect(xml).toContain('message="doubled: 4 rows in sales,&lt;b&gt;:%"')
    expect(render('junit', survives)).toContain('failures="0" errors="0"')
    expect(render('junit', unproved)).toContain('tests="1" failures="0" errors="1"')
  })

  test('JSON is as its schema says, whatever the verdict', () => {
    for (const proof of [convicted, survives, unproved]) {
      expect(violations('prove.json', JSON.parse(render('json', proof)))).toEqual([])
    }
    const document: object = JSON.parse(render('json', convicted))
    expect(violations('prove.json', { ...document, verdict: 'fine' })).toEqual([
      '/verdict must be equal to one of the allowed values',
    ])
  })

  test('the page holds all it shows, and nothing of it is read as markup', () => {
    const page = render('html', convicted)
    expect(page).toContain('<p class="verdict convicted">CONVICTED</p>')
    expect(page).not.toMatch(/<script|<link|<img|<iframe|@import|url\(/i)
    expect(page).not.toMatch(/<[^>]*\b(src|href)=/i)
    expect(page).toContain('&lt;script&gt;window.owned=1&lt;…')
  })

  test(
    '--report writes files by their names, and refuses before it proves what it could not write',
    async () => {
      const fence = await openFence()
      const isFenced = !('refused' in fence)
      if (!('refused' in fence)) await fence[Symbol.asyncDispose]()
      const io = {
        environment: process.env,
        folder,
        onProgress: () => undefined,
        ask: null,
        signal: new AbortController().signal,
      }
      const options = {
        seed: join(folder, 'seed.sql'),
        work: 'work',
        kinds: ['crash'],
        allowNetwork: !isFenced,
      }
      const report = ['a.html', 'a.xml', 'a.json', 'a.txt']
      const result = await proveCommand(['sh', 'job.sh'], { ...options, report }, io)
      expect(result.exitStatus).toBe(1)
      const starts = await Promise.all(
        report.map(async (name) => (await readFile(join(folder, name), 'utf8')).slice(0, 15)),
      )
      expect(starts).toEqual(['<!doctype html>', '<?xml version="', '{\n  "format": "', 'stet prove -- s'])
      expect(result.render('github')).toContain(`file=${join('work', 'job.sh')},`)
      for (const bad of ['report.pdf', 'absent/report.html']) {
        await expect(proveCommand(['false'], { ...options, report: [bad] }, io)).rejects.toMatchObject({
          code: 'STET_USAGE',
          message: expect.stringContaining(bad),
        })
      }
    },
    PATIENCE_MS,
  )
})

describe.skipIf(!hasPsql || browserProgram === undefined)(
  'the page in a browser (it needs psql and chromium)',
  () => {
    let browser: Browser
    beforeAll(async () => {
      // Root has no sandbox of its own in a container; the page is ours.
      browser = await chromium.launch({ executablePath: browserProgram ?? '', args: ['--no-sandbox'] })
    })
    afterAll(() => browser?.close())

    async function open(proof: Proof, colorScheme: 'light' | 'dark', width: number) {
      const page = await browser.newPage({ colorScheme, viewport: { width, height: 900 } })
      const troubles: string[] = []
      page.on('request', (request) => {
        if (!request.url().startsWith('file:')) troubles.push(request.url())
      })
      page.on('console', (message) => troubles.push(message.text()))
      page.on('pageerror', (error) => troubles.push(error.message))
      const file = join(folder, 'page.html')
      await writeFile(file, render('html', proof))
      await page.goto(`file://${file}`)
      const shots = process.env['STET_SCREENSHOTS']
      if (shots !== undefined) {
        await page.screenshot({
          path: join(shots, `${proof.verdict}-${colorScheme}-${width}.png`),
          fullPage: true,
        })
      }
      return { page, troubles }
    }

    test.for(['light', 'dark'] as const)(
      '%s: it loads nothing, runs nothing, and its texts can be read',
      async (scheme) => {
        for (const proof of [convicted, survives, unproved]) {
          const { page, troubles } = await open(proof, scheme, 1000)
          expect(troubles).toEqual([])
          expect(await page.evaluate("'owned' in window")).toBe(false)
          const least = await page.evaluate<Contrast>(leastContrast)
          expect(least.ratio, least.text).toBeGreaterThanOrEqual(4.5)
          await page.close()
        }
      },
    )

    test('the cut is drawn between what is committed and what was never sent', async () => {
      const { page } = await open(convicted, 'light', 1000)
      const timeline = page.locator('section.convicts svg.timeline').first()
      const y = async (selector: string) =>
        (await timeline.locator(selector).first().boundingBox())?.y ?? Number.NaN
      expect(await timeline.locator('circle').count()).toBe(2)
      const [done, cut, undone] = [await y('circle.done'), await y('.cut line'), await y('circle.undone')]
      expect(done).toBeLessThan(cut)
      expect(cut).toBeLessThan(undone)
      // A second run meanwhile: the first has not committed yet.
      const meanwhile = page.locator('section.warns svg.timeline').first()
      expect(await meanwhile.locator('circle.done').count()).toBe(0)
      expect(await page.locator('section.map circle.convicts').count()).toBeGreaterThan(0)
      expect(await page.locator('section.convicts table.rows').first().textContent()).toContain('<script>')
      await page.close()
    })

    test('on a narrow screen only what is wide scrolls, not the page', async () => {
      const { page } = await open(convicted, 'light', 380)
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      expect(overflow).toBe(0)
      await page.close()
    })

    test('JUnit is well-formed XML', async () => {
      const page = await browser.newPage()
      for (const proof of [convicted, survives, unproved]) {
        const xml = JSON.stringify(render('junit', proof))
        const parsed = `new DOMParser().parseFromString(${xml}, 'application/xml')`
        const failure = await page.evaluate(`${parsed}.querySelector('parsererror')?.textContent ?? null`)
        expect(failure).toBeNull()
      }
      await page.close()
    })
  },
)
