import type { KeptColumns } from '../../model/columns.ts'

/** A column that Stet keeps in a table, by the name that it has there. */
export interface KeptColumn {
  readonly role: keyof KeptColumns
  readonly name: string
  readonly native: string
  /** By this comment on the column Stet knows again what it has made for itself. */
  readonly comment: string
}

const FORM_BY_ROLE: Readonly<Record<keyof KeptColumns, Pick<KeptColumn, 'native' | 'comment'>>> = {
  updatedAt: { native: 'TIMESTAMP WITH TIME ZONE', comment: 'stet:updated_at' },
  contentHash: { native: 'VARCHAR', comment: 'stet:content_hash' },
  gone: { native: 'TIMESTAMP WITH TIME ZONE', comment: 'stet:gone' },
}
const ROLES = Object.keys(FORM_BY_ROLE) as (keyof KeptColumns)[]

/** The columns that a run keeps, in the order in which a new table gets them. */
export function keptColumns(keep: KeptColumns): KeptColumn[] {
  return ROLES.flatMap((role) => {
    const name = keep[role]
    return name === null ? [] : [{ role, name, ...FORM_BY_ROLE[role] }]
  })
}

/** What a column is kept for, by its comment. */
export function keptRoleOf(comment: unknown): keyof KeptColumns | undefined {
  return ROLES.find((role) => FORM_BY_ROLE[role].comment === comment)
}
