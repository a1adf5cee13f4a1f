"""From answers to rows: root mean squared error per statement and over the whole batch."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.comparisons.tools.batch import STATEMENTS, Floats

BATCH = "whole batch"
"""The name of the rows that are about all answers together."""


@dataclass(frozen=True)
class Row:
    """The error of a tool on a statement.

    ``answers`` were asked for and ``given`` were returned; errors are over those that were given.
    ``expected_rmse`` is what the noise implies that the tool is documented to add.
    """

    tool: str
    version: str
    way: str
    epsilon: float
    runs: int
    statement: str
    answers: int
    given: int
    rmse: float
    rmse_standard_error: float
    expected_rmse: float

    def __post_init__(self) -> None:
        if not 0 <= self.given <= self.answers:
            raise ValueError(f"{self.given} answers given of {self.answers}")
        if self.given and not self.rmse >= 0:
            raise ValueError(f"rmse must be at least 0, not {self.rmse}")


@dataclass(frozen=True)
class Label:
    """What a tool's rows have in common."""

    tool: str
    version: str
    way: str
    epsilon: float


def rows_of(
    label: Label,
    truth: Mapping[str, Floats],
    runs: Sequence[Mapping[str, Floats]],
    variances: Mapping[str, Floats],
) -> list[Row]:
    """One row per statement, then one for the whole batch."""
    if len(runs) < 2:
        raise ValueError("at least two runs are needed, for the standard error")
    names = [statement.name for statement in STATEMENTS]
    rows = []
    for name, parts in [*((name, [name]) for name in names), (BATCH, names)]:
        errors = np.array([np.concatenate([run[p] - truth[p] for p in parts]) for run in runs])
        variance = np.concatenate([variances[part] for part in parts])
        given = int(np.isfinite(errors[0]).sum())
        means = np.nanmean(errors**2, axis=1)  # one mean squared error per run
        rmse = math.sqrt(means.mean())
        spread = float(means.std(ddof=1)) / math.sqrt(len(runs))
        rows.append(
            Row(
                **asdict(label),
                runs=len(runs),
                statement=name,
                answers=variance.size,
                given=given,
                rmse=rmse,
                rmse_standard_error=spread / (2 * rmse) if rmse else 0.0,
                expected_rmse=math.sqrt(np.nanmean(variance)),
            )
        )
    return rows


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows as CSV, errors to six significant digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        for row in rows:
            values = asdict(row).values()
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values])


def read_rows(path: Path) -> list[Row]:
    """Read what ``write_rows`` has written."""
    kinds = {
        field.name: {"str": str, "int": int, "float": float}[field.type] for field in fields(Row)
    }
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**{k: kinds[k](v) for k, v in row.items()}) for row in csv.DictReader(file)]


def summary(rows: Sequence[Row]) -> str:
    """The whole batch as a Markdown table, the smallest expected error first."""
    lines = [
        "| tool | measured | answers | error per answer | expected |",
        "|---|---|--:|--:|--:|",
    ]
    whole = [row for row in rows if row.statement == BATCH]
    for row in sorted(whole, key=lambda row: row.expected_rmse):
        given = f"{row.given}" if row.given == row.answers else f"{row.given} of {row.answers}"
        lines.append(
            f"| {row.tool} {row.version} | {row.way} | {given} "
            f"| {row.rmse:.1f} ± {row.rmse_standard_error:.1f} | {row.expected_rmse:.1f} |"
        )
    return "\n".join(lines) + "\n"


def by_statement(rows: Sequence[Row], figure: Literal["rmse", "expected_rmse"] = "rmse") -> str:
    """Errors as a Markdown table with one column per statement."""
    names = [statement.name for statement in STATEMENTS]
    lines = [f"| tool | measured | {' | '.join(names)} |", "|---|---|" + "--:|" * len(names)]
    for tool, way in dict.fromkeys((row.tool, row.way) for row in rows):
        of_way = [row for row in rows if (row.tool, row.way) == (tool, way)]
        errors = {row.statement: getattr(row, figure) for row in of_way}
        numbers = " | ".join(f"{errors[name]:.1f}" for name in names)
        lines.append(f"| {tool} | {way} | {numbers} |")
    return "\n".join(lines) + "\n"
