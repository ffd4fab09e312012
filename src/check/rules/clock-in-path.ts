import { isRerun } from '../context.ts'
import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import type { SyntaxNode } from '../languages/tree.ts'
import { literally } from '../literally.ts'
import type { Rule } from '../rule.ts'
import { HOST_RANDOM } from './clock.ts'
import { clockBehind, type Trace } from './clock-trace.ts'

/** A property that is the name of what is written: `env.key = ...`, `self.file_path = ...`. */
const NAMED_OUTPUT =
  /\.(?:s3_?)?(?:(?:object|output|target|dest\w*)_?)?(?:key|file_?name|file_?path|blob_?name|path)$/i
const DATA_FILE = /\.(?:csv|tsv|json|ndjson|jsonl|parquet|avro|orc|xlsx|xml|gz|zip)\b/i

/** Calls that write a file or an object, and which argument names it. */
const WRITERS =
  /^(?:open|to_csv|to_parquet|to_json|to_excel|to_feather|to_pickle|parquet|csv|json|orc|put_object|upload_file|upload_fileobj|upload_blob|upload_from_string|upload_from_filename|load_file|load_string|load_bytes|blob|write_text|write_bytes|save|savetxt|writeFile|writeFileSync|createWriteStream|upload|putObject|PutObjectCommand|writeToS3|write_table|write_parquet|write_csv|saveAsTable|dump_to|export_table_to_storage|extract_table)$/
const NOT_DATA =
  /log|backup|bak\b|tmp|temp|debug|archive|snapshot|report|screenshot|trace|audit|cache|history|dump|checkpoint|model|plot|chart|figure|image|img|png|migration|run_?dir|experiment|output_?dir/i
const LOGICAL = /logical_date|execution_date|data_interval|ds_nodash|\bds\b|run_date|partition_date|\{\{/

export const clockInPath: Rule = {
  id: 'clock-in-path',
  title: 'Name an output by the run it belongs to, not by the clock',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'A rerun writes a second file under another name. Readers that take all files of the folder read the rows of both.',
  advice: 'Name the file by the logical date, a run key or a hash of its content, and overwrite it.',
  safeForms: [
    { for: 'Python', code: 'path = f"captures/{data_interval_start:%Y-%m-%d}.csv"' },
    { for: 'shell', code: 'out="export_${RUN_DATE:?}.csv"' },
  ],
  prove: '`stet prove` runs the job twice and compares the folder: there is one file more (DOUBLED).',
  limits:
    'A path that is built in another function is not followed. Names of logs, backups and temporary files are left out.',
  bad: [
    {
      why: 'a random name in the folder of the day',
      path: 'pipelines/save.py',
      lines: [6],
      code: 'import os, uuid\nimport pandas as pd\nfrom prefect import task\n@task\ndef save(frame, folder, day):\n    path = os.path.join(folder, f"day={day}", f"{uuid.uuid4()}.csv")\n    frame.to_csv(path, index=False)\n',
    },
    {
      why: 'the clock names the file',
      path: 'dags/e.py',
      lines: [4],
      code: 'from airflow.decorators import task\nimport datetime\ndef export(rows):\n    date = datetime.datetime.now().strftime("%Y-%m-%d")\n    file_name = f"capture_{date}.csv"\n    with open(file_name, "w") as f:\n        f.write(rows)\n',
    },
    {
      why: 'directly in the path',
      path: 'jobs/e.py',
      lines: [4],
      code: 'import pandas as pd\nfrom datetime import date\ndef export(df):\n    df.to_parquet(f"s3://lake/orders/{date.today()}.parquet")\n',
    },
    {
      why: 'in a shell redirection',
      path: 'scripts/e.sh',
      lines: [2],
      code: '#!/bin/bash\npsql -c "select * from t" > orders_$(date +%s).csv\n',
    },
    {
      why: 'in Node',
      path: 'jobs/e.ts',
      lines: [3],
      code: 'import { writeFile } from "node:fs/promises";\nexport async function out(rows: string) {\n  await writeFile(`data/rows-${Date.now()}.json`, rows);\n}\n',
    },
    {
      why: 'a name that is kept for the writer',
      path: 'src/jobs/fetch.js',
      lines: [2],
      code: 'exports.run = async (settings) => {\n  settings.key = `orders/${new Date().toISOString()}.ndjson`\n  await store(settings)\n}\n',
    },
  ],
  fine: [
    {
      why: 'a random name that only this function knows',
      path: 'pipelines/save.py',
      lines: [],
      code: 'import os, uuid\nimport pandas as pd\nfrom prefect import task\n@task\ndef save(frame, client):\n    path = f"/tmp/{uuid.uuid4()}.csv"\n    frame.to_csv(path, index=False)\n    client.load_table_from_uri(path, "d.t").result()\n',
    },
    {
      why: 'the one file is loaded by its own name',
      path: 'dags/gdp.py',
      lines: [],
      code: 'from datetime import datetime\nimport airflow\ndef load(frame, client):\n    day = datetime.today().strftime("%Y-%m-%d")\n    path = f"gs://lake/gdp/{day}.csv"\n    frame.to_csv(path)\n    client.load_table_from_uri(path, "eco.gdp", job_config=TRUNCATE).result()\n',
    },
    {
      why: 'the day that is read names the file, counted back from today',
      path: 'dags/calls.py',
      lines: [],
      code: 'from datetime import datetime, timedelta\nimport airflow\ndef export(days, query):\n    for n in range(days):\n        day = datetime.now() - timedelta(days=n)\n        frame = read(query.format(n=n))\n        frame.to_csv(f"/data/calls_{day:%m_%d}.csv")\n',
    },
    {
      why: 'the clock only where the caller says nothing',
      path: 'dags/export.py',
      lines: [],
      code: 'from datetime import datetime\nimport airflow\ndef save(frame, **kwargs):\n    stamp = kwargs.get("timestamp", datetime.now().strftime("%Y%m%d"))\n    frame.to_csv(f"/data/ids_{stamp}.csv")\n',
    },
    {
      why: 'a name that is kept for the writer, of the day the run is about',
      path: 'src/jobs/fetch.js',
      lines: [],
      code: 'exports.run = async (settings, event) => {\n  settings.key = `orders/${event.day}.ndjson`\n  settings.started = new Date()\n  await store(settings)\n}\n',
    },
    {
      why: 'the logical date',
      path: 'dags/e.py',
      lines: [],
      code: 'from airflow.decorators import task\ndef export(df, data_interval_start):\n    df.to_parquet(f"/out/part-{data_interval_start:%Y%m%d%H}.parquet")\n',
    },
    {
      why: 'removed again',
      path: 'jobs/e.py',
      lines: [],
      code: 'import os, time\nimport pandas as pd\ndef f(df):\n    name = f"rows_{time.time()}.csv"\n    df.to_csv(name)\n    os.remove(name)\n',
    },
    {
      why: 'a log',
      path: 'jobs/e.py',
      lines: [],
      code: 'import pandas as pd\nfrom datetime import datetime\ndef f(df):\n    open(f"logs/run_{datetime.now()}.log", "w").write("x")\n',
    },
    {
      why: 'a backup is meant to be another file each time',
      path: 'scripts/b.sh',
      lines: [],
      code: '#!/bin/bash\npg_dump shop > backup_$(date +%F).sql\n',
    },
    {
      why: 'reading',
      path: 'jobs/e.py',
      lines: [],
      code: 'import pandas as pd\nfrom datetime import date\ndef f():\n    return open(f"in_{date.today()}.csv").read()\n',
    },
    {
      why: 'the clock is only a fallback',
      path: 'jobs/e.py',
      lines: [],
      code: 'import pandas as pd\nfrom datetime import date\ndef f(df, day=None):\n    day = day or date.today()\n    df.to_csv(f"rows_{day}.csv")\n',
    },
    {
      why: 'a column, not a path',
      path: 'jobs/e.py',
      lines: [],
      code: 'import pandas as pd\nfrom datetime import datetime\ndef f(df):\n    df["loaded_at"] = datetime.now()\n    df.to_csv("rows.csv")\n',
    },
  ],
  *check(file): Iterable<Report> {
    if (file.context === 'test') return
    if (file.host !== undefined) yield* inHost(file, file.host)
    for (const command of file.shell?.commands ?? []) {
      const path = command.writesTo?.path
      if (path === undefined || NOT_DATA.test(path) || /dump|log|backup/i.test(command.name)) continue
      const variable = /\$\{?(\w+)\}?/.exec(path)?.[1]
      const given =
        variable === undefined
          ? undefined
          : new RegExp(
              `(?:^|\\n)\\s*(?:local\\s+|export\\s+)?${variable}=["']?[^\\n]*(?:\\$\\(|\`)date\\b[^\\n]*`,
            ).exec(file.text)?.[0]
      const direct = /(?:\$\(|`)\s*date\b/.test(path)
      if (!direct && (given === undefined || NOT_DATA.test(given) || /-d\b|--date|:-/.test(given))) continue
      if (direct && /-d\s|--date/.test(path)) continue
      if (
        new RegExp(
          `\\b(?:rm|mv)\\b[^\\n]*${variable === undefined ? literally(path.slice(0, 8)) : `\\$\\{?${variable}`}`,
        ).test(file.text.slice(command.end))
      )
        continue
      yield {
        start: command.start,
        end: command.end,
        message: `The name ${path} holds the clock: a second run writes a second file beside the first`,
        class: 'unsafe',
        severity: 'warning',
        confidence: 'medium',
      }
    }
  },
}

function* inHost(file: FileFacts, host: HostFacts): Iterable<Report> {
  const told = new Set<number>()
  for (const call of host.calls) {
    const path = writtenPath(call, host)
    if (path === undefined) continue
    const context = file.contextOf(call.fn)
    if (context === 'request' || context === 'migration' || context === 'seed') continue
    const timed = clockBehind(path, host, call.fn, 3)
    // A random name is as new with each run as one by the clock.
    const traced = timed ?? clockBehind(path, host, call.fn, 3, HOST_RANDOM)
    if (traced === undefined || told.has(traced.clock.start)) continue
    const names = [host.source(path), ...traced.through].join(' ')
    if (NOT_DATA.test(names) || LOGICAL.test(names) || removedLater(host, call, path)) continue
    told.add(traced.clock.start)
    // `Math.floor(Date.now() / hour) * hour` is a bucket that somebody chose.
    const bucket = [...traced.through, host.source(path)].some((one) =>
      /\b(?:floor|trunc|startOf|replace\(minute|round)\b/.test(one),
    )
    const loud = isRerun(context) && !bucket && !countedBack(traced, host) && !takenByName(host, call, path)
    yield {
      start: traced.clock.start,
      end: traced.clock.end,
      message: `${timed === undefined ? 'A random id' : 'The clock'} names the output: a second run writes a second ${call.name === 'saveAsTable' ? 'table' : 'file'} beside the first, and readers of the folder take both`,
      class: loud ? 'unsafe' : 'info',
      severity: !loud
        ? 'info'
        : timed !== undefined && context === 'task' && host.language === 'python'
          ? 'error'
          : 'warning',
      confidence: 'medium',
    }
  }
  yield* namedForLater(file, host, told)
}

/** The file is written elsewhere, by the name that is kept in a property. */
function* namedForLater(file: FileFacts, host: HostFacts, told: ReadonlySet<number>): Iterable<Report> {
  for (const { name, value, fn } of host.assignments) {
    if (!NAMED_OUTPUT.test(name) || !DATA_FILE.test(host.source(value))) continue
    const context = file.contextOf(fn)
    const traced = clockBehind(value, host, fn, 2)
    if (traced === undefined || told.has(traced.clock.start)) continue
    const names = [name, host.source(value), ...traced.through].join(' ')
    if (NOT_DATA.test(names) || LOGICAL.test(names) || ['request', 'migration', 'seed'].includes(context))
      continue
    const loud = isRerun(context)
    yield {
      start: traced.clock.start,
      end: traced.clock.end,
      message:
        'The clock names the output: a second run writes a second file beside the first, and readers of the folder take both',
      class: loud ? 'unsafe' : 'info',
      severity: loud ? 'warning' : 'info',
      confidence: loud ? 'medium' : 'low',
    }
  }
}

function writtenPath(call: HostCall, host: HostFacts): SyntaxNode | undefined {
  if (!WRITERS.test(call.name)) return undefined
  if (call.name === 'open') {
    if (!/^(?:open|io\.open|gzip\.open|codecs\.open|smart_open\.open|fs\.open|s3\.open)$/.test(call.callee))
      return undefined
    const mode = call.named.get('mode') ?? call.args[1]
    if (mode === undefined || !/^[wx]/.test(host.textOf(mode) ?? '')) return undefined
    return call.args[0]
  }
  if (/^(?:parquet|csv|json|orc|save)$/.test(call.name) && !/write/.test(call.receiver)) return undefined
  const key =
    call.named.get('Key') ??
    call.named.get('key') ??
    call.named.get('object_name') ??
    call.named.get('path') ??
    call.named.get('s3_key') ??
    call.named.get('destination_blob_name')
  if (key !== undefined) return key
  if (/^(?:upload_file|upload_fileobj|load_file|upload_blob)$/.test(call.name)) return call.args.at(-1)
  if (call.name === 'writeToS3') return call.args[1]
  return call.args[0]
}

/** `now() - timedelta(days=n)`: the day that is read, which a second run of it names the same. */
function countedBack({ clock, through }: Trace, host: HostFacts): boolean {
  const around = host.text.slice(clock.end, clock.end + 80).split('\n')[0] ?? ''
  return [around, ...through].some((one) =>
    /-\s*(?:\w+\.)*(?:timedelta|Timedelta|relativedelta|DateOffset)\(\s*(?:days|months|weeks|hours)\s*=\s*[a-z_]\w*\s*\)/.test(
      one,
    ),
  )
}

/** The next step takes this one file by its name, not all that lie in the folder. */
function takenByName(host: HostFacts, call: HostCall, path: SyntaxNode): boolean {
  if (path.type !== 'identifier') return false
  const name = host.source(path)
  return host.calls.some(
    (one) =>
      one.start > call.end &&
      one.fn === call.fn &&
      /^(?:load_table_from_(?:uri|file)|read_(?:csv|json|parquet|excel)|copy_from|copy_expert)$/.test(
        one.name,
      ) &&
      one.args.some((argument) => host.source(argument) === name),
  )
}

function removedLater(host: HostFacts, call: HostCall, path: SyntaxNode): boolean {
  const name = host.source(path)
  return host.calls.some(
    (one) =>
      one.start > call.start &&
      one.fn === call.fn &&
      /^(?:remove|unlink|unlinkSync|rmtree|rm|rmSync|delete_object|removeSync|deleteFile)$/.test(one.name) &&
      (host.source(one.node).includes(name) || path.type !== 'identifier'),
  )
}
