"""Plan: a workload, the integers that will be measured for it, and the accuracy they guarantee."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from lrm.errors import BudgetError, ConvergenceError
from lrm.files.spelling import many
from lrm.planning.accuracy import Accuracy, amount_for_error, privacy_of
from lrm.planning.derived import expected_error
from lrm.planning.design.measured import Measured
from lrm.planning.design.reconstruction import EXACTNESS, Reconstruction
from lrm.planning.plan.concerns import larger_errors, plan_concerns
from lrm.planning.plan.goals import Goals, Objective, accuracy_of, column_errors, weighted_error
from lrm.planning.plan.saving import plan_bytes, save_plan
from lrm.planning.plan.tolerances import Met, least_amount
from lrm.planning.solvers.bounds import Spectrum
from lrm.privacy.amounts import Amount
from lrm.privacy.budget import ZCDP, Noise, Privacy, PureDP
from lrm.privacy.norms import L1, BodyNorm, norm_of
from lrm.privacy.unit import Neighbours, PrivacyUnit
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Computed, Statement, Workload, check_listable
from lrm.queries.workload.finding import count_ranges
from lrm.queries.workload.frames import AnswerFrame
from lrm.queries.workload.layout import long_frame

if TYPE_CHECKING:
    from lrm.planning.plan.comparison import Comparison


def check_exactness(mechanism: str, reconstruction: Reconstruction) -> None:
    """Refuse a reconstruction that does not give the queries back."""
    if not reconstruction.relative_residual <= EXACTNESS:
        raise ConvergenceError(
            f"the strategy of {mechanism!r} reconstructs a query only to "
            f"{reconstruction.relative_residual:.1e} of its largest weight, and {EXACTNESS:.0e} is "
            "the most allowed; try another mechanism, or scale the queries to similar size"
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """A strategy for a batch, with its reconstruction and errors. Made without data; can be reused.

    Made by ``lrm.plan`` or ``lrm.load_plan``.

    Parameters
    ----------
    workload
        The batch.
    mechanism
        Which mechanism chose the strategy.
    measured
        The integer strategy.
    reconstruction_map
        How the answers follow from the measurements: ``reconstruction`` as an operator.
    least_error
        A lower bound on ``‖B‖²·Δ²`` of every strategy for this workload.
    spectrum
        Rank, condition and the bounds of the paper, from the singular values.
    objective
        What was minimised.
    even_split
        The errors that the statements would have if planned alone; computed again if None.
    importances
        One per statement, where statements have their own: how they divide the budget that
        ``even_split`` is about.
    details
        Plain facts about how the strategy was found.
    """

    workload: Workload
    mechanism: str
    measured: Measured
    reconstruction_map: Reconstruction
    least_error: float
    spectrum: Spectrum | None
    exact: bool = True
    objective: Objective = "total"
    even_split: Goals | None = None
    importances: tuple[float, ...] | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        norm = self.measured.norm
        if isinstance(norm, BodyNorm) and norm.replaced and not self.unit.is_replaced:
            raise ConvergenceError("the noise is for replaced units, but the plan has others")
        if self.exact:
            check_exactness(self.mechanism, self.reconstruction_map)

    @cached_property
    def statement_ratios(self) -> Floats | None:
        """The standard error of each statement relative to that under an even split of the budget.

        Importances divide the budget unevenly: by the shares at which the sum of the squared
        ratios, each times its importance, is least (``c^⅓``, or ``c^½`` with Gaussian noise).
        None where statements were not balanced: a matrix, a single statement, other objectives.
        """
        if self.objective not in {"balanced", "worst"}:
            return None
        goals = self.even_split
        if goals is None:  # files do not state what would have to be believed
            from lrm.planning.plan.even_split import even_split  # noqa: PLC0415 - it imports all searches

            with threadpool_limits(1):
                norm = norm_of(self.noise)
                goals = even_split(self.workload, self.objective, norm, self.importances)
        if goals is None:
            return None
        errors = column_errors(goals.columns, self.measured, self.reconstruction_map)
        return np.sqrt(goals.squares(errors))

    @property
    def strategy(self) -> Floats | sp.csr_array:
        """L, r×n over the original cells; a sparse array where it is large."""
        return self.measured.real_matrix()

    @property
    def reconstruction(self) -> Floats | sp.csr_array:
        """B, m×r, with ``W = B·L``."""
        return self.reconstruction_map.matrix()

    @property
    def noise(self) -> Noise:
        """Which noise the strategy was chosen for: that of its norm."""
        return self.measured.norm.noise

    @property
    def sensitivity(self) -> float:
        """Largest norm of a column of ``strategy``: L1 for Laplace, L2 for Gaussian noise.

        For shaped noise it is the norm of the body, which is scaled so that this is 1.
        """
        return self.measured.real_sensitivity

    @property
    def record_bits(self) -> int:
        """Binary digits of a count after the point (see `Domain.record_bits`); 0 without domain."""
        domain = self.workload.domain
        return 0 if domain is None else domain.record_bits

    @property
    def bits(self) -> int:
        """Binary exponent of the scale: a measured integer counts for 2^−bits of a record."""
        return self.measured.bits + self.record_bits

    @property
    def max_records(self) -> int:
        """The most records of a table with which every measurement fits 62 bits."""
        return self.measured.max_records >> self.record_bits

    @property
    def clipping(self) -> tuple[str, ...]:
        """What happens to numbers beyond the knots of an attribute, a sentence for each."""
        domain = self.workload.domain
        return () if domain is None else domain.clipping

    @property
    def unit(self) -> PrivacyUnit:
        """Whom a release protects: what the domain declares; one row where there is no domain.

        The accuracy of a plan, like that of a release, is stated for this unit.
        """
        domain = self.workload.domain
        return PrivacyUnit() if domain is None else domain.unit

    def unit_with(
        self, neighbours: Neighbours | None = None, max_rows: int | None = None
    ) -> PrivacyUnit:
        """The unit of a release, which the caller may declare for counts.

        If the plan has a domain, its declaration cannot be contradicted.
        """
        declared = self.unit
        unit = replace(
            declared,
            max_rows=declared.max_rows if max_rows is None else max_rows,
            neighbours=declared.neighbours if neighbours is None else neighbours,
        )
        return self.check_unit(unit)

    def check_unit(self, unit: PrivacyUnit) -> PrivacyUnit:
        """Refuse a unit that the plan's domain does not declare; return that of the domain."""
        if self.workload.domain is not None and unit != self.unit:
            raise BudgetError(
                f"the domain protects {self.unit.words}, but this release would protect "
                f"{unit.words}; leave out neighbours and max_rows, or change the domain and "
                "plan again"
            )
        if self.workload.domain is None and unit.column is not None:
            raise BudgetError(
                f"the plan has no domain, so column {unit.column!r} cannot identify persons; "
                "plan with a domain that declares the column"
            )
        return unit if self.workload.domain is None else self.unit

    @property
    def levels(self) -> tuple[Plan, ...]:
        """The plans that are released together: itself, or those of several levels of a people."""
        return (self,)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The share of a guarantee that each of `levels` has."""
        return (Fraction(1),)

    def releases(self, privacy: Privacy) -> list[tuple[Plan, Privacy]]:
        """What is measured under a guarantee: each plan of `levels` with its part of it."""
        return [(self, privacy)]

    def levels_of(self, statement: Statement) -> tuple[Plan, ...]:  # noqa: ARG002 - there is one
        """The plans of `levels` that answer a statement of the batch."""
        return (self,)

    def at(self, edition: str) -> Plan:
        """The same plan for another edition of the report, such as ``"2025-04"``.

        Where attributes start with the edition, their dates are others, and so is the batch: plan
        its statements for the edition then, or give the new batch to `for_batch`. So do where
        several editions are read together, or no longer are: noise is for another unit.
        """
        domain = self.workload.domain
        if domain is None or domain.editions is None:
            raise BudgetError("the plan's domain has no editions; leave the edition out")
        if domain.editions.edition == edition:
            return self
        rest = domain.rest_axes
        moved = domain.declared.at(edition)
        same = moved.declared.attributes == domain.declared.attributes
        if not same or moved.unit != domain.unit:
            raise BudgetError(
                f"the plan is for {domain.editions.edition or 'one edition'}; plan the "
                f"statements for {edition} (--edition, or domain.at({edition!r}))"
            )
        return self._at(replace(self.workload, domain=moved.with_rest(rest)), edition)

    def _at(self, workload: Workload, edition: str) -> Plan:  # noqa: ARG002 - for several levels
        """The plan of the same batch over the domain of an edition."""
        return replace(self, workload=workload)

    def for_batch(self, batch: Workload) -> Plan | None:
        """Use the strategy for another batch with the same queries, such as that of another month.

        None where the queries, the attributes' sizes or the privacy unit differ. Importances stay
        those for which the strategy was chosen.

        Examples
        --------
        >>> import lrm
        >>> plan = lrm.plan([[1, 1], [1, -1]], "noise-on-data")
        >>> renamed = lrm.Workload([[1, 1], [1, -1]], names=["sum", "difference"])
        >>> plan.for_batch(renamed).workload.names
        ('sum', 'difference')
        >>> plan.for_batch(lrm.Workload([[1, 1], [1, 0]])) is None
        True
        """
        batch = batch.over_all_rows()
        old, new = self.workload.domain, batch.domain
        shapes = [None if d is None else (d.shape, d.rest_axes, d.unit) for d in (old, new)]
        same = batch.queries.digest == self.workload.queries.digest
        if not same or shapes[0] != shapes[1]:
            return None
        return replace(self, workload=replace(batch, importance=self.workload.importance))

    def __len__(self) -> int:
        """Number of statements."""
        return len(self.workload)

    def __iter__(self) -> Iterator[str]:
        """The names of the statements."""
        return iter(self.workload)

    def __contains__(self, name: object) -> bool:
        """Whether a statement or an answer has this name."""
        return name in self.workload

    def __bool__(self) -> bool:
        """A plan is true, whatever its number of statements."""
        return True

    @property
    def workload_rank(self) -> int | None:
        """Rank of the workload, where its singular values are known."""
        return None if self.spectrum is None else self.spectrum.rank

    @property
    def measurement_count(self) -> int:
        """Number of measurements r."""
        return self.measured.measurement_count

    @cached_property
    def strategy_error(self) -> float:
        """``‖B‖_F²·Δ²``: the error without the factors of the noise and of ε."""
        return self.reconstruction_map.squared_norm * self.sensitivity**2

    @cached_property
    def weighted_strategy_error(self) -> float:
        """``strategy_error`` weighted by importance: what the strategy was chosen for."""
        return weighted_error(self.workload, self.measured, self.reconstruction_map)

    @property
    def at_most_above_best(self) -> float:
        """How far the (weighted) error can be above the least possible: a certified ratio."""
        error = self.weighted_strategy_error
        if self.least_error > 0:
            return error / self.least_error
        return math.inf if error > 0 else 1.0

    def privacy(
        self, epsilon: Amount | None = None, delta: Amount | None = None, rho: Amount | None = None
    ) -> Privacy:
        """The guarantee that these amounts stand for with this plan's noise."""
        return privacy_of(self.noise, epsilon, delta, rho)

    def accuracy(self, privacy: Privacy, unit: PrivacyUnit | None = None) -> Accuracy:
        """Errors and intervals of a release with this guarantee: of the noise it would draw.

        Parameters
        ----------
        privacy
            The guarantee, such as ``plan.privacy("0.1")``.
        unit
            Whom it protects, where that is not what the plan's domain says.
        """
        unit = self.unit if unit == self.unit else unit  # with the cells of its groups
        return accuracy_of(
            self.workload, self.measured, self.reconstruction_map, privacy, self.least_total, unit
        )

    def meets(self, confidence: float = 0.95) -> Met:
        """The least ε (ρ with Gaussian noise) at which all statements meet their tolerances.

        Parameters
        ----------
        confidence
            With which each answer is to be within the tolerance of its statement.
        """
        return least_amount(self.workload, self.accuracy, self.measured.norm, confidence)

    def expected_squared_error(
        self,
        epsilon: Amount | None = None,
        *,
        delta: Amount | None = None,
        rho: Amount | None = None,
    ) -> float:
        """Expected squared error, summed over the batch: ``2·‖B‖²·Δ²/ε²`` for Laplace noise."""
        return self.accuracy(self.privacy(epsilon, delta, rho)).squared_error

    def standard_errors(
        self,
        epsilon: Amount | None = None,
        *,
        delta: Amount | None = None,
        rho: Amount | None = None,
    ) -> Floats:
        """Standard error of each answer."""
        return self.accuracy(self.privacy(epsilon, delta, rho)).standard_errors

    def half_widths(
        self,
        epsilon: Amount | None = None,
        confidence: float = 0.95,
        *,
        delta: Amount | None = None,
        rho: Amount | None = None,
    ) -> Floats:
        """Half the width of each answer's two-sided interval."""
        return self.accuracy(self.privacy(epsilon, delta, rho)).half_widths(confidence)

    def errors(
        self,
        epsilon: Amount | None = None,
        *,
        delta: Amount | None = None,
        rho: Amount | None = None,
        confidence: float = 0.95,
        expect: float | None = None,
    ) -> AnswerFrame:
        """The error of each answer of a release, with its labels.

        Columns are the grouping attributes, ``query``, ``standard_error`` and ``half_width``,
        half of the interval that holds the true answer with probability ``confidence``. Those of
        rates, averages and quantiles depend on the table: they are for the rows of a usual group
        that ``-- expected: 500`` states of their statement, or for ``expect``, and NaN without.

        Parameters
        ----------
        epsilon, delta, rho
            The guarantee.
        confidence
            Of the intervals.
        expect
            The rows in a denominator, or that a quantile is of, in place of what statements state.
        """
        check_listable(self.workload)
        privacy = self.privacy(epsilon, delta, rho)
        accuracy = self.accuracy(privacy)
        labels = self.workload.labels
        rows = np.concatenate(
            [np.arange(*linear_part) for linear_part in [(0, 0), *labels.shown_ranges()]]
        )
        linear = accuracy.standard_errors[rows], accuracy.half_widths(confidence)[rows]
        derived = self._derived_errors(accuracy, confidence, expect)
        numbers = {
            name: np.concatenate([linear_part, more])[:, None]
            for name, linear_part, more in zip(
                ("standard_error", "half_width"), linear, derived, strict=True
            )
        }
        frame = long_frame(self.workload)
        return replace(frame, numbers=numbers, confidence=confidence, amount=privacy.symbols)

    def _derived_errors(
        self, accuracy: Accuracy, confidence: float, expect: float | None
    ) -> tuple[Floats, Floats]:
        """Standard error and half-width of each derived answer; NaN where they are not known."""
        errors, halves = [np.empty(0)], [np.empty(0)]
        stated = self.workload.expected_rows
        for derived_answer, rows in zip(self.workload.derived, stated, strict=True):
            expectation = expected_error(
                derived_answer,
                self.workload.queries,
                accuracy,
                confidence,
                rows if expect is None else expect,
            )
            known = not expectation.per_row_count and isinstance(derived_answer, Computed)
            error = expectation.standard_error if known else None
            count = derived_answer.label.count
            errors.append(np.full(count, np.nan if error is None else error))
            halves.append(np.full(count, expectation.half_width if known else np.nan))
        return np.concatenate(errors), np.concatenate(halves)

    def lower_bound(
        self,
        epsilon: Amount | None = None,
        *,
        delta: Amount | None = None,
        rho: Amount | None = None,
    ) -> float:
        """A lower bound on the expected total squared error of every strategy with this noise."""
        return self.accuracy(self.privacy(epsilon, delta, rho)).lower_bound

    @cached_property
    def least_total(self) -> float:
        """``least_error`` for the plain total, where importances differ."""
        if self.workload.importance is None:
            return self.least_error
        # An error that weighs each query at most max(importance) bounds the plain sum.
        return self.least_error / float(self.workload.importance.max())

    def privacy_for(
        self, expected_squared_error: float | None = None, *, rmse: float | None = None
    ) -> PureDP | ZCDP:
        """The least ε (ρ with Gaussian noise) with a wanted error.

        Parameters
        ----------
        expected_squared_error
            The expected squared error, summed over the batch.
        rmse
            Instead: the root mean squared error of a count; of a sum, where nothing is counted.
        """
        if (expected_squared_error is None) == (rmse is None):
            raise BudgetError("give either expected_squared_error or rmse")
        if rmse is not None:
            if not (math.isfinite(rmse) and rmse > 0):
                raise BudgetError(f"the wanted error must be a number above 0, not {rmse:g}")
            # Beyond these no amount has the error, and a square is not finite, or 0.
            expected_squared_error = min(max(rmse, 1e-140), 1e140) ** 2
        target = float(expected_squared_error or 0.0)
        promise = self.measured.norm.guarantee

        def error_at(amount: Fraction) -> float:
            accuracy = self.accuracy(promise(amount))
            if rmse is None:
                return accuracy.squared_error
            if accuracy.law.ratios is None:
                return accuracy.squared_error / self._total_of_one_count
            return accuracy.squared_error / self._total_per_count(accuracy.reconstruction)

        return promise(amount_for_error(error_at, target))

    @cached_property
    def _total_of_one_count(self) -> float:
        return self._total_per_count(self.reconstruction_map)

    def _total_per_count(self, reconstruction: Reconstruction) -> float:
        """The total error when the mean squared error of a count is 1: sums have other units."""
        ranges, total = count_ranges(self.workload), reconstruction.squared_norm
        counts = sum(stop - start for start, stop in ranges)
        if counts in {0, self.workload.shape[0]}:
            return float(self.workload.shape[0])
        norms = reconstruction.squared_norms
        mean = sum(float(norms(start, stop).sum()) for start, stop in ranges) / counts
        return total / mean if mean > 0 else float(self.workload.shape[0])

    def compare(
        self, mechanisms: Sequence[str] | None = None, *, time_limit: float | None = None
    ) -> Comparison:
        """A `Comparison` of simpler mechanisms with this plan, which is not made again.

        Parameters
        ----------
        mechanisms
            Names of mechanisms; by default those that need no search.
        time_limit
            Seconds for each of them.
        """
        from lrm.planning.plan.comparison import beside_plan  # noqa: PLC0415 - it makes plans

        return beside_plan(self, mechanisms, time_limit)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the author: attributes that drop rows although no query needs them.

        Also statements that an even split of the budget would serve as well, and a baseline that is
        as good as the plan, with what would help.
        """
        return plan_concerns(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that decides what is measured and stated; of the search, the bounds only.

        The batch, the domain with its privacy unit, the integers and how cells are merged for
        them, how answers follow from them, and the bounds that the error is compared with.
        """
        domain = self.workload.domain
        parts: tuple[str, ...] = (
            self.workload.digest,
            "no domain" if domain is None else domain.digest,
            self.mechanism,
            self.noise,
            self.measured.digest,
            self.reconstruction_map.digest,
            f"{self.exact} {float(self.least_error)!r}",
        )
        if self.objective != "total":
            parts = (*parts, self.objective)
        seal = hashlib.sha256(json.dumps(parts).encode())
        if self.spectrum is not None:
            seal.update(self.spectrum.singular_values.tobytes())
        return seal.hexdigest()

    def __copy__(self) -> Plan:
        return self  # nothing of it can be changed

    def __deepcopy__(self, memo: dict[int, Any]) -> Plan:
        return self

    def __reduce__(self) -> tuple[Callable[[bytes], Plan], tuple[bytes]]:
        """A pickle holds the content of the plan's file, which is checked when it is read."""
        from lrm.planning.plan.file import parse_plan  # noqa: PLC0415 - it makes plans

        return parse_plan, (plan_bytes(self),)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan to a file that ``lrm.load_plan`` reads."""
        save_plan(self, path)

    def report(
        self,
        path: str | PathLike[str],
        epsilon: Amount | None = None,
        *,
        delta: Amount | None = None,
        rho: Amount | None = None,
        confidence: float = 0.95,
    ) -> None:
        """Write one HTML page of the plan with its errors at a guarantee."""
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        privacy = self.privacy(epsilon, delta, rho)
        notebook.write(self, path, privacy=privacy, confidence=confidence)

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)

    def __repr__(self) -> str:
        measured = many(self.measurement_count, "measurement", "measurements")
        norm = self.measured.norm
        error = f"{norm.variance * self.strategy_error:,.6g}/{norm.symbol}"
        error += "²" if norm.power == 2 else ""
        if not isinstance(norm, L1):
            measured = f"{measured} with {norm.words} noise"
        name = f"Plan {self.digest[:12]}"
        concerns = "; ".join(["", *larger_errors(self)])
        words = f"{self.workload.extent} by {self.mechanism}, {measured}, error {error}"
        return f"<{name}: {words}{concerns}>"
