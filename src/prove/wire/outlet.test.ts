import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { outletOf } from './outlet.ts'

/** What arrives at the other end of a socket by its end. */
async function received(send: (socket: Socket) => void): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const socket = connect(address.port, '127.0.0.1')
  const [other] = await accepted
  const chunks: Buffer[] = []
  other.on('data', (chunk: Buffer) => chunks.push(chunk))
  const ended = once(other, 'end')
  send(socket)
  socket.end()
  await ended
  server.close()
  return Buffer.concat(chunks)
}

test('what is written comes in order and once, whether the pieces lie behind one another in memory or not', async () => {
  const memory = Buffer.from(Array.from({ length: 40_000 }, (_, index) => index % 251))
  const piece = fc.oneof(
    // Of one chunk, as the framer cuts it: next to the last one, before it, or with a gap between them.
    fc
      .tuple(fc.integer({ min: 0, max: 30_000 }), fc.integer({ min: 0, max: 10_000 }))
      .map(([from, length]) => memory.subarray(from, from + length)),
    fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
    fc.constant('flush' as const),
  )
  const inARow = fc.array(fc.integer({ min: 1, max: 3_000 }), { maxLength: 12 }).map((lengths) => {
    let at = 0
    return lengths.map((length) => {
      const from = at
      at += length
      return memory.subarray(from, at)
    })
  })
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), inARow, async (mixed, row) => {
      const steps = [...mixed, ...row, ...mixed]
      const wanted = Buffer.concat(steps.filter((step) => step !== 'flush'))
      const found = await received((socket) => {
        const outlet = outletOf(socket)
        for (const step of steps) {
          if (step === 'flush') outlet.flush()
          else outlet.write(step)
        }
        outlet.flush()
      })
      expect(found.equals(wanted)).toBe(true)
    }),
    { numRuns: 60 },
  )
})
