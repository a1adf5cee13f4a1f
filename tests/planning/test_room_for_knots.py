"""Rounding leaves room for the records of a table whose numbers are declared by knots."""

import numpy as np
import pandas as pd
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


@pytest.mark.parametrize("most", [1, 1 << 12, 1 << 18])
@pytest.mark.parametrize("answer", ["SUM(fare)", "COUNT(*)"])
def test_few_declared_records_leave_room_for_noise(most, answer):
    """Bits that records do not need were given to the strategy: ε = 0.001 was refused."""
    unit = lrm.PrivacyUnit(None, 1, "substitute")
    domain = lrm.Domain(DOMAIN.attributes, "visits", unit)
    batch = lrm.sql(f"SELECT zone, {answer} AS n FROM visits GROUP BY ROLLUP (zone)", domain)
    plan = lrm.plan(batch, noise="laplace", effort="quick", max_records=most)
    rows = pd.DataFrame({"zone": ["north", "south"], "fare": [10.0, 40.0]})
    release = lrm.release(plan, rows, epsilon="0.001", ledger=None)
    assert np.isfinite(release.answers).all()


def test_tiny_shares_of_groups_leave_a_whole():
    table = Tables((1,), (False,), 1)
    body = TableGroups((table, table, table), (1.0, 1e-300, 1e-300)).body(1)
    assert sum(body.shares) == WHOLE
    assert min(body.shares) == 1


def test_rounding_for_many_records_costs_no_accuracy():
    """Statements beside a number by knots have the errors that they have without it."""
    categories = [lrm.Categories(f"c{i}", [f"v{j}" for j in range(6)]) for i in range(4)]
    attributes = [*categories, lrm.Integers("x", 0, 59)]
    statements = (
        "SELECT c0, c1, SUM(x) AS s FROM t GROUP BY c0, c1;"
        "SELECT c2, c3, COUNT(*) AS n FROM t WHERE x > 20 GROUP BY c2, c3"
    )
    stay = lrm.Numbers("stay", [0, 7, 30, 200])
    with_knots, without = (
        lrm.plan(lrm.sql(statements, lrm.Domain(some, "t")), noise="gaussian", effort="quick")
        for some in ([*attributes, stay], attributes)
    )
    assert max(with_knots.statement_ratios) <= 1.002 * max(without.statement_ratios)


def test_a_statement_whose_answers_are_always_0_has_no_share(tmp_path):
    zone = DOMAIN.attributes[0]
    statements = (
        "SELECT zone, COUNT(*) AS n FROM visits GROUP BY zone;"
        "SELECT COUNT(*) AS none FROM visits WHERE zone = 'north' AND zone = 'south';"
        "SELECT COUNT(*) AS every FROM visits"
    )
    plan = lrm.plan(lrm.sql(statements, lrm.Domain([zone], "visits")), effort="quick")
    assert plan.statement_ratios is not None
    assert max(plan.statement_ratios) <= 1.001
    plan.save(tmp_path / "plan")
    assert np.array_equal(lrm.load_plan(tmp_path / "plan").statement_ratios, plan.statement_ratios)
