"""Conditions that are no products (OR, NOT): never worse than one noisy count."""

import numpy as np
import pyarrow as pa
import pytest

import lrm
from lrm.errors import PrivacyWarning
from lrm.queries.workload import families

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


def test_what_counts_nothing_is_0_where_the_rest_asks_for_less():
    """A product with a factor of zeros needs no set of its other attributes."""
    nothing = [np.zeros((1, 3)), "identity", "total"]
    batch = families.products([3, 4, 1 << 17], [["total", "total", "total"], nothing])
    answers = lrm.plan(batch, effort="quick").reconstruction_map
    assert answers.apply(np.ones(answers.shape[1]))[1:].tolist() == [0.0] * 4
    assert not answers.row_squared_norms[1:].any()


GROUPED = [
    "CASE WHEN b = 'v1' OR c = 'v0' THEN 'x' ELSE 'y' END",
    "CASE WHEN b IN ('v0', 'v3') OR a <> 'v2' THEN 'x' ELSE 'y' END",
    "CASE WHEN NOT hours >= 34 THEN 'x' ELSE 'y' END",
]


@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
@pytest.mark.parametrize("answer", ["COUNT(*)", "SUM(hours)"])
@pytest.mark.parametrize("group", GROUPED)
def test_groups_by_a_condition_are_not_worse_than_by_themselves(group, answer, noise):
    """Each record is in one of the groups, which are cells whatever they are made of."""
    text = f"""
    SELECT {group} AS g, a, {answer} AS x FROM t WHERE hours BETWEEN 25 AND 50 GROUP BY g, a;
    SELECT COUNT(*) AS y FROM t;
    SELECT a, AVG(age) AS z FROM t GROUP BY a
    """
    plan = lrm.plan(text, domain=DOMAIN, noise=noise, effort="quick")
    assert plan.statement_ratios.max() <= 1.001


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("order", ["abc", "acb", "cab"])
def test_groups_in_a_condition_have_the_error_of_one_count_in_any_order(tmp_path, order, noise):
    """With an attribute between the two of the condition, as a product: 1.22 times as much."""
    attributes = {"a": lrm.Categories("a", VALUES[:4]), "b": lrm.Categories("b", VALUES[:2])}
    attributes["c"] = lrm.Integers("c", 0, 5)
    rest = [lrm.Integers("age", 0, 99), lrm.Integers("hours", 0, 99)]
    domain = lrm.Domain([*(attributes[name] for name in order), *rest], "t")
    text = "SELECT c, b, COUNT(*) AS n FROM t WHERE c BETWEEN 2 AND 4 OR a = 'v1' GROUP BY c, b"
    plan = lrm.plan(text, domain=domain, noise=noise, effort="quick")
    privacy = plan.privacy(rho="0.5") if noise == "gaussian" else plan.privacy(epsilon=1)
    error = plan.accuracy(privacy).nominal.root_mean_squared_error
    assert error <= 1.001 * (1.0 if noise == "gaussian" else np.sqrt(2))
    plan.save(tmp_path / "p.lrm")
    g = np.random.default_rng(1)
    rows = pa.table(
        {
            "a": [f"v{k}" for k in g.integers(0, 4, 500)],
            "b": [f"v{k}" for k in g.integers(0, 2, 500)],
            "c": g.integers(0, 6, 500),
            "age": g.integers(0, 100, 500),
            "hours": g.integers(0, 100, 500),
        }
    )
    amount = {"rho" if noise == "gaussian" else "epsilon": 10**6}
    with pytest.warns(PrivacyWarning):
        release = lrm.release(lrm.load_plan(tmp_path / "p.lrm"), rows, ledger=None, **amount)
    table = release.to_pandas()
    groups = zip(table["c"].astype(int), table["b"].astype(str), strict=True)
    answers = dict(zip(groups, table["answer"].round().astype(int), strict=True))
    t = rows.to_pandas()
    t = t[t.c.between(2, 4) | (t.a == "v1")]
    assert answers == {group: len(part) for group, part in t.groupby(["c", "b"])}
