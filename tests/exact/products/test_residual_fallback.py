"""Gaussian strategies with a nearly singular Gram: no candidate of the search, never a failure."""

from dataclasses import replace

import numpy as np
import pytest

from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.residuals import ResidualBasis
from lrm.planning.design.products.rounding import round_products
from lrm.planning.design.reconstruction import EXACTNESS
from lrm.planning.solvers.products.gaussian import (
    Gram,
    optimise_gaussian_groups,
    residual_error,
)
from lrm.queries.maps.products.batch import product_batch

BATCH = product_batch([6, 3], [["prefix", "identity"], ["identity", "total"]])


def nearly_singular(n):
    """Columns that are all but the same."""
    columns = np.vstack([np.ones((1, n)), 1e-7 * np.random.default_rng(0).random((n, n))])
    return Gram(columns / np.linalg.norm(columns, axis=0))


def with_first_basis(strategy, make):
    """A strategy whose groups have another basis of the first attribute."""
    groups = [
        replace(
            group,
            marginals=replace(
                group.marginals, bases=(make(group.marginals.bases[0]), *group.marginals.bases[1:])
            ),
        )
        for group in strategy.groups
    ]
    return replace(strategy, groups=tuple(groups))


def test_a_gram_that_is_not_positive_definite_has_no_inverse():
    with pytest.raises(np.linalg.LinAlgError):
        nearly_singular(6).basis()
    well = Gram(np.array([[1.0, 0.6, 0.0, 0.8], [0, 0.8, 0, 0], [0, 0, 1, 0.6], [0] * 4]))
    with pytest.raises(np.linalg.LinAlgError):
        well.basis()  # of rank 3
    sound = Gram(np.array([[1.0, 0.6, 0.0], [0, 0.8, 0.6], [0, 0, 0.8]]))
    np.testing.assert_allclose(sound.inverse @ sound.matrix, np.eye(3), atol=1e-12)


def test_such_a_strategy_is_rounded_with_identities():
    gram = nearly_singular(6).matrix
    bad = ResidualBasis.of_gram(gram, np.linalg.pinv(gram, 1e-16))
    rounded = round_products(
        BATCH, with_first_basis(optimise_gaussian_groups(BATCH), lambda _: bad)
    )
    assert rounded.relative_residual <= EXACTNESS
    assert np.isfinite(rounded.squared_norm)


class Coarse(ResidualBasis):
    """A basis whose rounding distinguishes too few values."""

    def rounded(self, bits, cost, null=None):
        best = super().rounded(bits, cost, null)
        return replace(best, rows=np.repeat(best.rows[:1], len(best.rows), axis=0))


def test_roundings_that_do_not_answer_are_left_out():
    """Where no rounding of optimised bases is exact, that of identities is taken."""
    found = optimise_gaussian_groups(BATCH)
    coarse = with_first_basis(found, lambda basis: Coarse(basis.size, basis.rows, basis.null))
    rounded = round_products(BATCH, coarse)
    assert rounded.relative_residual <= EXACTNESS
    error = rounded.squared_norm * rounded.measured.norm.sensitivity(rounded.measured) ** 2
    scale = 4.0**rounded.measured.bits
    assert error / scale == pytest.approx(residual_error(Quadratic(BATCH)), rel=0.3)
