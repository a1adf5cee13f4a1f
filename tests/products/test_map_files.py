"""Maps of kind 'products' in files: what is written is read back, and nothing is believed."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm import families
from lrm.errors import LrmError
from lrm.files.facts import Arrays, Facts
from lrm.queries.maps.files import pack_map, unpack_map
from lrm.queries.maps.products.batch import product_batch, sum_batch
from lrm.queries.maps.products.map import ProductMap


def packed(queries):
    """Facts and arrays as a file holds them."""
    arrays = {}
    facts = json.loads(json.dumps({"workload": pack_map("workload", queries, arrays)}))
    return facts, {name: np.array(array) for name, array in arrays.items()}


def unpacked(facts, arrays, shape=(None, None)):
    taken = Arrays(arrays)
    found = unpack_map("workload", Facts(facts, ["workload"]), taken, shape)
    taken.check_all_taken()
    return found


def example():
    a, b = [[1, 0], [0.5, 1]], [[0, 1, 1], [1, 0, 0]]
    several = [(1.0, [a, b]), (-2.0, ["identity", b])]
    return ProductMap(sum_batch([2, 3], [several, [(1.0, ["total", "prefix"])]]))


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3).flatmap(
        lambda sizes: st.tuples(
            st.just(sizes),
            st.lists(
                st.tuples(
                    *(
                        st.sampled_from(["total", "identity", "prefix", "all-ranges"])
                        | st.lists(st.floats(-9, 9, width=16), min_size=n, max_size=n)
                        for n in sizes
                    )
                ),
                min_size=1,
                max_size=4,
            ),
        )
    )
)
def test_round_trip(batch):
    sizes, terms = batch
    queries = ProductMap(product_batch(sizes, terms))
    found = unpacked(*packed(queries), (queries.shape[0], queries.shape[1]))
    assert found.digest == queries.digest
    np.testing.assert_array_equal(found.dense(), queries.dense())


def test_sums_and_large_products_round_trip():
    for queries in (example(), families.marginals([10] * 60, [0, 1, 2]).queries):
        facts, arrays = packed(queries)
        assert unpacked(facts, arrays).digest == queries.digest
    assert sum(array.nbytes for array in arrays.values()) < 200_000


def change(facts=None, **arrays):
    """A forged file: one fact or array replaced by what a function makes of it."""

    def forge(own, held):
        if facts is not None:
            facts(own["workload"])
        for name, make in arrays.items():
            key = f"workload-{name.replace('_', '-')}"
            held[key] = make(held[key].copy())

    return forge


def put(index, value):
    def make(array):
        array[index] = value
        return array

    return make


FORGED = {
    "a size of 0": change(lambda facts: facts["sizes"].__setitem__(0, 0)),
    "a huge size": change(lambda facts: facts["sizes"].__setitem__(0, 10**12)),
    "no attributes": change(lambda facts: facts["sizes"].clear()),
    "an attribute more": change(lambda facts: facts["sizes"].append(2)),
    "too many attributes": change(lambda facts: facts["sizes"].extend([1] * 600)),
    "an unknown kind": change(lambda facts: facts["factors"][0][0].__setitem__(0, "median")),
    "rows that are not there": change(lambda facts: facts["factors"][0][1].__setitem__(1, 10**9)),
    "a wrong number of queries": change(lambda facts: facts["factors"][1][0].__setitem__(1, 7)),
    "factors of another form": change(lambda facts: facts.__setitem__("factors", {"a": 1})),
    "an empty list of factors": change(lambda facts: facts["factors"].__setitem__(0, [])),
    "no total first": change(lambda facts: facts["factors"][0].pop(0)),
    "a place below": change(places=put(0, -1)),
    "a place beyond": change(places=put(-1, 10**15)),
    "places out of order": change(places=lambda array: array[::-1].copy()),
    "a choice beyond": change(choices=put(0, 99)),
    "a choice below": change(choices=put(0, -1)),
    "a choice that wraps": change(choices=put(0, 2**32 + 1)),
    "a term too many": change(term_of=put(-1, 10**15)),
    "a term below": change(term_of=put(0, -1)),
    "a term without products": change(term_of=put(-1, 5)),
    "terms of another length": change(term_of=lambda array: array[:-1]),
    "a coefficient that is NaN": change(coefficients=put(0, np.nan)),
    "a coefficient too large": change(coefficients=put(0, 1e200)),
    "no coefficients": change(coefficients=lambda array: array[:0]),
    "rows cut off": change(rows=lambda array: array[:-1]),
    "rows too many": change(rows=lambda array: np.append(array, 1.0)),
    "a weight that is infinite": change(rows=put(0, np.inf)),
    "floats for choices": change(choices=lambda array: array.astype(float)),
    "products of different heights": change(choices=put(1, 2)),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_forged_files_are_refused(forge):
    facts, arrays = packed(example())
    facts = copy.deepcopy(facts)
    forge(facts, arrays)
    with pytest.raises(LrmError):
        unpacked(facts, arrays)


def test_the_shape_is_checked():
    facts, arrays = packed(example())
    for shape in ((7, 6), (None, 7), (8, None)):
        if shape == (7, 6):
            unpacked(facts, arrays, shape)
            continue
        with pytest.raises(LrmError):
            unpacked(facts, arrays, shape)
    facts, arrays = packed(families.prefix(4).queries)
    with pytest.raises(LrmError, match="must be a product of attributes"):
        unpacked(facts, arrays)
