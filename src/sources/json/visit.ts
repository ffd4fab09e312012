/** Looks at the records of a file, one after the other. */
export interface RecordVisitor {
  /**
   * Finds the end of the record that begins at `from`. May be called again for the same record, when more of it has been read.
   *
   * @throws {JsonFault} when it does not end.
   */
  read(text: string, from: number): number
  /**
   * The record that was read stands there and is complete, or is no record for the reason given.
   *
   * @param line Physical line on which it begins.
   * @returns A promise only where there is something to wait for.
   */
  done(line: number, raw: () => string, problem: string | null): Promise<void> | undefined
  /** Whether the rest of the file is of no interest. */
  readonly finished: boolean
}
