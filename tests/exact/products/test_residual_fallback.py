"""Gaussian strategies with a nearly singular Gram: no candidate of the search, never a failure."""

from dataclasses import replace

import numpy as np
import pytest

from lrm.planning.design.products import rounding
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.residuals import GramBasis
from lrm.planning.design.products.rounding import round_gaussian
from lrm.planning.design.reconstruction import EXACTNESS
from lrm.planning.solvers.products.gaussian import optimise_gaussian_groups, residual_error
from lrm.queries.maps.products.batch import product_batch


def nearly_singular(n):
    """Columns that are all but the same."""
    columns = np.vstack([np.ones((1, n)), 1e-7 * np.random.default_rng(0).random((n, n))])
    return GramBasis(n, columns / np.linalg.norm(columns, axis=0))


BATCH = product_batch([6, 3], [["prefix", "identity"], ["identity", "total"]])


def test_a_gram_that_is_not_positive_definite_has_no_inverse():
    with pytest.raises(np.linalg.LinAlgError):
        nearly_singular(6).inverse  # noqa: B018
    well = GramBasis(4, np.array([[1.0, 0.6, 0.0, 0.8], [0, 0.8, 0, 0], [0, 0, 1, 0.6], [0] * 4]))
    with pytest.raises(np.linalg.LinAlgError):
        well.inverse  # noqa: B018 - of rank 3
    sound = GramBasis(3, np.array([[1.0, 0.6, 0.0], [0, 0.8, 0.6], [0, 0, 0.8]]))
    np.testing.assert_allclose(sound.inverse @ sound.gram, np.eye(3), atol=1e-12)


def test_such_a_strategy_is_rounded_with_identities():
    found = optimise_gaussian_groups(BATCH)
    bad = [replace(g, bases=(nearly_singular(6), *g.bases[1:])) for g in found.groups]
    rounded = round_gaussian(BATCH, replace(found, groups=tuple(bad)))
    assert rounded.relative_residual <= EXACTNESS
    assert np.isfinite(rounded.squared_norm)


def test_roundings_that_do_not_answer_are_left_out(monkeypatch):
    """Where no rounding of optimised bases is exact, that of identities is taken."""
    found = optimise_gaussian_groups(BATCH)
    ideal = rounding._rounded_residual

    def coarse(basis, *others):
        best = ideal(basis, *others)
        if best.rows is not None:
            best = replace(best, rows=np.repeat(best.rows[:1], len(best.rows), axis=0))
        return best

    monkeypatch.setattr(rounding, "_rounded_residual", coarse)
    rounded = round_gaussian(BATCH, found)
    assert rounded.relative_residual <= EXACTNESS
    error = rounded.squared_norm * rounded.measured.sensitivity_for("gaussian") ** 2
    scale = 4.0**rounded.measured.bits
    assert error / scale == pytest.approx(residual_error(Quadratic(BATCH)), rel=0.3)
