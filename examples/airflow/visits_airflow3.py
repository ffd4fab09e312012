"""Airflow 3: the day of examples/slices/visits.ts that is over, every night."""

import os
from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, CronDataIntervalTimetable

with DAG(
    dag_id="visits",
    # The run that starts when 2025-05-02 is over has the logical date 2025-05-02 and loads that day. With a plain
    # schedule="0 0 * * *" Airflow 3 takes the moment of the start for the logical date: a day too late.
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2025, 5, 1),
    catchup=False,
    # Slices of one PostgreSQL table load side by side; a DuckDB file has one writer at a time.
    max_active_runs=1,
    default_args={
        "retries": 3,
        "retry_delay": timedelta(seconds=30),
        "retry_exponential_backoff": True,
        "execution_timeout": timedelta(hours=1),
    },
):
    # Logical date, slice and run id come from the environment that BashOperator sets.
    BashOperator(
        task_id="load",
        bash_command="exec stet run visits.ts",
        cwd=os.environ.get("PIPELINES", "/opt/pipelines"),
        append_env=True,
    )
