"""Counted work of a search over products, in seconds of one core (see `lrm.clock`).

Fitted to the CPU times of 50,000 calls in searches for twelve batches: the census, prefix sums over
the CPS, the loans and the Adult data, and unseen ones. Each sum over a search is within 25 % of its
time. What matters more is that it is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from lrm.exact.products.basis import Basis
from lrm.exact.products.quadratic import Quadratic

__all__ = ["cover_work", "joint_work", "look_work", "moves_work", "settle_work", "weights_work"]


def weights_work(subsets: int, sets: int, evaluations: int) -> float:
    """Seconds of a descent on the weights of some sets."""
    return 3.5e-4 + evaluations * (5.4e-5 + 1.0e-9 * subsets * sets)


def moves_work(subsets: int, moves: int) -> float:
    """Seconds of the scores of all neighbours of a family."""
    return 2.7e-4 + 1.6e-8 * subsets * moves


def settle_work(subsets: int, sets: int, moves: int, rounds: int) -> float:
    """Seconds of some rounds on the weights of many families at once."""
    return 1.1e-4 + rounds * (3.7e-5 + subsets * moves * (4.0e-9 + 2.2e-10 * sets))


def cover_work(sets: int) -> float:
    """Seconds of a greedy cover that ended with this number of sets."""
    return 2.7e-4 + 5.6e-5 * sets


def look_work(terms: int, attributes: int) -> float:
    """Seconds of a rough look at a group of terms, its merged values included."""
    return 5e-3 + 1e-4 * terms * attributes


def joint_work(quadratic: Quadratic, sets: int, bases: Sequence[Basis]) -> float:
    """Seconds of one evaluation of the error and its gradient by weights and bases."""
    work = 8e-4 + 2.2e-5 * len(quadratic.grams) + len(quadratic.index) * (1e-6 + 4.7e-8 * sets)
    for i, basis in enumerate(bases):
        if not basis.plain:
            grams = len(quadratic.of_attribute(i))
            work += basis.extra_rows.size * (3.9e-7 + 3.3e-8 * grams) + 6e-9 * basis.size**2 * grams
    return work
