/**
 * A text in one line, with the characters replaced that a terminal would obey: names, values and output of the command
 * must not be able to clear the screen of whoever reads the report.
 */
export function visible(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '�')
}
