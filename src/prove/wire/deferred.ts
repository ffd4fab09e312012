export interface Deferred<Value> {
  readonly promise: Promise<Value>
  resolve(value: Value): void
}

/** A promise that is settled from outside. Node 20 has no `Promise.withResolvers`. */
export function deferred<Value = void>(): Deferred<Value> {
  let resolve: (value: Value) => void = () => undefined
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
