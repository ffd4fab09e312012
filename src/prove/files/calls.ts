/** A system call that may have changed what the file system holds. */
export interface FileCall {
  readonly verb:
    | 'open'
    | 'empty'
    | 'write'
    | 'truncate'
    | 'rename'
    | 'remove'
    | 'link'
    | 'make folder'
    /** Changes nothing, but what was written before it belongs together: a transaction of an embedded database. */
    | 'settle'
  readonly path: string
  /** What a rename or link leads to; null otherwise. */
  readonly to: string | null
  /** The call as the kernel names it. */
  readonly name: string
}

/** What is watched: names, sizes and contents change by nothing else but a write into mapped memory or io_uring. */
export const WATCHED_CALLS: readonly string[] = [
  ...['open', 'openat', 'creat', 'write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'copy_file_range'],
  ...['sendfile', 'truncate', 'ftruncate', 'rename', 'renameat', 'renameat2', 'unlink', 'unlinkat', 'rmdir'],
  ...['link', 'linkat', 'symlink', 'symlinkat', 'mkdir', 'mkdirat', 'fsync', 'fdatasync', 'fcntl'],
]

const LINE = /^\d+ +(\w+)\((.*)\) += \d+(?:<(.*)>)?(?: \([A-Z, ]+\))?$/
const DESCRIPTOR = /(?:\d+|AT_FDCWD)<((?:[^>\\]|\\.)*)>/g
const QUOTED = /"((?:[^"\\]|\\.)*)"/g

/**
 * Reads a line of `strace -f -y -z`: `7 renameat2(AT_FDCWD</w>, "a.tmp", AT_FDCWD</w>, "a", 0) = 0`. Null for calls that
 * change no file. A path given without a folder of its own is taken to be below `folder`.
 */
export function fileCallOf(line: string, folder: string): FileCall | null {
  const [, name = '', args = '', opened] = LINE.exec(line) ?? []
  const descriptors = [...args.matchAll(DESCRIPTOR)].map(([, path = '']) => unescaped(path))
  const names = [...args.matchAll(QUOTED)].map(([, path = '']) => unescaped(path))
  const named = (nth: number) => resolved(descriptors[nth] ?? folder, names[nth] ?? '')
  const one = (verb: FileCall['verb'], path: string | undefined, to: string | null = null) =>
    path?.startsWith('/') === true ? { verb, path, to, name } : null
  switch (name) {
    case 'open':
    case 'openat':
    case 'creat': {
      if (name !== 'creat' && !/O_CREAT|O_TRUNC/.test(args)) return null
      const isEmptied = name === 'creat' || args.includes('O_TRUNC')
      return one(isEmptied ? 'empty' : 'open', opened === undefined ? undefined : unescaped(opened))
    }
    case 'write':
    case 'writev':
    case 'pwrite64':
    case 'pwritev':
    case 'pwritev2':
    case 'sendfile':
      return one('write', descriptors[0])
    case 'fsync':
    case 'fdatasync':
      return one('settle', descriptors[0])
    case 'fcntl':
      // SQLite gives its lock back at the end of a transaction, and without `synchronous` that is all there is to see.
      return args.includes('l_type=F_UNLCK') ? one('settle', descriptors[0]) : null
    case 'copy_file_range':
      return one('write', descriptors[1])
    case 'ftruncate':
      return one('truncate', descriptors[0])
    case 'truncate':
      return one('truncate', named(0))
    case 'rename':
    case 'renameat':
    case 'renameat2':
      return one('rename', named(0), named(1))
    case 'link':
    case 'linkat':
      return one('link', named(0), named(1))
    case 'symlink':
    case 'symlinkat':
      return one('link', resolved(descriptors[0] ?? folder, names[1] ?? ''), names[0] ?? '')
    case 'unlink':
    case 'unlinkat':
    case 'rmdir':
      return one('remove', named(0))
    case 'mkdir':
    case 'mkdirat':
      return one('make folder', named(0))
    default:
      return null
  }
}

/** The call that a line tells of, whether it changes files or not. */
export function nameOfCall(line: string): string | null {
  return /^\d+ +(\w+)\(/.exec(line)?.[1] ?? null
}

function resolved(folder: string, path: string): string {
  const parts: string[] = []
  for (const part of (path.startsWith('/') ? path : `${folder}/${path}`).split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `/${parts.join('/')}`
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', v: '\v', f: '\f' }

/** strace writes what is not ASCII as octal bytes. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  const bytes = text.replace(/\\([0-7]{1,3}|.)/g, (_, code: string) =>
    /^[0-7]/.test(code) ? String.fromCharCode(Number.parseInt(code, 8)) : (ESCAPES[code] ?? code),
  )
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
