import type { FileCall } from './calls.ts'

/** One change of the command's files; with `occurrence`, `signature` finds it again in another run. */
export interface FileChange {
  readonly signature: string
  readonly occurrence: number
  /** Changes of one kind, for choosing among many. */
  readonly shape: string
  readonly verb: FileCall['verb']
  /** Its path in the work folder, or `~/path`; of a renamed one the new. */
  readonly file: string
  /** `write to out.csv`. */
  readonly what: string
  /** The system call that made it. */
  readonly call: string
}

export interface FileCounterOptions {
  readonly work: string
  readonly home: string
  readonly foldNames: boolean
  /** Whether a file, by its path in the work folder or as `~/path`, is to be looked at. */
  readonly counts: (path: string) => boolean
}

/** Numbers the changes of a run. Null for files that do not outlive it or do not count. */
export function fileCounter(options: FileCounterOptions): (call: FileCall) => FileChange | null {
  const occurrences = new Map<string, number>()
  return (call) => {
    const names = [call.path, call.to].map((path) => (path === null ? null : placeOf(path, options)))
    const [path = null, to = null] = names
    const name = to ?? path
    // The lock of a file that does not count may end a transaction of one that does.
    if (name === null || (call.verb !== 'settle' && !options.counts(name))) return null
    const folded = options.foldNames ? foldedName(name) : name
    const signature = `${call.verb} ${folded}`
    const occurrence = (occurrences.get(signature) ?? 0) + 1
    occurrences.set(signature, occurrence)
    return {
      signature,
      occurrence,
      shape: `${call.verb} ${foldedName(name)}`,
      verb: call.verb,
      file: name,
      what: textOf(call, path, to),
      call: call.name,
    }
  }
}

function placeOf(path: string, { work, home }: FileCounterOptions): string | null {
  if (path.startsWith(`${work}/`)) return path.slice(work.length + 1)
  return path.startsWith(`${home}/`) ? `~/${path.slice(home.length + 1)}` : null
}

/** `part-0007.csv` and `tmpx81k_a2.csv` are one kind of file: the folder and the ending tell it. */
function foldedName(name: string): string {
  const [, folder = '', file = ''] = /^(.*\/)?([^/]*)$/.exec(name) ?? []
  const ending = /\.[A-Za-z]\w*(\.[A-Za-z]\w*)?$/.exec(file.slice(1))?.[0] ?? ''
  return `${folder.replace(/\d+/g, '#')}*${ending.replace(/\d+/g, '#')}`
}

function textOf({ verb }: FileCall, path: string | null, to: string | null): string {
  switch (verb) {
    case 'open':
      return `open ${path}`
    case 'empty':
      return `open ${path}, which empties it`
    case 'write':
      return `write to ${path}`
    case 'rename':
      return `rename ${path ?? 'a file from elsewhere'} to ${to ?? 'elsewhere'}`
    default:
      return `${verb} ${path}`
  }
}
