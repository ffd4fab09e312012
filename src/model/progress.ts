/** Something worth showing while a run works. */
export interface Progress {
  readonly phase: 'opening' | 'reading' | 'transforming' | 'waiting' | 'pulling' | 'comparing' | 'writing'
  readonly rows?: number | undefined
  readonly bytes?: number | undefined
  readonly bytesTotal?: number | undefined
}

export type ProgressListener = (progress: Progress) => void
