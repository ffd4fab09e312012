#!/bin/sh
# Cure 2: the day is taken out and put in again, in one transaction. The lock keeps a second run from doing the same
# at the same time, which would put it in twice.
set -e
day=${1:-2026-03-01}
psql -XAtq -v ON_ERROR_STOP=1 <<SQL
begin;
lock table revenue in share row exclusive mode;
delete from revenue where day = '$day';
insert into revenue select order_id, day, amount from shop_orders where day = '$day';
commit;
SQL
