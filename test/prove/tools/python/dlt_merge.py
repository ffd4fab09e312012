import os

import dlt

orders = [{"order_id": f"A-{n}", "amount": n} for n in range(1, 6)]
pipeline = dlt.pipeline(
    "orders", destination=dlt.destinations.postgres(os.environ["DATABASE_URL"]), dataset_name="shop"
)
pipeline.run(orders, table_name="orders", write_disposition="merge", primary_key="order_id")
