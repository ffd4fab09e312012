import { createReadStream } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { StetError } from '../../errors.ts'
import type { InputFile } from '../shared/files.ts'
import { JsonFault } from './scan.ts'

/** A place in a document of which only a piece is in memory. */
export interface Cursor extends AsyncDisposable {
  /** The piece. */
  readonly text: string
  /** Index in the piece: everything before is done with. */
  at: number
  /** Whether the piece reaches to the end of the file. */
  readonly atEnd: boolean
  /** The line of an index in the piece; to be asked in ascending order. */
  lineAt(index: number): number
  /**
   * Does a step from where the cursor is. When the piece ends in the middle of it, more is read and the step is done
   * again from its beginning.
   *
   * @throws {StetError} `STET_SOURCE` with line and column, when the document is broken or ends in the middle.
   */
  step<T>(work: (text: string, at: number) => T): Promise<T>
}

const PIECE_BYTES = 1 << 20

export function openCursor(input: InputFile, pieceBytes: number = PIECE_BYTES): Cursor {
  const stream = createReadStream(input.path, { highWaterMark: pieceBytes })
  const chunks = stream[Symbol.asyncIterator]()
  const decoder = new StringDecoder('utf8')
  let text = ''
  let atEnd = false
  // The line of `counted`, and where it begins: before the piece when that is negative.
  let line = 1
  let lineStart = 0
  let counted = 0
  let newline = -1

  const lineAt = (index: number): number => {
    for (;;) {
      if (newline < counted) {
        newline = text.indexOf('\n', counted)
        if (newline === -1) newline = text.length
      }
      if (newline >= index || newline >= text.length) return line
      line++
      counted = newline + 1
      lineStart = counted
    }
  }

  const more = async () => {
    const { at } = cursor
    lineAt(at)
    lineStart -= at
    counted = 0
    newline = -1
    const kept = text.slice(at)
    const pieces = [kept]
    // At least as much again: a record of a hundred megabytes would otherwise be begun a hundred times.
    let added = 0
    while (!atEnd && added <= kept.length) {
      const next = await chunks.next()
      const piece = next.done === true ? decoder.end() : decoder.write(next.value as Buffer)
      atEnd = next.done === true
      added += piece.length
      pieces.push(piece)
    }
    text = pieces.join('')
    cursor.at = 0
  }

  const cursor: Cursor = {
    get text() {
      return text
    },
    at: 0,
    get atEnd() {
      return atEnd
    },
    lineAt,
    async step(work) {
      for (;;) {
        try {
          return work(text, cursor.at)
        } catch (fault) {
          if (!(fault instanceof JsonFault)) throw fault
          if (fault.kind === 'broken' || atEnd) throw broken(fault)
        }
        await more()
      }
    },
    [Symbol.asyncDispose]: async () => {
      stream.destroy()
    },
  }

  const broken = (fault: JsonFault) => {
    const { path } = input.file
    const at = { line: lineAt(fault.at), column: fault.at - lineStart + 1 }
    return new StetError(
      'STET_SOURCE',
      `Cannot read "${path}" as JSON: ${fault.message} (line ${at.line}, column ${at.column})`,
      {
        ...(fault.kind === 'cut' ? { hint: 'The file is cut off: fetch it again (G9)' } : {}),
        details: { file: path, ...at },
        cause: fault,
      },
    )
  }
  return cursor
}
