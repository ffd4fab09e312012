{{ config(materialized='incremental') }}
select order_id, day, amount from public.shop_orders
