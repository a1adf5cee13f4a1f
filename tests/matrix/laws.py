"""The laws that hold for every combination of ordinary use."""

from __future__ import annotations

from html import unescape

import numpy as np
import pyarrow.parquet as pq

import lrm
from matrix.outputs import (
    answers_of_csv,
    answers_of_json,
    answers_of_rows,
    answers_of_wide_files,
    answers_of_workbook,
    same_answers,
)
from matrix.truth import FAR, Answers, compare_named, compare_statement
from matrix.walk import LARGE, USUAL, Walk

NO_WORSE = 1.001
"""The largest ratio of a statement's error to that under an even split of the budget."""

LOOKED_AT = 4
"""Statements whose intervals are looked at at every amount; at the usual one those of all are."""

ROUNDED = 1 + 1e-5
"""The largest ratio of a half-width to its tolerance, as amounts are stated to six digits."""

WRITTEN_OUT = 1 << 18
"""Weights up to which combinations of queries are asked for as a matrix."""


def files_hold_what_was_saved(walk: Walk) -> None:
    """A file that was saved can be loaded, with an equal plan and equal answers."""
    loaded_plan = walk.prepared.loaded_plan
    assert loaded_plan.digest == walk.plan.digest
    assert np.array_equal(walk.loaded.answers, walk.release.answers)
    assert _texts(walk.loaded.to_arrow()) == _texts(walk.release.to_arrow())
    before, after = (plan.standard_errors(**walk.amount) for plan in (walk.plan, loaded_plan))
    assert np.array_equal(before, after)


def every_output_has_every_answer(walk: Walk) -> None:
    """Outputs with one row per answer hold all answers, and tables all that they display."""
    release, folder = walk.release, walk.folder
    every = release.to_pandas()["answer"].tolist()
    long_outputs = {
        "polars": release.to_polars()["answer"].to_list(),
        "csv": answers_of_csv(folder / "answers.csv"),
        "csv of the folder": answers_of_csv(folder / "tables" / "answers.csv"),
        "parquet": pq.read_table(folder / "answers.parquet")["answer"].to_pylist(),
        "json": answers_of_json(folder / "answers.json"),
    }
    for name, answers in long_outputs.items():
        assert same_answers(answers, every), f"{name} has {len(answers)} of {len(every)} answers"
    displayed = [
        answer
        for frame in release.frames()
        for answer in answers_of_rows(frame.header, frame.plain_rows())
    ]
    if walk.case.answers != "limit and having":
        assert same_answers(displayed, every), f"{len(displayed)} of {len(every)} are displayed"
    tables = {
        "wide files": answers_of_wide_files(folder / "tables"),
        "workbook": answers_of_workbook(folder / "answers.xlsx"),
    }
    for name, answers in tables.items():
        assert same_answers(answers, displayed), f"{name} has {len(answers)} of {len(displayed)}"


def every_page_has_every_table(walk: Walk) -> None:
    """The page and the Markdown file have each table; the terminal says where it has not."""
    page = unescape((walk.folder / "answers.html").read_text())
    markdown = (walk.folder / "answers.md").read_text().replace("\\", "")
    shown = walk.printed["show"]
    for statement in walk.plan.workload.tables:
        if statement.columns:
            assert statement.title in page, f"the page lacks {statement.title!r}"
            assert statement.title in markdown, f"the Markdown file lacks {statement.title!r}"
            assert statement.title in shown or "not all of" in shown, statement.title


def intervals_are_finite_and_ordered(walk: Walk) -> None:
    """At every amount, each interval has two finite ends in order.

    An answer may be outside: an unbiased count below 0 has an interval that begins at 0.
    """
    _check_intervals(walk.release.table(), USUAL)
    for amount, release in walk.releases.items():
        for statement in release.plan.workload.tables[:LOOKED_AT]:
            _check_intervals(release[statement.name], amount)


def _check_intervals(table, amount):
    low, high = (table.numbers[name] for name in ("low", "high"))
    finite = np.isfinite(low) & np.isfinite(high)
    assert finite.all(), f"at {amount}: {(~finite).sum()} intervals are not finite"
    assert (low <= high).all(), f"at {amount}: intervals are not ordered"


def no_statement_is_worse_than_an_even_split(walk: Walk) -> None:
    """A statement has no larger error than with its share of the budget by itself.

    The shares are equal, or those that follow from importances.
    """
    ratios = walk.plan.statement_ratios
    if ratios is not None:
        assert max(ratios) <= NO_WORSE, f"the largest ratio is {max(ratios):.3f}"


def bounds_are_below_errors(walk: Walk) -> None:
    """What no strategy can be better than is not above what the plan has."""
    nearly = 1 + 1e-9
    assert walk.plan.least_error <= walk.plan.weighted_strategy_error * nearly
    error = walk.plan.expected_squared_error(**walk.amount)
    assert walk.plan.lower_bound(**walk.amount) <= error * nearly


def tolerances_are_met(walk: Walk) -> None:
    """At the amount that a plan for tolerances states, every answer is within its own."""
    if walk.case.objective == "meet":
        largest = max(walk.prepared.loaded_plan.meets().ratios)
        assert largest <= ROUNDED, f"a half-width is {largest:.6f} of its tolerance"


def answers_without_noise_are_those_of_duckdb(walk: Walk) -> None:
    """At a large amount each answer is what DuckDB has on the same rows."""
    release = walk.releases[LARGE]
    answers = Answers(release)
    if walk.batch.exact is not None:
        compare_named(walk.batch.exact, answers)
    statements = release.plan.workload.tables if walk.batch.questions else ()
    for question, statement in zip(walk.batch.questions, statements, strict=True):
        compare_statement(question, statement, answers)


def further_queries_are_answered(walk: Walk) -> None:
    """What was planned can be asked again, alone and combined, with errors that are no larger."""
    release = walk.loaded
    again = release.query(walk.batch.queries)
    before, after = (each.accuracy.squared_error for each in (release, again))
    assert after <= before * NO_WORSE, f"{after / before:.4f} times the error when asked again"
    noise = FAR * (release.standard_errors + again.standard_errors)
    assert (np.abs(again.answers - release.answers) <= noise + 1e-6).all()
    for question in walk.batch.questions[::7]:
        assert len(release.query(question.text).answers) > 0
    queries, cells = release.plan.workload.shape
    if queries * cells <= WRITTEN_OUT:
        draw = np.random.default_rng(walk.case.seed)
        weights = draw.integers(-2, 3, (3, queries)).astype(float)
        matrix = weights @ np.asarray(release.plan.workload.queries.dense())
        combined = release.query(lrm.Workload(matrix, domain=release.plan.workload.domain))
        noise = FAR * (np.abs(weights) @ release.standard_errors + combined.standard_errors)
        assert (np.abs(combined.answers - weights @ release.answers) <= noise + 1e-6).all()


LAWS = (
    files_hold_what_was_saved,
    every_output_has_every_answer,
    every_page_has_every_table,
    intervals_are_finite_and_ordered,
    no_statement_is_worse_than_an_even_split,
    bounds_are_below_errors,
    tolerances_are_met,
    answers_without_noise_are_those_of_duckdb,
    further_queries_are_answered,
)


def broken_laws(walk: Walk) -> list[str]:
    """What each law that the walk breaks says of it."""
    broken = []
    for law in LAWS:
        try:
            law(walk)
        except (AssertionError, lrm.LrmError) as reason:
            first_line = str(reason).partition("\n")[0]
            broken.append(f"{law.__name__}: {type(reason).__name__}: {first_line}")
    return broken


def _texts(table):
    """The rows of an Arrow table as text, in which NaN equals NaN."""
    return [list(map(str, row.values())) for row in table.to_pylist()]
