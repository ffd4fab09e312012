// Makes the built command executable: npm sets the bit on install, a checkout's dist/ has nobody to do it.
import { chmodSync, existsSync } from 'node:fs'

const bin = new URL('../dist/cli/bin.js', import.meta.url)
if (existsSync(bin)) chmodSync(bin, 0o755)
