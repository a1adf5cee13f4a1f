"""Errors ‖B‖²·Δ² of the classical mechanisms over products, to compare a search with."""

import numpy as np

from lrm.clock import UNLIMITED
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.strategy import Marginals, marginals_error
from lrm.planning.design.products.subsets import masks_of
from lrm.planning.solvers.products.group import GroupSearch
from lrm.planning.solvers.settings import BUDGETS
from lrm.planning.strategies.products import tree_basis
from lrm.queries.maps.products.values import merge_values


def noise_on_data_error(batch):
    """``‖W‖²`` over the merged cells: every cell is measured."""
    return product_error(batch, lambda size: MarginalBasis.beside(np.zeros((0, size))))


def noise_on_results_error(batch):
    """``m·Δ(W)²``: every query is measured."""
    W = batch.dense()
    return len(W) * np.abs(W).sum(axis=0).max() ** 2


def tree_product_error(batch):
    """Binary trees on every merged attribute, multiplied."""
    return product_error(batch, lambda size: tree_basis(size, 2))


def classical_marginals_error(batch):
    """Weighted marginals over identities: the best sets and weights that the search finds."""
    quadratic = Quadratic(merge_values(batch).batch)
    search = GroupSearch(quadratic, np.random.default_rng(0), UNLIMITED, BUDGETS["quick"].group)
    search.needy = []
    search.run()
    return float(np.exp(search.value))


def product_error(batch, basis):
    """One product of one basis per merged attribute."""
    quadratic = Quadratic(merge_values(batch).batch)
    whole = masks_of(np.ones((1, quadratic.d), dtype=bool))
    bases = tuple(basis(size) for size in quadratic.sizes)
    return marginals_error(quadratic, Marginals(whole, np.ones(1), bases))
