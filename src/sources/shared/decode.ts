import { StetError } from '../../errors.ts'

/** The encoding that the first bytes announce. */
interface ByteOrderMark {
  readonly encoding: 'utf-8' | 'utf-16le' | 'utf-16be'
  readonly length: number
}

function byteOrderMark(head: Uint8Array): ByteOrderMark | null {
  if (head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf) return { encoding: 'utf-8', length: 3 }
  if (head[0] === 0xff && head[1] === 0xfe) return { encoding: 'utf-16le', length: 2 }
  if (head[0] === 0xfe && head[1] === 0xff) return { encoding: 'utf-16be', length: 2 }
  return null
}

/** What a file's bytes are, and how many at the beginning are no text. */
export interface TextEncoding {
  /** A label that `TextDecoder` knows, in lower case. */
  readonly encoding: string
  readonly skip: number
}

/**
 * The encoding of a file that begins with `head`: as named by the user, else as its byte order mark says, else
 * UTF-8. A mark that contradicts the user is refused rather than guessed about.
 */
export function encodingOf(head: Uint8Array, named: string | undefined, name: string): TextEncoding {
  const mark = byteOrderMark(head)
  refuseOtherFormats(head, name)
  if (named === undefined) {
    if (mark !== null) return { encoding: mark.encoding, skip: mark.length }
    return { encoding: 'utf-8', skip: 0 }
  }
  const wanted = canonicalEncoding(named)
  if (mark === null) return { encoding: wanted, skip: 0 }
  // `utf-16` leaves the byte order to the mark; TextDecoder takes it for utf-16le.
  const agreed = wanted === mark.encoding || (/^utf-?16$/i.test(named) && mark.encoding === 'utf-16be')
  if (!agreed) {
    throw new StetError(
      'STET_SOURCE',
      `Cannot read "${name}" as ${named}: its byte order mark says ${mark.encoding.toUpperCase()}`,
      {
        hint: `Leave --encoding out, or write --encoding ${mark.encoding} (encoding in a pipeline)`,
        details: { file: name },
      },
    )
  }
  return { encoding: mark.encoding, skip: mark.length }
}

/** The name that the Encoding Standard gives an encoding: `latin1` is `windows-1252`. */
function canonicalEncoding(named: string): string {
  try {
    return new TextDecoder(named).encoding
  } catch (cause) {
    throw new StetError('STET_CONFIG', `Cannot read text as "${named}": no such encoding is known`, {
      hint: "Name it as browsers do, such as 'utf-8', 'utf-16', 'windows-1252', 'iso-8859-2' or 'shift_jis'",
      cause,
    })
  }
}

/** Formats that a spreadsheet or an export tool leaves where text was expected. */
const OTHER_FORMATS: readonly (readonly [bytes: string, what: string])[] = [
  ['504b0304', 'a zip archive (perhaps an .xlsx workbook)'],
  ['d0cf11e0', 'an .xls workbook'],
  ['50415231', 'a Parquet file'],
  ['fd377a585a00', 'an xz archive'],
  ['425a68', 'a bzip2 archive'],
  ['25504446', 'a PDF document'],
  ['fffe0000', 'text in UTF-32'],
  ['0000feff', 'text in UTF-32'],
]

function refuseOtherFormats(head: Uint8Array, name: string): void {
  const hex = Buffer.from(head).toString('hex')
  const other = OTHER_FORMATS.find(([bytes]) => hex.startsWith(bytes))
  if (other === undefined) return
  throw new StetError('STET_SOURCE', `Cannot read "${name}" as text: it is ${other[1]}`, {
    hint: 'Unpack or convert it first',
    details: { file: name },
  })
}

/**
 * Text in another encoding as UTF-8. A byte that means nothing in that encoding is refused; it would become
 * U+FFFD, which is a value invented (G9).
 */
export async function* decodeToUtf8(
  chunks: AsyncIterable<Uint8Array>,
  encoding: string,
  name: string,
): AsyncIterable<Uint8Array> {
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true })
  let line = 1
  // Always as a stream: Node 20 decodes a whole windows-1252 text as ISO 8859-1, and 0x80 is then no euro sign.
  const decode = (bytes: Uint8Array) => {
    try {
      return decoder.decode(bytes, { stream: true })
    } catch (cause) {
      const near = line + countNewlines(longestText(bytes, encoding))
      throw new StetError(
        'STET_SOURCE',
        `Cannot read "${name}" as ${encoding}: bad bytes near line ${near} (G9)`,
        {
          hint: "Name the file's real encoding: --encoding windows-1252 (encoding in a pipeline)",
          details: { file: name, line: near },
          cause,
        },
      )
    }
  }
  for await (const chunk of chunks) {
    const text = decode(chunk)
    line += countNewlines(text)
    if (text !== '') yield Buffer.from(text, 'utf8')
  }
  try {
    const text = decoder.decode()
    if (text !== '') yield Buffer.from(text, 'utf8')
  } catch (cause) {
    throw new StetError(
      'STET_SOURCE',
      `Cannot read "${name}" as ${encoding}: it ends in the middle of a character (line ${line}) (G9)`,
      { hint: 'The file is cut off: fetch it again', details: { file: name, line }, cause },
    )
  }
}

/** What can be decoded before the first bad byte; by halving, as the decoder does not say where it stopped. */
function longestText(bytes: Uint8Array, encoding: string): string {
  let good = 0
  let bad = bytes.length
  let text = ''
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1
    try {
      text = new TextDecoder(encoding, { fatal: true }).decode(bytes.subarray(0, middle), { stream: true })
      good = middle
    } catch {
      bad = middle
    }
  }
  return text
}

function countNewlines(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  return count
}
