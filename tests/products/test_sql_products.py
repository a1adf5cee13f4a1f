"""SQL, YAML and builders over several attributes: the same weights as cell by cell, at any size.

The reference evaluates every statement on every cell in plain Python with SQL's three-valued
logic, and knows nothing of products.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lrm
from lrm.domain import Bins, Categories, Domain, Integers
from lrm.errors import SqlError, WorkloadError
from lrm.queries.files import parse_batch
from lrm.queries.maps.products.batch import ProductBatch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.sql import sql

DOMAIN = Domain(
    [
        Integers("a", 0, 2, null="cell"),
        Categories("b", ["x", "y", "z"], null="cell"),
        Integers("c", 0, 3),
    ],
    "t",
)
VALUES = {"a": [0, 1, 2, None], "b": ["x", "y", "z", None], "c": [0, 1, 2, 3]}
CELLS = [dict(zip(VALUES, row, strict=True)) for row in itertools.product(*VALUES.values())]
MANY = Domain([*DOMAIN.attributes, *(Integers(f"x{i}", 0, 9) for i in range(30))], "t")

OPERATIONS = {
    "=": lambda one, two: one == two,
    "<>": lambda one, two: one != two,
    "<": lambda one, two: one < two,
    ">=": lambda one, two: one >= two,
}


def comparison(name, operation, constant):
    text = f"{name} {operation} {constant!r}"
    return (
        text,
        lambda cell: None if cell[name] is None else OPERATIONS[operation](cell[name], constant),
    )


def either(parts):
    def truth(cell):
        found = [part(cell) for _, part in parts]
        return True if True in found else None if None in found else False

    return "(" + " OR ".join(text for text, _ in parts) + ")", truth


def both(parts):
    def truth(cell):
        found = [part(cell) for _, part in parts]
        return False if False in found else None if None in found else True

    return "(" + " AND ".join(text for text, _ in parts) + ")", truth


def opposite(part):
    text, inner = part
    return f"NOT ({text})", lambda cell: None if inner(cell) is None else not inner(cell)


atoms = (
    st.builds(
        comparison, st.sampled_from("ac"), st.sampled_from(list(OPERATIONS)), st.integers(0, 3)
    )
    | st.builds(comparison, st.just("b"), st.sampled_from(["=", "<>"]), st.sampled_from("xyz"))
    | st.sampled_from("abc").map(lambda n: (f"{n} IS NULL", lambda cell: cell[n] is None))
)
conditions = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(either)
        | st.lists(inner, min_size=2, max_size=3).map(both)
        | inner.map(opposite)
    ),
    max_leaves=8,
)
numbers = st.sampled_from([1, 2, -1, 0.5, 0, 0.1])


def case(branches, default):
    text = " ".join(f"WHEN {condition} THEN {value}" for (condition, _), value in branches)

    def weight(cell):
        return next((value for (_, truth), value in branches if truth(cell)), default)

    return f"SUM(CASE {text} ELSE {default} END)", weight


def kept(aggregate, condition):
    (text, weight), (where, truth) = aggregate, condition
    return f"{text} FILTER (WHERE {where})", lambda cell: weight(cell) if truth(cell) else 0


simple = (
    st.just(("COUNT(*)", lambda cell: 1))
    | st.sampled_from("ac").map(lambda n: (f"SUM({n})", lambda cell: cell[n] or 0))
    | st.builds(case, st.lists(st.tuples(conditions, numbers), min_size=1, max_size=2), numbers)
)
aggregates = (
    simple
    | st.builds(kept, simple, conditions)
    | st.tuples(simple, numbers, simple).map(
        lambda parts: (
            f"{parts[0][0]} - {parts[1]} * {parts[2][0]}",
            lambda cell: parts[0][1](cell) - parts[1] * parts[2][1](cell),
        )
    )
)


def reference(aggregate, condition, groups):
    rows = []
    for values in itertools.product(*(VALUES[name] for name in groups)):
        group = dict(zip(groups, values, strict=True))
        rows.append(
            [
                float(aggregate(cell)) if condition(cell) and group.items() <= cell.items() else 0.0
                for cell in CELLS
            ]
        )
    return np.array(rows)


@settings(deadline=None)
@given(aggregates, conditions, st.lists(st.sampled_from("abc"), unique=True).map(sorted))
def test_weights_are_those_of_every_cell(aggregate, condition, groups):
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    text = f"SELECT {aggregate[0]} AS n FROM t WHERE {condition[0]}{by}"
    every = reference(aggregate[1], condition[1], groups)
    try:
        batch = sql(text, DOMAIN)
    except SqlError as error:
        assert "leave none of its declared groups" in str(error)  # noqa: PT017
        assert not every.any()
        return
    rows = _places(batch, groups)
    assert not np.delete(every, rows, axis=0).any()  # of groups that the condition excludes
    expected = every[rows]
    np.testing.assert_allclose(batch.queries.dense(), expected, rtol=0, atol=1e-12)
    assert np.array_equal(batch.queries.dense() != 0, np.abs(expected) > 1e-12)
    large = sql(text, MANY).queries
    assert not large.batch.choice[:, 3:].any()
    inside = ProductBatch(
        large.batch.factors[:3],
        large.batch.choice[:, :3],
        large.batch.coefficients,
        large.batch.term_of,
        large.batch.weights,
    )
    np.testing.assert_allclose(inside.dense(), expected, rtol=0, atol=1e-12)


def _places(batch, groups):
    """The place of each answer among all combinations of declared cells."""
    axes = sorted(DOMAIN.names.index(name) for name in groups)
    return [
        int(
            np.ravel_multi_index(
                [
                    DOMAIN.attributes[axis].labels.index(dict(label.group)[DOMAIN.names[axis]])
                    for axis in axes
                ],
                [DOMAIN.shape[axis] for axis in axes],
            )
        )
        if axes
        else 0
        for label in batch.labels
    ]


@settings(deadline=None)
@given(conditions, st.data())
def test_where_restricts_every_builder(condition, data):
    batch = data.draw(
        st.sampled_from(
            [
                lrm.marginals(DOMAIN, [0, 2]),
                lrm.ranges(DOMAIN, "c", [(0, 1), (1, 3)], by=["b"]),
                lrm.prefix(DOMAIN, "a"),
                lrm.products(DOMAIN, [{"a": [1, 2, 0, 1], "c": "all-ranges"}, {}]),
            ]
        )
    )
    assert isinstance(batch.queries, ProductMap)
    mask = np.array([condition[1](cell) is True for cell in CELLS], dtype=float)
    restricted = lrm.where(batch, condition[0])
    np.testing.assert_array_equal(restricted.queries.dense(), batch.queries.dense() * mask)
    assert restricted.labels == batch.labels


def test_grouping_sets_are_the_marginals():
    cube = sql("SELECT COUNT(*) AS count FROM t GROUP BY CUBE (a, b, c)", DOMAIN)
    tables = lrm.marginals(DOMAIN, [3, 2, 1, 0])
    np.testing.assert_array_equal(cube.queries.dense(), tables.queries.dense())
    assert list(cube.names) == list(tables.names)


def test_a_domain_of_10_to_the_40_compiles():
    domain = Domain([Integers(f"x{i}", 0, 9) for i in range(40)], "t")
    sql("SELECT COUNT(*) FROM t", domain)
    text = f"""
        SELECT x1, COUNT(*) AS n FROM t WHERE x2 > 3 AND x4 IN (1, 2) GROUP BY ROLLUP (x1, x3);
        SELECT SUM(x7) FILTER (WHERE NOT (x1 = 1 AND x2 = 2)) AS s FROM t;
        SELECT COUNT(*) AS one FROM t WHERE {" OR ".join(f"x{i} = 1" for i in range(40))};
        SELECT COUNT(*) AS all_of FROM t WHERE {" AND ".join(f"x{i} = 1" for i in range(40))}"""
    batch = sql(text, domain)
    assert batch.shape == (100 + 10 + 1 + 1 + 1 + 1, 10**40)
    assert np.bincount(batch.queries.batch.term_of).tolist() == [1, 1, 1, 2, 2, 1]
    assert "10^40 cells" in repr(batch)


def test_a_cut_is_found_in_a_large_domain():
    domain = Domain([Integers(f"x{i}", 0, 99, width=10) for i in range(30)], "t")
    rest = " AND ".join(f"x{i} < 50" for i in range(1, 30))
    with pytest.raises(SqlError, match=r"x0 < 55 cuts through the cell 50\.\.59 of 'x0'"):
        sql(f"SELECT COUNT(*) FROM t WHERE x0 < 55 AND {rest}", domain)
    with pytest.raises(SqlError, match="x0 < 55 cuts through"):
        sql(f"SELECT COUNT(*) FROM t WHERE x0 < 55 OR {rest.replace('AND', 'OR')}", domain)
    sql(f"SELECT COUNT(*) FROM t WHERE x0 < 55 AND x0 < 40 AND {rest}", domain)


def test_too_many_products_are_refused_or_written_out():
    pairs = " OR ".join(f"(x{2 * i} = 1 AND x{2 * i + 1} = 1)" for i in range(10))
    domain = Domain([Integers(f"x{i}", 0, 2) for i in range(20)], "t")
    with pytest.raises(SqlError, match=r"line 1: .* products"):
        sql(f"SELECT COUNT(*) FROM t WHERE {pairs}", domain)
    square = Domain([Integers("i", 0, 99), Integers("j", 0, 99)], "t")
    diagonal = " OR ".join(f"(i = {k} AND j = {k})" for k in range(100))
    written = sql(f"SELECT COUNT(*) FROM t WHERE {diagonal}", square)
    assert written.queries.kind == "sparse"
    np.testing.assert_array_equal(written.queries.dense()[0], np.eye(100).ravel())
    tables = lrm.where(lrm.marginals(square, 1), diagonal)
    assert tables.queries.kind == "sparse"
    assert tables.queries.sparse().sum() == 200
    wide = Domain([*square.attributes, Integers("k", 0, 10**6)], "t")
    whole = sql(f"SELECT COUNT(*) FROM t WHERE {diagonal}", wide)
    assert len(whole.products.batch.choice) == 100
    kept = lrm.where(lrm.marginals(wide, 0), diagonal)
    assert len(kept.products.batch.choice) == 100
    both = Domain([*wide.attributes, Integers("m", 0, 99)], "t")
    other = " OR ".join(f"(k = {n} AND m = {n})" for n in range(100))
    with pytest.raises(SqlError, match="a sum of 10,000 products of attributes, and at most 64"):
        sql(f"SELECT COUNT(*) FROM t WHERE ({diagonal}) AND ({other})", both)


def test_a_group_with_a_condition_on_many_values_is_refused():
    domain = Domain([Integers("zip", 0, 99_999), Integers("x", 0, 9)], "t")
    with pytest.raises(SqlError, match="1,000 queries over the 100,000 values"):
        sql("SELECT zip, COUNT(*) FROM t WHERE zip < 1000 GROUP BY zip", domain)
    assert sql("SELECT zip, COUNT(*) FROM t WHERE zip < 9 GROUP BY zip", domain).shape[0] == 9
    assert sql("SELECT zip, COUNT(*) FROM t WHERE x < 5 GROUP BY zip", domain).shape[0] == 100_000


def test_yaml_is_products():
    batch = parse_batch(
        """
        lrm-batch: 1
        queries:
          - {kind: marginals, ways: [0, 1, 2], name: tables}
          - {kind: prefix, attribute: c, where: "a = 1 OR b = 'x'", name: running}
          - {kind: products, of: [{a: identity, c: prefix}, {b: [1, 0, 0, 1]}], name: terms}
          - {kind: sql, text: "SELECT b, COUNT(*) AS n FROM t GROUP BY b", importance: 2}
        """,
        MANY,
    )
    assert isinstance(batch.queries, ProductMap)
    assert batch.shape[1] == math.prod(MANY.shape)
    assert batch.labels[-1].query == "n"
    assert [label.name for label in batch.labels[-5:-4]] == ["terms.2"]
    assert batch.importance[-1] == 2


def test_products_by_attribute_names():
    domain = Domain([Categories("sex", ["f", "m"]), Bins("x", [0, 1, 2, 3], null="cell")])
    batch = lrm.products(
        domain,
        [{"sex": "identity"}, {"x": "prefix"}, {"x": [[1, 0, 0, 1], [0, 1, 0, 0]]}, {}],
        names=["by sex", "up to", "rows", "all"],
        importance=[1, 2, 1, 4],
    )
    assert list(batch.names) == [
        "by sex[sex=f]",
        "by sex[sex=m]",
        "up to[x=[0, 1)]",
        "up to[x=[0, 2)]",
        "up to[x=[0, 3)]",
        "rows[x=row 1]",
        "rows[x=row 2]",
        "all",
    ]
    assert batch.importance.tolist() == [1, 1, 2, 2, 2, 1, 1, 4]
    running = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]])
    np.testing.assert_array_equal(batch.queries.dense()[2:5], np.tile(running, 2))
    for terms, sentence in [
        ([{"height": "total"}], "height"),
        ([{"sex": "prefix"}], "need an order"),
        ([{"sex": "median"}], "not 'median'"),
        ([{"sex": [1, 0, 0]}], "2 columns"),
        ([], "at least one term"),
    ]:
        with pytest.raises(lrm.LrmError, match=sentence):
            lrm.products(domain, terms)


def test_stacks_stay_products_or_are_written_out():
    batch = lrm.stack([lrm.marginals(DOMAIN, 1, name="one"), lrm.total(DOMAIN)])
    assert isinstance(batch.queries, ProductMap)
    flat = lrm.Workload(np.eye(DOMAIN.size)[:2], names=["p", "q"])
    mixed = lrm.stack([batch, flat])
    assert mixed.queries.kind == "sparse"
    np.testing.assert_array_equal(
        mixed.queries.dense(), np.vstack([batch.queries.dense(), flat.queries.dense()])
    )
    large = lrm.families.products([2**12, 2**12], [["identity", "total"]])
    with pytest.raises(WorkloadError, match="too large to be joined with a matrix"):
        lrm.stack([large, lrm.families.prefix(2**24)])


def test_one_attribute_stays_flat():
    domain = Domain([Integers("age", 0, 9)], "t")
    batches = {
        "sparse": sql("SELECT age, COUNT(*) FROM t WHERE age < 5 GROUP BY age", domain),
        "prefix": lrm.prefix(domain, "age"),
        "all-ranges": lrm.ranges(domain, "age"),
    }
    for kind, batch in batches.items():
        assert batch.queries.kind == kind
    np.testing.assert_array_equal(batches["sparse"].queries.dense(), np.eye(5, 10))
