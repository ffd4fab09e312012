/** What the iteration itself threw, told apart from what was thrown by the taker of its items. */
export class IterationError extends Error {
  override readonly name = 'IterationError'
}

/**
 * Hands each item of an iterable to `take`, once, to its end. The iterator's `return` is called when `take` throws or
 * the signal fires.
 *
 * @param take Returns a promise only where there is something to wait for.
 * @throws {IterationError} with the iterable's own error as its cause.
 * @throws `signal.reason`, unchanged, also while the next item hangs.
 */
export async function forEach<Item>(
  iterate: () => Iterable<Item> | AsyncIterable<Item>,
  signal: AbortSignal,
  take: (item: Item) => Promise<void> | undefined,
): Promise<void> {
  signal.throwIfAborted()
  const iterator = begin(iterate)
  let abort = () => {}
  const onAbort = () => abort()
  signal.addEventListener('abort', onAbort)
  // One promise for each item: a race against a single long-lived promise would keep every item in memory.
  const next = () =>
    new Promise<IteratorResult<Item>>((resolve, reject) => {
      abort = () => reject(signal.reason)
      ask(iterator).then(resolve, (cause) => reject(new IterationError('The iteration failed', { cause })))
    })
  try {
    for (;;) {
      const result = await next()
      if (result.done === true) return
      const taken = take(result.value)
      if (taken !== undefined) await taken
      signal.throwIfAborted()
    }
  } catch (error) {
    if (error instanceof IterationError) throw error
    const returned = close(iterator)
    // An iterator that hangs in a request is told to stop, but not waited for.
    if (!signal.aborted) await returned
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

type AnyIterator<Item> = Iterator<Item> | AsyncIterator<Item>

function begin<Item>(iterate: () => Iterable<Item> | AsyncIterable<Item>): AnyIterator<Item> {
  try {
    const iterable = iterate()
    return Symbol.asyncIterator in iterable ? iterable[Symbol.asyncIterator]() : iterable[Symbol.iterator]()
  } catch (cause) {
    throw new IterationError('The iteration failed', { cause })
  }
}

async function ask<Item>(iterator: AnyIterator<Item>): Promise<IteratorResult<Item>> {
  return iterator.next()
}

/** What fails while stopping early would only hide why it was stopped. */
async function close(iterator: AnyIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.()
  } catch {}
}
