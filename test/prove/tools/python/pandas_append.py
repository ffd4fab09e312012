import os

import pandas
import sqlalchemy

engine = sqlalchemy.create_engine(os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg2://"))
orders = pandas.read_sql("select order_id, day, amount from shop_orders", engine)
orders.to_sql("copied", engine, if_exists="append", index=False)
