import { readFile } from 'node:fs/promises'
import { StetError } from '../../errors.ts'
import type { CannedReply } from './recorder.ts'

const WANTED = `A list such as [{"method": "POST", "path": "/v1/charges", "status": 201, "body": {"id": "ch_1"}}]`

/** Reads answers that the recorder is to give, from a file of JSON. The first that fits a request is given. */
export async function readReplies(file: string): Promise<readonly CannedReply[]> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new StetError('STET_USAGE', `Cannot read the replies "${file}"`, { hint: WANTED, cause })
  })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new StetError('STET_USAGE', `The replies "${file}" are not JSON`, { hint: WANTED, cause })
  }
  if (!Array.isArray(value))
    throw new StetError('STET_USAGE', `The replies "${file}" are not a list`, { hint: WANTED })
  return value.map((entry: unknown, n) => replyOf(entry, `${file}, entry ${n + 1}`))
}

function replyOf(entry: unknown, place: string): CannedReply {
  const refuse = (what: string) => new StetError('STET_USAGE', `${place}: ${what}`, { hint: WANTED })
  if (typeof entry !== 'object' || entry === null) throw refuse('not an object')
  const { method = 'POST', path, status = 200, body = '' } = entry as Record<string, unknown>
  if (typeof method !== 'string') throw refuse('method is not a text')
  if (typeof path !== 'string') throw refuse('it has no path')
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599) {
    throw refuse('status is not a number from 200 to 599')
  }
  return { method, path, status, body: typeof body === 'string' ? body : JSON.stringify(body) }
}
