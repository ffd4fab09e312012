// Makes the built command executable: npm sets the bit on install, a checkout's dist/ has nobody to do it.
import { chmodSync, copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'

const bin = new URL('../dist/cli/bin.js', import.meta.url)
if (existsSync(bin)) chmodSync(bin, 0o755)

// The grammars of `stet check` ship with the package: four files instead of a dependency of 21 MB.
const require = createRequire(import.meta.url)
const grammars = new URL('../dist/check/grammars/', import.meta.url)
mkdirSync(grammars, { recursive: true })
for (const grammar of ['python', 'typescript', 'tsx', 'bash']) {
  const name = `tree-sitter-${grammar}.wasm`
  copyFileSync(require.resolve(`@vscode/tree-sitter-wasm/wasm/${name}`), new URL(name, grammars))
}
