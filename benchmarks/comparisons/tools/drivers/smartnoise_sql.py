"""SmartNoise SQL: one SELECT per grouping, each with an even share of ε.

``month`` and ``hour`` are function names of its SQL, so columns have a trailing underscore here.
Groups are those that have rows: there is no way to declare the others. ``censor_dims`` is off,
which declares that the groups are public; with it, rare groups would be removed at the price
of a δ.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from snsql import Privacy, from_df


def ask(reader: Any, by: list[str], keys: list[list[Any]]) -> list[int | None]:
    """Counts in the order of ``keys``; None for a group without rows."""
    columns = ", ".join(f"{column}_" for column in by)
    if by:
        query = f"SELECT {columns}, COUNT(*) AS n FROM flights GROUP BY {columns}"  # noqa: S608
    else:
        query = "SELECT COUNT(*) AS n FROM flights"
    numbers = {tuple(row[:-1]): int(row[-1]) for row in reader.execute(query)[1:]}
    return [numbers.get(tuple(key)) for key in keys]


def main() -> None:
    """Answer the job."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    table = pd.read_csv(job["table"]).add_suffix("_")
    columns = {
        name: {"type": "int" if kind.kind == "i" else "string"}
        for name, kind in table.dtypes.items()
    }
    meta = {"": {"": {"flights": {"row_privacy": True, "censor_dims": False, **columns}}}}
    runs = []
    for _ in range(job["runs"]):
        privacy = Privacy(epsilon=job["epsilon"] / len(job["asks"]))
        reader = from_df(table, privacy=privacy, metadata=meta)
        runs.append([ask(reader, one["by"], one["keys"]) for one in job["asks"]])
    Path(sys.argv[2]).write_text(json.dumps({"runs": runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
