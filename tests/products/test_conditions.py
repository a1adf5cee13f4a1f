"""Conditions that are no products (OR, NOT): never worse than one noisy count."""

import numpy as np
import pytest

import lrm

VALUES = [f"v{i}" for i in range(20)]
DOMAIN = lrm.Domain(
    [
        lrm.Categories("a", VALUES[:12]),
        lrm.Categories("b", VALUES),
        lrm.Categories("c", VALUES[:9]),
        lrm.Integers("age", 0, 99),
        lrm.Integers("hours", 0, 59),
    ],
    "t",
)
CONDITIONS = [
    "b = 'v3' OR c = 'v2'",
    "age > 50 OR hours < 20",
    "NOT (b = 'v1' AND age > 40)",
    "hours > 30 AND NOT (age > 60 AND c = 'v1')",
    "(a = 'v1' OR b = 'v2') AND (c = 'v3' OR age < 30)",
    "CASE WHEN age < 30 THEN b = 'v1' ELSE c = 'v2' END",
]


@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
@pytest.mark.parametrize("group", ["", "m, "], ids=["one count", "groups"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_disjoint_counts_have_the_error_of_one_noisy_count(condition, group, noise):
    domain = lrm.Domain([*DOMAIN.attributes, lrm.Categories("m", VALUES[:5])], "t")
    text = f"SELECT {group}COUNT(*) AS n FROM t WHERE {condition}"
    plan = lrm.plan(text + (" GROUP BY m" if group else ""), domain=domain, noise=noise)
    privacy = plan.privacy(rho="0.5") if noise == "gaussian" else plan.privacy(epsilon=1)
    error = plan.accuracy(privacy).nominal.root_mean_squared_error
    assert error <= 1.001 * (1.0 if noise == "gaussian" else np.sqrt(2))


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_does_not_make_other_statements_worse(condition, noise):
    text = f"""
    SELECT a, COUNT(*) AS x FROM t GROUP BY a;
    SELECT b, c, COUNT(*) AS y FROM t GROUP BY b, c;
    SELECT a, COUNT(*) AS z FROM t WHERE {condition} GROUP BY a
    """
    plan = lrm.plan(text, domain=DOMAIN, noise=noise, effort="quick")
    assert plan.statement_ratios.max() <= 1.001


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_many_statements_are_not_worse_than_an_even_split(noise):
    rng, statements = np.random.default_rng(7), []
    for number in range(60):
        first, second = rng.choice(["a", "b", "c"], 2, replace=False)
        low = int(rng.integers(5, 80))
        statements.append(
            [
                f"SELECT {first}, COUNT(*) AS n{number} FROM t GROUP BY {first}",
                f"SELECT {first}, {second}, COUNT(*) AS n{number} FROM t GROUP BY 1, 2",
                f"SELECT {first}, COUNT(*) AS n{number} FROM t WHERE age >= {low} GROUP BY 1",
                f"SELECT COUNT(*) AS n{number} FROM t WHERE age < {low} AND hours > {low // 2}",
            ][number % 4]
        )
    plan = lrm.plan(";".join(statements), domain=DOMAIN, noise=noise, effort="quick")
    assert plan.statement_ratios.max() <= 1.001
