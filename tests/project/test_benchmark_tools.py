"""The comparison with other tools: how answers, errors and reasons are computed."""

import math
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.comparisons.tools import ours
from benchmarks.comparisons.tools.batch import (
    AS_WRITTEN,
    FEWEST,
    STATEMENTS,
    VALUES,
    answers,
    domain_text,
    expected_variances,
    keys,
    shape,
    sql_text,
)
from benchmarks.comparisons.tools.environments import Environment, UnavailableError, _reason
from benchmarks.comparisons.tools.measure import (
    BATCH,
    Label,
    by_statement,
    read_rows,
    rows_of,
    summary,
    write_rows,
)
from lrm.domain.file import parse_domain
from lrm.queries.sql import sql
from pages import ROOT

LABEL = Label("tool", "1.0", "every statement", 1.0)


def counted(rng: np.random.Generator, asked):
    """Exact counts of ``asked`` on a random table."""
    full = rng.integers(0, 5, [len(values) for values in VALUES.values()]).astype(float)
    rest = {by: tuple(i for i, c in enumerate(VALUES) if c not in by) for by in asked}
    return full, {by: full.sum(axis=rest[by]).ravel() for by in asked}


def test_both_ways_of_asking_give_the_answers_that_lrm_compiles():
    """Summed tables, asked tables and the SQL batch agree on exact counts."""
    full, written = counted(np.random.default_rng(1), AS_WRITTEN)
    _, fewest = counted(np.random.default_rng(1), FEWEST)
    workload = sql(sql_text(), parse_domain(domain_text()))
    compiled = ours.by_statement(workload.queries.apply(full.ravel()))
    for name, values in answers(written).items():
        np.testing.assert_array_equal(values, answers(fewest)[name])
        np.testing.assert_array_equal(values, compiled[name])


DRAWS = 3000


@pytest.mark.parametrize("asked", [AS_WRITTEN, FEWEST])
def test_expected_variances_are_those_of_simulated_noise(asked):
    """The error of the batch with simulated noise is the one that is expected.

    The mean of 3,000 squares of Laplace noise has a relative standard error of √(5/3000) = 0.041.
    """
    rng = np.random.default_rng(2)
    ratio = math.exp(-0.5 / len(asked))
    squares = {statement.name: 0.0 for statement in STATEMENTS}
    for _ in range(DRAWS):
        noise = {}
        for by in asked:
            size = math.prod(shape(by))
            noise[by] = (rng.geometric(1 - ratio, size) - rng.geometric(1 - ratio, size)) * 1.0
        for name, values in answers(noise).items():
            squares[name] += float((values**2).mean()) / DRAWS
    for name, values in expected_variances(noise, 0.5).items():
        assert squares[name] == pytest.approx(values.mean(), rel=0.15), name


def test_a_group_that_is_left_out_is_no_answer_but_adds_nothing_to_sums():
    _, counts = counted(np.random.default_rng(3), FEWEST)
    truth = answers(counts)
    counts[("hour",)][0] = math.nan
    found = answers(counts)
    assert np.isnan(found["by hour"][0])
    assert np.isfinite(found["up to each hour"]).all()
    rows = {row.statement: row for row in rows_of(LABEL, truth, [found] * 2, truth)}
    assert (rows["by hour"].given, rows["by hour"].answers) == (23, 24)
    assert rows["by hour"].rmse == 0
    assert rows[BATCH].answers == sum(statement.answers for statement in STATEMENTS) == 164


def test_rows_and_tables_tell_the_error(tmp_path: Path):
    _, counts = counted(np.random.default_rng(4), AS_WRITTEN)
    truth = answers(counts)
    runs = [{name: values + sign * 2 for name, values in truth.items()} for sign in (1, -1)]
    rows = rows_of(LABEL, truth, runs, expected_variances(counts, 1.0))
    assert [row.rmse for row in rows] == [2.0] * 9
    write_rows(rows, tmp_path / "rows.csv")
    again = read_rows(tmp_path / "rows.csv")
    assert summary(again) == summary(rows)
    assert "| tool 1.0 | every statement | 164 | 2.0 ± 0.0 | 16.2 |" in summary(rows)
    assert by_statement(rows).count(" 2.0 |") == 8


def test_pages_show_the_rows_that_are_kept():
    rows = read_rows(ROOT / "docs" / "bench" / "tools.csv")
    page = (ROOT / "docs" / "explanation" / "compared-with-tools.md").read_text(encoding="utf-8")
    assert summary(rows) in page
    planned = [row for row in rows if row.tool in {"OpenDP", "lrm"}]
    assert by_statement(planned, "expected_rmse") in page


def test_keys_change_their_last_column_fastest():
    groups = keys(("month", "origin"))
    assert len(groups) == 36
    assert all(before < after for before, after in pairwise(groups))


def test_a_tool_that_fails_says_why(tmp_path: Path):
    driver = tmp_path / "driver.py"
    driver.write_text("raise ImportError('no module named tool')", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    broken = Environment("tool", ("tool",), str(driver), tmp_path)
    with pytest.raises(UnavailableError, match="failed: ImportError: no module named tool"):
        broken.run({}, tmp_path / "answers.json")


def test_the_reason_is_the_line_that_names_an_error():
    assert _reason("WARNING: a\nERROR: No matching distribution\nnote: b") == (
        "ERROR: No matching distribution"
    )
    assert _reason("") == "no reason was given"
