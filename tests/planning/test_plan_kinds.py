"""Every kind of measurement, noise and privacy unit has a stored plan."""

from pathlib import Path
from typing import get_args

import pytest

import lrm
from lrm.planning.design.integers import Basis, CellBasis
from lrm.planning.design.products.kinds import KINDS
from lrm.planning.plan.goals import Objective
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.split import SplitHull
from lrm.privacy.bodies.sums import Groups
from lrm.queries.workload import Computed, Quantile

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
    "corners": lambda measured: any(
        axis.parts is not None for group in measured.groups for axis in group.axes
    ),
    "dropped values": lambda measured: any(
        (marks < 0).any()
        for group in measured.groups
        for axis in group.axes
        for marks in axis.labels
    ),
    "multiples of cells": lambda measured: (
        measured.cells is not None and min(measured.cells.cell_map.factor) < -1
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


def measurements(plans):
    """What is measured, level by level."""
    return [level.measured for plan in plans for level in plan.levels]


@pytest.fixture(scope="module")
def plans():
    return [lrm.load_plan(path) for path in sorted(FOLDER.glob("*.lrm"))]


def test_every_body_has_a_stored_plan(plans):
    stored = {
        type(part)
        for measured in measurements(plans)
        if measured.body is not None
        for part in bodies_in(measured.body)
    }
    assert set(concrete(Body)) == stored


def test_every_basis_has_a_stored_plan(plans):
    stored = {
        type(basis)
        for measured in measurements(plans)
        for group in measured.groups
        for basis in group.bases
    }
    every = {cls for cls in concrete(Basis) if cls.__module__.startswith("lrm.")}
    assert every == {CellBasis, *KINDS.values()} == stored


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_of_a_strategy_has_a_stored_plan(feature, plans):
    assert any(FEATURES[feature](measured) for measured in measurements(plans))


@pytest.mark.parametrize(("noise", "column", "neighbours"), UNITS)
def test_every_noise_has_a_stored_plan_for_every_unit(noise, column, neighbours, plans):
    assert any(
        (plan.noise, plan.unit.column is None, plan.unit.neighbours)
        == (noise, column is None, neighbours)
        for plan in plans
    )


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_several_levels_have_a_stored_plan(noise, plans):
    assert any(len(plan.levels) > 1 and plan.noise == noise for plan in plans)


@pytest.mark.parametrize("over_cells", [True, False])
def test_limits_of_rows_by_group_have_a_stored_plan(over_cells, plans):
    """Their sensitivity is another one for a list of cells than for products."""
    assert any(
        plan.unit.by is not None and (plan.measured.cells is not None) == over_cells
        for plan in plans
    )


@pytest.mark.parametrize("kind", [Computed, Quantile])
def test_every_derived_answer_has_a_stored_plan(kind, plans):
    assert any(isinstance(answer, kind) for plan in plans for answer in plan.workload.derived)


def test_importances_have_a_stored_plan(plans):
    assert any(plan.importances is not None for plan in plans)


@pytest.mark.parametrize("objective", get_args(Objective))
def test_every_objective_has_a_stored_plan(objective, plans):
    assert any(plan.objective == objective for plan in plans)


def test_numbers_by_knots_have_stored_plans(plans):
    noises = {
        plan.noise
        for plan in plans
        if plan.workload.domain is not None and plan.workload.domain.record_bits
    }
    assert {"laplace", "gaussian"} <= noises
