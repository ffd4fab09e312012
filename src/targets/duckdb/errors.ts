import { StetError } from '../../errors.ts'

/** What DuckDB says of a row that it refuses, with the column and the value where it names them. */
const REFUSALS: readonly { readonly says: RegExp; readonly means: (match: RegExpExecArray) => Refusal }[] = [
  {
    says: /Duplicate key "(.+)" violates (?:unique|primary key) constraint/s,
    means: (match) => ({
      ...pairIn(match[1]),
      text: `the value of a unique column comes twice: ${match[1]}`,
    }),
  },
  {
    says: /PRIMARY KEY or UNIQUE constraint violation: duplicate key "(.*)"/s,
    means: (match) => ({ value: match[1], text: `the value of a unique column comes twice: ${match[1]}` }),
  },
  {
    says: /NOT NULL constraint failed: (?:.*\.)?(.+)$/m,
    means: (match) => ({ column: match[1], value: null, text: `${match[1]} may not be NULL` }),
  },
  {
    says: /CHECK constraint failed on table .+ with expression (.+)$/m,
    means: (match) => ({ text: `the rule ${match[1]} does not hold` }),
  },
]

interface Refusal {
  readonly text: string
  readonly column?: string | undefined
  readonly value?: string | null | undefined
}

/**
 * DuckDB's error as one that says what was being done and what comes next. An error that is not about the data of the
 * load passes as it is.
 */
export function describeError(error: unknown, table: string): unknown {
  if (error instanceof StetError || !(error instanceof Error)) return error
  const kind = /^(Constraint|Conversion|TransactionContext|IO|Out of Memory) Error:/.exec(error.message)?.[1]
  switch (kind) {
    case 'Constraint':
    case 'Conversion': {
      const { text, ...details } = refusalIn(error.message)
      return new StetError(
        'STET_CONSTRAINT',
        `${table} refuses a row of the load: ${text}; nothing was written`,
        {
          hint: 'Correct the row in the source, or the rule of the table',
          details: { table, ...details },
          cause: error,
        },
      )
    }
    case 'IO':
    case 'Out of Memory':
      return new StetError(
        'STET_CONNECTION',
        `Cannot write ${table}: ${error.message}; the table is as it was`,
        {
          hint: 'Make room on the disk or in memory, and run again',
          cause: error,
        },
      )
    default:
      return error
  }
}

function refusalIn(message: string): Refusal {
  for (const { says, means } of REFUSALS) {
    const match = says.exec(message)
    if (match !== null) return means(match)
  }
  return { text: message.replace(/^\w+ Error: /, '') }
}

/** `email: a@b.example` names one column and its value; several columns cannot be told apart from commas in values. */
function pairIn(text: string | undefined): { column?: string; value?: string } {
  const pair = /^(\w+): (.*)$/s.exec(text ?? '')
  return pair?.[1] === undefined || pair[2] === undefined ? {} : { column: pair[1], value: pair[2] }
}
