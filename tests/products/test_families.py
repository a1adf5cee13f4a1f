"""Batches over numbered attributes: stacks of products, cross-tabs, and their labels."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lrm
from lrm import families
from lrm.errors import WorkloadError
from lrm.queries.workload import LabelBlock, Labels, NumberedLabels
from lrm.queries.workload.layout import long_frame

WORDS = ["total", "identity", "prefix", "all-ranges"]


def matrix(factor, size):
    """The rows that a factor stands for, written out independently."""
    if isinstance(factor, str):
        spans = {
            "total": [(0, size - 1)],
            "identity": [(i, i) for i in range(size)],
            "prefix": [(0, i) for i in range(size)],
            "all-ranges": list(itertools.combinations_with_replacement(range(size), 2)),
        }[factor]
        return np.array([[float(a <= i <= b) for i in range(size)] for a, b in spans])
    return np.atleast_2d(np.array(factor, dtype=float))


@st.composite
def batches(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rows = lambda n: st.lists(  # noqa: E731
        st.lists(st.integers(-2, 2), min_size=n, max_size=n), min_size=1, max_size=3
    )
    factor = lambda n: st.sampled_from(WORDS) | rows(n) | rows(n).map(lambda r: r[0])  # noqa: E731
    terms = draw(st.lists(st.tuples(*map(factor, sizes)), min_size=1, max_size=4))
    return sizes, terms


@given(batches())
def test_products_are_kronecker_products(batch):
    sizes, terms = batch
    expected = []
    for term in terms:
        whole = np.ones((1, 1))
        for factor, size in zip(term, sizes, strict=True):
            whole = np.kron(whole, matrix(factor, size))
        expected.append(whole)
    built = families.products(sizes, terms)
    np.testing.assert_array_equal(built.queries.dense(), np.vstack(expected))
    assert len(set(built.names)) == built.shape[0]
    assert Labels.from_facts(built.labels.facts()).digest == built.labels.digest
    assert [label.query for label in built.labels] == [
        f"q{number}" for number, rows in enumerate(expected, start=1) for _ in range(len(rows))
    ]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_marginals_are_the_products_of_all_combinations(sizes, data):
    orders = data.draw(st.lists(st.integers(0, len(sizes)), min_size=1, unique=True))
    sets = [s for k in orders for s in itertools.combinations(range(len(sizes)), k)]
    terms = [["identity" if i in s else "total" for i in range(len(sizes))] for s in sets]
    built = families.marginals(sizes, orders)
    np.testing.assert_array_equal(
        built.queries.dense(), families.products(sizes, terms).queries.dense()
    )
    groups = [
        tuple((f"a{i + 1}", str(v)) for i, v in zip(s, values, strict=True))
        for s in sets
        for values in itertools.product(*(range(sizes[i]) for i in s))
    ]
    labels = built.labels
    assert [label.group for label in labels] == groups
    assert [labels[i].group for i in range(len(labels))] == groups
    frame = long_frame(built)
    for place, column in enumerate(frame.columns[1:-1], start=1):
        values = [None if code < 0 else column.labels[code] for code in frame.codes[:, place]]
        assert values == [dict(group).get(column.name) for group in groups]
    assert [label.name for label in frame.labels()] == list(labels.names)
    assert Labels.from_facts(labels.facts()) == labels


def test_nothing_is_listed():
    batch = families.marginals([10] * 100, range(4))
    assert batch.shape == (162_196_001, 10**100)
    assert batch.names[0] == "count"
    assert batch.names[-1] == "count[a98=9, a99=9, a100=9]"
    assert len(str(batch.labels.facts())) < 10_000
    huge = families.products([10**6] * 5, [["all-ranges", "total", "total", "total", "total"]])
    assert huge.names[-2:] == ("q1[a1=999998..999999]", "q1[a1=999999]")


def test_one_attribute_stays_flat():
    kinds = {word: families.products([6], [[word]]).queries.kind for word in WORDS}
    assert kinds == {
        "total": "sparse",
        "identity": "sparse",
        "prefix": "prefix",
        "all-ranges": "all-ranges",
    }
    assert families.products([6], [["total"], ["prefix"]]).queries.kind == "sparse"


def test_importance_is_per_term_or_per_query():
    terms = [["identity", "total"], ["total", "total"]]
    per_term = families.products([2, 3], terms, importance=[4, 1])
    per_query = families.products([2, 3], terms, importance=[4, 4, 1])
    assert per_term.importance.tolist() == per_query.importance.tolist() == [4, 4, 1]
    assert families.products([2, 3], terms, importance=[1, 1]).importance is None


@pytest.mark.parametrize(
    ("sizes", "terms", "options", "sentence"),
    [
        ([2, 3], [], {}, "at least one term"),
        ([], [], {}, "1 to 500 attributes, not 0"),
        ([2, 0], [["total", "total"]], {}, "between 1 and 67,108,864 values, not 0"),
        ([2, "3"], [["total", "total"]], {}, "whole numbers"),
        ([2, 3], [["total"]], {}, "term 1 must have 2 factors, one per attribute, not 1"),
        ([2, 3], [["total", "sum"]], {}, "not 'sum'"),
        ([2, 3], [["total", [1, 0]]], {}, r"3 columns, not the shape \(1, 2\)"),
        ([2, 3], [["total", [[1, 0, 0], [1]]]], {}, "rows of equal length"),
        ([2, 3], [["total", [1, 0, float("nan")]]], {}, "finite numbers"),
        ([2, 2], [[[1e99, 1], [1e99, 1]]], {}, "between 1e-100 and 1e100"),
        ([10] * 60, [["identity"] * 60], {}, "more than 2\\^53"),
        ([2, 3], [["total", "total"]], {"names": ["a", "b"]}, "1 terms need 1 names, got 2"),
        ([2, 3], [["total", "total"]], {"importance": [1, 2]}, "one number per term"),
        ([2, 3], [["total", "total"]] * 2, {"names": ["a", "a"]}, "duplicate query name: 'a'"),
    ],
)
def test_refusals(sizes, terms, options, sentence):
    with pytest.raises(WorkloadError, match=sentence):
        families.products(sizes, terms, **options)


@pytest.mark.parametrize("orders", [[3], [], [1, 1], [-1]])
def test_orders_that_are_refused(orders):
    with pytest.raises(WorkloadError, match="cross-tabs"):
        families.marginals([2, 3], orders)


def test_a_label_that_cross_tabs_repeat_is_found():
    axes = (("sex", ("f", "m")), ("age", NumberedLabels("identity", 3)))
    tabs = LabelBlock("n", axes, orders=(0, 2))
    for other in (
        LabelBlock("n"),
        LabelBlock("n", (("age", ("9", "2")), ("sex", ("m",)))),
        LabelBlock("n", (("age", ("2",)), ("sex", ("m",)))),
        LabelBlock("n", (("age", ("2",)), ("sex", ("m", "x"))), orders=(1, 2)),
    ):
        for parts in ([tabs, other], [other, tabs]):
            with pytest.raises(WorkloadError, match="duplicate query name: 'n"):
                Labels(parts)
    Labels([tabs, LabelBlock("n", (("age", ("1", "2")),)), LabelBlock("m")])


@pytest.mark.parametrize(
    "fact",
    [
        {"query": "n", "orders": [3], "groups": [["a", ["x"]]]},
        {"query": "n", "orders": [True], "groups": [["a", ["x"]]]},
        {"query": "n", "orders": [], "groups": [["a", ["x"]]]},
        {"query": "n", "orders": [1, 1], "groups": [["a", ["x"]]]},
        {"query": "n", "groups": [["a", {"identity": 0}]]},
        {"query": "n", "groups": [["a", {"identity": 10**12}]]},
        {"query": "n", "groups": [["a", {"total": 3}]]},
        {"query": "n", "groups": [["a", {"identity": 3, "prefix": 3}]]},
    ],
)
def test_forged_labels_are_refused(fact):
    with pytest.raises(WorkloadError):
        Labels.from_facts([fact])


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_batch_that_asks_for_nothing_is_refused(noise):
    batch = families.products([4, 3], [[[[0.0] * 4], "identity"]])
    with pytest.raises(WorkloadError, match="no query of this batch counts any cell"):
        lrm.plan(batch, noise=noise, effort="quick")
