// Makes docs/cli.md from the commands and docs/exit-codes.md from the error codes. With --check it writes nothing and
// ends with 1 when a page is not up to date.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createJiti } from 'jiti'

const root = new URL('../', import.meta.url)
const jiti = createJiti(import.meta.url)
const load = (path) => jiti.import(fileURLToPath(new URL(path, root)))

const { COMMON_OPTIONS } = await load('src/cli/command.ts')
const { COMMANDS } = await load('src/cli/commands.ts')
const { EXIT_STATUS_BY_CODE } = await load('src/errors.ts')

const pages = {
  'docs/cli.md': await cliPage(),
  'docs/exit-codes.md': exitCodesPage(),
}
const check = process.argv.includes('--check')
for (const [path, text] of Object.entries(pages)) {
  const file = new URL(path, root)
  if (!check) writeFileSync(file, text)
  else if (readOrEmpty(file) !== text) {
    process.stdout.write(`${path} is not up to date: node scripts/make-cli-docs.mjs\n`)
    process.exitCode = 1
  }
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

async function cliPage() {
  const commands = []
  for (const { load: loadCommand } of COMMANDS) {
    const command = (await loadCommand())(() => async () => {})
    commands.push([command, ''], ...command.commands.map((subcommand) => [subcommand, `${command.name()} `]))
  }
  const [[first]] = commands
  return `# Command line

<!-- Made from the commands by scripts/make-cli-docs.mjs. Do not edit. -->

Results go to stdout, everything else (notes, progress, errors) to stderr. Every command takes \`--json\`: then stdout
holds one JSON document, whose schema lies in [\`schemas/\`](../schemas). The exit status says how it ended:
[exit-codes.md](exit-codes.md).

Colours are used on a terminal only. \`NO_COLOR=1\` switches them off, \`FORCE_COLOR=1\` on. A progress line appears on a
terminal when a run takes more than a second.

| command | |
| --- | --- |
${COMMANDS.map(({ name, summary }) => `| [\`stet ${name}\`](#stet-${name}) | ${summary} |`).join('\n')}

${table(['every command', ''], optionGroups(first).get(COMMON_OPTIONS))}
${commands.map(([command, parent]) => commandSection(command, parent)).join('\n')}
## Which table

Without \`--table\`, \`stet load\` names the table after the first file: lower case, without folder, format and
compression, with \`_\` for everything but letters and digits, and without a date, a number or a pattern at its end.
Tomorrow's delivery then goes where today's went:

| file | table |
| --- | --- |
| \`orders.csv\` | \`orders\` |
| \`inbox/Orders-2024-05-01.csv.gz\`, \`'inbox/orders-*.csv'\` | \`orders\` |
| \`flights-3m.parquet\`, \`sp500.csv\` | \`flights_3m\`, \`sp500\` |

Several files must give one name, or \`--table\` is needed. So it is for standard input, and for
\`--strategy replace-table\` on a file whose date did not count: an old file would replace a new table.

## Which target

\`--into postgres://…\` or \`postgresql://…\` is PostgreSQL; a file that ends in \`.duckdb\`, \`.ddb\` or \`.db\`, or that is a
DuckDB file already, is DuckDB. Anything else is refused. Passwords are never printed.
`
}

function commandSection(command, parent) {
  const title = `stet ${parent}${command.name()}`
  const own = command.registeredArguments.map((argument) => [humanArgument(argument), argument.description])
  return `## ${title}

\`\`\`
${title} ${command.usage()}
\`\`\`

${command.description()}
${own.length === 0 ? '' : `\n${table(['argument', ''], own)}`}${[...optionGroups(command)]
  .filter(([heading]) => heading !== COMMON_OPTIONS)
  .map(([heading, options]) => `\n${table([heading.replace(/:$/, '').toLowerCase(), ''], options)}`)
  .join('')}`
}

/** Flags and descriptions of a command's options, by the heading under which its help lists them. */
function optionGroups(command) {
  const help = command.createHelp()
  const groups = new Map()
  for (const option of help.visibleOptions(command)) {
    const heading = option.helpGroupHeading ?? 'Options:'
    groups.set(heading, [...(groups.get(heading) ?? []), [option.flags, help.optionDescription(option)]])
  }
  return groups
}

function humanArgument(argument) {
  const text = argument.variadic ? `${argument.name()}…` : argument.name()
  return argument.required ? `<${text}>` : `[${text}]`
}

function table(head, rows) {
  const cell = (text) => text.replaceAll('|', '\\|')
  return `| ${head.join(' | ')} |\n| --- | --- |\n${rows.map(([name, text]) => `| \`${cell(name)}\` | ${cell(text)} |`).join('\n')}\n`
}

function exitCodesPage() {
  const meaning = meaningsOfCodes()
  const rows = Object.entries(EXIT_STATUS_BY_CODE)
    .sort(([, a], [, b]) => a - b)
    .map(([code, status]) => `| ${status} | \`${code}\` | ${meaning.get(code) ?? ''} |`)
  return `# Exit codes

<!-- Made from EXIT_STATUS_BY_CODE in src/errors.ts by scripts/make-cli-docs.mjs. Do not edit. -->

The exit status of every command and the codes of errors are part of the public interface. Programs read the status, or
\`error.code\` of the document that \`--json\` prints; people read the message and the hint.

| status | means | what to do |
| --- | --- | --- |
| 0 | done, whether anything changed or not | |
| 1 | failed | look at the error |
| 2 | the command line or the configuration is wrong | correct it; running it again cannot help |
| 3 | refused by a guard, nothing was written | look at what it found |
| 4 | rows were rejected, nothing was written | correct them, or allow them: \`--max-rejects\` |
| 5 | asked-for news: changes are pending (\`--detailed-exitcode\`), or a frozen slice has drifted (\`--fail-on-drift\`; the run is committed) | look at what it found |
| 75 | nothing was written, and the cause may be gone | run the same command again |
| 76 | nobody could be asked whether the commit arrived | run the same command again: it compares, and loads what is missing |
| 99 | kept free for an asked-for skip; nothing else will ever use it | |
| 130 | stopped by SIGINT or SIGTERM, the table is as it was | run the same command again |

\`stet run\` with several pipelines or slices, and \`stet backfill\`, end with the status of the gravest failure: 130, 76, 1, 2, 3,
4, 75, 5, in this order.

## Codes

| status | code | |
| --- | --- | --- |
${rows.join('\n')}
`
}

/** What each code means: the comment above it. */
function meaningsOfCodes() {
  const source = readFileSync(new URL('src/errors.ts', root), 'utf8')
  const commented = source.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(STET_[A-Z_]+):/g)
  return new Map(
    [...commented].map(([, comment, code]) => [
      code,
      comment
        .replaceAll(/\n\s*\*/g, ' ')
        .replaceAll(/\s+/g, ' ')
        .trim()
        .replaceAll(/\{@link (\w+)\}/g, '`$1`'),
    ]),
  )
}
