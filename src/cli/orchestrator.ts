import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { inflate } from 'node:zlib'
import { StetError } from '../errors.ts'
import type { Slicing } from '../model/slice.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** A value that an orchestrator has put into the environment, and the variable where it stood. */
interface Told {
  readonly value: string
  readonly from: string
}

/** What an orchestrator tells of the run that it starts. */
export interface Orchestrated {
  /** The logical time: ISO 8601 with an offset. */
  readonly at: Told | null
  /** The name of a partition, in the orchestrator's own spelling. */
  readonly partition: Told | null
  /** Several partitions that one run is to load. */
  readonly range: { readonly start: string; readonly end: string } | null
  readonly runId: Told | null
}

/**
 * What Airflow (2 and 3) and Dagster say by the environment of the processes that they start.
 *
 * @throws {StetError} `STET_CONFIG` when Dagster's context cannot be read.
 */
export async function orchestratedBy(env: Environment): Promise<Orchestrated> {
  const airflow = airflowIn(env)
  const dagster = await dagsterIn(env)
  return {
    at: airflow.at,
    partition: dagster.partition,
    range: dagster.range,
    runId: airflow.runId ?? dagster.runId,
  }
}

function airflowIn(env: Environment): Pick<Orchestrated, 'at' | 'runId'> {
  const run = env.AIRFLOW_CTX_DAG_RUN_ID
  const task = env.AIRFLOW_CTX_TASK_ID
  const at = toldBy(env, 'AIRFLOW_CTX_LOGICAL_DATE') ?? toldBy(env, 'AIRFLOW_CTX_EXECUTION_DATE')
  if (!run) return { at, runId: null }
  // All tasks of a DAG's run have its id, and two of them may load.
  return {
    at,
    runId: task
      ? { value: `${run}/${task}`, from: 'AIRFLOW_CTX_DAG_RUN_ID and AIRFLOW_CTX_TASK_ID' }
      : { value: run, from: 'AIRFLOW_CTX_DAG_RUN_ID' },
  }
}

function toldBy(env: Environment, from: string): Told | null {
  const value = env[from]
  return value ? { value, from } : null
}

const PIPES = 'DAGSTER_PIPES_CONTEXT'

async function dagsterIn(env: Environment): Promise<Pick<Orchestrated, 'partition' | 'range' | 'runId'>> {
  // Put there by the author of the op, who knows best.
  const named = toldBy(env, 'DAGSTER_PARTITION_KEY')
  const pipes = env[PIPES]
  if (!pipes) return { partition: named, range: null, runId: null }
  const context = await contextOfPipes(pipes)
  const runId = typeof context.run_id === 'string' ? { value: context.run_id, from: PIPES } : null
  if (named !== null) return { partition: named, range: null, runId }
  const key = context.partition_key
  if (typeof key === 'string') return { partition: { value: key, from: PIPES }, range: null, runId }
  const range = context.partition_key_range
  if (typeof range === 'object' && range !== null && 'start' in range && 'end' in range) {
    return { partition: null, range: { start: String(range.start), end: String(range.end) }, runId }
  }
  return { partition: null, range: null, runId }
}

/** The bootstrap payload is JSON, deflated, in base 64; it holds the context itself (`data`) or the file with it (`path`). */
async function contextOfPipes(encoded: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const bytes = await promisify(inflate)(Buffer.from(encoded, 'base64'))
    const params = recordOf(JSON.parse(bytes.toString('utf8')))
    if (typeof params.path === 'string') return recordOf(JSON.parse(await readFile(params.path, 'utf8')))
    return recordOf(params.data)
  } catch (cause) {
    throw new StetError('STET_CONFIG', `Cannot read the context of Dagster Pipes in ${PIPES}`, {
      hint: 'Its loader puts the context elsewhere: name the slice itself, --slice, and unset the variable',
      cause,
    })
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>
  throw new TypeError('not an object')
}

/**
 * Dagster's default keys as names of slices: `2026-08-07-13:00` is an hour, `2026-11-01-01:00-0500` the second of two equal
 * ones, `2026-08-01` also a month.
 */
export function sliceOfPartition(key: string, { size }: Slicing): string {
  const hour = /^(\d{4}-\d{2}-\d{2})-(\d{2}):00(?:([+-]\d{2}):?(\d{2}))?$/.exec(key)
  if (size === 'hour' && hour !== null) {
    const [, day, clock, hours, minutes] = hour
    return `${day}T${clock}${hours === undefined ? '' : `${hours}:${minutes}`}`
  }
  const month = /^(\d{4}-\d{2})-01$/.exec(key)
  if (size === 'month' && month !== null) return month[1] ?? key
  return key
}
