import type { Socket } from 'node:net'

/**
 * Ends a connection as a lost network does. Once its orderly end has begun, libuv refuses to reset it and Node 20
 * then leaves the handle open for ever, so that one is only closed.
 */
export function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
