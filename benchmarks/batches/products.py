"""Batches over products of attributes: real ones, small ones, and ones that only grow.

A term is one factor per attribute: an array (queries x values) or a word. The census batch is the
person tables of Summary File 1 of the 2010 census; the others are tables and prefix sums over the
attributes of the Current Population Survey, the Adult data and a table of loans, as they are used
in the literature on high-dimensional workloads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrm.queries.maps.products.batch import ProductBatch, cross_tabs, product_batch, sum_batch

__all__ = ["ADULT", "CPS", "FIGURES", "LOANS", "REAL", "SMALL", "affine_batch", "prefix_tables"]

Floats = NDArray[np.float64]
Term = list[Any]

ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
LOANS = (101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15)
CPS = (50, 100, 7, 4, 2)

FIGURES: Mapping[str, float] = {
    "census": 4.323,
    "census by state": 5.821,
    "cps marginals": 3.3686,
    "cps prefixes": 28.674,
    "adult up to 3-way": 155.65,
    "adult 2-way prefixes": 265.8,
    "loans small marginals": 65.449,
    "loans small prefixes": 153.28,
}
"""Root mean squared errors to reach (Laplace, err per query, sensitivity 1)."""


def _with_total(n: int) -> Floats:
    return np.vstack([np.eye(n), np.ones((1, n))])


def _ranges(edges: Sequence[tuple[int, int]], n: int) -> Floats:
    values = np.arange(n)
    return np.array([(values >= a) & (values < b) for a, b in edges], dtype=float)


def _races() -> tuple[Floats, Floats, Floats]:
    """Over the 64 combinations of six races: the major ones, every one with sums, and white."""
    count = np.array([value.bit_count() for value in range(64)])
    alone = np.zeros((6, 64))
    alone[np.arange(6), 2 ** np.arange(6)] = 1.0
    major = np.vstack([alone, 1.0 - alone.sum(axis=0)])
    by_count = (count == np.arange(1, 7)[:, None]).astype(float)
    several = (count >= 2).astype(float)[None]
    return major, np.vstack([np.eye(64)[1:], by_count, several]), alone[:1]


def _census_terms() -> list[Term]:
    """Sex x Hispanic x race x age in years."""
    total, each = "total", "identity"
    major, detailed, white = _races()
    starts = [
        0,
        5,
        10,
        15,
        18,
        20,
        21,
        22,
        25,
        30,
        35,
        40,
        45,
        50,
        55,
        60,
        62,
        65,
        67,
        70,
        75,
        80,
        85,
    ]
    groups = _ranges(list(itertools.pairwise([*starts, 115])), 115)
    years = _ranges([*[(a, a + 1) for a in range(100)], (100, 105), (105, 110), (110, 115)], 115)
    adult = _ranges([(18, 115)], 115)
    yes, no = np.eye(2)[:1], np.eye(2)[1:]
    terms: list[Term] = []
    # P1 to P11: races and origins, of all persons and of adults.
    for age, ages in ((total, "all"), (adult, "adults")):
        everybody: Term = [total, total, total, age]
        if ages == "all":
            terms += [everybody, [total, total, major, age], everybody, [total, each, total, age]]
            terms += [everybody, [total, each, major, age], [total, _with_total(2), total, age]]
        terms += [[total, total, detailed, age], everybody]
        terms += [[total, each, total, age], [total, no, detailed, age], everybody]
    # P12 and PCT12: sex by age, for everybody and for parts of the population.
    for ages, last in ((groups, white), (years, major)):
        for origin, race in ((total, total), (total, major), (yes, total), (no, last)):
            terms += [[each, origin, race, ages], [_with_total(2), origin, race, total]]
    return terms


def _tables_up_to(sizes: Sequence[int], cells: int, prefixes: int = 0) -> ProductBatch:
    """All tables of at most so many cells; the first attributes are asked by prefix sums."""
    terms = []
    for order in range(len(sizes) + 1):
        for members in itertools.combinations(range(len(sizes)), order):
            if math.prod(sizes[i] for i in members) <= cells:
                term: Term = ["total"] * len(sizes)
                for i in members:
                    term[i] = "prefix" if i < prefixes else "identity"
                terms.append(term)
    return product_batch(sizes, terms)


def prefix_tables(sizes: Sequence[int], orders: Iterable[int], prefixes: int) -> ProductBatch:
    """All tables of some orders, with prefix sums over the first attributes."""
    kinds = ["prefix"] * prefixes + ["identity"] * (len(sizes) - prefixes)
    return cross_tabs(sizes, orders, kinds)  # type: ignore[arg-type]


def _census(*, states: bool) -> ProductBatch:
    terms, sizes = _census_terms(), [2, 2, 64, 115]
    if states:
        state = _with_total(51)
        return product_batch([*sizes, 51], [[*term, state] for term in terms])
    return product_batch(sizes, terms)


REAL: Mapping[str, Callable[[], ProductBatch]] = {
    "census": lambda: _census(states=False),
    "census by state": lambda: _census(states=True),
    "cps marginals": lambda: product_batch(CPS, [[_with_total(n) for n in CPS]]),
    "cps prefixes": lambda: product_batch(
        CPS, [["prefix", "prefix", *[_with_total(n) for n in CPS[2:]]]]
    ),
    "adult up to 3-way": lambda: cross_tabs(ADULT, range(4)),
    "adult 2-way prefixes": lambda: prefix_tables(ADULT, [2], 5),
    "loans small marginals": lambda: _tables_up_to(LOANS, 5000),
    "loans small prefixes": lambda: _tables_up_to(LOANS, 5000, 4),
}
"""Name → batch, built when it is its turn."""


def _regions() -> ProductBatch:
    """Region × age × sex: 91 queries, some of them for the old and the young alone."""
    ages = np.arange(20)
    old, young = (ages >= 13).astype(float)[None], (ages < 3).astype(float)[None]
    total, each = "total", "identity"
    terms: list[Term] = [
        [total, total, total],
        [each, total, total],
        [each, total, each],
        [total, each, total],
        [total, each, each],
        [each, old, total],
        [each, young, total],
    ]
    return product_batch([6, 20, 2], terms)


SMALL: Mapping[str, tuple[Callable[[], ProductBatch], float]] = {
    "6×5×4×2 up to 2-way": (lambda: cross_tabs([6, 5, 4, 2], range(3)), 2249.4),
    "10×8×5×2×2 up to 2-way": (lambda: cross_tabs([10, 8, 5, 2, 2], range(3)), 11135.0),
    "10×8×5×2×2 1-way": (lambda: cross_tabs([10, 8, 5, 2, 2], [1]), 399.8),
    "10×10×10×10 up to 2-way": (lambda: cross_tabs([10] * 4, range(3)), 23988.0),
    "2×2×2×2×2×2 1-way": (lambda: cross_tabs([2] * 6, [1]), 124.25),
    "3×3×3×3 1-way": (lambda: cross_tabs([3] * 4, [1]), 120.0),
    "5×4×3×2×2 1-way": (lambda: cross_tabs([5, 4, 3, 2, 2], [1]), 214.5),
    "5×4×3×2×2 up to 2-way": (lambda: cross_tabs([5, 4, 3, 2, 2], range(3)), 3156.0),
    "91 queries by region": (_regions, 678.9),
    "flights up to 1-way": (lambda: cross_tabs([12, 24, 16, 3, 20, 15], range(2)), 2800.5),
    "flights up to 2-way": (lambda: cross_tabs([12, 24, 16, 3, 20, 15], range(3)), 570_000.0),
    "flights up to 3-way": (lambda: cross_tabs([12, 24, 16, 3, 20, 15], range(4)), 17_350_000.0),
}
"""Name → batch and the error (‖B‖²·Δ²) to reach."""


def affine_batch(attributes: int, values: int = 10) -> ProductBatch:
    """Conditions ``x + y <= c`` and ``|x - y| <= c`` for all c, over all pairs of attributes.

    One term per condition: a sum over the values of x of the matching values of y.
    """
    y = np.arange(values)
    terms = []
    for i, j in itertools.combinations(range(attributes), 2):
        conditions = [[x + y <= c for x in range(values)] for c in range(2 * values - 1)]
        conditions += [[abs(x - y) <= c for x in range(values)] for c in range(values)]
        for rows in conditions:
            summands = []
            for x, matching in enumerate(rows):
                factors: list[object] = ["total"] * attributes
                factors[i], factors[j] = np.eye(values)[[x]], matching[None].astype(float)
                summands += [(1.0, factors)] if matching.any() else []
            terms.append(summands)
    return sum_batch([values] * attributes, terms)
