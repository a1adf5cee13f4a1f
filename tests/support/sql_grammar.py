"""Random statements of the whole grammar, as DuckDB runs them too, on random tables with NULLs."""

from __future__ import annotations

import datetime as dt
import random

import duckdb

from lrm.domain import Bins, Categories, Dates, Domain, Integers, Lookup
from sql_answers import Table

TYPES = {
    "s": "VARCHAR",
    "k": "BIGINT",
    "w": "BIGINT",
    "flag": "BOOLEAN",
    "x": "DOUBLE",
    "d": "DATE",
}
START = dt.date(2024, 1, 28)


class Grammar:
    """Everything that is random, from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311 - not a secret
        self.columns = {}

    def one(self, *choices):
        return self.random.choice(choices)

    def maybe(self, chance):
        return self.random.random() < chance

    def table(self):
        """Draw a domain of six attributes, a table of rows within it, and its lookups."""
        rule = [self.one("cell", "drop") for _ in range(5)]
        domain = Domain(
            [
                Categories("s", ["a", "bb", "Cc", "d'd"], null=rule[0]),
                Integers("k", -2, 4, null=rule[1]),
                Integers("w", 0, 8, 3),
                Categories("flag", [True, False], null=rule[2]),
                Bins("x", [-10, 0, 10, 20, 60], null=rule[3], outside=self.one("cell", "drop")),
                Dates("d", START, START + dt.timedelta(days=9), null=rule[4]),
            ],
            "t",
            lookups=[
                Lookup("names", "s", ["name", "size"], [["a", "ann", 3], ["Cc", "cid", None]]),
                Lookup("halves", "k", ["half"], [[k, k > 0] for k in range(-2, 3)]),
            ],
        )
        rows, cells = [], []
        for _ in range(self.random.randint(0, 150)):
            row = self.row()
            cell = [a.cell_of(v) for a, v in zip(domain.attributes, row, strict=True)]
            if None not in cell:
                rows.append(row)
                cells.append(cell)
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        connection.execute(f"CREATE TABLE t ({columns})")
        if rows:
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("CREATE TABLE names (s VARCHAR, name VARCHAR, size BIGINT)")
        connection.execute("CREATE TABLE halves (k BIGINT, half BOOLEAN)")
        for lookup in domain.lookups:
            marks = ", ".join("?" for _ in lookup.rows[0])
            connection.executemany(f"INSERT INTO {lookup.name} VALUES ({marks})", lookup.rows)
        return Table(connection, domain, cells or [[0] * 6][:0])

    def row(self):
        draw = self.random
        row = [
            self.one("a", "bb", "Cc", "d'd"),
            draw.randint(-2, 4),
            draw.randint(0, 8),
            self.maybe(0.5),
            self.one(-10.0, -0.5, 0.0, 9.99, 10.0, 15.0, 20.0, 59.0, -30.0, 60.0, 1e9),
            START + dt.timedelta(days=draw.randint(0, 9)),
        ]
        return [None if place != 2 and self.maybe(0.12) else v for place, v in enumerate(row)]

    def source(self):  # noqa: PLR0911 - one per kind
        """Draw FROM, and what the attributes are called there."""
        self.columns = {name: name for name in TYPES}
        kind = self.random.randrange(9)
        if kind < 2:
            return "", "t"
        if kind == 2:
            self.columns = {name: f"q.{name}" for name in TYPES}
            return "", self.one("t AS q", "t q", "main.t q")
        inner = f"SELECT * FROM t WHERE {self.condition()}"
        if kind == 3:
            return "", f"({inner}) AS q"
        if kind == 4:
            return f"WITH q AS ({inner}) ", "q"
        if kind == 5:
            items = ", ".join(f"{name} AS {name}_1" for name in TYPES)
            self.columns = {name: f"{name}_1" for name in TYPES}
            return f"WITH p AS ({inner}), q AS (SELECT {items} FROM p) ", "q"
        if kind == 6:
            return "", f"t {self.one('', 'LEFT')} JOIN names USING (s)"
        if kind == 7:
            self.columns["k"] = "t.k"
            return "", f"t {self.one('', 'LEFT')} JOIN halves ON t.k = halves.k"
        swapped = "SELECT s, k // 2 AS k, w, flag, x, d FROM t"
        return f"WITH q AS ({swapped}) ", self.one("q", "(SELECT * FROM q) AS r")

    def atom(self):
        """Draw a condition that cells mostly answer."""
        c = self.columns
        s, k, w, flag, x, d = (c[name] for name in TYPES)
        return self.one(
            f"{s} = '{self.one('a', 'bb')}'",
            f"{s} IN ('a', 'Cc')",
            f"{s} NOT LIKE '{self.one('a%', '%c', '_')}'",
            f"LENGTH({s}) = 2",
            f"{s} IS {self.one('', 'NOT ')}NULL",
            f"{k} {self.one('<', '<=', '=', '<>', '>=')} {self.random.randint(-2, 4)}",
            f"{k} % 2 = 0",
            f"ABS({k}) > 1",
            f"{k} BETWEEN {self.random.randint(-2, 1)} AND 2",
            f"{w} {self.one('<', '>=')} {self.one(3, 6)}",
            f"{w} // 3 = 1",
            f"{flag}",
            f"{flag} IS NOT TRUE",
            f"COALESCE({flag}, {self.one('TRUE', 'FALSE')})",
            f"{x} {self.one('<', '>=')} {self.one(0, 10, 20)}",
            f"FLOOR({x} / 10) {self.one('<', '>=')} {self.one(0, 1, 2)}",
            f"{x} / 10 >= 1",
            f"{x} - 10 < 0",
            f"{x} IS NULL",
            f"COALESCE({x}, 10) >= 10",
            f"{d} < DATE '2024-02-{self.random.randint(1, 5):02}'",
            f"MONTH({d}) = 2",
            f"STRFTIME({d}, '%m-%d') > '02-01'",
            f"{d} + INTERVAL 2 DAY >= DATE '2024-02-03'",
            f"CASE WHEN {k} > 0 THEN {flag} ELSE {s} = 'a' END",
            f"({s}, {k}) IN (('a', 1), ('bb', 2))",
            f"{k} IS DISTINCT FROM {self.random.randint(0, 2)}",
            f"{s} IN (SELECT s FROM names WHERE name LIKE 'a%')",
        )

    def condition(self, depth=2):
        if depth == 0 or self.maybe(0.4):
            return self.atom()
        if self.maybe(0.25):
            return f"NOT ({self.condition(depth - 1)})"
        word = f" {self.one('AND', 'OR')} "
        return f"({word.join(self.condition(depth - 1) for _ in range(2))})"

    def aggregate(self):
        c = self.columns
        s, k, w, flag, x, _ = (c[name] for name in TYPES)
        when = self.condition(1)
        return self.one(
            *["COUNT(*)"] * 4,
            f"COUNT({self.one(s, k, x)})",
            f"SUM({k})",
            f"SUM({k} * 2 + 1)",
            f"SUM(CASE WHEN {when} THEN {k} ELSE 1 END)",
            f"COUNT(CASE WHEN {when} THEN 1 END)",
            f"COUNT(*) FILTER (WHERE {when})",
            f"COUNT_IF({when})",
            f"SUM({flag}::INT)",
            f"COUNT(*) - 2 * COUNT({s})",
            f"0.5 * (COUNT(*) + SUM(IF({when}, 1, 0)))",
            f"SUM({w} // 3) / 4",
            f"AVG({k})",
            f"COUNT(*) FILTER (WHERE {when}) / COUNT(*)",
            f"100.0 * SUM({k}) / COUNT({k})",
        )

    def key(self, number):
        """Draw a column of groups: the item of SELECT, and how GROUP BY calls it."""
        c = self.columns
        s, k, w, flag, x, d = (c[name] for name in TYPES)
        name = f"g{number}"
        text = self.one(
            *(s, k, flag, d),
            *(f"{k} % 2", f"{k} > 1", f"UPPER({s})", f"COALESCE({s}, 'none')", f"{s} IS NULL"),
            *(f"{w} // 3", f"FLOOR({x} / 20)", f"{x} >= 10", f"MONTH({d})", f"DAYNAME({d})"),
            f"CASE WHEN {k} < 0 THEN 'low' WHEN {x} < 10 THEN 'mid' END",
            f"DATE_TRUNC('month', {d})",
        )
        return f"{text} AS {name}", name

    def statement(self):
        before, source = self.source()
        keys = [self.key(number) for number in range(self.one(0, 0, 1, 1, 2))]
        names = [f"a{number}" for number in range(self.one(1, 1, 2, 3))]
        answers = [f"{self.aggregate()} AS {name}" for name in names]
        items = ", ".join([*(item for item, _ in keys), *answers])
        text = f"{before}SELECT {items} FROM {source}"
        if self.maybe(0.6):
            text += f" WHERE {self.condition()}"
        if keys:
            places = ", ".join(str(number + 1) for number in range(len(keys)))
            text += f" GROUP BY {self.one('ALL', places, ', '.join(name for _, name in keys))}"
            text += self.ending(names, [name for _, name in keys])
        return text

    def ending(self, names, keys):
        """Draw HAVING, ORDER BY and LIMIT."""
        text = ""
        if self.maybe(0.15):
            text += f" HAVING {self.one('COUNT(*)', names[0])} {self.one('>', '<=')} 5"
        if self.maybe(0.3):
            order = self.one(names[0], *keys) + self.one("", " DESC", " ASC NULLS FIRST")
            text += f" ORDER BY {order}"
            if self.maybe(0.5):
                text += f" LIMIT {self.random.randint(1, 4)}"
        return text
