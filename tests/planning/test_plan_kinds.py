"""Every kind of measurement, noise and privacy unit has a stored plan."""

from pathlib import Path

import pytest

import lrm
from lrm.planning.design.integers import Basis, CellBasis
from lrm.planning.design.products.kinds import KINDS
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.split import SplitHull
from lrm.privacy.bodies.sums import Groups

FOLDER = Path(__file__).with_name("golden")

FEATURES = {
    "several groups": lambda measured: len(measured.groups) > 1,
    "residuals": lambda measured: measured.residual,
    "combined groups": lambda measured: measured.combined,
    "a body for replaced units": lambda measured: getattr(measured.norm, "replaced", False),
    "groups with noise of their own": lambda measured: measured.is_mixed,
    "folded sets": lambda measured: any(any(group.folds) for group in measured.groups),
    "mixed sets": lambda measured: any(group.mixes for group in measured.groups),
    "fused attributes": lambda measured: any(
        len(axis.attributes) > 1 for group in measured.groups for axis in group.axes
    ),
    "classes of combinations": lambda measured: any(
        axis.classes is not None for group in measured.groups for axis in group.axes
    ),
}
"""What few strategies have, by name."""

UNITS = [
    (noise, column, neighbours)
    for noise in ("laplace", "gaussian", "shaped")
    for column in (None, "person")
    for neighbours in ("add-remove", "substitute")
]


def concrete(base):
    """The classes of a kind that can be made."""
    for cls in base.__subclasses__():
        yield from concrete(cls)
        if not cls.__abstractmethods__:
            yield cls


def bodies_in(body):
    """A body and those that it consists of."""
    yield body
    parts = body.bodies if isinstance(body, Groups) else ()
    parts = body.leaves if isinstance(body, SplitHull) else parts
    for part in parts:
        yield from bodies_in(part)


@pytest.fixture(scope="module")
def plans():
    return [lrm.load_plan(path) for path in sorted(FOLDER.glob("*.lrm"))]


def test_every_body_has_a_stored_plan(plans):
    stored = {
        type(part)
        for plan in plans
        if plan.measured.body is not None
        for part in bodies_in(plan.measured.body)
    }
    assert set(concrete(Body)) == stored


def test_every_basis_has_a_stored_plan(plans):
    stored = {
        type(basis) for plan in plans for group in plan.measured.groups for basis in group.bases
    }
    every = {cls for cls in concrete(Basis) if cls.__module__.startswith("lrm.")}
    assert every == {CellBasis, *KINDS.values()} == stored


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_of_a_strategy_has_a_stored_plan(feature, plans):
    assert any(FEATURES[feature](plan.measured) for plan in plans)


@pytest.mark.parametrize(("noise", "column", "neighbours"), UNITS)
def test_every_noise_has_a_stored_plan_for_every_unit(noise, column, neighbours, plans):
    assert any(
        (plan.noise, plan.unit.column is None, plan.unit.neighbours)
        == (noise, column is None, neighbours)
        for plan in plans
    )


@pytest.mark.parametrize("objective", ["total", "balanced"])
def test_every_objective_has_a_stored_plan(objective, plans):
    assert any(plan.objective == objective for plan in plans)


def test_numbers_by_knots_have_stored_plans(plans):
    noises = {
        plan.noise
        for plan in plans
        if plan.workload.domain is not None and plan.workload.domain.record_bits
    }
    assert {"laplace", "gaussian"} <= noises
