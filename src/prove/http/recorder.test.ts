import { once } from 'node:events'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import {
  type CannedReply,
  diffEffects,
  emptyLedger,
  type HttpRecorder,
  type Ledger,
  startRecorder,
} from './recorder.ts'

async function recorder(
  ledger: Ledger = emptyLedger(),
  replies: readonly CannedReply[] = [],
): Promise<HttpRecorder & { readonly url: string }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const started = startRecorder({ server, ledger, replies })
  return { ...started, url: `http://127.0.0.1:${started.port}` }
}

const post = (url: string, body: string, key?: string) =>
  fetch(`${url}/v1/charges`, {
    method: 'POST',
    body,
    headers: key === undefined ? {} : { 'idempotency-key': key },
  })

test('a request counts once for each key, and each time without one', async () => {
  const ledger = emptyLedger()
  await using http = await recorder(ledger)
  for (const key of ['k1', 'k1', 'k2', undefined, undefined]) await post(http.url, 'a', key)
  await fetch(`${http.url}/v1/charges`)
  expect([...ledger.effects]).toEqual([['POST /v1/charges a', 4]])
})

test('a key used for another request is refused and changes nothing', async () => {
  const ledger = emptyLedger()
  await using http = await recorder(ledger)
  await post(http.url, 'a', 'k')
  expect((await post(http.url, 'b', 'k')).status).toBe(409)
  expect([...ledger.effects]).toEqual([['POST /v1/charges a', 1]])
})

test('a connection cut before the request leaves no effect, one cut after it does', async () => {
  for (const [cut, effects] of [
    ['before', 0],
    ['after', 1],
  ] as const) {
    const ledger = emptyLedger()
    await using http = await recorder(ledger)
    const armed = http.arm({ cut, fits: (request) => request.occurrence === 1 })
    await expect(post(http.url, 'a')).rejects.toThrow()
    await armed.fired
    expect(ledger.effects.size).toBe(effects)
    expect((await post(http.url, 'b')).status).toBe(200)
  }
})

test('a held request waits until it is released', async () => {
  await using http = await recorder()
  const armed = http.arm({ hold: 'before', fits: () => true })
  const waiting = post(http.url, 'a')
  await armed.fired
  armed.release()
  expect((await waiting).status).toBe(200)
})

test('as a proxy it tells services apart, and is itself known by its path', async () => {
  const ledger = emptyLedger()
  const charged = { method: 'POST', path: '/charge', status: 201, body: 'charged' }
  await using http = await recorder(ledger, [charged])
  const answers: string[] = []
  for (const path of ['http://a.test/charge', 'http://b.test/charge', `${http.url}/charge`, '/charge']) {
    // What a client sends that HTTP_PROXY leads here: the whole address where a path would be.
    const sent = request({ port: http.port, path, method: 'POST' }).end('1')
    const [response] = await once(sent, 'response')
    answers.push(`${response.statusCode} ${await text(response)}`)
  }
  expect(answers).toEqual(Array(4).fill('201 charged'))
  expect([...ledger.effects]).toEqual([
    ['POST http://a.test/charge 1', 1],
    ['POST http://b.test/charge 1', 1],
    ['POST /charge 1', 2],
  ])
})

test('differences are counted for each effect', async () => {
  const [clean, here] = [emptyLedger(), emptyLedger()]
  clean.effects.set('POST /a 1', 1).set('POST /b 1', 1)
  here.effects.set('POST /a 1', 2).set('POST /c 1', 1)
  expect(diffEffects(clean, here)).toEqual([
    { effect: 'POST /a 1', clean: 1, here: 2 },
    { effect: 'POST /b 1', clean: 1, here: 0 },
    { effect: 'POST /c 1', clean: 0, here: 1 },
  ])
})
