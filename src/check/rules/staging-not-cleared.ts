import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import {
  clearedBy,
  isStagingTable,
  isTemporary,
  leavesOutExisting,
  madeAnewElsewhere,
  nameOf,
  readsTable,
} from '../sequence.ts'
import { usesBeside, usesOfTable } from '../uses-index.ts'

export const stagingNotCleared: Rule = {
  id: 'staging-not-cleared',
  title: 'Empty a work table before it is filled',
  anomaly: 'doubled',
  tier: 2,
  fix: 'suggestion',
  problem:
    'The work table is filled without being emptied first. After a run that broke off, the next one finds its rows and takes them for its own.',
  advice: 'Truncate the work table at the start, make it temporary, or name it by the run.',
  safeForms: [
    {
      for: 'any',
      code: "truncate table stage_orders;\ninsert into stage_orders select * from source_orders where day = '2025-02-03';",
    },
    { for: 'PostgreSQL', code: 'create temp table stage_orders (like orders) on commit drop;' },
  ],
  prove: '`stet prove` cuts behind the fill; the rerun loads the leftovers too (DOUBLED).',
  limits:
    'What another repository or a scheduler empties is not seen; the name has to say that it is a work table.',
  bad: [
    {
      why: 'filled and merged, never emptied',
      path: 'etl/load.sql',
      lines: [1],
      code: 'insert into stage_orders select * from source;\nmerge into orders t using stage_orders s on t.id = s.id when not matched then insert (id) values (s.id);\n',
    },
    {
      why: 'emptied only at the end, which a crash never reaches',
      path: 'etl/load.sql',
      lines: [1],
      code: "copy stage_orders from 's3://bucket/orders' iam_role default;\ninsert into orders select * from stage_orders on conflict (id) do nothing;\ntruncate table stage_orders;\n",
    },
  ],
  fine: [
    {
      why: 'emptied first',
      path: 'etl/load.sql',
      lines: [],
      code: 'truncate table stage_orders;\ninsert into stage_orders select * from source;\ninsert into orders select * from stage_orders on conflict (id) do nothing;\n',
    },
    {
      why: 'made anew',
      path: 'etl/load.sql',
      lines: [],
      code: 'create temp table stage_orders (id int);\ninsert into stage_orders select id from source;\ninsert into orders select * from stage_orders on conflict (id) do nothing;\n',
    },
    {
      why: 'another step empties it',
      path: 'etl/2.sql',
      lines: [],
      beside: { 'etl/1.sql': 'truncate table stage_orders;\n' },
      code: 'insert into stage_orders select * from source;\ninsert into orders select * from stage_orders on conflict (id) do nothing;\n',
    },
    {
      why: 'all in one transaction, emptied at its end',
      path: 'etl/load.sql',
      lines: [],
      code: 'begin;\ninsert into stage_orders select * from source;\ninsert into orders select * from stage_orders on conflict (id) do nothing;\ndelete from stage_orders;\ncommit;\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    for (const use of file.sql) {
      const { statement } = use
      const { target } = statement
      if (!['insert', 'copy', 'load'].includes(statement.kind) || target === undefined || target.unknown)
        continue
      if (statement.overwrite || statement.conflict !== undefined || statement.partition) continue
      if (['request', 'migration', 'test', 'seed'].includes(use.context) || !isStagingTable(target, project))
        continue
      // Constants of a module: in which order they run is not seen.
      if (use.origin === 'text' && use.call === undefined) continue
      // Snowflake's copy skips the files it has loaded.
      if (statement.kind === 'copy' && file.dialect === 'snowflake') continue
      if (isTemporary(file, use) || clearedBy(file, use) !== undefined) continue
      if (leavesOutExisting(statement.query, target) || madeAnewElsewhere(file, use, project)) continue
      const table = project.catalogue.find(target, file.path)
      if (table?.temporary || table?.keys.some((key) => !key.generated && !key.partial)) continue
      const beside = usesBeside(file, use.fn, use.origin)
      const taken = beside.some(
        (one) =>
          one.order > use.order &&
          ['insert', 'merge', 'update', 'delete'].includes(one.statement.kind) &&
          one.statement.target?.text !== target.text &&
          readsTable(one.statement.tokens, target),
      )
      if (!taken) continue
      const emptiedWith = usesOfTable(file, target).some(
        (one) =>
          ['delete', 'truncate', 'drop'].includes(one.statement.kind) &&
          use.transaction !== undefined &&
          one.transaction === use.transaction,
      )
      // Filled several times from several sources: the first one decides.
      const first = beside.find(
        (one) =>
          ['insert', 'copy', 'load'].includes(one.statement.kind) &&
          one.statement.target?.text === target.text,
      )
      if (emptiedWith || first !== use) continue
      yield {
        start: use.start,
        end: use.end,
        message: `${nameOf(target)} is filled without being emptied first: after a run that broke off its rows are loaded again`,
        class: 'unsafe',
        severity: 'error',
        confidence: 'medium',
      }
    }
  },
}
