"""The one place where noise meets counts.

True counts live in a record that hides them, and only ``measure`` opens it. Every check that
could fail looks at shapes, types and declared limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrm.errors import BudgetError, CountsError
from lrm.privacy.bodies.base import Body
from lrm.privacy.budget import Privacy, PureDP
from lrm.privacy.laws import NoiseLaw, on_lattices
from lrm.privacy.noise import (
    Calibrated,
    calibrate_gaussian,
    calibrate_laplace,
    check_gaussian,
    check_laplace,
    gaussian_scale,
    laplace_scale,
)
from lrm.privacy.shaped import ShapedLaw, calibrate_shaped


class Measurable(Protocol):
    """What the mechanism needs to know of an integer strategy."""

    @property
    def cell_count(self) -> int:
        """Number of counts that are measured."""
        ...

    @property
    def max_records(self) -> int:
        """With at most this many records, ``measure`` stays within 62 bits."""
        ...

    @property
    def sensitivity(self) -> int:
        """How far one record moves the measurements, in L1 or in the norm of the body."""
        ...

    @property
    def body(self) -> Body | None:
        """The body that shapes the noise, and holds all that a record moves; None for L1 or L2."""
        ...

    @property
    def squared_l2_sensitivity(self) -> int:
        """How far one record moves the measurements, in squared L2."""
        ...

    @property
    def divisors(self) -> NDArray[np.int64]:
        """What divides every value of each measurement; one number where it is the same for all."""
        ...

    def records(self, counts: NDArray[np.int64], /) -> int:
        """How many records the counts hold, in exact integers."""
        ...

    def measure(self, counts: NDArray[np.int64], /) -> NDArray[np.int64]:
        """The true measurements."""
        ...

    def measure_clamped(self, counts: NDArray[np.int64], /) -> NDArray[np.int64]:
        """The true measurements for any number of records, each clamped to 62 bits.

        With a body they are not clamped, and are integers of any size.
        """
        ...


class TrueCounts:
    """How many records fall in each cell: private, and kept out of sight.

    Neither ``repr`` nor ``str`` shows a value; pickling is refused.

    >>> TrueCounts([3, 1, 4])
    <TrueCounts of 3 cells, hidden>
    """

    __slots__ = ("__values",)

    def __init__(self, counts: ArrayLike) -> None:
        self.__values = _checked_counts(counts)

    def __len__(self) -> int:
        return len(self.__values)

    def __repr__(self) -> str:
        return f"<TrueCounts of {len(self)} cells, hidden>"

    def __reduce__(self) -> Any:
        raise TypeError("true counts are private and are not written to files")

    def _open(self) -> NDArray[np.int64]:
        return self.__values


def count_cells(counts: TrueCounts | ArrayLike) -> int:
    """Number of counts, by their shape alone; refuses what is not a list of numbers."""
    return len(counts) if isinstance(counts, TrueCounts) else len(_array_of(counts))


def _array_of(counts: ArrayLike) -> NDArray[Any]:
    try:
        values = np.asarray(counts)
    except (TypeError, ValueError) as reason:
        raise CountsError("counts must be a list of whole numbers, one per cell") from reason
    if values.ndim != 1:
        raise CountsError(
            "counts must be a list with one number per cell, not an array of "
            f"{values.ndim} dimensions"
        )
    if values.dtype.kind not in "fiu":
        raise CountsError(
            "counts must be whole numbers of at most 64 bits, not values of type "
            f"{values.dtype.name}"
        )
    return values


def _checked_counts(counts: ArrayLike) -> NDArray[np.int64]:
    values = _array_of(counts)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)  # 2^53 is not a number of 16 bits
        if not np.all(np.isfinite(values)) or np.any(values != np.rint(values)):
            raise CountsError("counts must be whole numbers, not fractions or NaN")
        if np.any(np.abs(values) >= 2.0**53):
            raise CountsError("counts of 2^53 and more must be given as integers, not as floats")
    if np.any(values < 0):
        raise CountsError("counts must not be negative")
    if np.any(values > np.iinfo(np.int64).max >> 1):
        raise CountsError("a count is too large for 62-bit integers")
    return values.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Noisy measurements: safe to publish, with the noise that they carry."""

    noisy_values: NDArray[np.int64]
    noise: Calibrated


def calibrate(strategy: Measurable, privacy: Privacy, factor: int) -> Calibrated:
    """The noise for one guarantee, where a privacy unit counts for ``factor`` records."""
    if strategy.body is not None:
        pure = _pure(privacy)
        return calibrate_shaped(
            strategy.body, strategy.sensitivity, factor, pure, strategy.divisors
        )
    if isinstance(privacy, PureDP):
        return calibrate_laplace(strategy.sensitivity * factor, privacy, strategy.divisors)
    return calibrate_gaussian(strategy.squared_l2_sensitivity * factor**2, privacy)


def _pure(privacy: Privacy) -> PureDP:
    if not isinstance(privacy, PureDP):
        raise BudgetError("shaped noise guarantees pure differential privacy; give epsilon alone")
    return privacy


def check_calibration(  # noqa: PLR0913, PLR0917 - the noise of a release in full
    strategy: Measurable,
    privacy: Privacy,
    factor: int,
    distribution: str,
    scale: float,
    loss: Fraction,
) -> None:
    """Refuse noise that `calibrate` does not come to, in exact arithmetic and without a sampler."""
    law = law_of(strategy, privacy, factor)
    if isinstance(privacy, PureDP):
        check_laplace(strategy.sensitivity * factor, privacy, scale, loss)
    else:
        check_gaussian(strategy.squared_l2_sensitivity * factor**2, privacy, scale, loss)
    # Older releases have noise on all integers, and its name states that.
    if distribution not in {law.distribution, law.fine.distribution}:
        raise BudgetError(f"the noise must be {law.distribution} for this guarantee")


def law_of(strategy: Measurable, privacy: Privacy, factor: int) -> NoiseLaw:
    """The noise that `calibrate` starts from, without its sampler.

    Calibration may raise the scale by some units in the last place, so that errors stated
    with this law are those of the noise drawn to 1e-13 of them.
    """
    if strategy.body is not None:
        scale = laplace_scale(strategy.sensitivity * factor, _pure(privacy).epsilon)
        law = ShapedLaw("shaped", scale, strategy.body, strategy.sensitivity)
        return law.on_lattice(strategy.divisors)
    if isinstance(privacy, PureDP):
        scale = laplace_scale(strategy.sensitivity * factor, privacy.epsilon)
        return on_lattices(NoiseLaw("laplace", scale), strategy.divisors)
    squared = strategy.squared_l2_sensitivity * factor**2
    return NoiseLaw("gaussian", gaussian_scale(squared, privacy))


def check_fit(counts: TrueCounts | ArrayLike, cells: int) -> None:
    """Refuse counts that were made for another number of cells; looks at their number alone."""
    count_size = count_cells(counts)
    if count_size != cells:
        raise CountsError(
            f"the plan covers {cells} cells, but there are {count_size} counts; "
            "were they made for another domain?"
        )


def regrouped(
    counts: TrueCounts, how: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> TrueCounts:
    """Other counts of the same records, which stay hidden."""
    return TrueCounts(how(counts._open()))  # noqa: SLF001 - from one record to another


def shown_to_owner(counts: TrueCounts) -> NDArray[np.int64]:
    """Exact counts for who may read the table anyway: not private, and never part of a release."""
    return counts._open().copy()  # noqa: SLF001 - the one door


def check_total(counts: TrueCounts, strategy: Measurable) -> None:
    """Refuse counts beyond the declared limit of the plan.

    For counts that the caller passes. A table is never refused for how many rows it has,
    since that would reveal it; ``measure`` clamps instead.
    """
    if strategy.records(counts._open()) > strategy.max_records:  # noqa: SLF001 - the one door
        raise CountsError(
            f"the plan admits at most {strategy.max_records:,} records, but there are more; "
            "plan again with a larger max_records"
        )


def measure(counts: TrueCounts, strategy: Measurable, noise: Calibrated) -> Measurements:
    """Measure the strategy on the counts, with noise. Nothing else sees the counts.

    Beyond ``strategy.max_records`` the measurements are made in integers of any size and
    clamped to 62 bits, which does not increase the distance of neighbours; with a body the noisy
    sums are clamped instead.
    """
    check_fit(counts, strategy.cell_count)
    opened = counts._open()  # noqa: SLF001 - the one door
    if strategy.records(opened) <= strategy.max_records:
        true_values = strategy.measure(opened)
    else:
        true_values = strategy.measure_clamped(opened)
    return Measurements(noise.add_to(true_values), noise)
