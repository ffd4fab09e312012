/** What is worked out once for each file (or its facts) and asked for by many rules and statements. */
export function oncePer<K extends object, T>(of: (key: K) => T): (key: K) => T {
  const known = new WeakMap<K, { readonly value: T }>()
  return (key) => {
    const found = known.get(key) ?? { value: of(key) }
    known.set(key, found)
    return found.value
  }
}
