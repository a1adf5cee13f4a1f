"""Random batches of SQL as an office writes them, from a seed: any condition, any unit."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

import lrm
from lrm.errors import SqlError

UNITS = (
    None,
    None,
    lrm.PrivacyUnit(None, 1, "substitute"),
    lrm.PrivacyUnit("who", 8),
    lrm.PrivacyUnit("who", 3, "substitute"),
)


@dataclass(frozen=True)
class RandomBatch:
    """Statements over a domain, and the noise to plan them with."""

    statements: tuple[str, ...]
    domain: lrm.Domain
    noise: str
    has_importances: bool

    @property
    def text(self) -> str:
        """The file of all statements."""
        return ";\n".join(self.statements)


def random_batch(seed: int, counts: tuple[int, ...], *, importances: bool = False) -> RandomBatch:
    """A random batch of one of some numbers of statements."""
    writer = _Writer(np.random.default_rng(seed))
    count = int(writer.rng.choice(counts))
    statements = tuple(writer.accepted(number, importances) for number in range(count))
    noise = str(writer.rng.choice(["pure", "laplace", "gaussian"]))
    return RandomBatch(statements, writer.domain, noise, importances)


class _Writer:
    """Writes statements over a random domain."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.categories: dict[str, int] = {}
        self.wholes: dict[str, int] = {}
        attributes: list[object] = []
        for i in range(int(rng.integers(2, 8))):
            if i < 2 or rng.random() < 0.6:
                self.categories[f"c{i}"] = size = int(rng.integers(2, 13))
                attributes.append(lrm.Categories(f"c{i}", [f"v{j}" for j in range(size)]))
            else:
                self.wholes[f"i{i}"] = high = int(rng.choice([5, 11, 23, 59, 99]))
                attributes.append(lrm.Integers(f"i{i}", 0, high))
        self.knots = rng.random() < 0.3
        if self.knots:
            attributes.append(lrm.Numbers("stay", [0, 7, 30, 200]))
        unit = UNITS[int(rng.integers(len(UNITS)))]
        self.domain = lrm.Domain(attributes, "t", unit) if unit else lrm.Domain(attributes, "t")

    def choose(self, some: list[str]) -> str:
        """One of some texts."""
        return some[int(self.rng.integers(len(some)))]

    def atom(self) -> str:
        """A condition on one attribute, or now and then on two of them together."""
        if len(self.wholes) > 1 and self.rng.random() < 0.1:
            x, y = self.rng.permutation(list(self.wholes))[:2]
            return self.choose([f"{x} > {y}", f"{x} + {y} <= {int(self.rng.integers(3, 30))}"])
        name = self.choose([*self.categories, *self.wholes])
        if name in self.categories:
            value = f"v{int(self.rng.integers(self.categories[name]))}"
            return self.choose(
                [f"{name} = '{value}'", f"{name} <> '{value}'", f"{name} IN ('{value}', 'v0')"]
            )
        value = int(self.rng.integers(1, self.wholes[name]))
        return self.choose(
            [f"{name} >= {value}", f"{name} < {value}", f"{name} BETWEEN {value // 2} AND {value}"]
        )

    def condition(self, depth: int = 2) -> str:
        """Atoms joined by AND, OR and NOT."""
        kind = int(self.rng.integers(5))
        if depth == 0 or kind < 2:
            return self.atom()
        if kind == 4:
            return f"NOT {self.condition(depth - 1)}"
        word = "AND" if kind == 2 else "OR"
        return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"

    def accepted(self, number: int, importances: bool) -> str:
        """A statement that SQL accepts: no condition that leaves no group, or too long a sum."""
        while True:
            statement = self.statement(number, importances)
            with suppress(SqlError):
                lrm.sql(statement, self.domain)
                return statement

    def statement(self, number: int, importances: bool) -> str:
        """Groups, a condition and one answer."""
        groups = [str(a) for a in self.rng.permutation(list(self.categories))]
        groups = groups[: int(self.rng.integers(0, 3))]
        columns, names = list(groups), list(groups)
        if groups and self.rng.random() < 0.2:
            columns[0], names[0] = f"CASE WHEN {self.condition(1)} THEN 'x' ELSE 'y' END AS g", "g"
        rate = f"AVG(CASE WHEN {self.atom()} THEN 1.0 ELSE 0 END)"
        answers = ["COUNT(*)"] * 4 + [f"COUNT(*) FILTER (WHERE {self.atom()})", rate]
        for name in self.wholes:
            answers += [f"SUM({name})", f"AVG({name})"]
        if self.knots:
            answers += ["SUM(stay)", "AVG(stay)"]
        answer = f"{self.choose(answers)} AS n{number}"
        where = f" WHERE {self.condition()}" if self.rng.random() < 0.6 else ""
        by = f" GROUP BY {', '.join(names)}" if names else ""
        weight = f"-- importance: {int(self.rng.integers(1, 6))}\n" if importances else ""
        return f"{weight}SELECT {', '.join([*columns, answer])} FROM t{where}{by}"
