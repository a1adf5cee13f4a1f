"""The one place where noise meets counts.

True counts live in a record that hides them, and only ``measure`` opens it. Every check that
could fail looks at shapes, types and declared limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrm.errors import BudgetError, CountsError
from lrm.privacy.budget import Privacy
from lrm.privacy.laws import NoiseLaw
from lrm.privacy.noise import Calibrated
from lrm.privacy.norms import Moved, Norm
from lrm.privacy.unit import PrivacyUnit


class Measurable(Moved, Protocol):
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
    def norm(self) -> Norm:
        """The norm in which a record moves the measurements: it decides the noise."""
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


class OccurringValues:
    """How many persons have each value that occurs: private, and kept out of sight.

    >>> OccurringValues({"rare": 1})
    <OccurringValues, hidden>
    """

    __slots__ = ("__persons",)

    def __init__(self, persons: Mapping[str, int]) -> None:
        self.__persons = dict(persons)

    def __repr__(self) -> str:
        return "<OccurringValues, hidden>"

    def __reduce__(self) -> Any:
        raise TypeError("occurring values are private and are not written to files")

    def _open(self) -> dict[str, int]:
        return self.__persons


def publish_values(values: OccurringValues, noise: Calibrated, least: int) -> dict[str, int]:
    """The values whose noisy number of persons is at least ``least``, in alphabetical order."""
    persons = values._open()  # noqa: SLF001 - where they are opened
    names = sorted(persons)
    if not names:
        return {}
    noisy = noise.add_to(np.array([persons[name] for name in names], dtype=np.int64))
    pairs = zip(names, noisy.tolist(), strict=True)
    return {name: count for name, count in pairs if count >= least}


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


def calibrate(
    strategy: Measurable, privacy: Privacy, unit: PrivacyUnit, bits: int = 0
) -> Calibrated:
    """The noise for one guarantee of one unit, with counts in units of ``2^−bits`` of a record."""
    return strategy.norm.calibrate(strategy, privacy, unit, bits)


def check_calibration(  # noqa: PLR0913, PLR0917 - the noise of a release in full
    strategy: Measurable,
    privacy: Privacy,
    unit: PrivacyUnit,
    bits: int,
    distribution: str,
    scale: float,
    loss: Fraction,
) -> None:
    """Refuse noise that `calibrate` does not come to, in exact arithmetic and without a sampler."""
    law = law_of(strategy, privacy, unit, bits)
    strategy.norm.check_scale(strategy, privacy, unit, bits, scale, loss)
    # Older releases have noise on all integers, and its name states that.
    if distribution not in {law.distribution, law.fine.distribution}:
        raise BudgetError(f"the noise must be {law.distribution} for this guarantee")


def law_of(strategy: Measurable, privacy: Privacy, unit: PrivacyUnit, bits: int = 0) -> NoiseLaw:
    """The noise that `calibrate` starts from, without its sampler.

    Calibration may raise the scale by some units in the last place, so that errors stated
    with this law are those of the noise drawn to 1e-13 of them.
    """
    return strategy.norm.law(strategy, privacy, unit, bits)


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
