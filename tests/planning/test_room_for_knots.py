"""Rounding leaves room for the records of a table whose numbers are declared by knots."""

import numpy as np
import pytest

import lrm
from lrm.planning.strategies.shaped_tables import TableGroups
from lrm.privacy.bodies.sums import WHOLE
from lrm.privacy.bodies.tables import Tables

DOMAIN = lrm.Domain(
    [lrm.Categories("zone", ["north", "south"]), lrm.Numbers("fare", [0, 10, 40, 100])], "visits"
)


@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
@pytest.mark.parametrize("groups", ["", " GROUP BY zone"])
def test_a_sum_by_knots_alone_can_be_planned(noise, groups):
    batch = lrm.sql(f"SELECT SUM(fare) AS fares FROM visits{groups}", DOMAIN)
    plan = lrm.plan(batch, noise=noise, effort="quick")
    assert plan.max_records >= 1 << 26
    assert np.isfinite(
        plan.standard_errors(**{"rho" if noise == "gaussian" else "epsilon": "1"})
    ).all()


def test_tiny_shares_of_groups_leave_a_whole():
    table = Tables((1,), (False,), 1)
    body = TableGroups((table, table, table), (1.0, 1e-300, 1e-300)).body(1)
    assert sum(body.shares) == WHOLE
    assert min(body.shares) == 1
