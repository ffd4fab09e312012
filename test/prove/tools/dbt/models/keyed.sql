{{ config(materialized='incremental', unique_key='order_id') }}
select order_id, day, amount from public.shop_orders
