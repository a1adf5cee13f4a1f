"""Tumult Analytics: one session of pure ε per run, each query with an even share and a key set."""

import json
import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need the packages of this environment

from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session


def ask(session: Any, share: Any, by: list[str], keys: list[list[Any]]) -> list[int]:
    """Counts of all groups, in the order of ``keys``."""
    query = QueryBuilder("flights")
    if by:
        columns = {name: sorted({key[i] for key in keys}) for i, name in enumerate(by)}
        counted = query.groupby(KeySet.from_dict(columns)).count(name="n")
    else:
        counted = query.count(name="n")
    rows = session.evaluate(counted, share).collect()
    numbers = {tuple(row[column] for column in by): row["n"] for row in rows}
    return [numbers[tuple(key)] for key in keys]


def main() -> None:
    """Answer the job."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings = {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}
    settings["spark.sql.warehouse.dir"] = str(Path(sys.argv[2]).parent / "warehouse")
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    table = builder.getOrCreate().read.csv(job["table"], header=True, inferSchema=True).cache()
    whole = Fraction(str(job["epsilon"]))
    share = PureDPBudget(float(whole / len(job["asks"])))
    runs = []
    for _ in range(job["runs"]):
        session = Session.from_dataframe(
            PureDPBudget(float(whole)), "flights", table, protected_change=AddOneRow()
        )
        runs.append([ask(session, share, one["by"], one["keys"]) for one in job["asks"]])
    Path(sys.argv[2]).write_text(json.dumps({"runs": runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
