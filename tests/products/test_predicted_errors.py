"""Errors over products as stated before data, against simulated releases.

Noise is drawn from fixed seeds with the law of the real one; with 3,000 repetitions the mean of
squared errors of a query has a relative deviation of at most 4.1 % (Laplace, one measurement), and
tolerances are six of these.
"""

import math

import numpy as np
import pytest

import lrm
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.products.batch import sum_batch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.workload import families
from study.simulate import discrete_laplace

REPETITIONS = 3000
SIZES = [6, 4, 3, 1 << 17]
SOME = [[1, 1, 0, 0], [0, 0, 1, 0]]
BATCHES = {
    "tables": families.marginals([*SIZES[:3], 2, 2], [1, 2]),
    "prefixes": families.products(
        SIZES, [["prefix", "total", "identity", "total"], ["identity", "identity", *["total"] * 2]]
    ),
    "dropped": families.products(
        SIZES, [["identity", SOME, "total", "total"], ["total", SOME, "identity", "total"]]
    ),
}
BATCHES["folded"] = families.marginals([2] * 13, [1])
BATCHES["combined"] = families.products(
    [12, 4, 2, 1 << 17],
    [
        ["identity", "total", "identity", "total"],
        [np.kron(np.eye(3), np.ones((1, 4))), "identity", "identity", "total"],
        ["total", "identity", "total", "total"],
    ],
)
BATCHES["mixed"] = lrm.Workload(
    ProductMap(
        sum_batch(
            [6, 6, 1 << 17],
            [
                [
                    (1, [np.eye(6)[[x]], [6 * x + np.arange(6) <= c], "total"])
                    for x in range(c // 6 + 1)
                ]
                for c in range(36)
            ],
        )
    )
)
BATCHES["joint"] = lrm.Workload(
    ProductMap(
        sum_batch(
            [30, 4, 30, 1 << 12],
            [
                [(1, ["identity", *["total"] * 3])],
                [(1, ["total", "identity", "identity", "total"])],
                [
                    (1, [np.eye(30)[[x]], "identity", [np.arange(30) < x], "total"])
                    for x in range(1, 30)
                ],
            ],
        )
    )
)
UNITS = {"row": PrivacyUnit(), "rows": PrivacyUnit(max_rows=3, neighbours="substitute")}


@pytest.fixture(scope="module", params=[(b, n) for b in BATCHES for n in ("laplace", "gaussian")])
def plan(request):
    batch, noise = request.param
    mechanism = "marginals" if batch == "tables" and noise == "laplace" else "best"
    made = lrm.plan(BATCHES[batch], mechanism, noise=noise, effort="quick")
    assert made.measured.cells is None
    assert made.measured.combined == (batch == "combined" and noise == "laplace")
    folds = {sign for group in made.measured.groups for sign in group.folds}
    mixed = any(group.mixes for group in made.measured.groups)
    assert mixed == (batch == "mixed" and noise == "gaussian")
    classes = [axis.classes for group in made.measured.groups for axis in group.axes]
    assert batch != "joint" or any(one is not None for one in classes)
    assert folds == ({0, -1} if batch == "folded" and noise == "laplace" else {0})
    return made


def draws(law, shape, rng):
    if law.noise == "laplace":
        return discrete_laplace(law, shape, rng)
    return np.rint(rng.normal(0.0, law.scale, shape))


@pytest.mark.parametrize("unit", UNITS)
def test_measured_errors_are_the_predicted_ones(plan, unit):
    """Per query, in total, and how often intervals cover; the errors do not depend on the data."""
    privacy = plan.privacy(1) if plan.noise == "laplace" else plan.privacy(rho="0.5")
    accuracy = plan.accuracy(privacy, UNITS[unit])
    rng = np.random.default_rng(20)
    noise = draws(accuracy.law, (REPETITIONS, plan.measurement_count), rng)
    noise = noise * 2.0**-plan.measured.bits
    errors = noise @ plan.reconstruction_map.matrix().T
    scale = np.abs(errors).max()
    np.testing.assert_allclose(
        plan.reconstruction_map.apply(noise[0]), errors[0], atol=1e-9 * scale
    )
    ratios = (errors**2).mean(axis=0) / accuracy.standard_errors**2
    tolerance = 6 * math.sqrt(5 / REPETITIONS)  # a Laplace variable's square has variance 5·mean²
    assert np.all(np.abs(ratios - 1) < tolerance)
    total = float((errors**2).sum(axis=1).mean())
    assert total == pytest.approx(accuracy.squared_error, rel=tolerance)
    # No bias, and intervals that cover as often as they say, or more.
    assert np.all(np.abs(errors.mean(axis=0)) < 6 * accuracy.standard_errors / REPETITIONS**0.5)
    for confidence in (0.5, 0.95):
        inside = (np.abs(errors) <= accuracy.half_widths(confidence)).mean(axis=0)
        room = 6 * math.sqrt(confidence * (1 - confidence) / REPETITIONS)
        assert np.all(inside > confidence - room)


def test_units_of_several_rows_scale_the_errors(plan):
    privacy = plan.privacy("0.1") if plan.noise == "laplace" else plan.privacy(rho="0.5")
    one, several = (plan.accuracy(privacy, UNITS[unit]).standard_errors for unit in UNITS)
    np.testing.assert_allclose(several, 6 * one, rtol=1e-9)
