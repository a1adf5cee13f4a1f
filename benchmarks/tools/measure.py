"""From answers to rows: root mean squared error per statement and over the whole batch."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks.tools.batch import STATEMENTS, Floats

BATCH = "whole batch"
"""The name of the rows that are about all answers together."""


@dataclass(frozen=True)
class Row:
    """The error of a tool on a statement.

    ``answers`` were asked for and ``given`` were returned; errors are over those. ``expected``
    is what the noise that the tool is documented to add implies, over all answers asked for.
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
                expected_rmse=math.sqrt(variance.mean()),
            )
        )
    return rows


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows as CSV, errors to four significant digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        for row in rows:
            values = asdict(row).values()
            writer.writerow([f"{v:.4g}" if isinstance(v, float) else v for v in values])


def markdown(rows: Sequence[Row]) -> str:
    """The batch as one small table, and the statements as a second one."""
    whole = [row for row in rows if row.statement == BATCH]
    lines = ["| tool | asked | answers | error per answer | expected |", "|---|---|--:|--:|--:|"]
    for row in sorted(whole, key=lambda row: row.expected_rmse):
        given = f"{row.given}" if row.given == row.answers else f"{row.given} of {row.answers}"
        lines.append(
            f"| {row.tool} {row.version} | {row.way} | {given} "
            f"| {row.rmse:.1f} ± {row.rmse_standard_error:.1f} | {row.expected_rmse:.1f} |"
        )
    ways = list(dict.fromkeys((row.tool, row.way) for row in rows))
    heads = [f"{tool}, {way}" for tool, way in ways]
    lines += ["", f"| statement | answers | {' | '.join(heads)} |"]
    lines.append("|---|--:|" + "--:|" * len(ways))
    for statement in STATEMENTS:
        cells = {(r.tool, r.way): r.rmse for r in rows if r.statement == statement.name}
        numbers = " | ".join(f"{cells[way]:.1f}" for way in ways)
        lines.append(f"| {statement.name} | {statement.answers} | {numbers} |")
    return "\n".join(lines) + "\n"
