"""Cure 1: a key, and what is there is corrected instead of added to."""

import os
import sys

import psycopg

day = sys.argv[1] if len(sys.argv) > 1 else "2026-03-01"

UPSERT = """
insert into revenue_by_order as r (order_id, day, amount) values (%s, %s, %s)
on conflict (order_id) do update
   set day = excluded.day, amount = excluded.amount
 where (r.day, r.amount) is distinct from (excluded.day, excluded.amount)
"""

with psycopg.connect(os.environ["DATABASE_URL"]) as db:
    orders = db.execute("select order_id, day, amount from shop_orders where day = %s", [day]).fetchall()
    for order in orders:
        db.execute(UPSERT, order)
