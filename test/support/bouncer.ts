import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PGBOUNCER = '/usr/sbin/pgbouncer'

/** Whether Debian's PgBouncer is there. */
export function hasBouncer(): boolean {
  return existsSync(PGBOUNCER)
}

/** A PgBouncer in transaction mode before the server at a port of this machine. */
export interface Bouncer extends AsyncDisposable {
  readonly port: number
}

export async function startBouncer(upstream: {
  readonly port: number
  readonly poolSize: number
}): Promise<Bouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'stet-bouncer-'))
  const port = await freePort()
  await writeFile(join(folder, 'users'), '"postgres" ""\n')
  const settings = [
    '[databases]',
    `* = host=127.0.0.1 port=${upstream.port} user=postgres`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = trust',
    `auth_file = ${join(folder, 'users')}`,
    'pool_mode = transaction',
    `default_pool_size = ${upstream.poolSize}`,
    'max_client_conn = 200',
    // Each test has a database, and so a pool, of its own.
    'server_idle_timeout = 1',
  ]
  await writeFile(join(folder, 'bouncer.ini'), settings.join('\n'))
  // It refuses to run as root.
  const isRoot = process.getuid?.() === 0
  if (isRoot) execFileSync('chown', ['-R', 'nobody', folder])
  const command = [PGBOUNCER, join(folder, 'bouncer.ini')]
  const [program = '', ...args] = isRoot
    ? ['setpriv', '--reuid', 'nobody', '--clear-groups', ...command]
    : command
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  await new Promise<void>((resolve) => {
    child.stderr.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('process up')) resolve()
    })
    void ended.then(() => resolve())
  })
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true })
    },
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}
