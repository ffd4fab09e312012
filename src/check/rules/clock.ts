/** Words for clocks and random values in SQL and in host languages, shared by the rules that trace them. */
import { isSymbol, type Tokens, tokenAt } from '../sql/tokens.ts'

const SQL_CLOCK = new Set([
  'now',
  'current_date',
  'current_timestamp',
  'current_time',
  'current_datetime',
  'localtimestamp',
  'getdate',
  'sysdate',
  'systimestamp',
  'sysdatetime',
  'getutcdate',
  'today',
  'clock_timestamp',
  'statement_timestamp',
  'transaction_timestamp',
  'unix_timestamp',
  'curdate',
  'utc_timestamp',
])
const NEEDS_CALL = new Set([
  'now',
  'getdate',
  'getutcdate',
  'today',
  'sysdatetime',
  'clock_timestamp',
  'statement_timestamp',
  'transaction_timestamp',
  'unix_timestamp',
  'curdate',
  'utc_timestamp',
])
const SQL_RANDOM = new Set([
  'gen_random_uuid',
  'uuid_generate_v4',
  'uuid_generate_v1',
  'generate_uuid',
  'uuid',
  'newid',
  'uuid_string',
  'sys_guid',
  'random',
  'rand',
  'randn',
  'generateuuidv4',
  'nextval',
])

/** Whether the token reads the clock: `now()` or `current_date`, not a column `t.current_date`. */
export function readsClock(tokens: Tokens, index: number): boolean {
  const token = tokenAt(tokens, index)
  if (token.kind !== 'word' || !SQL_CLOCK.has(token.value)) return false
  if (isSymbol(tokens, index - 1, '.')) return false
  return !NEEDS_CALL.has(token.value) || isSymbol(tokens, index + 1, '(')
}

export function hasClock(tokens: Tokens): boolean {
  return tokens.some((_, index) => readsClock(tokens, index))
}

/** The index of a call that makes a random id, or -1. */
export function findRandom(tokens: Tokens): number {
  return tokens.findIndex(
    (token, index) =>
      token.kind === 'word' &&
      SQL_RANDOM.has(token.value) &&
      token.value !== 'nextval' &&
      isSymbol(tokens, index + 1, '(') &&
      !isSymbol(tokens, index - 1, '.'),
  )
}

/** Clock calls of Python and TypeScript by their callee. */
export const HOST_CLOCK: RegExp =
  /^(?:(?:datetime|dt|datetime\.datetime|date|datetime\.date|dt\.datetime|pendulum|arrow|timezone|pd\.Timestamp|pandas\.Timestamp|Timestamp|time|Date|moment|dayjs|DateTime|Instant|LocalDate|dates)\.(?:now|today|utcnow|time|time_ns|local|utc|days_ago)|pendulum\.(?:today|yesterday)|moment|dayjs|Date|days_ago|getdate|time\.strftime)$/

export const HOST_RANDOM: RegExp =
  /^(?:uuid\.)?(?:uuid[14]|uuidv4|uuidv1|v4|uuid|nanoid|cuid|ulid|randomUUID)$|^(?:crypto|uuid|self\.crypto)\.(?:randomUUID|v4|v1|randomBytes)$|^(?:secrets|os)\.(?:token_hex|token_urlsafe|urandom)$|^(?:shortuuid\.uuid|shortid\.generate|ksuid\.randomSync|Math\.random|random\.random|random\.randint|uuid\.uuid4|uuid\.uuid1)$/
