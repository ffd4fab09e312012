const PASSWORD_IN_URL = /\b([a-z][a-z0-9+.-]*:\/\/[^\s:/?#@]*):\S*@/gi
const PASSWORD_PARAMETER = /\b(password|passwd|pwd)=[^\s&;'"]+/gi

/**
 * The text without passwords of connection strings. Stet's own messages never hold one; this is for those of
 * drivers and for what a user wrote into a wrong place.
 */
export function redact(text: string): string {
  return text.replaceAll(PASSWORD_IN_URL, '$1:***@').replaceAll(PASSWORD_PARAMETER, '$1=***')
}
