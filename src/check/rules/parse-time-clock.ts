import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts, HostFunction } from '../languages/host.ts'
import { ancestor, type SyntaxNode } from '../languages/tree.ts'
import { literally } from '../literally.ts'
import type { Rule } from '../rule.ts'
import { HOST_CLOCK } from './clock.ts'

const LOGS = /^(?:print|log|info|debug|warning|warn|error|exception|critical)$/

export const parseTimeClock: Rule = {
  id: 'parse-time-clock',
  title: 'Read the clock in the task, not while the file is read',
  anomaly: 'moved',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The value is fixed when the file is read, which the scheduler does all the time and a warm worker only once. A retry or a backfill of another day gets the moment of reading, not the day it is about.',
  advice:
    'Use the logical date of the run ({{ ds }}, data_interval_start), or read the clock inside the task.',
  safeForms: [{ for: 'Airflow', code: 'BashOperator(task_id="export", bash_command="export.sh {{ ds }}")' }],
  prove: '`stet prove` runs the task for an old day on two dates: the results differ (NONDETERMINISTIC).',
  limits:
    'Only files that build DAGs, default arguments, and handlers of warm workers are judged; a script reads its clock when it runs.',
  bad: [
    {
      why: 'built into the SQL of an operator',
      path: 'dags/b.py',
      lines: [5],
      code: 'from airflow.providers.google.cloud.operators.bigquery import BigQueryInsertJobOperator\nfrom datetime import datetime\n\ndef build(dag, table):\n    started = datetime.now().strftime("%Y-%m-%d")\n    sql = f"INSERT d.runs VALUES (\'{started}\')"\n    return BigQueryInsertJobOperator(task_id="x", configuration={"query": {"query": sql}})\n',
    },
    {
      why: 'at module level of a DAG',
      path: 'dags/c.py',
      lines: [4],
      code: 'from airflow import DAG\nfrom airflow.operators.bash import BashOperator\nfrom datetime import date\nDAY = date.today()\nwith DAG("x") as dag:\n    BashOperator(task_id="t", bash_command=f"load {DAY}")\n',
    },
    {
      why: 'as a default argument',
      path: 'jobs/d.py',
      lines: [3],
      code: 'import psycopg2\nfrom datetime import date\ndef load(cur, day=date.today()):\n    cur.execute("DELETE FROM t WHERE day = %s", (day,))\n',
    },
    {
      why: 'a function that reads the clock, called while the file is read',
      path: 'dags/window.py',
      lines: [5],
      code: 'from datetime import datetime, timedelta\nfrom airflow import DAG\n\ndef window():\n    end = datetime.now()\n    return end - timedelta(days=1), end\n\nstart, end = window()\n\nwith DAG("d") as dag:\n    BashOperator(task_id="x", bash_command=f"load {start} {end}")\n',
    },
    {
      why: 'a module that a DAG imports',
      path: 'dags/importers/range.py',
      lines: [4],
      code: 'from datetime import date\nimport requests\n\nTODAY = date.today()\n\ndef load():\n    return requests.get("https://example.org/orders", params={"day": TODAY})\n',
    },
    {
      why: 'a handler whose module stays loaded',
      path: 'src/handlers/load.js',
      lines: [1],
      code: 'const today = new Date().toISOString()\nexports.handler = async () => {\n  await load(today)\n}\n',
    },
  ],
  fine: [
    {
      why: 'a start date that is computed before',
      path: 'dags/ingest.py',
      lines: [],
      code: 'from datetime import datetime, timedelta\nfrom airflow import DAG\n\nweek_ago = datetime.today() - timedelta(7)\nargs = {"owner": "airflow", "start_date": week_ago}\n\nwith DAG("d", default_args=args) as dag:\n    BashOperator(task_id="x", bash_command="load")\n',
    },
    {
      why: 'read by the handler itself, and to measure',
      path: 'src/handlers/load.js',
      lines: [],
      code: 'const bootedAt = Date.now()\nexports.handler = async () => {\n  const today = new Date().toISOString()\n  await load(today)\n  console.log(Date.now() - bootedAt)\n}\n',
    },
    {
      why: 'a script beside the DAGs is read when it runs',
      path: 'dags/scripts/export.py',
      lines: [],
      code: 'from datetime import date\n\nTODAY = date.today()\n\ndef export():\n    print(TODAY)\n    save(TODAY)\n\nexport()\n',
    },
    {
      why: 'the function that reads the clock is called by a task',
      path: 'dags/window.py',
      lines: [],
      code: 'from datetime import datetime\nfrom airflow import DAG\n\ndef now():\n    return datetime.now()\n\ndef work():\n    moment = now()\n    return moment\n\nwith DAG("d") as dag:\n    PythonOperator(task_id="x", python_callable=work)\n',
    },
    {
      why: 'inside a task',
      path: 'dags/a.py',
      lines: [],
      code: 'from airflow.decorators import dag, task\nfrom datetime import datetime\n@dag(schedule="@daily")\ndef d():\n    @task\n    def load():\n        print(datetime.now())\n    load()\n',
    },
    {
      why: 'inside a python_callable',
      path: 'dags/a.py',
      lines: [],
      code: 'from airflow import DAG\nfrom airflow.operators.python import PythonOperator\nfrom datetime import datetime\ndef work():\n    now = datetime.now()\n    return now\nwith DAG("x") as dag:\n    PythonOperator(task_id="t", python_callable=work)\n',
    },
    {
      why: 'only logged',
      path: 'dags/a.py',
      lines: [],
      code: 'from airflow import DAG\nimport logging\nfrom datetime import datetime\nlogging.info("parsed at %s", datetime.now())\ndag = DAG("x")\n',
    },
    {
      why: 'a script reads its clock when it runs',
      path: 'scripts/a.py',
      lines: [],
      code: 'import psycopg2\nfrom datetime import date\nTODAY = date.today()\nprint(TODAY)\n',
    },
    {
      why: 'a fixed start date',
      path: 'dags/a.py',
      lines: [],
      code: 'from airflow import DAG\nimport pendulum\ndag = DAG("x", start_date=pendulum.datetime(2025, 1, 1))\n',
    },
    {
      why: 'time that is only measured',
      path: 'dags/a.py',
      lines: [],
      code: 'from airflow import DAG\nimport time\nt0 = time.time()\ndag = DAG("x")\nprint(time.time() - t0)\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined || file.context === 'test' || file.context === 'migration') return
    if (host.language === 'python') yield* inPython(file, host)
    yield* inWarmHandler(host)
  },
}

function* inPython(file: FileFacts, host: HostFacts): Iterable<Report> {
  const buildsDags =
    /\bairflow\b/.test(host.imports) &&
    (/\bDAG\s*\(|@dag\b/.test(file.text) || host.calls.some((call) => isOperator(call)))
  const imported = !buildsDags && isLibraryOfDags(file, host)
  for (const call of host.calls) {
    if (!HOST_CLOCK.test(call.callee) || call.callee === 'Date') continue
    const place = placeOf(call, host, buildsDags || imported)
    if (place === undefined || onlyLoggedOrMeasured(call, host)) continue
    // `start_date=days_ago(1)` moves too, but Airflow wrote it in its own examples for years.
    const startDate = ancestor(call.node, 'keyword_argument', 'pair')
    const moves =
      (startDate !== undefined && /^['"]?(?:start_date|end_date)\b/.test(host.source(startDate))) ||
      isStartDate(call, host)
    // The default of a form that a person fills in.
    const form =
      call.node.parent !== undefined &&
      host.calls.some((one) => one.name === 'Param' && one.start <= call.start && call.end <= one.end)
    const quiet = moves || form || call.name === 'days_ago'
    yield {
      start: call.start,
      end: call.end,
      message:
        place === 'default'
          ? 'The default is read once, when the function is defined: every later call in the same process gets that moment'
          : 'The clock is read while the DAG file is read: a retry or a backfill gets that moment, not the day it is about',
      class: quiet ? 'info' : 'unsafe',
      severity: quiet ? 'info' : place === 'default' || imported ? 'warning' : 'error',
      confidence: quiet ? 'low' : imported && place !== 'default' ? 'medium' : 'high',
    }
  }
}

/** A function that a platform keeps loaded between events: the module is read once, for many of them. */
const HANDLER =
  /\bdef\s+(?:lambda_)?handler\s*\(\s*event|\b(?:module\.)?exports\.handler\s*=|\bexport\s+(?:const|async\s+function|function)\s+handler\b/

function* inWarmHandler(host: HostFacts): Iterable<Report> {
  if (!HANDLER.test(host.text)) return
  for (const call of host.calls) {
    const reads =
      HOST_CLOCK.test(call.callee) &&
      (call.callee !== 'Date' || call.args.length === 0) &&
      call.fn === undefined
    const given = host.assignments.find(
      (one) => one.fn === undefined && one.value.start <= call.start && one.value.end >= call.end,
    )
    if (!reads || given === undefined || /start|begin|boot|init/i.test(given.name)) continue
    if (onlyLoggedOrMeasured(call, host)) continue
    yield {
      start: call.start,
      end: call.end,
      message:
        'The clock is read once, when the module is loaded: every event that this process handles later gets that moment',
      class: 'unsafe',
      severity: 'warning',
      confidence: 'high',
    }
  }
}

/** `week_ago = ...` and then `"start_date": week_ago`, and nothing else. */
function isStartDate(call: HostCall, host: HostFacts): boolean {
  const given = host.assignments.find(
    (one) => one.fn === call.fn && one.value.start <= call.start && one.value.end >= call.end,
  )
  if (given === undefined || !/^\w+$/.test(given.name)) return false
  const behind = host.text.slice(given.value.end)
  const uses = behind.match(new RegExp(`\\b${given.name}\\b`, 'g'))?.length ?? 0
  const starts =
    behind.match(new RegExp(`['"]?\\bstart_date['"]?\\s*[:=]\\s*${given.name}\\b`, 'g'))?.length ?? 0
  return uses > 0 && uses === starts
}

function isOperator(call: HostCall): boolean {
  return /(?:Operator|Sensor|TaskGroup)$/.test(call.name)
}

/** A module beside DAGs that only defines: what it reads at its top is read when a DAG file imports it. */
function isLibraryOfDags(file: FileFacts, host: HostFacts): boolean {
  if (!/(?:^|\/)(?:dags|plugins)\//.test(file.path) || host.functions.length === 0) return false
  if (/__name__\s*==|argparse|\bclick\b|sys\.argv/.test(host.text)) return false
  return host.root.children.every(
    (one) =>
      one.type !== 'expression_statement' ||
      one.children.every(
        (inner) =>
          inner.type !== 'call' ||
          /^(?:logging|logger|load_dotenv|sys\.path|os\.environ|warnings)\b/.test(host.source(inner)),
      ),
  )
}

function placeOf(call: HostCall, host: HostFacts, buildsDags: boolean): 'parse' | 'default' | undefined {
  const parameter = ancestor(call.node, 'default_parameter', 'typed_default_parameter')
  if (parameter !== undefined && !isInside(call.node, 'lambda', parameter)) return 'default'
  if (!buildsDags || isInside(call.node, 'lambda', undefined)) return undefined
  if (call.fn === undefined)
    return isInside(call.node, 'if_statement', undefined) &&
      /__main__/.test(host.source(ancestor(call.node, 'if_statement') ?? call.node).slice(0, 60))
      ? undefined
      : 'parse'
  if (buildsTasks(call.fn, host)) return 'parse'
  return isResult(call, host) && calledAtImport(call.fn, host) ? 'parse' : undefined
}

/** `start, end = window()` of a module, where `window()` reads the clock and returns what it made of it. */
function calledAtImport(fn: HostFunction, host: HostFacts): boolean {
  return (
    fn.name !== '' &&
    fn.parent === undefined &&
    host.assignments.some(
      ({ value, fn: within }) =>
        within === undefined &&
        host.callOf(value)?.callee === fn.name &&
        !isInside(value, 'if_statement', undefined),
    )
  )
}

function isResult(call: HostCall, host: HostFacts): boolean {
  if (isInside(call.node, 'return_statement', call.fn?.node)) return true
  const name = host.assignments.find(
    (one) => one.fn === call.fn && one.value.start <= call.start && one.value.end >= call.end,
  )?.name
  const body = call.fn === undefined ? '' : host.source(call.fn.node)
  return name !== undefined && new RegExp(`\\breturn\\b[^\\n]*\\b${literally(name)}\\b`).test(body)
}

/** A function that makes operators runs while the file is read, unless it is a task itself. */
function buildsTasks(fn: HostFunction, host: HostFacts): boolean {
  if (
    /@(?:\w+\.)?task\b/.test(fn.decorators) ||
    /^(?:execute|poke|__call__|run|pre_execute|post_execute)$/.test(fn.name)
  )
    return false
  if (
    new RegExp(`python_callable\\s*=\\s*${fn.name}\\b|callback\\w*\\s*=\\s*\\[?${fn.name}\\b`).test(host.text)
  )
    return false
  if (/@(?:\w+\.)?dag\b/.test(fn.decorators)) return true
  return host.calls.some((call) => call.fn === fn && isOperator(call))
}

function isInside(node: SyntaxNode, type: string, limit: SyntaxNode | undefined): boolean {
  for (let at = node.parent; at !== undefined && at !== limit; at = at.parent)
    if (at.type === type) return true
  return false
}

function onlyLoggedOrMeasured(call: HostCall, host: HostFacts): boolean {
  for (
    let at: SyntaxNode | undefined = call.node.parent;
    at !== undefined && at !== call.fn?.node;
    at = at.parent
  ) {
    if (at.type === 'call') {
      const outer = host.callOf(at)
      if (outer !== undefined && LOGS.test(outer.name)) return true
    }
    if (at.type === 'assignment') {
      const name = host.assignments.find(
        (one) => one.value.start <= call.start && one.value.end >= call.end,
      )?.name
      if (name === undefined || !/^\w+$/.test(name)) return false
      const uses = [...host.text.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].filter(
        (match) => match.index > at.end,
      )
      if (uses.length === 0) return true
      return uses.every((match) => {
        const line = lineAround(host.text, match.index)
        return (
          /\b(?:print|log(?:ger|ging)?\.\w+|info|debug)\s*\(/.test(line) ||
          new RegExp(`-\\s*${name}\\b`).test(line)
        )
      })
    }
  }
  return false
}

function lineAround(text: string, offset: number): string {
  return text.slice(
    text.lastIndexOf('\n', offset) + 1,
    text.indexOf('\n', offset) < 0 ? text.length : text.indexOf('\n', offset),
  )
}
