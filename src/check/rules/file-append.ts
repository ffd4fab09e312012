import { isRerun } from '../context.ts'
import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import type { SyntaxNode } from '../languages/tree.ts'
import { literally } from '../literally.ts'
import type { Rule } from '../rule.ts'

/** Files that are meant to grow, or belong to the machine and not to the data. */
const NOT_DATA =
  /log(?:s|file|ger|_file|_path|path|name)?\b|\.log|xcom|GITHUB_|\.env\b|\/dev\/|bashrc|bash_profile|zshrc|\.profile|known_hosts|authorized_keys|\/etc\/|crontab|history|debug|error|err\b|trace|stderr|stdout|audit|\.gitignore|\.conf\b|\.cfg\b|\.ini\b|\.toml\b|\.ya?ml\b|\.md\b|\.html?\b|progress|checkpoint|report|metrics|stats|\.lock|\.pid|status|journal|output_log|README|makefile|dockerfile/i
const DATA_FILE = /\.(?:csv|tsv|jsonl?|ndjson|parquet|avro|txt|dat|sql|gz|orc|xml)\b/i

export const fileAppend: Rule = {
  id: 'file-append',
  title: 'Write a data file anew instead of appending to it',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The file keeps the lines of the run before. A retry adds them again, and a crash leaves half of them for the next run to add to.',
  advice: 'Write the whole file under another name and rename it over the old one.',
  safeForms: [
    {
      for: 'Python',
      code: 'with open(f"{final}.tmp", "w") as f:\n    df.to_csv(f, header=False)\nos.replace(f"{final}.tmp", final)',
    },
    { for: 'shell', code: 'export_orders > orders.csv.tmp\nmv orders.csv.tmp orders.csv' },
  ],
  prove: '`stet prove` compares the file after two runs (DOUBLED).',
  limits:
    'Whether the file is new in each run (a fresh container) is not seen; names of log files are left out.',
  bad: [
    {
      why: 'open for appending in a task',
      path: 'dags/s.py',
      lines: [4],
      code: 'from airflow.decorators import task\n@task(retries=5)\ndef load(df):\n    with open("/out/loaded_rows.csv", "a") as f:\n        df.to_csv(f)\n',
    },
    {
      why: 'to_csv with mode a',
      path: 'jobs/s.py',
      lines: [3],
      code: 'import pandas as pd\ndef load(df):\n    df.to_csv("rows.csv", mode="a")\n',
    },
    {
      why: 'appendFile',
      path: 'jobs/s.ts',
      lines: [3],
      code: 'import { appendFile } from "node:fs/promises";\nexport const f = async (rows: string) => {\n  await appendFile("out/rows.ndjson", rows);\n};\n',
    },
    {
      why: 'a redirection that appends',
      path: 'scripts/e.sh',
      lines: [2],
      code: '#!/bin/bash\npsql -c "select * from t" >> rows.csv\n',
    },
  ],
  fine: [
    {
      why: 'a file that is only locked',
      path: 'jobs/s.py',
      lines: [],
      code: 'import fcntl\nimport pandas as pd\ndef only_one(path):\n    held = path.open("a+")\n    fcntl.flock(held.fileno(), fcntl.LOCK_EX)\n',
    },
    {
      why: 'a log file',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef f():\n    with open("run.log", "a") as f:\n        f.write("x")\n',
    },
    {
      why: 'made anew earlier in the same run',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef f(chunks):\n    open("rows.csv", "w").close()\n    for c in chunks:\n        c.to_csv("rows.csv", mode="a")\n',
    },
    {
      why: 'removed earlier in the same run',
      path: 'jobs/s.py',
      lines: [],
      code: 'import os\nimport pandas as pd\ndef f(chunks, path):\n    os.remove(path)\n    for c in chunks:\n        c.to_csv(path, mode="a")\n',
    },
    {
      why: 'the answer file of a fresh pod',
      path: 'scripts/x.sh',
      lines: [],
      code: '#!/bin/bash\necho "{}" >> /airflow/xcom/return.json\n',
    },
    {
      why: 'settings of a workflow',
      path: 'scripts/x.sh',
      lines: [],
      code: '#!/bin/bash\necho "a=b" >> "$GITHUB_OUTPUT"\necho "x" >> ~/.bashrc\n',
    },
    {
      why: 'the script starts the file',
      path: 'scripts/x.sh',
      lines: [],
      code: '#!/bin/bash\necho "id,name" > rows.csv\npsql -c "select 1" >> rows.csv\n',
    },
    {
      why: 'opened for writing',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef f(ds):\n    with open(f"{ds}.csv", "w") as f:\n        f.write("x")\n',
    },
    {
      why: 'the header is written only with the first chunk',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef f(chunks):\n    for i, c in enumerate(chunks):\n        c.to_csv("rows.csv", mode="w" if i == 0 else "a")\n',
    },
  ],
  *check(file): Iterable<Report> {
    if (file.context === 'test') return
    if (file.host !== undefined) yield* inHost(file, file.host)
    yield* inShell(file)
  },
}

function* inHost(file: FileFacts, host: HostFacts): Iterable<Report> {
  for (const call of host.calls) {
    const path = appendedPath(call, host)
    if (path === undefined) continue
    const context = file.contextOf(call.fn)
    if (context === 'request' || context === 'migration') continue
    const source = host.source(path)
    const shown = resolved(host, path, call)
    if (NOT_DATA.test(shown) || NOT_DATA.test(source) || NOT_DATA.test(call.fn?.name ?? '')) continue
    if (startedBefore(host, call, source)) continue
    const dataFile = DATA_FILE.test(shown)
    const loud = isRerun(context) && (dataFile || context === 'task')
    yield {
      start: call.start,
      end: call.end,
      message: `A second run adds its lines to ${source.length < 50 ? source : 'the file'} behind those of the first`,
      class: loud ? 'unsafe' : 'info',
      severity: loud ? 'warning' : 'info',
      confidence: dataFile ? 'medium' : 'low',
    }
  }
}

/** The path that is opened for appending, or undefined for any other call. */
function appendedPath(call: HostCall, host: HostFacts): SyntaxNode | undefined {
  const text = (node: SyntaxNode | undefined): string => (node === undefined ? '' : (host.textOf(node) ?? ''))
  const first = call.args[0]
  if (host.language === 'python') {
    if (/^(?:open|io\.open|codecs\.open|gzip\.open|smart_open\.open|fsspec\.open)$/.test(call.callee)) {
      return /^a[bt+]*$/.test(text(call.named.get('mode') ?? call.args[1])) ? first : undefined
    }
    // Opened to be locked, not to be written to.
    if (/\b(?:flock|lockf|portalocker)\b/.test(call.fn === undefined ? '' : host.source(call.fn.node)))
      return undefined
    if (
      call.name === 'open' &&
      call.receiver !== '' &&
      /^a[bt+]*$/.test(text(call.named.get('mode') ?? first))
    )
      return receiverNode(call)
    if (/^to_(?:csv|json|parquet)$/.test(call.name) && text(call.named.get('mode')) === 'a')
      return call.named.get('path_or_buf') ?? first
    return undefined
  }
  if (/^(?:appendFile|appendFileSync)$/.test(call.name)) return first
  if (call.name === 'createWriteStream' && /^a\+?$/.test(text(call.named.get('flags')))) return first
  if (/^writeFile(?:Sync)?$/.test(call.name) && /^a\+?$/.test(text(call.named.get('flag')))) return first
  return undefined
}

function receiverNode(call: HostCall): SyntaxNode | undefined {
  return call.node.children[0]?.children[0]
}

/** A name resolved to the texts that it was given, for the test on log files. */
function resolved(host: HostFacts, path: SyntaxNode, call: HostCall): string {
  const literal = host.textOf(path)
  const source = host.source(path)
  const given = host.assignments
    .filter((one) => one.name === source && (one.fn === call.fn || one.fn === undefined))
    .map((one) => host.source(one.value))
  return [literal ?? '', ...given].join(' ')
}

/** Written anew, emptied or removed earlier in the same function, or opened so in the first round of a loop. */
function startedBefore(host: HostFacts, call: HostCall, path: string): boolean {
  return host.calls.some((one) => {
    if (
      one === call ||
      one.start >= call.start ||
      (one.fn !== call.fn && one.fn !== undefined && call.fn?.parent !== one.fn)
    )
      return false
    const source = host.source(one.node)
    if (!source.includes(path)) return false
    if (
      /^(?:remove|unlink|unlinkSync|rm|rmSync|rmtree|writeFile|writeFileSync|touch|truncate|truncateSync|NamedTemporaryFile|mkstemp|copyfile|copy)$/.test(
        one.name,
      )
    )
      return true
    if (/^(?:open|to_csv|createWriteStream)$/.test(one.name))
      return (
        /['"]w[bt+]*['"]|mode\s*=\s*['"]w|flags\s*:\s*['"]w/.test(source) ||
        (one.name === 'to_csv' && !/mode\s*=/.test(source))
      )
    return false
  })
}

function* inShell(file: FileFacts): Iterable<Report> {
  const commands = file.shell?.commands ?? []
  for (const command of commands) {
    const { appendsTo } = command
    if (appendsTo === undefined || NOT_DATA.test(appendsTo.path) || !DATA_FILE.test(appendsTo.path)) continue
    const name = appendsTo.path
    const started = commands.some(
      (one) =>
        one.start < command.start &&
        (one.writesTo?.path === name ||
          (/^(?:rm|truncate|touch|cp|mktemp|tee|mv|head)$/.test(one.name) &&
            one.args.some((argument) => argument.text === name))),
    )
    const emptied = new RegExp(`(?:^|\\n)\\s*:?\\s*>\\s*["']?${literally(name)}`).test(
      file.text.slice(0, command.start),
    )
    const removed =
      /\brm\s+-r?f?/.test(file.text.slice(0, command.start)) &&
      file.text.slice(0, command.start).includes(name)
    if (started || emptied || removed || /tmp|temp/i.test(name)) continue
    yield {
      start: command.start,
      end: command.end,
      message: `A second run adds its lines to ${name} behind those of the first`,
      class: 'unsafe',
      severity: 'warning',
      confidence: 'medium',
    }
  }
}
