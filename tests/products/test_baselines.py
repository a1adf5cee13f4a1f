"""Noise on data and on results over products of attributes: any condition, both noises."""

import numpy as np
import pytest

import lrm
from lrm.errors import UsageError
from random_batches import random_batch

STATEMENTS = (
    "SELECT a, COUNT(*) AS n FROM t WHERE b = 'v3' OR c = 'v2' GROUP BY a;"
    "SELECT b, c, COUNT(*) AS m FROM t WHERE NOT (x > 7 AND a = 'v1') GROUP BY b, c;"
    "SELECT a, SUM(x) AS r FROM t GROUP BY a;"
    "SELECT COUNT(*) AS k FROM t WHERE x > 3"
)


def domain(*further):
    sizes = {"a": 3, "b": 5, "c": 4}
    categories = [lrm.Categories(n, [f"v{i}" for i in range(k)]) for n, k in sizes.items()]
    return lrm.Domain([*categories, lrm.Integers("x", 0, 11), *further], "t")


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("mechanism", ["noise-on-data", "noise-on-results"])
def test_errors_are_those_over_a_list_of_cells(mechanism, noise):
    """An attribute that no statement asks for makes cells too many to be listed."""
    listed, product = (
        lrm.plan(lrm.sql(STATEMENTS, some), mechanism, noise=noise)
        for some in (domain(), domain(lrm.Integers("z", 0, 10**5)))
    )
    assert product.measured.cells is None
    amount = {"rho": "0.5"} if noise == "gaussian" else {"epsilon": 1}
    errors = [
        plan.accuracy(plan.privacy(**amount)).nominal.standard_errors for plan in (listed, product)
    ]
    if mechanism == "noise-on-results":
        assert np.allclose(errors[1], errors[0], rtol=1e-3)
    else:  # values that no statement distinguishes are merged, which a list of cells is not
        assert np.all(errors[1] <= 1.001 * errors[0])


@pytest.mark.parametrize("seed", range(6))
def test_best_is_not_worse(seed):
    batch = random_batch(seed, (2, 3, 5))
    workload = lrm.sql(batch.text, batch.domain)
    noise = "gaussian" if batch.noise == "gaussian" else "laplace"
    best = lrm.plan(workload, noise=noise, effort="quick", objective="total")
    for mechanism in ("noise-on-data", "noise-on-results"):
        baseline = lrm.plan(workload, mechanism, noise=noise)
        assert best.strategy_error <= 1.001 * baseline.strategy_error


def test_running_totals_are_refused():
    statement = (
        "SELECT x, SUM(n) OVER (ORDER BY x) AS s FROM"
        " (SELECT x, COUNT(*) AS n FROM t GROUP BY x) AS u ORDER BY x"
    )
    workload = lrm.sql(statement, domain(lrm.Integers("z", 0, 10**5)))
    with pytest.raises(UsageError, match="one answer of a statement at most"):
        lrm.plan(workload, "noise-on-results")
