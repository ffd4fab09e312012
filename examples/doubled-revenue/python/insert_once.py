"""Cure 3: an order is an event that happens once; its number says whether it is known."""

import os
import sys

import psycopg

day = sys.argv[1] if len(sys.argv) > 1 else "2026-03-01"

ONCE = """
insert into revenue_by_order
select order_id, day, amount
  from shop_orders
 where day = %s
on conflict (order_id) do nothing
"""

with psycopg.connect(os.environ["DATABASE_URL"]) as db:
    db.execute(ONCE, [day])
