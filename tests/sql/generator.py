"""Random domains, tables and queries of the allowed grammar.

Each query is made as two texts: what lrm compiles, and what DuckDB runs on the raw rows. They
differ only where lrm documents a difference: a sum over no rows is 0, not NULL.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from decimal import Decimal

from lrm.domain import Attribute, Bins, Categories, Dates, Domain, Integers

TYPES = {"text": "VARCHAR", "integer": "BIGINT", "boolean": "BOOLEAN"}
SPECIAL_TYPES = {"big": "BIGINT", "dec": "DECIMAL(30,20)", "f": "FLOAT", "ts": "TIMESTAMP"}
RULES = ("drop", "cell")


@dataclass
class Query:
    """One statement: its text for lrm, its answers for DuckDB, its groups."""

    ours: str
    theirs: list[str]
    where: str
    sets: list[tuple[str, ...]]
    group_by: str
    """GROUP BY … over the columns label0, label1 …, which hold the cells' labels."""


def places(names: list[str] | tuple[str, ...], domain: Domain) -> str:
    return ", ".join(f"{{{domain.axis(name)}}}" for name in names)


class Generator:
    """Everything that is random, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - not a secret

    def rule(self) -> str:
        return self.random.choice(RULES)

    def domain(self) -> Domain:
        """Draw two to four attributes of all kinds, with all rules."""
        makers = [self._text, self._codes, self._flag, self._age, self._bins, self._dates]
        makers += [self._large, self._decimal, self._single, self._times]
        chosen = self.random.sample(makers, self.random.randint(2, 4))
        return Domain([make() for make in chosen], "t")

    def _text(self) -> Attribute:
        values = self.random.sample(["NY", "ny", " NY", "", "it's", "é"], 3)
        return Categories("s", values, null=self.rule(), outside=self.rule())

    def _codes(self) -> Attribute:
        values = self.random.sample(range(-5, 6), 3)
        return Categories("code", values, null=self.rule(), outside=self.rule())

    def _flag(self) -> Attribute:
        return Categories("flag", [True, False], null=self.rule())

    def _age(self) -> Attribute:
        low = self.random.randint(-4, 2)
        high = low + self.random.randint(3, 9)
        width = self.random.choice([1, 1, 3])
        rules = {"null": self.rule(), "nan": self.rule(), "outside": self.rule()}
        return Integers("Age", low, high, width, **rules)

    def _bins(self) -> Attribute:
        edges = sorted(self.random.sample([-2, -0.5, 0, 0.1, 1, 2.5, 7], 4))
        if self.random.random() < 0.2:
            edges = [float("-inf"), *edges, float("inf")]
        return Bins("x", edges, null=self.rule(), nan=self.rule(), outside=self.rule())

    def _dates(self) -> Attribute:
        by = self.random.choice(["day", "month", "year"])
        end = {"day": "2024-01-05", "month": "2024-04-30", "year": "2026-12-31"}[by]
        return Dates("d", "2024-01-01", end, by, null=self.rule(), outside=self.rule())

    def _large(self) -> Attribute:
        """Whole numbers that float64 does not hold."""
        low = self.random.choice([2**53 - 4, 2**60])
        return Integers("big", low, low + 9, 2, null=self.rule(), outside=self.rule())

    def _decimal(self) -> Attribute:
        return Bins("dec", [-1, 0.1, 0.7, 2], null=self.rule(), outside=self.rule())

    def _single(self) -> Attribute:
        """Edges that four bytes hold as well: others differ, and are listed in the docs."""
        return Bins("f", [-1, 0.5, 0.75, 2], null=self.rule(), nan=self.rule(), outside=self.rule())

    def _times(self) -> Attribute:
        return Dates("ts", "2024-01-01", "2024-01-05", null=self.rule(), outside=self.rule())

    def column_type(self, attribute: Attribute) -> str:
        if attribute.name in SPECIAL_TYPES:
            return SPECIAL_TYPES[attribute.name]
        if isinstance(attribute, Categories):
            return TYPES[attribute.value_type]
        return "DATE" if isinstance(attribute, Dates) else "DOUBLE"

    def value(self, attribute: Attribute) -> object:
        """Draw a raw value: declared, on an edge, outside, NULL or NaN."""
        if self.random.random() < 0.15:
            return None
        if attribute.name in SPECIAL_TYPES:
            return self._special_value(attribute)
        if isinstance(attribute, Categories):
            kinds = {"text": ["TX", "NY ", "nY"], "integer": [-9, 9], "boolean": []}
            return self.random.choice([*attribute.values, *kinds[attribute.value_type]])
        if isinstance(attribute, Dates):
            start = attribute.start.toordinal()
            return dt.date.fromordinal(self.random.randint(start - 20, attribute.last + 20))
        if isinstance(attribute, Integers):
            near = [attribute.low - 1, attribute.high + 1, float("nan"), float("inf"), -1e300]
            inside = self.random.randint(attribute.low, attribute.high)
            return float(self.random.choice([inside, inside, inside, *near]))
        near = [-1e9, 1e9, float("nan"), float("inf"), float("-inf"), -0.0]
        edge = self.random.choice(attribute.edges)
        return float(self.random.choice([edge, edge + 0.01, edge - 0.01, *near]))

    def _special_value(self, attribute: Attribute) -> object:
        if isinstance(attribute, Integers):
            return self.random.randint(attribute.low - 3, attribute.high + 3)
        if isinstance(attribute, Dates):
            day = dt.datetime(2024, 1, 1) + dt.timedelta(days=self.random.randint(-2, 7))  # noqa: DTZ001
            return day + dt.timedelta(hours=self.random.choice([0, 0, 13]))
        edge = self.random.choice(attribute.edges)
        if attribute.name == "f":
            return edge + self.random.choice([0.0, 2.0**-20, -(2.0**-20)])
        # Sixteen digits: more are rounded to float64, as the docs say.
        return Decimal(repr(edge)) + Decimal(self.random.choice(["0", "1e-15", "-1e-15"]))

    def table(self, domain: Domain) -> list[dict[str, object]]:
        rows = self.random.randint(0, 60)
        return [{a.name: self.value(a) for a in domain.attributes} for _ in range(rows)]

    def atom(self, domain: Domain) -> str:  # noqa: PLR0911 - one per kind
        attribute = self.random.choice(domain.attributes)
        name = self.random.choice([attribute.name, attribute.name.upper(), f"t.{attribute.name}"])
        draw = self.random.random()
        if draw < 0.2:
            return f"{name} IS {'NOT ' if draw < 0.08 else ''}NULL"
        if self.random.random() < 0.25:
            return self.expression_condition(domain, attribute, name)
        if attribute.name == "ts":  # whole days at <= and =: see the docs
            return f"{name} {self.random.choice(['<', '>='])} {self.constant(attribute)}"
        if draw < 0.35:
            items = ", ".join(self.constant(attribute) for _ in range(self.random.randint(1, 3)))
            return f"{name} {self.random.choice(['IN', 'NOT IN'])} ({items})"
        ordered = not isinstance(attribute, Categories) or attribute.value_type == "integer"
        if draw < 0.5 and ordered:
            low, high = self.constant(attribute), self.constant(attribute)
            return f"{name} {self.random.choice(['', 'NOT '])}BETWEEN {low} AND {high}"
        operation = self.random.choice(
            ["=", "<>", "<", "<=", ">", ">="] if ordered else ["=", "<>"]
        )
        constant = self.constant(attribute)
        if self.random.random() < 0.2:
            return f"{constant} {operation} {name}"
        return f"{name} {operation} {constant}"

    def expression_condition(self, domain: Domain, attribute: Attribute, name: str) -> str:
        """Draw a condition that is evaluated on declared values, or on cells of conditions."""
        kinds = [
            f"({name} IS NULL) IS DISTINCT FROM ({self.random.choice(domain.names)} IS NULL)",
            f"CASE WHEN {name} IS NULL THEN 'a' ELSE 'b' END <> 'a'",
            f"COALESCE({name} = {self.constant(attribute)}, FALSE)",
            "1 = 1",
        ]
        if attribute.name == "ts":
            kinds = [f"EXTRACT(day FROM {name}) % 2 = 0"]
        elif isinstance(attribute, Dates):
            kinds += [f"MONTH({name}) = 2", f"DATE_TRUNC('year', {name}) = DATE '2024-01-01'"]
            kinds += [f"{name} + INTERVAL 1 DAY > DATE '2024-02-01'", f"DAYOFWEEK({name}) < 3"]
        elif isinstance(attribute, Integers) or attribute.name == "code":
            kinds += [f"{name} % 2 = 0", f"ABS({name}) < 3", f"{name} + 1 >= 2", f"-{name} > 0"]
            kinds += [f"{name} * 2 BETWEEN 1 AND 7", f"GREATEST({name}, 2) = 2"]
            kinds += [f"({name}, 1) IN ((1, 1), (2, 1))", f"FLOOR({name} / 3) = 1"]
        elif attribute.name == "flag":
            kinds = [name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT FALSE"]
        elif attribute.name == "s":
            kinds += [f"{name} LIKE 'N%'", f"{name} NOT ILIKE '%y'", f"UPPER({name}) = 'NY'"]
            kinds += [f"LENGTH({name}) = 2", f"TRIM({name}) || 'x' = 'NYx'"]
            kinds += [f"{name} IS NOT DISTINCT FROM 'NY'", f"COALESCE({name}, 'NY') = 'NY'"]
            kinds += [f"CASE {name} WHEN 'NY' THEN 1 WHEN 'ny' THEN 2 ELSE 0 END > 0"]
        return self.random.choice(kinds)

    def constant(self, attribute: Attribute) -> str:
        """Draw a constant, most often on an edge (others mostly cut, and are refused)."""
        if isinstance(attribute, Categories):
            value = self.random.choice(attribute.values)
            return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
        if isinstance(attribute, Dates):
            step = self.random.choice([*attribute.starts.tolist(), *attribute.ends.tolist()])
            day = dt.date.fromordinal(step + self.random.choice([0, 0, 0, 1]))
            return self.random.choice([f"'{day}'", f"DATE '{day}'"])
        if isinstance(attribute, Integers):
            step = self.random.choice([*attribute.starts.tolist(), *attribute.ends.tolist()])
            spellings = [str(step), str(step + 1), f"{step}.5"]
            # With an exponent it is a DOUBLE to DuckDB, which rounds large ones: see the docs.
            return self.random.choice(spellings + [f"{step}e0"] * (attribute.name != "big"))
        return repr(self.random.choice([e for e in attribute.edges if abs(e) < 1e300]))

    def condition(self, domain: Domain, depth: int = 3) -> str:
        draw = self.random.random()
        if depth == 0 or draw < 0.4:
            return self.atom(domain)
        if draw < 0.48:
            return f"NOT {self.atom(domain)}"
        if draw < 0.58:
            return f"NOT ({self.condition(domain, depth - 1)})"
        word = self.random.choice(["AND", "OR"])
        parts = [self.condition(domain, depth - 1) for _ in range(self.random.randint(2, 3))]
        text = f" {word} ".join(parts)
        return f"({text})" if self.random.random() < 0.7 else text

    def number(self) -> str:
        return self.random.choice(["1", "2", "-3", "0.5", "-1.25", "0", "10"])

    def aggregate(self, domain: Domain) -> tuple[str, str]:
        """Draw an aggregate as (for lrm, for DuckDB)."""
        text, total = "COUNT(*)", False
        draw = self.random.random()
        sums = [a for a in domain.attributes if isinstance(a, Integers) and a.width == 1]
        sums += [a for a in domain.attributes if a.name == "code"]
        if draw < 0.3:
            branches = " ".join(
                f"WHEN {self.condition(domain, 1)} THEN {self.number()}"
                for _ in range(self.random.randint(1, 3))
            )
            default = self.random.choice(["", f" ELSE {self.number()}", " ELSE NULL"])
            text, total = f"SUM(CASE {branches}{default} END)", True
        elif draw < 0.5 and sums:
            text, total = f"SUM({self.random.choice(sums).name})", True
        elif draw < 0.6:
            attribute = self.random.choice(domain.attributes)
            text = self.random.choice(
                [
                    "COUNT(1)",
                    f"COUNT({attribute.name})",
                    f"COUNT(CASE WHEN {self.condition(domain, 1)} THEN 1 END)",
                    f"COUNT(CASE WHEN {self.condition(domain, 1)} THEN NULL ELSE 2 END)",
                ]
            )
        elif draw < 0.7:
            inner = f"IF({self.condition(domain, 1)}, {self.number()}, {self.number()})"
            if sums:
                name = self.random.choice(sums).name
                inner = self.random.choice(
                    [
                        inner,
                        f"{name} * 2 + 1",
                        f"CASE WHEN {self.condition(domain, 1)} THEN {name} END",
                        f"CASE WHEN {self.condition(domain, 1)} THEN {name} ELSE 3 END",
                    ]
                )
            text, total = f"SUM({inner})", True
        if self.random.random() < 0.3:
            text += f" FILTER (WHERE {self.condition(domain, 1)})"
        theirs = f"COALESCE({text}, 0)" if total else text
        draw = self.random.random()
        if draw < 0.2:
            factor = self.number()
            return f"{factor} * {text}", f"{factor} * {theirs}"
        if draw < 0.4:
            other, their_other = self.aggregate(domain)
            sign = self.random.choice(["+", "-"])
            if self.random.random() < 0.5:
                return f"{text} {sign} {other}", f"{theirs} {sign} {their_other}"
            return f"{text} {sign} ({other})", f"{theirs} {sign} ({their_other})"
        return (f"-({text})", f"-({theirs})") if draw < 0.45 else (text, theirs)

    def query(self, domain: Domain) -> Query:
        pairs = [self.aggregate(domain) for _ in range(self.random.randint(1, 3))]
        draw = self.random.random()
        where = f" WHERE {self.condition(domain)}" if draw < 0.7 else ""
        group_by, sets = self.grouping(domain)
        ours = ", ".join(
            f"{text} AS a{number}" if number % 2 else text
            for number, (text, _) in enumerate(pairs, start=1)
        )
        return Query(
            ours=f"SELECT {ours} FROM t{where}{group_by.format(*domain.names)}",
            theirs=[theirs for _, theirs in pairs],
            where=where,
            sets=sets,
            group_by=group_by.format(*(f"label{axis}" for axis in range(len(domain.names)))),
        )

    def grouping(self, domain: Domain) -> tuple[str, list[tuple[str, ...]]]:
        """Draw GROUP BY with places {0}, {1} … for attributes, and the sets it means."""
        draw = self.random.random()
        if draw < 0.4:
            return "", [()]
        names = self.random.sample(domain.names, self.random.randint(1, len(domain.names)))
        text = places(names, domain)
        if draw < 0.6:
            return f" GROUP BY {text}", [tuple(names)]
        if draw < 0.75:
            prefixes = [tuple(names[:length]) for length in range(len(names), -1, -1)]
            return f" GROUP BY ROLLUP ({text})", prefixes
        if draw < 0.9:
            names = names[:2]
            both = [tuple(names), *[(name,) for name in names if len(names) > 1], ()]
            return f" GROUP BY CUBE ({places(names, domain)})", both
        if draw < 0.95 and len(names) > 1:
            first, rest = names[0], names[1:]
            sets = [(first, *rest[:length]) for length in range(len(rest), -1, -1)]
            text = f"{places([first], domain)}, ROLLUP ({places(rest, domain)})"
            return f" GROUP BY {text}", sets
        sets = list(dict.fromkeys([tuple(names), (names[0],), ()]))
        text = ", ".join("(" + places(names, domain) + ")" for names in sets)
        return f" GROUP BY GROUPING SETS ({text})", sets
