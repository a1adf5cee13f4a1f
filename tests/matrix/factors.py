"""What ordinary use combines: the factors, their levels, and the pairs that cannot be combined."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from itertools import combinations, product

FACTORS = {
    "answers": (
        "counts",
        "sums by bins",
        "sums by knots",
        "rates",
        "averages",
        "quantiles",
        "windows",
        "rollup",
        "limit and having",
        "equal names",
        "importance",
        "tolerances",
        "expected",
    ),
    "source": (
        "arrow",
        "counts",
        "csv",
        "parquet",
        "pandas",
        "polars",
        "duckdb",
        "postgres",
        "spark",
    ),
    "batch": (
        "few attributes",
        "one attribute",
        "product",
        "yaml",
        "builders",
        "matrix of a domain",
        "matrix",
    ),
    "size": (3, 1, 25),
    "unit": ("row", "several rows", "person", "substitute", "person substitute"),
    "objective": ("default", "total", "balanced", "worst", "meet"),
    "noise": ("laplace", "pure", "gaussian"),
}
"""The levels of each factor. The first is what a case takes where any level will do."""

LARGE_SIZES = (60, 120)
"""Further sizes, of random cases alone: such a batch takes long, and every pair needs many."""


@dataclass(frozen=True)
class Case:
    """One level of each factor."""

    answers: str
    source: str
    batch: str
    size: int
    unit: str
    objective: str
    noise: str
    seed: int = 0  # of the random statements

    @property
    def id(self) -> str:
        """The levels in words, such as pytest prints them."""
        return ", ".join(map(str, astuple(self)))

    @property
    def without_source(self) -> tuple[str | int, ...]:
        """All that a plan depends on: where the rows are is no part of it."""
        names = [field.name for field in fields(self) if field.name != "source"]
        return tuple(getattr(self, name) for name in names)

    @property
    def pairs(self) -> set[Pair]:
        """All pairs of levels of two factors that this case combines."""
        return set(combinations(((name, getattr(self, name)) for name in FACTORS), 2))


Level = tuple[str, str | int]
Pair = tuple[Level, Level]


@dataclass(frozen=True)
class Impossible:
    """Levels of two factors that nobody can combine, and why."""

    first: str
    first_levels: tuple[str | int, ...]
    second: str
    second_levels: tuple[str | int, ...]
    reason: str

    @property
    def without_source(self) -> tuple[str | int, ...]:
        """All that a plan depends on: where the rows are is no part of it."""
        names = [field.name for field in fields(self) if field.name != "source"]
        return tuple(getattr(self, name) for name in names)

    @property
    def pairs(self) -> set[Pair]:
        """The pairs that it names, in the order of the factors."""
        return {
            _ordered((self.first, one), (self.second, two))
            for one, two in product(self.first_levels, self.second_levels)
        }


def _ordered(one: Level, two: Level) -> Pair:
    names = list(FACTORS)
    return (one, two) if names.index(one[0]) < names.index(two[0]) else (two, one)


def _but(factor: str, *levels: str | int) -> tuple[str | int, ...]:
    """All levels of a factor except some."""
    return tuple(level for level in FACTORS[factor] if level not in levels)


WEIGHTS = ("counts", "sums by bins", "importance")
"""Answers that rows of weights can have."""

IMPOSSIBLE = (
    Impossible(
        "unit",
        ("several rows",),
        "batch",
        _but("batch", "matrix"),
        "a domain declares how many rows a person may have only together with the column that "
        "identifies the person",
    ),
    Impossible(
        "unit",
        ("person", "person substitute"),
        "batch",
        ("matrix",),
        "without a domain no column identifies a person",
    ),
    Impossible(
        "batch",
        ("matrix",),
        "source",
        _but("source", "counts"),
        "without a domain nothing says which rows of a table a cell counts",
    ),
    Impossible(
        "unit",
        ("several rows",),
        "source",
        _but("source", "counts"),
        "only a matrix without a domain has this unit, and it is released on counts",
    ),
    Impossible(
        "batch",
        ("product",),
        "source",
        ("counts",),
        "the cells of a large product are too many to list their counts",
    ),
    Impossible(
        "answers",
        ("sums by knots",),
        "source",
        ("counts",),
        "a row between two knots is divided between cells: a release needs the table",
    ),
    Impossible(
        "answers",
        ("sums by knots",),
        "unit",
        ("several rows",),
        "knots belong to a domain, and only a matrix without a domain has this unit",
    ),
    Impossible(
        "batch",
        ("builders",),
        "answers",
        _but("answers", *WEIGHTS, "sums by knots", "rollup"),
        "builders return counts and weighted sums; SQL computes the others",
    ),
    Impossible(
        "batch",
        ("matrix", "matrix of a domain"),
        "answers",
        _but("answers", *WEIGHTS),
        "a row of weights is a count or a sum, with a name of its own",
    ),
    Impossible(
        "unit",
        ("several rows",),
        "answers",
        _but("answers", *WEIGHTS),
        "only a matrix without a domain has this unit, and its rows are counts or sums",
    ),
    Impossible(
        "batch",
        ("yaml",),
        "answers",
        ("equal names",),
        "the entries of a YAML batch must have names of their own",
    ),
    Impossible(
        "answers",
        ("equal names",),
        "size",
        (1,),
        "two statements are needed to share a name",
    ),
    Impossible(
        "objective",
        ("meet",),
        "answers",
        _but("answers", "tolerances"),
        "without tolerances there is nothing to meet",
    ),
    Impossible(
        "objective",
        ("meet",),
        "batch",
        ("builders", "matrix", "matrix of a domain"),
        "tolerances belong to statements of SQL and YAML",
    ),
    Impossible(
        "objective",
        ("meet",),
        "unit",
        ("several rows",),
        "only a matrix without a domain has this unit, and it has no tolerances",
    ),
    Impossible(
        "objective",
        ("worst",),
        "size",
        (1,),
        "the worst of several statements needs several",
    ),
    Impossible(
        "objective",
        ("worst",),
        "batch",
        ("builders", "matrix", "matrix of a domain"),
        "what is built in Python, or a matrix, is not divided into statements",
    ),
    Impossible(
        "objective",
        ("worst",),
        "unit",
        ("several rows",),
        "only a matrix without a domain has this unit, and it is not divided into statements",
    ),
)
"""Everything that is left out, with the reason."""

LEFT_OUT = frozenset().union(*(entry.pairs for entry in IMPOSSIBLE))
"""The pairs that no case may combine."""

ALL_PAIRS = frozenset(
    ((one, first), (two, second))
    for one, two in combinations(FACTORS, 2)
    for first, second in product(FACTORS[one], FACTORS[two])
)
"""All pairs of levels, the impossible ones included."""

SLOW = {(("batch", "product"), ("size", 25)): 2}
"""Pairs that take long: how many new pairs a case must have for one of them, once it is covered."""


def is_possible(case: Case) -> bool:
    """Whether somebody can do what the case combines."""
    return not case.pairs & LEFT_OUT


assert [field.name for field in fields(Case)] == [*FACTORS, "seed"]
