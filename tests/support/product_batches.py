"""Small batches over products of attributes, and their strategies in integers."""

import numpy as np

from lrm.planning.design.products.rounding import round_products
from lrm.planning.solvers.products.gaussian import optimise_gaussian_groups
from lrm.planning.solvers.products.optimise import optimise_products
from lrm.queries.maps.products.batch import cross_tabs, product_batch, sum_batch

__all__ = ["BATCHES", "PAIRS", "SOME", "rounded"]

PAIRS = np.kron(np.eye(4), np.ones((1, 2)))
SOME = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
BATCHES = {
    "tables": cross_tabs([4, 3, 2, 2], [0, 1, 2]),
    "prefixes": product_batch([8, 3], [["prefix", "identity"], ["total", "identity"]]),
    "ranges and rows": product_batch(
        [5, 3, 2], [["all-ranges", "total", "identity"], ["identity", SOME, "total"]]
    ),
    "dropped values": product_batch([4, 3], [[[[1, 1, 0, 0]], SOME], [[[0, 1, 0, 0]], "total"]]),
    "coarse and fine": product_batch(
        [8, 2, 3],
        [
            ["identity", "identity", "total"],
            [PAIRS, "identity", "identity"],
            [PAIRS, "total", "total"],
        ],
    ),
    "fused": product_batch(
        [3, 6, 3],
        [
            ["identity", [[0, 0, 1, 1, 0, 0], [0, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]], "total"],
            ["identity", "total", "total"],
            ["identity", "identity", [[0, 1, 0], [0, 1, 1]]],
        ],
    ),
    "cancelling": product_batch(
        [2, 3, 2],
        [[[[1, -1]], "identity", "total"], ["total", "prefix", [[1, -1], [0.3, -0.3]]]],
    ),
    "six attributes": product_batch(
        [2, 3, 2, 2, 2, 3],
        [["identity"] * 6, ["identity", "prefix", [[1, -1]], *["identity"] * 3], ["total"] * 6],
    ),
    "bits": cross_tabs([2, 2, 3, 2, 2, 2], [1]),
    "signs": product_batch(
        [2] * 7,
        [[[[1, -1]]] * 7, *[["total"] * i + ["identity"] + ["total"] * (6 - i) for i in range(7)]],
    ),
    "sums": sum_batch(
        [2, 3, 2],
        [
            [(1, [[[1, 0]], "total", "total"]), (1, ["total", [[1, 0, 0]], "total"])],
            [(1, ["identity", "total", "total"])],
        ],
    ),
    "or anything": sum_batch(
        [2, 3, 2],
        [
            [
                (1, [[[1, 0]], "total", "total"]),
                (1, ["total", [[1, 1, 1]], "total"]),
                (-1, [[[1, 0]], [[1, 1, 1]], "total"]),
            ],
            [(1, ["total", "identity", "identity"])],
        ],
    ),
}
BATCHES["two attributes together"] = sum_batch(
    [4, 3, 2],
    [
        *[
            [(1, [np.eye(4)[[x]], [(x + np.arange(3) <= c) + 0.0], other]) for x in range(c + 1)]
            for c, other in enumerate(("total", "total", "identity"))
        ],
        [(1, ["total", "identity", "identity"])],
        [(1, [np.tri(4), [[1, 0, 1]], "total"]), (-2, [np.tri(4).T, [[0, 1, 1]], "total"])],
    ],
)


def rounded(batch, noise):
    """The error of a batch's strategy, and the reconstruction from its integers."""
    strategy = (
        optimise_products(batch, effort="quick")
        if noise == "laplace"
        else optimise_gaussian_groups(batch)
    )
    return strategy.error, round_products(batch, strategy)
