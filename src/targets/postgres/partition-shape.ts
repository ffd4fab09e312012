import { quoteLiteral } from '../../local/quote.ts'
import type { Connection } from './connection.ts'
import type { Partition } from './partitions.ts'

/** An index of a partition, and all that hangs on it. */
interface PartitionIndex {
  /** Quoted where needed, as everything that follows. */
  readonly name: string
  readonly unique: boolean
  /** `USING …`, the rest of its definition after the table's name. */
  readonly definition: string
  readonly comment: string | null
  readonly clustered: boolean
  readonly identity: boolean
  readonly constraint: {
    readonly kind: 'primary key' | 'unique'
    readonly deferrable: string
    readonly comment: string | null
  } | null
}

/** What a partition is beside its rows, as far as `create table … (like …)` does not copy it. */
export interface PartitionShape {
  readonly persistence: string
  readonly tablespace: string | null
  readonly options: readonly string[]
  readonly owner: string
  readonly replicaIdentity: string
  readonly comment: string | null
  /** The partition's bounds as a condition on its rows. */
  readonly condition: string
  readonly indexes: readonly PartitionIndex[]
  /** `"name" foreign key …`. */
  readonly foreignKeys: readonly {
    readonly name: string
    readonly definition: string
    readonly comment: string | null
  }[]
  /** `grant … on table`, with a hole for the name. */
  readonly grants: readonly { readonly what: string; readonly who: string }[]
  readonly hasGrants: boolean
  /** `alter column … set …`. */
  readonly columnSettings: readonly string[]
}

/** Reads the shape; two readings of an unchanged partition are equal as JSON. */
export async function readShape(
  connection: Connection,
  { oid, name, schema }: Partition,
): Promise<PartitionShape> {
  const [row] = await connection.query(
    `select json_build_object(
  'persistence', c.relpersistence,
  'tablespace', (select quote_ident(spcname) from pg_tablespace where oid = c.reltablespace),
  'options', (
    select coalesce(json_agg(option order by fork, place), '[]')
      from (select 1 as fork, place, option
              from unnest(c.reloptions) with ordinality as o (option, place)
            union all
            select 2, place, 'toast.' || option
              from pg_class as t, unnest(t.reloptions) with ordinality as o (option, place)
             where t.oid = c.reltoastrelid) as o),
  'owner', quote_ident(pg_get_userbyid(c.relowner)),
  'replicaIdentity', c.relreplident,
  'comment', obj_description(c.oid, 'pg_class'),
  'condition', pg_get_partition_constraintdef(c.oid),
  'hasGrants', c.relacl is not null,
  'grants', (
    select coalesce(json_agg(json_build_object('what', what, 'who', who) order by level, place), '[]')
      from (
        select 0 as level, a.privilege_type as what, a.grantee, a.is_grantable, a.place
          from aclexplode(c.relacl) with ordinality as a (grantor, grantee, privilege_type, is_grantable, place)
        union all
        select att.attnum, a.privilege_type || ' (' || quote_ident(att.attname) || ')', a.grantee, a.is_grantable, a.place
          from pg_attribute as att,
               aclexplode(att.attacl) with ordinality as a (grantor, grantee, privilege_type, is_grantable, place)
         where att.attrelid = c.oid and att.attnum > 0 and not att.attisdropped) as given
     cross join lateral (
        select case when grantee = 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end
            || case when is_grantable then ' with grant option' else '' end as who) as named),
  'columnSettings', (
    select coalesce(json_agg(setting order by attnum, setting), '[]')
      from (
        select att.attnum, 'alter column ' || quote_ident(att.attname) || ' set statistics ' || att.attstattarget as setting
          from pg_attribute as att
         where att.attrelid = c.oid and att.attnum > 0 and not att.attisdropped and att.attstattarget >= 0
        union all
        select att.attnum, 'alter column ' || quote_ident(att.attname) || ' set (' || array_to_string(att.attoptions, ', ') || ')'
          from pg_attribute as att
         where att.attrelid = c.oid and not att.attisdropped and att.attoptions is not null) as settings),
  'foreignKeys', (
    select coalesce(json_agg(json_build_object(
             'name', quote_ident(k.conname), 'definition', pg_get_constraintdef(k.oid),
             'comment', obj_description(k.oid, 'pg_constraint')) order by k.conname), '[]')
      from pg_constraint as k
     where k.conrelid = c.oid and k.contype = 'f'),
  'indexes', (
    select coalesce(json_agg(json_build_object(
             'name', quote_ident(i.relname), 'unique', x.indisunique,
             -- all before the first USING is what was asked for: the index's name and the table's
             'definition', substr(pg_get_indexdef(x.indexrelid), 1 + length(format('CREATE %sINDEX %I ON %I.%I ',
               case when x.indisunique then 'UNIQUE ' else '' end, i.relname, $2::text, $3::text))),
             'comment', obj_description(x.indexrelid, 'pg_class'),
             'clustered', x.indisclustered, 'identity', x.indisreplident,
             'constraint', (
               select json_build_object(
                        'kind', case k.contype when 'p' then 'primary key' else 'unique' end,
                        'deferrable', case when k.condeferrable then ' deferrable' else '' end
                                   || case when k.condeferred then ' initially deferred' else '' end,
                        'comment', obj_description(k.oid, 'pg_constraint'))
                 from pg_constraint as k
                where k.conindid = x.indexrelid and k.conrelid = x.indrelid and k.contype in ('p', 'u'))) order by i.relname), '[]')
      from pg_index as x
      join pg_class as i on i.oid = x.indexrelid
     where x.indrelid = c.oid)) as shape
  from pg_class as c
 where c.oid = $1`,
    [oid, schema, name],
  )
  return JSON.parse(row?.shape ?? '{}') as PartitionShape
}

/**
 * The table beside, empty; its bounds as a CHECK, so that attaching it need not look at its rows. The server's own form of
 * the condition says `is not null` too: without that the rows would be read once more, with readers locked out.
 */
export function createBesideSql(shape: PartitionShape, old: Partition, beside: string): string {
  const unlogged = shape.persistence === 'u' ? 'unlogged ' : ''
  const options = shape.options.length === 0 ? '' : ` with (${shape.options.join(', ')})`
  const tablespace = shape.tablespace === null ? '' : ` tablespace ${shape.tablespace}`
  return `create ${unlogged}table ${beside} (like ${old.qualified} including all excluding indexes excluding statistics, constraint stet_bounds check (${shape.condition}))${options}${tablespace}`
}

/** Everything else that the old partition has; sent when the rows are in. `n`-th index under a name of its own. */
export function finishBesideSql(
  shape: PartitionShape,
  beside: string,
  indexName: (position: number) => string,
): readonly string[] {
  const indexes = shape.indexes.flatMap((index, position) => {
    const name = indexName(position)
    const { constraint } = index
    return [
      `create ${index.unique ? 'unique ' : ''}index ${name} on ${beside} ${index.definition}`,
      ...(constraint === null
        ? []
        : [
            `alter table ${beside} add constraint ${name} ${constraint.kind} using index ${name}${constraint.deferrable}`,
          ]),
      ...(index.clustered ? [`alter table ${beside} cluster on ${name}`] : []),
      ...(index.identity ? [`alter table ${beside} replica identity using index ${name}`] : []),
    ]
  })
  const identity = { f: 'full', n: 'nothing' }[shape.replicaIdentity]
  return [
    // A member of the owner's role may exchange a partition; it stays the owner's all the same.
    `alter table ${beside} owner to ${shape.owner}`,
    ...indexes,
    ...(identity === undefined ? [] : [`alter table ${beside} replica identity ${identity}`]),
    ...shape.columnSettings.map((setting) => `alter table ${beside} ${setting}`),
    ...shape.foreignKeys.map(
      ({ name, definition }) => `alter table ${beside} add constraint ${name} ${definition}`,
    ),
    ...shape.foreignKeys
      .filter(({ comment }) => comment !== null)
      .map(
        ({ name, comment }) => `comment on constraint ${name} on ${beside} is ${quoteLiteral(comment ?? '')}`,
      ),
    ...(shape.comment === null ? [] : [`comment on table ${beside} is ${quoteLiteral(shape.comment)}`]),
    ...(shape.hasGrants ? [`revoke all on ${beside} from ${shape.owner}`] : []),
    ...shape.grants.map(({ what, who }) => `grant ${what} on ${beside} to ${who}`),
  ]
}

/** The names that only became free when the old partition went, and what is said under them. */
export function renameSql(
  shape: PartitionShape,
  old: Partition,
  renamed: { readonly beside: string; readonly tableName: string; readonly schemaPrefix: string },
  indexName: (position: number) => string,
): readonly string[] {
  const { beside, tableName, schemaPrefix } = renamed
  return [
    `alter table ${beside} rename to ${tableName}`,
    ...shape.indexes.map(
      ({ name }, position) => `alter index ${schemaPrefix}.${indexName(position)} rename to ${name}`,
    ),
    ...shape.indexes.flatMap(({ name, comment, constraint }) => [
      ...(comment === null ? [] : [`comment on index ${schemaPrefix}.${name} is ${quoteLiteral(comment)}`]),
      ...(constraint?.comment == null
        ? []
        : [`comment on constraint ${name} on ${old.qualified} is ${quoteLiteral(constraint.comment)}`]),
    ]),
  ]
}
