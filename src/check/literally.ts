/** A text of the source as the part of a regular expression that matches it and nothing else. */
export function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
