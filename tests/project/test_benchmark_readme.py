"""The simple ways of the README's chart, against covariances computed in full."""

import itertools

import numpy as np
import pytest

from benchmarks.evidence.readme import by_hand, separate
from lrm.queries.maps.products.batch import product_batch
from lrm.queries.maps.products.map import ProductMap


def _rows(batch):
    return np.asarray(ProductMap(batch).dense())


def test_every_table_by_itself_is_the_even_split_of_epsilon():
    # Direct noise on the running totals has sensitivity 4; cell by cell 1, with 2.5 cells a query.
    batch = product_batch([4, 3], [["prefix", "total"], ["total", "identity"]])
    cumulated, table = np.tril(np.ones((4, 4))), np.eye(3)
    variances = np.concatenate([(cumulated**2).sum(axis=1), (table**2).sum(axis=1)])
    assert separate(batch) == pytest.approx(2 * np.sqrt(variances.mean()))


def test_the_finest_tables_are_measured_and_the_others_added_up():
    sizes = (3, 4, 2)
    terms = [["identity", "identity", "total"], ["total", "total", "identity"]]
    terms += [["identity", "total", "total"], ["total", [[1, 1, 0, 0], [0, 1, 1, 1]], "total"]]
    batch = product_batch(sizes, terms)
    # Noise of scale 2 (two finest tables) on the cells of the table that an answer is summed from.
    finest = [np.kron(np.eye(12), np.ones((1, 2))), np.kron(np.ones((1, 12)), np.eye(2))]
    total = 0.0
    for query in _rows(batch):
        errors = []
        for table in finest:
            weights = np.linalg.lstsq(table.T, query, rcond=None)[0]
            if np.allclose(table.T @ weights, query):
                errors.append(4 * (weights**2).sum())
        total += min(errors)
    assert by_hand(batch) == pytest.approx(np.sqrt(total / batch.queries))


def test_equal_tables_are_counted_once():
    once = product_batch([2, 2], [["identity", "total"], ["total", "identity"]])
    twice = product_batch(
        [2, 2], [*itertools.repeat(["identity", "total"], 2), ["total", "identity"]]
    )
    assert separate(once) == pytest.approx(separate(twice))
