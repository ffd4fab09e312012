import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type EngineResult, runEngine } from '../../src/check/engine.ts'
import type { Rule } from '../../src/check/rule.ts'

/** Writes a small repository, runs these rules over it, removes it. */
export async function checkFiles(
  files: Readonly<Record<string, string>>,
  rules: readonly Rule[],
): Promise<EngineResult> {
  const root = mkdtempSync(join(tmpdir(), 'stet-check-'))
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    return await runEngine({
      root,
      paths: [],
      rules,
      settings: { stagingTables: [], logTables: [], safeWrappers: [] },
      ignore: [],
      dialects: [],
    })
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}
