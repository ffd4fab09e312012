import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { clearedBy, isTemporary, nameOf } from '../sequence.ts'
import { isSymbol, isWord } from '../sql/tokens.ts'

export const copyForce: Rule = {
  id: 'copy-force',
  title: 'Let COPY INTO skip the files it has loaded',
  anomaly: 'doubled',
  tier: 1,
  fix: 'auto',
  problem:
    'Snowflake remembers for 64 days which files a table has loaded and skips them. FORCE = TRUE switches that off, so a second run loads every file again.',
  advice: 'Leave FORCE out; for files older than 64 days load into an empty stage table and merge.',
  safeForms: [
    { for: 'Snowflake', code: 'copy into orders\nfrom @landing/orders/\nfile_format = (type = csv);' },
  ],
  prove: '`stet prove` runs the load twice; the rows of every file are there twice (DOUBLED).',
  limits: 'Load history that is lost by create or replace table is not seen.',
  bad: [
    {
      why: 'every file is loaded again',
      path: 'etl/copy.sql',
      lines: [1],
      code: 'copy into orders from @landing/orders/ file_format = (type = csv) force = true;\n',
    },
  ],
  fine: [
    {
      why: 'files already loaded are skipped',
      path: 'etl/copy.sql',
      lines: [],
      code: "copy into orders from @landing/orders/ on_error = 'CONTINUE';\n",
    },
    {
      why: 'the table is emptied first',
      path: 'etl/copy.sql',
      lines: [],
      code: 'truncate table orders;\ncopy into orders from @landing/orders/ force = true;\n',
    },
    {
      why: 'force = false',
      path: 'etl/copy.sql',
      lines: [],
      code: 'copy into orders from @landing/orders/ force = false;\n',
    },
  ],
  *check(file): Iterable<Report> {
    for (const use of file.sql) {
      const { statement } = use
      if (statement.kind !== 'copy' || ['test', 'migration'].includes(use.context)) continue
      const at = statement.tokens.findIndex(
        (_, index) =>
          isWord(statement.tokens, index, 'force') &&
          isSymbol(statement.tokens, index + 1, '=') &&
          isWord(statement.tokens, index + 2, 'true'),
      )
      const first = statement.tokens[at]
      const last = statement.tokens[at + 2]
      if (
        first === undefined ||
        last === undefined ||
        clearedBy(file, use) !== undefined ||
        isTemporary(file, use)
      )
        continue
      const from = use.mapped.at(first.start)
      const to = use.mapped.at(last.end - 1) + 1
      const before = /\s*$/.exec(file.text.slice(0, from))?.[0].length ?? 0
      yield {
        start: use.start,
        end: use.end,
        message: `A second run loads every file into ${nameOf(statement.target)} again, because FORCE switches the load history off`,
        class: 'unsafe',
        severity: 'error',
        confidence: 'high',
        fix: {
          title: 'Remove FORCE = TRUE',
          safe: true,
          edits: [{ start: from - before, end: to, text: '' }],
        },
      }
    }
  },
}
