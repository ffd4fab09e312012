/** A text for XML and HTML, in elements and in quoted attributes. */
export function escaped(text: string): string {
  return (
    text
      // XML 1.0 has no control characters, not even escaped ones.
      .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '�')
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
  )
}
