/** SARIF 2.1.0: all rules are listed, suppressed results stay with their justification, fixes as replacements. */
import type { CheckResult } from '../command.ts'
import type { Finding, Fix } from '../finding.ts'
import { lineIndex } from '../lines.ts'
import type { Rule } from '../rule.ts'
import { RULES } from '../rules/index.ts'

const LEVEL = { error: 'error', warning: 'warning', info: 'note' } as const

export function renderSarif(result: CheckResult, version: string): string {
  return `${JSON.stringify(
    {
      $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
      version: '2.1.0',
      runs: [
        {
          tool: {
            driver: {
              name: 'stet',
              version,
              informationUri: 'https://www.npmjs.com/package/stet',
              rules: RULES.map((rule) => describe(rule)),
            },
          },
          columnKind: 'utf16CodeUnits',
          originalUriBaseIds: { ROOT: { description: { text: 'The folder that was checked' } } },
          results: result.findings.map((finding) => resultOf(finding, result)),
        },
      ],
    },
    null,
    2,
  )}\n`
}

function describe(rule: Rule): object {
  return {
    id: rule.id,
    name: rule.id.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase()),
    shortDescription: { text: rule.title },
    fullDescription: { text: rule.problem },
    help: {
      text: `${rule.problem}\n\n${rule.advice}`,
      markdown: `${rule.problem}\n\n**Safe:** ${rule.advice}`,
    },
    defaultConfiguration: { level: 'warning' },
    properties: { tags: ['rerun', rule.anomaly], tier: rule.tier },
  }
}

function resultOf(finding: Finding, result: CheckResult): object {
  return {
    ruleId: finding.rule,
    ruleIndex: RULES.findIndex((rule) => rule.id === finding.rule),
    level: LEVEL[finding.severity],
    message: { text: `${finding.message}. Safe: ${finding.advice}` },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: encodeURI(finding.path), uriBaseId: 'ROOT' },
          region: {
            startLine: finding.from.line,
            startColumn: finding.from.column,
            endLine: finding.to.line,
            endColumn: finding.to.column,
          },
        },
      },
    ],
    partialFingerprints: { 'stetFinding/v1': finding.fingerprint },
    properties: { confidence: finding.confidence, class: finding.class, anomaly: finding.anomaly },
    ...(finding.suppressed === undefined
      ? {}
      : {
          suppressions: [
            {
              kind: finding.suppressed.by === 'comment' ? 'inSource' : 'external',
              status: 'accepted',
              justification: finding.suppressed.reason,
            },
          ],
        }),
    ...(finding.fix === undefined ? {} : { fixes: [fixOf(finding, finding.fix, result)] }),
  }
}

function fixOf(finding: Finding, fix: Fix, result: CheckResult): object {
  const lines = lineIndex(result.texts.get(finding.path) ?? '')
  return {
    description: { text: fix.title },
    artifactChanges: [
      {
        artifactLocation: { uri: encodeURI(finding.path), uriBaseId: 'ROOT' },
        replacements: fix.edits.map((edit) => {
          const from = lines.position(edit.start)
          const to = lines.position(edit.end)
          return {
            deletedRegion: {
              startLine: from.line,
              startColumn: from.column,
              endLine: to.line,
              endColumn: to.column,
            },
            insertedContent: { text: edit.text },
          }
        }),
      },
    ],
  }
}
