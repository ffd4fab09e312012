{% snapshot orders_history %}
{{ config(target_schema='public', unique_key='order_id', strategy='check', check_cols=['amount']) }}
select order_id, day, amount from public.shop_orders
{% endsnapshot %}
