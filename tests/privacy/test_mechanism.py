"""The one place where noise meets counts: what it accepts, and which noise it adds to what."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from lrm.errors import BudgetError, CountsError
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import ZCDP, PureDP
from lrm.privacy.laws import NoiseLaw
from lrm.privacy.mechanism import (
    TrueCounts,
    calibrate,
    check_calibration,
    check_fit,
    check_total,
    count_cells,
    law_of,
    measure,
    regrouped,
    shown_to_owner,
)
from lrm.privacy.noise import Calibrated
from lrm.privacy.norms import L1, L2, BodyNorm, Norm
from lrm.privacy.unit import PrivacyUnit

ONE = PureDP(Fraction(1))
RHO = ZCDP(Fraction(1, 2))
MOST = (1 << 62) - 1


@dataclass
class Doubled:
    """Every count twice, clamped at 100 where there are more than ten records."""

    cell_count: int = 2
    max_records: int = 10
    sensitivity: int = 3
    squared_l2_sensitivity: int = 8
    norm: Norm = field(default_factory=L1)
    step: int = 1

    @property
    def divisors(self):
        return np.array([self.step])

    def moved(self, unit, bits):
        return self.sensitivity * (unit.factor << bits)

    def squared_l2_moved(self, unit, bits):
        return self.squared_l2_sensitivity * (unit.factor << bits) ** 2

    def records(self, counts):
        return int(counts.sum())

    def measure(self, counts):
        return 2 * counts

    def measure_clamped(self, counts):
        return np.minimum(2 * counts, 100)


def added(values, strategy=None):
    noise = Calibrated(NoiseLaw("laplace", 1.0), ONE, ONE.epsilon, lambda part: part)
    return measure(TrueCounts(values), strategy or Doubled(), noise).noisy_values.tolist()


def test_counts_are_clamped_only_beyond_the_declared_number_of_records():
    assert added([4, 6]) == [8, 12]
    assert added([5, 6]) == [10, 12]
    assert added([60, 1]) == [100, 2]
    assert added([60, 1], Doubled(max_records=61)) == [120, 2]
    with pytest.raises(CountsError, match="covers 2 cells, but there are 3 counts"):
        added([1, 2, 3])


def test_counts_beyond_the_declared_number_of_records_are_refused_where_asked():
    check_total(TrueCounts([4, 6]), Doubled())
    with pytest.raises(CountsError, match="at most 10 records, but there are more"):
        check_total(TrueCounts([5, 6]), Doubled())


@pytest.mark.parametrize(
    "values",
    [
        [0, MOST],
        np.array([0, MOST], dtype=np.uint64),
        [0.0, 2.0**53 - 1],
        np.array([0, 3], dtype=np.float16),
        np.array([], dtype=int),
    ],
)
def test_counts_are_kept_as_they_are(values):
    counts = TrueCounts(values)
    assert shown_to_owner(counts).tolist() == [int(x) for x in values]
    assert shown_to_owner(counts).dtype == np.int64
    assert len(counts) == count_cells(counts) == count_cells(values) == len(values)
    check_fit(counts, len(values))
    with pytest.raises(CountsError, match="were they made for another domain"):
        check_fit(values, len(values) + 1)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1, MOST + 1], "too large for 62-bit"),
        (np.array([1, 2**64 - 1], dtype=np.uint64), "too large for 62-bit"),
        ([1.0, 2.0**53], "must be given as integers"),
        ([1.0, np.inf], "not fractions or NaN"),
        ([1.0, np.nan], "not fractions or NaN"),
        ([1.0, 0.5], "not fractions or NaN"),
        ([1, -1], "must not be negative"),
        ([1.0, -1.0], "must not be negative"),
        ([[1, 2]], "not an array of 2 dimensions"),
        (5, "not an array of 0 dimensions"),
        ([[1], [2, 3]], "a list of whole numbers"),
        ([True, False], "not values of type bool"),
        (["1"], "not values of type str"),
        ([2**64], "not values of type object"),
    ],
)
def test_what_is_not_counts_is_refused_without_showing_it(values, sentence):
    with pytest.raises(CountsError, match=sentence):
        TrueCounts(values)


def test_what_is_shown_to_the_owner_is_a_copy_and_regrouped_counts_stay_hidden():
    counts = TrueCounts([3, 4])
    shown_to_owner(counts)[0] = 99
    twice = regrouped(counts, lambda values: np.repeat(values, 2))
    assert isinstance(twice, TrueCounts)
    assert shown_to_owner(twice).tolist() == [3, 3, 4, 4]
    assert repr(twice) == "<TrueCounts of 4 cells, hidden>"


BODY = Tables((1, 1), (False, False), 3)
KINDS = {
    "laplace": (Doubled(), ONE, "discrete Laplace", 3),
    "lattices": (Doubled(step=30), ONE, "discrete Laplace on lattices", 3),
    "gaussian": (Doubled(norm=L2()), RHO, "discrete Gaussian", 8),
    "shaped": (Doubled(norm=BodyNorm(BODY)), PureDP(Fraction(1, 9)), "shaped", 3),
    "shaped on a lattice": (Doubled(norm=BodyNorm(BODY), step=3), ONE, "shaped on a lattice", 3),
}


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_follows_guarantee_strategy_and_unit(kind, factor):
    """Scales grow with the number of records of a unit, in L2 as in L1."""
    strategy, privacy, distribution, sensitivity = KINDS[kind]
    unit = PrivacyUnit(max_rows=factor)
    noise, law = calibrate(strategy, privacy, unit), law_of(strategy, privacy, unit)
    if kind == "gaussian":
        assert noise.scale**2 == pytest.approx(factor**2 * sensitivity / (2 * float(RHO.rho)))
    else:
        assert noise.scale == pytest.approx(factor * sensitivity / float(privacy.epsilon))
    assert law.scale == pytest.approx(noise.scale, rel=1e-13)
    assert noise.distribution == law.distribution == distribution
    stated = (noise.distribution, noise.scale, noise.loss)
    check_calibration(strategy, privacy, unit, 0, *stated)
    check_calibration(strategy, privacy, unit, 0, law.fine.distribution, *stated[1:])
    with pytest.raises(BudgetError, match="the noise must be"):
        check_calibration(strategy, privacy, unit, 0, "none", *stated[1:])
    with pytest.raises(BudgetError):
        check_calibration(strategy, privacy, PrivacyUnit(max_rows=factor + 1), 0, *stated)


class Limited(Doubled):
    """A strategy of which one unit moves the measurements by less than its rows together."""

    def squared_l2_moved(self, unit, bits):
        return (5 * unit.max_rows) << 2 * bits


def test_a_strategy_decides_how_far_a_unit_moves_it():
    """Limits of a unit other than a number of rows count in noise, stated law and check alike."""
    unit, strategy = PrivacyUnit("person", 3), Limited(norm=L2())
    noise, law = calibrate(strategy, RHO, unit, 2), law_of(strategy, RHO, unit, 2)
    assert noise.scale**2 == pytest.approx(15 * 4**2 / (2 * float(RHO.rho)))
    assert law.scale == pytest.approx(noise.scale, rel=1e-13)
    stated = noise.distribution, noise.scale, noise.loss
    check_calibration(strategy, RHO, unit, 2, *stated)
    with pytest.raises(BudgetError):
        check_calibration(Doubled(norm=L2()), RHO, unit, 2, *stated)


def test_shaped_noise_has_no_other_guarantee_than_epsilon():
    for ask in (calibrate, law_of):
        with pytest.raises(BudgetError, match="give epsilon alone"):
            ask(Doubled(norm=BodyNorm(BODY)), RHO, PrivacyUnit())
