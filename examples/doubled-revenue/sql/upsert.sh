#!/bin/sh
# Cure 1: a key, and what is there is corrected instead of added to. Needs no note of what is done.
set -e
day=${1:-2026-03-01}
psql -XAtq -v ON_ERROR_STOP=1 <<SQL
insert into revenue_by_order as r
select order_id, day, amount
  from shop_orders
 where day = '$day'
on conflict (order_id) do update
   set day = excluded.day, amount = excluded.amount
 where (r.day, r.amount) is distinct from (excluded.day, excluded.amount);
SQL
