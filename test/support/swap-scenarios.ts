import type { WriteStrategy } from '../../src/model/write.ts'
import type { Scenario } from '../../src/testing/place.ts'
import { DAY_1, DAY_2, DAY_2_AGAIN, ofDay } from '../../src/testing/slice-scenarios.ts'

const PARTITIONED = `create table t (id text, day date, note text, seq bigint, unique (id, day)) partition by range (day);
  create table t_7 partition of t for values from ('2026-08-07') to ('2026-08-08');`
const BOTH_DAYS = `${PARTITIONED} create table t_8 partition of t for values from ('2026-08-08') to ('2026-08-09')`

/** Attempts that exchange a partition, or make one, disturbed. */
export function scenariosOfSwaps(): readonly Scenario[] {
  const swap: WriteStrategy = {
    strategy: 'replace-partition',
    by: 'day',
    size: 'day',
    key: ['id'],
    apply: 'swap',
  }
  const loaded = [ofDay('2026-08-07', DAY_1), ofDay('2026-08-08', DAY_2)]
  return [
    {
      name: 'swap of a partition',
      setup: BOTH_DAYS,
      before: loaded,
      attempt: ofDay('2026-08-08', DAY_2_AGAIN, swap),
    },
    {
      name: 'a partition made out of the default one',
      setup: `${PARTITIONED} create table t_rest partition of t default;
        insert into t values ('c', '2026-08-08', 'first', 3), ('d', '2026-08-08', null, 4)`,
      before: loaded.slice(0, 1),
      attempt: ofDay('2026-08-08', DAY_2_AGAIN, swap),
    },
  ]
}
