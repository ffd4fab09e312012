import type { Rule } from '../rule.ts'
import { insertNoKey } from './insert-no-key.ts'

/** All rules, in the order of the documentation. */
export const RULES: readonly Rule[] = [insertNoKey]
