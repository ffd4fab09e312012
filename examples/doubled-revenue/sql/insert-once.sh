#!/bin/sh
# Cure 3: an order is an event that happens once; its number says whether it is known.
set -e
day=${1:-2026-03-01}
psql -XAtq -v ON_ERROR_STOP=1 <<SQL
insert into revenue_by_order
select order_id, day, amount
  from shop_orders
 where day = '$day'
on conflict (order_id) do nothing;
SQL
