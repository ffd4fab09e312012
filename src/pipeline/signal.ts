/** The caller's signal, or one that never fires: what is called below need not ask whether there is one. */
export function signalOf({ signal }: { readonly signal?: AbortSignal | undefined }): AbortSignal {
  return signal ?? new AbortController().signal
}
