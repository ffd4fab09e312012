import type { Report } from '../finding.ts'
import type { ShellCommand } from '../languages/shell.ts'
import type { Rule } from '../rule.ts'

export const scriptNotAtomic: Rule = {
  id: 'script-not-atomic',
  title: 'Stop a script at its first error',
  anomaly: 'gap',
  tier: 1,
  fix: 'advice',
  problem:
    'psql goes on behind a statement that failed and ends with 0, and a shell without `set -e` goes on behind a program that failed. What is left is half of the script, and a green run.',
  advice: 'psql -v ON_ERROR_STOP=1 -1 -f file.sql; set -euo pipefail at the top of the script.',
  safeForms: [
    {
      for: 'shell',
      code: '#!/bin/bash\nset -euo pipefail\npsql -v ON_ERROR_STOP=1 --single-transaction -f load.sql',
    },
  ],
  prove: '`stet prove` cuts between two statements of the file (GAP).',
  limits: 'A hint: whether half of the script does harm depends on its statements.',
  bad: [
    {
      why: 'a file of statements without a stop',
      path: 'scripts/load.sh',
      lines: [3],
      code: '#!/bin/bash\nset -e\npsql "$DSN" -f load.sql\n',
    },
  ],
  fine: [
    {
      why: 'stopped, and in one transaction',
      path: 'scripts/load.sh',
      lines: [],
      code: '#!/bin/bash\nset -euo pipefail\npsql "$DSN" -v ON_ERROR_STOP=1 -1 -f load.sql\n',
    },
    {
      why: 'one statement',
      path: 'scripts/load.sh',
      lines: [],
      code: '#!/bin/bash\nset -e\npsql "$DSN" -c "select 1"\n',
    },
  ],
  *check(file): Iterable<Report> {
    if (file.shell === undefined || file.context === 'test') return
    for (const command of file.shell.commands) {
      if (command.name !== 'psql' || !runsFile(command) || stops(command, file.text)) continue
      yield {
        start: command.start,
        end: command.end,
        message:
          'psql goes on behind a statement that fails, and ends with 0: half of the file may be all that ran',
        class: 'info',
        severity: 'info',
        confidence: 'low',
      }
    }
  },
}

function runsFile(command: ShellCommand): boolean {
  return command.args.some((one) => /^(?:-f|--file)/.test(one.text))
}

function stops(command: ShellCommand, text: string): boolean {
  return command.args.some((one) => /ON_ERROR_STOP/.test(one.text)) || /\\set\s+ON_ERROR_STOP/.test(text)
}
