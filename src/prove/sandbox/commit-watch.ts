/** A commit that is durable, and whose backend waits to be let on. */
interface WaitingCommit {
  readonly pid: number
}

/** Stops every commit of one database when it is durable, before anything else can happen. */
export interface CommitWatch extends AsyncDisposable {
  /** Asked once for each commit, in order. `stay`: the backend waits until it is ended. Default: all go on. */
  onCommit: (commit: WaitingCommit) => 'go on' | 'stay'
}

export interface CommitWatcher extends AsyncDisposable {
  watch(database: string): CommitWatch
}

/**
 * What the sandbox's server has to be started with. A session whose synchronous_commit is `on` then waits, after each
 * commit, for a standby that does not exist; one with the default does not. The wait ends by a cancel, and the commit
 * stands: a debugger's step, from commit to commit, also inside a CALL, which the wire knows nothing of.
 */
export const COMMIT_WATCH_SETTINGS: readonly string[] = [
  'synchronous_commit=local',
  'synchronous_standby_names=stet_never',
]

/** What a session has to be started with for its commits to be stopped. */
export const WATCHED_SESSION: Readonly<Record<string, string>> = { synchronous_commit: 'on' }

const WATCHING_MS = 1
/** A job may set synchronous_commit itself; its commits must not wait for ever. */
const IDLE_MS = 200

const WAITING = `
select pid, datname, backend_xid::text as transaction
  from pg_stat_activity
 where wait_event = 'SyncRep'`

/** The part of a session that is needed here. */
interface Questions extends AsyncDisposable {
  query(sql: string, values?: readonly unknown[]): Promise<readonly Readonly<Record<string, string | null>>[]>
}

export function startCommitWatcher(session: Questions): CommitWatcher {
  const watches = new Map<string, CommitWatch>()
  /** Of each backend the commit that was dealt with: it may be seen once more before it has gone on. */
  const done = new Map<string, string>()
  let isOver = false

  const look = async (): Promise<number> => {
    const waiting = await session.query(WAITING)
    for (const { pid, datname, transaction } of waiting) {
      if (pid === null || pid === undefined || done.get(pid) === transaction) continue
      done.set(pid, transaction ?? '')
      const answer = watches.get(datname ?? '')?.onCommit({ pid: Number(pid) }) ?? 'go on'
      if (answer === 'go on') await session.query('select pg_cancel_backend($1)', [pid])
    }
    return waiting.length
  }
  const loop = async () => {
    while (!isOver) {
      if ((await look()) > 0) continue
      const ms = watches.size > 0 ? WATCHING_MS : IDLE_MS
      await new Promise((resolve) => setTimeout(resolve, ms).unref())
    }
  }
  // Its session is closed when the cluster is: what it was doing then is of no interest.
  void loop().catch(() => undefined)

  return {
    watch: (database) => {
      const watch: CommitWatch = {
        onCommit: () => 'go on',
        [Symbol.asyncDispose]: async () => {
          watches.delete(database)
        },
      }
      watches.set(database, watch)
      return watch
    },
    [Symbol.asyncDispose]: async () => {
      isOver = true
      await session[Symbol.asyncDispose]()
    },
  }
}
