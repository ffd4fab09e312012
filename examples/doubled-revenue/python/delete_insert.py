"""Cure 2: the day is taken out and put in again, in one transaction, under a lock."""

import os
import sys

import psycopg

day = sys.argv[1] if len(sys.argv) > 1 else "2026-03-01"

with psycopg.connect(os.environ["DATABASE_URL"]) as db:
    db.execute("lock table revenue in share row exclusive mode")
    db.execute("delete from revenue where day = %s", [day])
    db.execute("insert into revenue select order_id, day, amount from shop_orders where day = %s", [day])
