"""Random statements of each kind of answer, with what DuckDB is asked for to check them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from matrix.visits import EDGES, GRADES, REGIONS, SEXES, SHARES

OTHERS, MANY_OTHERS = 3, 10
"""Every so many statements one is of the kind that the case is about; the others are counts. In
large batches fewer are, so that these take seconds."""

FEW = 25
"""Statements up to which each may have two columns of groups, and conditions of its own."""

CONDITIONS = 5
"""Conditions of a larger batch: in those that people write, many statements share them."""

MIDDLES = [(low + high) / 2 for low, high in pairwise(EDGES)]
"""What the numbers of each bin are added up as."""

SUM_OF_MIDDLES = "SUM(CASE {} END)".format(
    " ".join(
        f"WHEN delay < {high} THEN {middle}"
        for high, middle in zip(EDGES[1:], MIDDLES, strict=True)
    )
)
"""The same in DuckDB."""


@dataclass(frozen=True)
class Question:
    """One statement.

    Parameters
    ----------
    groups
        Expressions by which it groups; the name of each is the same without ``expression AS``.
    answer
        The expression that is answered.
    name
        What the answer is called.
    where, ending
        The condition, and what orders, filters and cuts the displayed answers.
    comments
        Lines before it, such as ``-- importance: 4``.
    reference_answer
        What DuckDB is asked for where that differs: bins count as their middles.
    allowed
        How far the answer without noise may be from DuckDB's: a quantile by one cell.
    empty
        Whether a declared group without rows has the answer 0; else it has none in SQL.
    """

    groups: tuple[str, ...]
    answer: str
    name: str
    where: str = ""
    ending: str = ""
    comments: tuple[str, ...] = ()
    rollup: bool = False
    reference_answer: str = ""
    allowed: float = 0.0
    empty: bool = True

    @property
    def text(self) -> str:
        """The statement as it is planned."""
        return "\n".join([*self.comments, self._select(self.answer) + self.ending])

    @property
    def reference(self) -> str:
        """The statement that DuckDB answers: all groups, in any order."""
        return self._select(self.reference_answer or self.answer)

    def _select(self, answer: str) -> str:
        columns = ", ".join([*self.groups, f"{answer} AS {self.name}"])
        names = [group.rpartition(" AS ")[2] for group in self.groups]
        by = ", ".join(names)
        grouped = f" GROUP BY ROLLUP ({by})" if self.rollup else f" GROUP BY {by}" if by else ""
        condition = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {columns} FROM visits{condition}{grouped}"


def questions_of(case, domain) -> list[Question]:
    """The statements of a case."""
    writer = _Writer(np.random.default_rng(case.seed), case, domain)
    return [writer.question(number) for number in range(case.size)]


class _Writer:
    """Writes random statements over the attributes of a domain."""

    def __init__(self, draw, case, domain):
        self._draw, self._case, self._pool = draw, case, []
        self._names = [name for name in domain.names if name not in {"delay", "cost"}]
        self._groupable = [name for name in self._names if name not in {"zone", "day", "hour"}]
        self._ordered = [name for name in self._names if name in {"age", "grade"}]
        self._pool = [self._condition() for _ in range(CONDITIONS)] if case.size > FEW else []

    def question(self, number: int) -> Question:
        """The statement with a number; the first, and some others, are of the case's kind."""
        kinds = {
            "sums by bins": self._sum_of_bins,
            "sums by knots": self._sum_of_knots,
            "rates": self._rate,
            "averages": self._average,
            "quantiles": self._quantile,
            "windows": self._window,
            "rollup": self._rollup,
            "limit and having": self._limited,
        }
        plain = Question(self._groups(), "COUNT(*)", f"n{number}", self._condition())
        if self._case.answers == "equal names":
            return replace(plain, name="n")
        if self._case.answers in {"importance", "tolerances", "expected"}:
            return replace(plain, comments=self._comments(number))
        others = OTHERS if self._case.size <= FEW else MANY_OTHERS
        if number % others or self._case.answers == "counts":
            return plain
        return kinds[self._case.answers](replace(plain, name=f"k{number}"))

    def _groups(self) -> tuple[str, ...]:
        most = 2 if self._case.size <= FEW else 1
        count = min(int(self._draw.integers(0, most + 1)), len(self._groupable))
        names = [str(name) for name in self._draw.choice(self._groupable, count, replace=False)]
        if "day" in self._names and self._draw.random() < 0.1:
            names.append("MONTH(day) AS month")
        return tuple(names)

    def _condition(self) -> str:
        """No condition, one, or two of different attributes, which some declared cell meets."""
        if self._pool:
            return str(self._draw.choice(self._pool))
        count = min(int(self._draw.integers(0, 3)), len(self._groupable))
        names = self._draw.choice(self._groupable, count, replace=False) if count else []
        atoms = [self._atom_of(str(name)) for name in names]
        return str(self._draw.choice([" AND ", " OR "])).join(atoms)

    def _atom(self) -> str:
        return self._atom_of(str(self._draw.choice(self._groupable)))

    def _atom_of(self, name: str) -> str:
        if name in {"region", "sex"}:
            value = str(self._draw.choice(REGIONS if name == "region" else SEXES))
            return str(self._draw.choice([f"{name} = '{value}'", f"{name} <> '{value}'"]))
        low = int(self._draw.integers(0, GRADES // 2))
        conditions = [f"{name} >= {low}", f"{name} < {low + 3}"]
        return str(self._draw.choice([*conditions, f"{name} BETWEEN {low} AND {low + 2}"]))

    def _comments(self, number: int) -> tuple[str, ...]:
        if self._case.answers == "importance":
            return (f"-- importance: {1 + number % 4}",)
        if self._case.answers == "expected":
            return (f"-- expected: {200 * (1 + number % 3)}",)
        tolerances = ["-- within: 40", "-- within: 8 % of 500", "-- within: 5 %"]
        sizes = ("-- expected: 800",) if number % 3 == 2 else ()
        return (*sizes, tolerances[number % 3])

    def _number(self) -> str:
        return str(self._draw.choice(self._ordered))

    def _sum_of_bins(self, plain: Question) -> Question:
        return replace(plain, answer="SUM(delay)", reference_answer=SUM_OF_MIDDLES)

    def _sum_of_knots(self, plain: Question) -> Question:
        factor = int(self._draw.integers(1, 4))
        return replace(plain, answer=f"SUM({factor} * cost)", allowed=factor * SHARES)

    def _rate(self, plain: Question) -> Question:
        condition = self._atom()
        rates = [
            f"AVG(CASE WHEN {condition} THEN 1.0 ELSE 0 END)",
            f"100.0 * COUNT(*) FILTER (WHERE {condition}) / COUNT(*)",
        ]
        return replace(plain, answer=str(self._draw.choice(rates)), empty=False)

    def _average(self, plain: Question) -> Question:
        return replace(plain, answer=f"AVG({self._number()})", empty=False)

    def _quantile(self, plain: Question) -> Question:
        name = self._number()
        groups = tuple(group for group in plain.groups if group != name)
        quantiles = [f"MEDIAN({name})", f"QUANTILE_DISC({name}, 0.25)"]
        answer = str(self._draw.choice(quantiles))
        return replace(plain, answer=answer, groups=groups, allowed=1.0, empty=False)

    def _window(self, plain: Question) -> Question:
        name = self._number()
        others = [group for group in plain.groups if " AS " not in group and group != name][:1]
        partition = f"PARTITION BY {others[0]} " if others else ""
        windows = [
            f"SUM(COUNT(*)) OVER ({partition}ORDER BY {name})",
            f"100.0 * COUNT(*) / SUM(COUNT(*)) OVER ({partition.strip()})",
        ]
        answer = str(self._draw.choice(windows))
        return replace(plain, answer=answer, groups=(*others, name), where="", empty=False)

    def _rollup(self, plain: Question) -> Question:
        groups = tuple(group for group in plain.groups if " AS " not in group)
        return replace(plain, groups=groups or tuple(self._groupable[:1]), rollup=True)

    def _limited(self, plain: Question) -> Question:
        groups = plain.groups or tuple(self._groupable[:1])
        endings = [f" ORDER BY {plain.name} DESC LIMIT 3", " HAVING COUNT(*) > 20"]
        return replace(plain, groups=groups, ending=str(self._draw.choice(endings)))
