import type { Connection } from './connection.ts'

/** Runs work in a transaction of its own. */
export async function inTransactionOf<T>(
  connection: Connection,
  settings: string,
  work: () => Promise<T>,
): Promise<T> {
  await connection.query(`begin;\n${settings}`)
  try {
    const result = await work()
    await connection.query('commit')
    return result
  } catch (error) {
    if (!connection.lost) await connection.query('rollback').catch(() => undefined)
    throw error
  }
}
