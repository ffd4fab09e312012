import { isRerun } from '../context.ts'
import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import type { SyntaxNode } from '../languages/tree.ts'
import type { Rule } from '../rule.ts'

const WRITERS = /^(?:open|to_csv|to_parquet|to_json|to_excel|write_text|write_bytes|writeFile|writeFileSync)$/
const DATA_FILE = /\.(?:csv|tsv|json|ndjson|jsonl|parquet|avro|orc|xlsx|xml|geojson)\b/i
/** Object stores put a whole object; what is temporary or a note to people has no reader that waits for it. */
const NO_READER =
  /^[^'"`]*['"`](?:s3|gs|gcs|abfss?|hdfs|wasbs?):|tmp|temp|scratch|debug|dry|log|cache|report|test|mock|package\.json|config|settings|\.env/i

export const writeInPlace: Rule = {
  id: 'write-in-place',
  title: 'Write a file beside its name, and rename it when it is whole',
  anomaly: 'gap',
  tier: 1,
  fix: 'advice',
  problem:
    'The file is emptied and written under the name that others read it by. A crash, or a reader in between, finds half of it, and the next step takes the half for the whole.',
  advice: 'Write to a temporary name in the same folder, flush, and rename it over the old file.',
  safeForms: [
    {
      for: 'Python',
      code: 'frame.to_csv(f"{path}.part", index=False)\nos.replace(f"{path}.part", path)',
    },
    {
      for: 'TypeScript',
      code: 'await writeFile(`${path}.part`, text)\nawait rename(`${path}.part`, path)',
    },
    {
      for: 'shell',
      code: 'psql -c "copy orders to stdout" > orders.csv.part && mv orders.csv.part orders.csv',
    },
  ],
  prove: '`stet prove` kills the job while it writes: the file is cut off (GAP).',
  limits:
    'Always a hint: whether anybody reads the file while it is written is not in the code. Shell is not read for it.',
  bad: [
    {
      why: 'a file that the next step reads, from two languages',
      path: 'jobs/export.py',
      lines: [4],
      code: 'import pandas as pd\n\ndef export(frame, folder):\n    frame.to_csv(f"{folder}/orders.csv", index=False)\n',
    },
    {
      why: 'a file written at once is not written as one',
      path: 'src/jobs/export.ts',
      lines: [3],
      code: "import { writeFileSync } from 'node:fs'\nexport const run = (rows) => {\n  writeFileSync('out/orders.json', JSON.stringify(rows))\n}\n",
    },
    {
      why: 'the name is in a variable',
      path: 'jobs/export.py',
      lines: [6],
      code: 'import json\nimport airflow\n\ndef export(rows, day):\n    path = f"/data/orders_{day}.json"\n    with open(path, "w") as out:\n        json.dump(rows, out)\n',
    },
  ],
  fine: [
    {
      why: 'renamed when it is whole, put as an object, or only for this run',
      path: 'jobs/export.py',
      lines: [],
      code: 'import os\nimport pandas as pd\n\ndef export(frame, path):\n    frame.to_csv(f"{path}.csv", index=False)\n    os.replace(f"{path}.csv", path)\n\ndef put(frame):\n    frame.to_parquet("s3://bucket/orders.parquet")\n\ndef work(frame, tmp_dir):\n    frame.to_csv(f"{tmp_dir}/orders.csv")\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined) return
    const told = new Set<string>()
    for (const call of host.calls) {
      if (!isRerun(file.contextOf(call.fn))) continue
      const path = writtenInPlace(call, host, file)
      if (path === undefined || told.has(`${call.fn?.node.start} ${path}`)) continue
      told.add(`${call.fn?.node.start} ${path}`)
      yield {
        start: call.start,
        end: call.end,
        message: `The file is written under the name it is read by: a crash in between leaves half of it`,
        class: 'info',
        severity: 'info',
        confidence: 'low',
      }
    }
  },
}

/** The path as written, if it is a local data file that is not renamed afterwards. */
function writtenInPlace(call: HostCall, host: HostFacts, file: FileFacts): string | undefined {
  if (!WRITERS.test(call.name)) return undefined
  const [first, second] = call.args
  if (call.name === 'open') {
    const mode = call.named.get('mode') ?? second
    if (call.receiver !== '' || mode === undefined || !/^w/.test(host.textOf(mode) ?? '')) return undefined
  }
  // `path.write_text(data)`: the receiver is the path.
  const own = /^write_(?:text|bytes)$/.test(call.name) ? undefined : first
  if (own === undefined) return undefined
  const whole = throughVariable(own, call, host)
  if (!DATA_FILE.test(whole) || NO_READER.test(whole) || NO_READER.test(file.path)) return undefined
  const body = host.source(call.fn?.node ?? host.root)
  return /\b(?:os\.(?:replace|rename)|shutil\.(?:move|copy\w*)|rename\w*|upload\w*|put_object|putObject|unlink\w*|rmtree|os\.remove)\s*\(/.test(
    body,
  )
    ? undefined
    : whole
}

function throughVariable(node: SyntaxNode, call: HostCall, host: HostFacts): string {
  const source = host.source(node)
  if (node.type !== 'identifier') return source
  const given = host.assignments
    .filter((one) => one.name === source && one.fn === call.fn && one.start < call.start)
    .at(-1)
  return given === undefined ? source : host.source(given.value)
}
