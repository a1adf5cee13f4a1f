"""Sets of attributes as bits: every set is found, however many attributes there are."""

import itertools

import numpy as np
import pytest

from lrm.planning.design.products.subsets import SubsetIndex, contained, masks_of, tuples_of


def sets_of(d, chosen):
    inside = np.zeros((len(chosen), d), dtype=bool)
    for row, members in zip(inside, chosen, strict=True):
        row[list(members)] = True
    return masks_of(inside)


@pytest.mark.parametrize("d", [3, 64, 65, 200, 385, 500])
def test_every_set_is_found(d):
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(d), 2))
    chosen = [(), *((i,) for i in range(d)), *pairs]
    index = SubsetIndex(sets_of(d, chosen), d)
    assert len(index) == len(chosen)
    np.testing.assert_array_equal(index.find(index.masks), np.arange(len(index)))
    triples = {tuple(sorted(rng.choice(d, 3, replace=False).tolist())) for _ in range(500)}
    assert np.all(index.find(sets_of(d, list(triples))) == -1)


def test_the_incidence_of_large_families_is_that_of_all_pairs():
    """Small sets are enumerated, and a set of all attributes is compared with every subset."""
    d, rng = 150, np.random.default_rng(0)
    small = list(itertools.combinations(range(d), 2))
    index = SubsetIndex(sets_of(d, small), d)
    large = [tuple(rng.choice(d, 4, replace=False)) for _ in range(600)]
    sets = sets_of(d, [*large, range(d), range(100)])
    found = index.inside(sets)
    assert not isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found.toarray(), contained(index.masks, sets))


def test_members_of_many_attributes_come_back():
    d = 500
    chosen = [(0, 63, 64, 499), (), (384,)]
    inside = np.zeros((3, d), dtype=bool)
    for row, members in zip(inside, chosen, strict=True):
        row[list(members)] = True
    assert tuples_of(inside) == chosen
