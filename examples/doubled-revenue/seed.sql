-- A shop's orders, and the revenue that the books are kept by.
create table shop_orders (
  order_id text primary key,
  day      date not null,
  amount   numeric(12, 2) not null
);
insert into shop_orders values
  ('A-1001', '2026-02-28',  80.00),
  ('A-1002', '2026-03-01', 120.00),
  ('A-1003', '2026-03-01',  45.50),
  ('A-1004', '2026-03-01', 310.00),
  ('A-1005', '2026-03-01',  19.90);

create table revenue (
  order_id text,
  day      date,
  amount   numeric(12, 2)
);
insert into revenue values ('A-1001', '2026-02-28', 80.00);

-- The same with a key, for the cures that need one.
create table revenue_by_order (
  order_id text primary key,
  day      date,
  amount   numeric(12, 2)
);
insert into revenue_by_order values ('A-1001', '2026-02-28', 80.00);

-- Days the job has done.
create table done_days (day date primary key);
insert into done_days values ('2026-02-28');
