"""Sums of Grams over blocks of values: those of the dense arrays, without work per single value."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gates.shape import walk
from lrm.planning.design.products.quadratic import PairGram
from lrm.planning.solvers.products.descents import MixedGram
from lrm.queries.maps.words import Prefix, make_factor

VALUES = 37
KINDS = ["total", "identity", "prefix", "all-ranges"]


@pytest.mark.parametrize("block", [1, 4, 5])
@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), ["rows"], [*KINDS, "rows"]])
def test_times_is_that_of_the_dense_array_over_blocks(kinds, block):
    rng = np.random.default_rng(0)
    rows = rng.random((4, VALUES))
    factors = [make_factor(rows if kind == "rows" else kind, VALUES) for kind in kinds]
    shares = rng.random(len(factors))
    dense = sum(s * f.dense().T @ f.dense() for s, f in zip(shares, factors, strict=True))
    gram = MixedGram([(s, PairGram(f, f)) for s, f in zip(shares, factors, strict=True)]).coarser(
        block
    )
    sums = (np.arange(VALUES) // block == np.arange(gram.cells)[:, None]).astype(float)
    columns = rng.random((gram.cells, 3))
    assert np.allclose(gram.times(columns), sums @ dense @ sums.T @ columns)
    assert np.allclose(gram.energies, sums @ np.diag(dense))


def test_no_prefix_is_applied_to_single_values_of_a_coarse_gram():
    factor = Prefix(1000)
    gram = MixedGram([(1.0, PairGram(factor, factor))]).coarser(100)
    entered = walk(lambda: gram.times(np.ones((10, 1))))
    assert not any(name.endswith(".gram_times") for name in entered.calls)
