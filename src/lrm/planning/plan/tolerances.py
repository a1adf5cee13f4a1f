"""Tolerances of statements: the least ε or ρ at which every answer is as near as its author wants.

``-- within: 50`` before a statement wants an interval of ±50 or less for each of its answers. The
half-width of an interval is in proportion to 1/ε (1/√ρ), so the least amount for a strategy is
the largest ratio of a half-width at ε = 1 to its tolerance; the strategy is chosen for the least
such ratio. Counts and sums have intervals that do not depend on the table. Those of rates and
averages are for the number of rows in their denominator that ``-- expected: 2000`` states, and the
tolerance of a quantile is about its rank, in rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from lrm.errors import BudgetError, UsageError
from lrm.planning.accuracy import Accuracy, round_up
from lrm.planning.accuracy.intervals import is_coarse, norm_half_widths
from lrm.planning.derived import expected_error, slopes
from lrm.planning.design.measured import Measured
from lrm.planning.design.reconstruction import Reconstruction
from lrm.planning.plan.goals import Goals, accuracy_of
from lrm.privacy.amounts import LEAST_AMOUNT, MOST_AMOUNT
from lrm.privacy.budget import ZCDP, Privacy, PureDP
from lrm.privacy.norms import Norm
from lrm.queries.maps.linear import Floats, Integers
from lrm.queries.workload import Derived, Quantile, Statement, Workload, check_listable
from lrm.queries.workload.columns import StatementColumns, statement_columns


@dataclass(frozen=True, eq=False)
class Tolerance:
    """The answers of one name and table of a statement, and how near they must be.

    Parameters
    ----------
    statement, name
        Which answers.
    within
        The half-width that their intervals may have.
    rows
        The linear queries that the answers are.
    derived
        In place of rows: what computes them.
    """

    statement: Statement
    name: str
    within: float
    rows: Integers
    derived: tuple[Derived, ...] = ()

    def ratio(self, workload: Workload, accuracy: Accuracy, confidence: float) -> float:
        """The largest half-width of an answer relative to the tolerance."""
        if not self.derived:
            return _largest_half_width(self.rows, accuracy, confidence) / self.within
        halves = []
        for answer in self.derived:
            quantile = isinstance(answer, Quantile)
            expect = 1.0 if quantile else self.statement.expected
            error = expected_error(answer, workload.queries, accuracy, confidence, expect)
            halves.append(error.half_width)
        return max(halves) / self.within

    def shares(self, workload: Workload, columns: StatementColumns) -> Floats:
        """G of each column but for one factor: by how much its errors move the answers."""
        shares = np.zeros(len(columns.sizes))
        if not self.derived:
            shares[columns.of_row[self.rows]] = self.within**-2
        for answer in self.derived:
            moved = slopes(answer, workload.queries, self.statement.expected)
            for rows, slope in zip(answer.input_rows(), moved, strict=True):
                shares[np.unique(columns.of_row[rows])] += (slope / self.within) ** 2
        return shares


def tolerances_of(workload: Workload) -> list[Tolerance]:
    """The tolerances that the statements of a batch state."""
    check_listable(workload)
    tolerances = [
        tolerance
        for statement in workload.tables
        if statement.within
        for tolerance in _of_statement(workload, statement)
    ]
    if not tolerances:
        raise UsageError(
            "no statement says how near its answers must be; write `-- within: 50` or "
            "`-- within: 5 % of 20000` before one (`within: 50` in YAML)"
        )
    return tolerances


def _of_statement(workload: Workload, statement: Statement) -> Iterator[Tolerance]:
    limits = dict(statement.within)
    rows: dict[str, list[Integers]] = {}
    for name, first, last in _tables(workload, limits):
        inside = np.arange(max(first, statement.rows[0]), min(last, statement.rows[1]))
        if len(inside):
            rows.setdefault(name, []).append(inside)  # each table of groups for itself
    derived: dict[str, list[Derived]] = {}
    for answer in workload.derived[slice(*statement.derived)]:
        derived.setdefault(answer.label.query, []).append(answer)
    for name in sorted(limits.keys() - rows.keys() - derived.keys() - {""}):
        raise UsageError(
            f"{_place(statement)}a tolerance is stated for {name!r}, which is no answer with an "
            "interval; remove it, and compile the batch again where it comes from a file"
        )
    for name in [*rows, *derived]:
        within = limits.get(name, limits.get(""))
        if within is None:
            continue
        if name in rows:
            for table in rows[name]:
                yield Tolerance(statement, name, within, table)
            continue
        _check(statement, name, derived[name], alone=len(rows) + len(derived) == 1)
        yield Tolerance(statement, name, within, np.zeros(0, np.int64), tuple(derived[name]))


def _tables(workload: Workload, limits: dict[str, float]) -> Iterator[tuple[str, int, int]]:
    """The name and the range of rows of each table; no name for queries without labels."""
    first = 0
    for block in workload.labels.tables():
        one = len(block.queries) == 1
        if block.hidden or one or not any(name in block.queries for name in limits):
            parts, each = [block.query if one else ""], len(block)
        else:
            parts, each = list(block.queries), block.each
        for number, name in enumerate([] if block.hidden else parts):
            yield name, first + number * each, first + (number + 1) * each
        first += len(block)


def _place(statement: Statement) -> str:
    return "" if statement.line is None else f"line {statement.line}: "


def _check(statement: Statement, name: str, answers: list[Derived], *, alone: bool) -> None:
    """Refuse answers whose intervals are not known before a release."""
    place = _place(statement)
    advice = "remove its tolerance" if alone else "name the other answers, as in `-- within n: 50`"
    for answer in answers:
        if isinstance(answer, Quantile):
            continue
        if {"sqrt", "ln"} & set(answer.formula.steps) or answer.undivided is not None:
            raise UsageError(
                f"{place}the error of {name!r} depends on its own value, so no tolerance can be "
                f"planned for; {advice}"
            )
        if statement.expected is None and "/" in answer.formula.core.steps:
            raise UsageError(
                f"{place}the error of {name!r} depends on the rows that it is of; write how many "
                "a usual group has, as in `-- expected: 2000`, before the statement"
            )


def _largest_half_width(rows: Integers, accuracy: Accuracy, confidence: float) -> float:
    """The largest half-width among some answers."""
    # Answers of one column whose intervals follow from the law of their noise; others have bounds.
    if len(rows) > (1 << 14) and accuracy.law.independent:
        norm = math.sqrt(float(accuracy.reconstruction.row_squared_norms[rows].max()))
        return float(
            norm_half_widths(np.array([norm]), accuracy.law, confidence)[0] * accuracy.step
        )
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    return max(
        float(accuracy.half_widths_of(int(run[0]), int(run[-1]) + 1, confidence).max())
        for run in np.split(rows, cuts)
    )


def tolerance_goals(workload: Workload, confidence: float) -> Goals:
    """Goals whose squared ratios are those of intervals at ε = 1 (ρ = 1) to their tolerances."""
    tolerances, columns = tolerances_of(workload), statement_columns(workload, by_table=True)
    shares = sp.csr_array(np.array([entry.shares(workload, columns) for entry in tolerances]))

    def exact_squares(measured: Measured, reconstruction: Reconstruction) -> Floats:
        # Half-widths on lattices fall in steps: those at ε = 1 say nothing about other amounts.
        accuracy = accuracy_of(workload, measured, reconstruction, measured.norm.at_one()).nominal
        return np.array([entry.ratio(workload, accuracy, confidence) for entry in tolerances]) ** 2

    return Goals("within", workload, columns, shares, exact_squares, confidence)


@dataclass(frozen=True, eq=False)
class Met:
    """The least amount at which a plan meets all tolerances of its statements.

    Parameters
    ----------
    privacy
        The guarantee: the least ε, or ρ for Gaussian noise.
    confidence
        Of the intervals.
    tolerances, ratios
        Each tolerance, and the largest half-width of its answers relative to it: 1 at most.
    below
        These ratios at a slightly smaller amount.
    """

    privacy: PureDP | ZCDP
    confidence: float
    tolerances: tuple[Tolerance, ...]
    ratios: tuple[float, ...]
    below: tuple[float, ...]

    @property
    def determining(self) -> tuple[Tolerance, ...]:
        """Those that a smaller amount would not meet.

        On lattices half-widths fall in steps, so the ratios at the amount do not say which.
        """
        least = min(1.0, max(self.below))
        pairs = zip(self.tolerances, self.below, strict=True)
        return tuple(entry for entry, ratio in pairs if ratio >= least)


def least_amount(
    workload: Workload,
    accuracy_at: Callable[[Privacy], Accuracy],
    norm: Norm,
    confidence: float,
) -> Met:
    """Find the least amount at which answers of some accuracy are within their tolerances."""
    tolerances = tuple(tolerances_of(workload))
    promise, power = norm.guarantee, 2 // norm.power  # half-widths are roots of squares

    def ratios_at(privacy: PureDP | ZCDP) -> tuple[tuple[float, ...], bool]:
        accuracy = accuracy_at(privacy)
        ratios = tuple(entry.ratio(workload, accuracy, confidence) for entry in tolerances)
        return ratios, is_coarse(accuracy.law)

    low, high = float(LEAST_AMOUNT) / 2, float(MOST_AMOUNT) * 2
    amount, width = 1.0, math.inf
    best: tuple[PureDP | ZCDP, tuple[float, ...]] | None = None
    nearly = 0.99999  # the largest ratio at an amount that is the least but for rounding
    for _ in range(80):
        privacy = promise(round_up(amount))
        ratios, coarse = ratios_at(privacy)
        exact, most = float(next(iter(privacy.amounts.values()))), max(ratios)
        # Ratio up to which a tolerance is met on lattices: a half-width of 5 there is 5.000001.
        if most <= ((1.0 + 2e-6) if coarse else 1.0):
            high, best = exact, (privacy, ratios)
            if exact <= LEAST_AMOUNT:
                raise BudgetError("every epsilon (or rho) meets tolerances that are so wide")
        else:
            low = exact
            if exact >= MOST_AMOUNT:
                break
        # On a lattice smaller amounts may have the same half-widths.
        least = low >= nearly * high or (nearly <= most <= 1.0 and not coarse)
        if best is not None and least:
            # Share of the amount at which statements are not met that determine it.
            below, _ = ratios_at(promise(round_up(high * 0.995**power)))
            return Met(best[0], confidence, tolerances, best[1], below)
        # On lattices half-widths fall in steps: proportions may not narrow the range.
        before, width = width, math.log(high / low)
        amount = exact * most**power
        if not (low < amount < high and width <= before / 2):
            amount = math.sqrt(low * high)
    raise BudgetError(
        "no epsilon (or rho) has intervals within the tolerances of the statements; ask for wider "
        "ones"
    )
