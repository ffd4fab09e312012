"""Dagster: one partition of the asset is one slice of examples/slices/visits.ts."""

import os

from dagster import (
    AssetExecutionContext,
    Backoff,
    DailyPartitionsDefinition,
    Definitions,
    PipesSubprocessClient,
    RetryPolicy,
    asset,
    define_asset_job,
)


@asset(
    partitions_def=DailyPartitionsDefinition(start_date="2025-05-01", timezone="UTC"),
    retry_policy=RetryPolicy(max_retries=3, delay=30, backoff=Backoff.EXPONENTIAL),
    # A DuckDB file has one writer at a time: give this pool a limit of 1. On PostgreSQL slices load side by side.
    pool="stet",
)
def visits(context: AssetExecutionContext, stet: PipesSubprocessClient):
    # Partition and run id go over in the context of Pipes.
    return stet.run(
        context=context,
        command=["stet", "run", "visits.ts"],
        cwd=os.environ.get("PIPELINES", "/opt/pipelines"),
    ).get_materialize_result()


defs = Definitions(
    assets=[visits],
    jobs=[define_asset_job("visits_job", [visits])],
    resources={"stet": PipesSubprocessClient()},
)
