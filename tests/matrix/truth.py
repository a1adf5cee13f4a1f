"""Answers compared with those that DuckDB has on the same rows."""

from __future__ import annotations

import math

from lrm.queries.workload.finding import find_answers
from matrix.visits import SHARES, reference

FAR = 15
"""Standard errors that noise moves no answer by: 1e-9 of Laplace noise, less of other noise."""

PER_CENT = 100.0
"""By how much a rate in per cent, of one row, multiplies the noise of a count."""


class Answers:
    """The answers of a release with hardly any noise, without their intervals."""

    def __init__(self, release):
        workload = release.plan.workload
        self._release, self._workload = release, workload
        self._values = release.shown_answers(0, len(workload.shown))
        self._noise = FAR * float(release.standard_errors.max())

    def named(self) -> dict[str, float]:
        """Each answer by its full name."""
        names = (label.name for label in self._workload.shown)
        return dict(zip(names, self._values.tolist(), strict=True))

    def grouped(self, statement) -> dict[frozenset, float]:
        """The answers of a statement by their groups."""
        labels, ranges = find_answers(self._workload, statement.name)
        values = [value for start, stop in ranges for value in self._values[start:stop].tolist()]
        return {frozenset(label.group): value for label, value in zip(labels, values, strict=True)}

    def check(self, answer, want, allowed, place) -> None:
        """Assert that an answer is what DuckDB has, but for noise and what is allowed."""
        near = 1e-6 * (1 + abs(want)) + self._noise * max(PER_CENT, abs(want)) + allowed
        assert abs(answer - want) <= near, f"{answer} is not DuckDB's {want}: {place}"


def compare_statement(question, statement, answers) -> None:
    """Assert that the answers of a statement are DuckDB's."""
    truth, groups = _groups(question), answers.grouped(statement)
    assert truth.keys() <= groups.keys(), f"groups are missing: {question.text}"
    for group, answer in groups.items():
        want = truth.get(group)
        if want is not None or question.empty:  # SQL has no average of no rows
            place = f"{dict(group)} of {question.text}"
            answers.check(answer, want or 0.0, question.allowed, place)


def compare_named(expected, answers) -> None:
    """Assert that each query has the answer expected of its name; others count no row."""
    named = answers.named()
    assert expected.keys() <= named.keys()
    for name, answer in named.items():
        answers.check(answer, expected.get(name, 0.0), SHARES, name)


def _groups(question):
    """DuckDB's answer of each group; a group that is rolled up has no label."""
    found = reference().execute(question.reference)
    names = [column[0] for column in found.description]
    truth = {}
    for row in found.fetchall():
        *labels, value = row
        group = frozenset(
            (name, str(label))
            for name, label in zip(names, labels, strict=False)
            if label is not None
        )
        truth[group] = math.nan if value is None else float(value)
    return {group: value for group, value in truth.items() if not math.isnan(value)}
