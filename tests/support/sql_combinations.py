# ruff: noqa: E501 - statements as analysts write them
"""Random statements that combine what analysts combine, and the rows that they display.

No group of the table is empty, so that a statement displays exactly DuckDB's rows: names of
columns, ROLLUP, windows, LIMIT, lookups, NULL, bins, dates, times and importances meet each other.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import sqlglot
from sqlglot import exp

from lrm.domain import Bins, Categories, Dates, Domain, Integers, Lookup
from lrm.planning.derived import Noisy, derived_values
from lrm.queries.sql import sql
from lrm.releases.frames import displayed_rows
from sql_answers import Table, text_of

DOMAIN = Domain(
    [
        Categories("g", ["a", "b", "c"], null="cell"),
        Integers("n", 0, 2, null="cell"),
        Categories("k", ["p", "q", "r"]),
        Bins("x", [0, 10, 20, 40, 60], null="cell"),
        Dates("day", "2024-01-30", "2024-02-02"),
        Dates("ts", "2024-03-01", "2024-03-01", "hour"),
        Categories("flag", [True, False], null="cell"),
    ],
    "t",
    lookups=[
        Lookup(
            "places",
            "k",
            ["name", "area", "pop"],
            [["p", "Pine", "hills", 40], ["q", "Quay", "coast", 90], ["r", "Rock", "coast", 10]],
        ),
        Lookup("kinds", "g", ["kind", "rate"], [["a", "old", 2], ["b", "new", 3]]),
    ],
)
"""The bins have the values of their representatives alone, so that their sums are exact."""

MIDDLES = (5.0, 15.0, 30.0, 50.0)


def table(seed=0):
    """A table in DuckDB in which every combination of declared values is there."""
    draw = np.random.default_rng(seed)
    days = [dt.datetime(2024, 1, 30) + dt.timedelta(days=k) for k in range(4)]  # noqa: DTZ001
    times = [dt.datetime(2024, 3, 1) + dt.timedelta(hours=k) for k in range(24)]  # noqa: DTZ001
    values = [
        ["a", "b", "c", None],
        [0, 1, 2, None],
        ["p", "q", "r"],
        [*MIDDLES, None],
        days,
        times,
        [True, False, None],
    ]
    factors = [draw.uniform(0.2, 1.6, len(some)) for some in values]
    means = factors[0]
    for some in factors[1:]:
        means = np.multiply.outer(means, some)
    counts = 1 + draw.poisson(means)
    cells = np.array(list(np.ndindex(counts.shape)))
    cells = np.repeat(cells, counts.ravel(), axis=0)
    frame = pd.DataFrame(
        {
            name: pd.Series(np.array(some, dtype=object)[cells[:, place]])
            for place, (name, some) in enumerate(zip(DOMAIN.names, values, strict=True))
        }
    )
    frame = frame.astype({"n": "Int64", "flag": "boolean", "x": "Float64"})
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("frame", frame)
    columns = "g, n, k, x, CAST(day AS DATE) AS day, CAST(ts AS TIMESTAMP) AS ts, flag"
    connection.execute(f"CREATE TABLE t AS SELECT {columns} FROM frame")
    for lookup in DOMAIN.lookups:
        rows = pd.DataFrame(list(lookup.rows), columns=[lookup.key_column, *lookup.columns])
        connection.register("rows_of_lookup", rows)
        connection.execute(f"CREATE TABLE {lookup.name} AS SELECT * FROM rows_of_lookup")
    return Table(connection, DOMAIN, cells)


# what a statement displays


def displayed(truth, statement):
    """The names of the columns of a statement, and its rows, where there is no noise."""
    batch = sql(statement, truth.domain)
    linear = truth.answers(batch)
    noisy = Noisy(lambda start, stop: linear[start:stop], None)
    parts = [linear[start:stop] for start, stop in batch.labels.shown_ranges()]
    parts += [np.asarray(derived_values(one, 0, one.label.count, noisy)) for one in batch.derived]
    shown = np.array([float(f"{one:.13g}") for one in np.concatenate(parts)])  # equal averages are
    plan = SimpleNamespace(workload=batch, levels_of=lambda _: [])
    release = SimpleNamespace(plan=plan, levels=[], shown_answers=lambda i, j: shown[i:j])
    (entry,) = batch.tables
    rows = displayed_rows(release, entry)
    frame = rows.frame
    numbers = np.append(shown, math.nan)[frame.positions]
    if rows.computed is not None:
        every = np.append(shown, math.nan)[rows.computed.every.positions]
        for place, column in rows.computed.numbers(every).items():
            numbers[:, place] = column
    texts = set() if entry.display is None else batch.display[entry.display].texts
    places = [place for place, name in enumerate(frame.answers) if name not in texts]
    names = [column.name for column in frame.columns]
    names += [frame.answers[place].rpartition(".")[2] for place in places]
    lines = [
        (
            *(
                None if code < 0 else _value(column.labels[code])
                for column, code in zip(frame.columns, codes, strict=True)
            ),
            *(None if math.isnan(row[place]) else row[place] for place in places),
        )
        for codes, row in zip(frame.codes.tolist(), numbers.tolist(), strict=True)
    ]
    return names, lines


def _value(label):
    """What a label says in SQL: a bin has one value here."""
    bins = DOMAIN.attribute("x").labels
    if label in bins[: len(MIDDLES)]:
        return str(MIDDLES[bins.index(label)])
    return None if label == "(null)" else label


def in_duckdb(truth, statement):
    """The same of DuckDB: groups as labels, answers as numbers; a sum over no rows is 0 in lrm."""
    tree = sqlglot.parse_one(statement, read="duckdb")
    for node in list(tree.find_all(exp.Sum)):
        whole = node.parent if isinstance(node.parent, exp.Filter) else node
        if not isinstance(whole.parent, exp.Window):
            whole.replace(exp.Coalesce(this=whole.copy(), expressions=[exp.Literal.number(0)]))
    found = truth.connection.execute(tree.sql(dialect="duckdb"))
    names = [column[0] for column in found.description]
    return names, [tuple(map(_plain, row)) for row in found.fetchall()]


def _plain(value):
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else text_of(value)


def difference(truth, statement, *, ordered):
    """What differs between the rows that are displayed and DuckDB's; empty where nothing does."""
    ours, our_rows = displayed(truth, statement)
    theirs, their_rows = in_duckdb(truth, statement)
    if sorted(ours) != sorted(theirs):
        return f"columns {ours}, not {theirs}"
    places = [ours.index(name) for name in theirs]
    our_rows = [tuple(row[place] for place in places) for row in our_rows]
    if len(our_rows) != len(their_rows):
        return f"{len(our_rows)} rows, not {len(their_rows)}"
    if not ordered:
        our_rows, their_rows = (sorted(some, key=_key) for some in (our_rows, their_rows))
    for one, two in zip(our_rows, their_rows, strict=True):
        if not all(map(_same, one, two)):
            return f"{one}, not {two}"
    return ""


def _key(row):
    return [(value is None, _rounded(value)) for value in row]


def _rounded(value):
    try:
        return f"{float(value):.6f}"
    except (TypeError, ValueError):
        return str(value)


def _same(one, two):
    if one is None or two is None or isinstance(one, str):
        return one == two
    return math.isclose(one, float(two), rel_tol=1e-9, abs_tol=1e-9)


# statements


class Combinations:
    """Draws statements, from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311 - not a secret
        self.prefix, self.source, self.joined = "", "t", frozenset()

    def one(self, *choices):
        return self.random.choice(choices)

    def maybe(self, chance):
        return self.random.random() < chance

    def case(self):
        """A statement, and whether its rows have an order."""
        text, ordered = self._wrapped() if self.maybe(0.25) else self.select()
        if self.maybe(0.2):
            text = f"-- importance: {self.one(2, 5, '0.5')}\n{text}"
        return text, ordered

    # FROM

    def _from(self):
        where, kind = "", self.random.random()
        self.prefix, self.joined = "", frozenset()
        if kind < 0.45:
            self.source = "t"
        elif kind < 0.6:
            self.prefix, self.source = "s.", self.one("t s", "t AS s", "main.t AS s")
        elif kind < 0.8:
            inner = f"SELECT * FROM t{self._where(0.7)}"
            self.source = f"({inner}) s"
        else:
            inner = f"SELECT * FROM t{self._where(0.7)}"
            where, self.source = f"WITH s AS ({inner}) ", "s"
        joins = []
        alias = self.source.rpartition(" ")[2] if " " in self.source else self.source
        if self.maybe(0.3):
            joins.append((f" JOIN places p ON p.k = {alias}.k", "p"))
        if self.maybe(0.1):
            joins.append((f" LEFT JOIN {SAID} ON {alias}.n = z.n", "z"))
        if self.maybe(0.2):
            more = self.one("", "", " AND q.rate > 2")
            joins.append((f" LEFT JOIN kinds q ON {alias}.g = q.g{more}", "q"))
        elif self.maybe(0.1):
            joins.append((f" JOIN kinds q ON {alias}.g = q.g", "q"))
        if joins:
            self.prefix = f"{alias}."
            self.source += "".join(text for text, _ in joins)
            self.joined = frozenset(name for _, name in joins)
        return where

    def _where(self, chance):
        return f" WHERE {self.condition()}" if self.maybe(chance) else ""

    def condition(self, depth=1):
        if depth and self.maybe(0.3):
            word = self.one(" AND ", " OR ")
            return f"({self.condition(0)}{word}{self.condition(0)})"
        p = self.prefix
        choices = [
            f"{p}g = 'a'",
            f"{p}g IN ('a', 'b')",
            f"{p}g IS NOT NULL",
            f"{p}n >= {self.one(1, 2)}",
            f"{p}n BETWEEN 1 AND 2",
            f"{p}x < {self.one(10, 20)}",
            f"{p}x >= 10 AND {p}x < 40",
            f"{p}x IS NOT NULL",
            f"{p}day {self.one('<', '>=')} DATE '2024-02-01'",
            f"MONTH({p}day) = 2",
            f"HOUR({p}ts) {self.one('>=', '<')} 9",
            f"{p}ts >= TIMESTAMP '2024-03-01 16:00:00'",
            f"{p}flag",
            f"{p}flag IS NOT TRUE",
            f"COALESCE({p}flag, FALSE)",
            f"{p}k <> 'q'",
            f"{p}k IN (SELECT k FROM places WHERE pop > 20)",
            f"{p}k IN (SELECT k FROM places ORDER BY pop LIMIT 2)",
        ]
        if "z" in self.joined:
            choices += ["z.often > 3", "z.said IS NULL"]
        if "p" in self.joined:
            choices += ["p.area = 'coast'", "p.pop >= 40"]
        if "q" in self.joined:
            choices += ["q.kind = 'old'", "q.kind IS NULL"]
        return self.one(*choices)

    # the columns of SELECT

    def _group(self):
        """An expression to group by, and whether it is a text that is never NULL."""
        p = self.prefix
        plain = [(f"{p}{name}", name == "k") for name in ("g", "k", "n", "flag", "day", "x")]
        computed = [
            (f"COALESCE({p}g, 'none')", True),
            (f"UPPER({p}k)", True),
            (f"CASE WHEN {p}n < 2 THEN 'few' ELSE 'many' END", True),
            (f"CASE WHEN {p}x < 20 THEN 'low' WHEN {p}x >= 20 THEN 'high' END", False),
            (f"({p}n >= 2)", False),
            (f"{p}n // 2", False),
            (f"({p}x >= 10)", False),
            (f"FLOOR({p}x / 20)", False),
            (f"({p}g IS NULL)", False),
            (f"MONTH({p}day)", False),
            (f"DATE_TRUNC('month', {p}day)", False),
            (f"STRFTIME({p}day, '%Y-%m')", True),
            (f"DAYNAME({p}day)", True),
            (f"ISODOW({p}day)", False),
            (f"HOUR({p}ts)", False),
            (f"CAST({p}ts AS DATE)", False),
            (f"DATE_TRUNC('hour', {p}ts)", False),
            (f"CASE WHEN HOUR({p}ts) < 6 THEN 'night' ELSE 'day' END", True),
        ]
        if "p" in self.joined:
            plain += [("p.name", True), ("p.area", True), ("p.pop", False)]
        if "z" in self.joined:
            plain += [("z.said", False), ("z.often", False)]
        if "q" in self.joined:
            plain += [("q.kind", False), ("q.rate", False)]
            computed += [("COALESCE(q.kind, 'none')", True)]
        return self.one(*(plain if self.maybe(0.6) else computed))

    def answer(self):
        """An answer without a window; sums and counts alone are added up."""
        p, when = self.prefix, self.condition()
        linear = [
            *["COUNT(*)"] * 3,
            f"COUNT({p}{self.one('n', 'g', 'x')})",
            f"SUM({p}n)",
            f"SUM({p}x)",
            f"SUM({p}n * 2 + 1)",
            f"SUM({p}x * {p}n)",
            f"SUM(CASE WHEN {when} THEN 1 ELSE 0 END)",
            f"SUM(CASE WHEN {when} THEN {p}x ELSE 0 END)",
            f"COUNT(*) FILTER (WHERE {when})",
            f"COUNT(*) - COUNT({p}g)",
        ]
        if "p" in self.joined:
            linear.append("SUM(p.pop)")
        ratios = [
            f"AVG({p}{self.one('n', 'x')})",
            f"100.0 * COUNT(*) FILTER (WHERE {when}) / COUNT(*)",
            f"AVG(CASE WHEN {when} THEN 1.0 ELSE 0 END)",
            f"SUM({p}n) / NULLIF(COUNT({p}n), 0)",
            f"SUM({p}x * {p}n) / NULLIF(SUM({p}n), 0)",
            f"VARIANCE({p}n)",
            "COUNT(*) * 1.0 / (SELECT COUNT(*) FROM t)",
        ]
        return (self.one(*linear), True) if self.maybe(0.65) else (self.one(*ratios), False)

    def _window(self, groups, answer, *, linear, rolled):
        """A window over the groups, of an answer; sums are not taken beside several sets."""
        by = self.one(*groups)
        rest = [name for name in groups if name != by]
        ordered = "" if rolled else ", " + ", ".join(groups)
        choices = [*DISPLAYED, *([] if rolled else [*NUMBERED, *MOVED])]
        choices += ADDED if linear and not rolled else []
        return self.one(*choices).format(
            a=f"({answer})" if " - " in answer else answer,
            by=by,
            some=f"PARTITION BY {by} " if rest and self.maybe(0.5) else "",
            apart=f"PARTITION BY {', '.join(rest)} " if rest else "",
            every=", ".join(groups),
            ties=ordered,
            down=self.one("", " DESC"),
            before=self.one("1", "2", "UNBOUNDED"),
        )

    def select(self):
        """One SELECT with groups, windows, HAVING, ORDER BY and LIMIT."""
        before = self._from()
        drawn = dict(self._group() for _ in range(self.one(0, 1, 1, 1, 2, 2, 3)))
        texts, rolled = list(drawn), bool(drawn) and self.maybe(0.25)
        groups = {f"c{place}": text for place, text in enumerate(texts)}
        pairs = [self.answer() for _ in range(self.one(1, 1, 2))]
        first, linear = pairs[0]
        items = dict(groups)
        if rolled:
            grouping = self._rolled(drawn, items)
        else:
            places = ", ".join(str(place + 1) for place in range(len(groups)))
            grouping = self.one(places, ", ".join(texts))
        keys = list(items)
        items |= {f"a{place}": text for place, (text, _) in enumerate(pairs)}
        if groups and self.maybe(0.4):
            items["w"] = self._window(texts, first, linear=linear, rolled=rolled)
        elif groups and not rolled and self.maybe(0.2):
            grouping = "ALL"
        listed = ", ".join(f"{text} AS {name}" for name, text in items.items())
        text = f"{before}SELECT {listed} FROM {self.source}{self._where(0.4)}"
        text += f" GROUP BY {grouping}" if groups else ""
        if groups and self.maybe(0.15):
            bound = self.one("700.5", "700.5", f"(SELECT COUNT(*) / {self.one(5, 20)}.1 FROM t)")
            text += f" HAVING {self.one(first, 'COUNT(*)')} {self.one('>', '<=')} {bound}"
        if groups and not rolled and grouping != "ALL" and self.maybe(0.1):
            rank = f"ROW_NUMBER() OVER (ORDER BY {first} DESC, {', '.join(texts)})"
            text += f" QUALIFY {rank} <= {self.one(1, 3)}"
        return self._ended(text, items, keys, rolled=rolled)

    def _rolled(self, drawn, items):
        """Several grouping sets, perhaps with columns that tell totals from groups."""
        texts = list(drawn)
        listed, kind = ", ".join(texts), self.random.random()
        if self.maybe(0.3):
            items["level"] = f"GROUPING({self.one(*texts)})"
        labelled = [name for name, text in items.items() if drawn.get(text)]
        if labelled and self.maybe(0.4):
            name = self.one(*labelled)
            text = items[name]
            case = f"CASE WHEN GROUPING({text}) = 1 THEN 'Total' ELSE {text} END"
            items[name] = self.one(f"COALESCE({text}, 'Total')", case)
        if len(texts) > 1 and kind < 0.25:
            return f"{texts[0]}, ROLLUP ({', '.join(texts[1:])})"
        if len(texts) > 1 and kind < 0.5:
            return f"GROUPING SETS (({listed}), ({texts[0]}), ())"
        return f"{self.one('ROLLUP', 'ROLLUP', 'CUBE')} ({listed})"

    def _ended(self, text, items, keys, *, rolled):
        """ORDER BY that leaves no two rows equal, and LIMIT."""
        if not keys or self.maybe(0.5):
            return text, False
        name = self.one(*items)
        first = name
        if not rolled and "ALL" not in text and name in keys and self.maybe(0.3):
            first = self.one(items[name], f"{items[name]} IS NULL")
        first += self.one("", " DESC", " NULLS FIRST")
        text += f" ORDER BY {', '.join([first, *(other for other in keys if other != name)])}"
        text += f", {name}" if name in keys and first.partition(" ")[0] != name else ""
        if rolled:  # NULL may be a group and a total
            return text, False
        if self.maybe(0.5):
            text += f" LIMIT {self.random.randint(1, 5)}" + self.one("", "", " OFFSET 1")
        return text, True

    # statements over answers

    def _wrapped(self):
        """A statement over the answers of a sub-select, or several SELECTs below each other."""
        before = self._from()
        source = self.source + self._where(0.3)
        (one, _), (two, _) = self._group(), self._group()
        while two == one:
            two, _ = self._group()
        answer, linear = self.answer()
        parts = {"one": one, "two": two, "a": answer, "source": source, "before": before}
        inner = "SELECT {one} AS c0, {two} AS c1, {a} AS a FROM {source} GROUP BY 1, 2"
        single = "SELECT {one} AS c0, {a} AS a FROM {source} GROUP BY 1"
        parts |= {"inner": inner.format(**parts), "single": single.format(**parts)}
        parts |= {
            "down": self.one("", " DESC"),
            "k": f"{self.prefix}k",
            "n": f"{self.prefix}n",
            "with": before.rstrip() + ", " if before else "WITH ",
        }
        choices = [*OVER_ANSWERS, *(OVER_SUMS if linear else [])]
        choices += [] if "WHERE" in before + source else SIDE_BY_SIDE  # both sides have all groups
        return self.one(*choices).format(**parts), False


SAID = "(VALUES (0, 'never', 1), (2, 'often', 5)) AS z (n, said, often)"
"""A table that a statement writes out."""

DISPLAYED = [
    "CASE WHEN {a} > 9.5 THEN 'big' ELSE 'small' END",
    "CASE WHEN {a} > 500.5 THEN 'big' WHEN {a} > 90.5 THEN 'middle' END",
    "{a} > 300.5",
    "RANK() OVER ({some}ORDER BY {a} DESC)",
    "DENSE_RANK() OVER (ORDER BY {a})",
    "MAX({a}) OVER ({some})",
    "STDDEV_POP({a}) OVER ({some})",
    "{a} * 1.0 / MAX({a}) OVER ({some})",
]
"""Columns that are computed from what is displayed."""

NUMBERED = [
    "ROW_NUMBER() OVER ({some}ORDER BY {a}{down}{ties})",
    "NTILE(3) OVER ({some}ORDER BY {a}{ties})",
    "FIRST_VALUE({by}) OVER ({some}ORDER BY {a}{down}{ties})",
    "LAST_VALUE({a}) OVER ({some}ORDER BY {a}{down}{ties})",
    "CASE WHEN ROW_NUMBER() OVER (ORDER BY {a} DESC{ties}) <= 2 THEN 'top' ELSE 'rest' END",
]
"""The same, which would have no order beside several sets: NULL may be a group and a total."""

MOVED = [
    "LAG({a}) OVER ({apart}ORDER BY {by}{down})",
    "LAG({a}, 2) OVER (ORDER BY {every})",
    "{a} - LEAD({a}) OVER ({apart}ORDER BY {by}{down})",
    "FIRST_VALUE({a}) OVER ({apart}ORDER BY {by}{down})",
]
"""Answers of other groups."""

ADDED = [
    "SUM({a}) OVER ({some})",
    "100.0 * {a} / SUM({a}) OVER ({some})",
    "SUM({a}) OVER ({apart}ORDER BY {by}{down})",
    "SUM({a}) OVER ({apart}ORDER BY {by} ROWS BETWEEN {before} PRECEDING AND CURRENT ROW)",
    "SUM({a}) OVER (ORDER BY {a} DESC{ties})",
    "SUM({a}) OVER (ORDER BY {every})",
    "{a} - AVG({a}) OVER ({some})",
    "AVG({a}) OVER ({apart}ORDER BY {by} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
]
"""Sums of answers over groups."""

OVER_ANSWERS = [
    "{before}SELECT c0, c1, a, a * 2 AS b FROM ({inner}) i WHERE a > 100.5",
    (
        "{before}SELECT * FROM (SELECT {one} AS c0, {two} AS c1, {a} AS a, ROW_NUMBER() OVER (PARTITION "
        "BY {one} ORDER BY {a}{down}, {two}) AS r FROM {source} GROUP BY 1, 2) i WHERE r <= 2"
    ),
    "{before}SELECT c0, MAX(a) AS m, MIN(a) AS l FROM ({inner}) i GROUP BY c0",
    "{before}SELECT MAX(a) AS m FROM ({single}) i",
    "{before}SELECT c0, AVG(a) AS m, STDDEV_POP(a) AS l FROM ({inner}) i GROUP BY c0",
    "{before}SELECT c0, c1, a - AVG(a) OVER (PARTITION BY c0) AS b FROM ({inner}) i",
    (
        "{with}b (c0, a) AS ({single}), p AS (SELECT 100.5 AS least) SELECT c0, a FROM b, p WHERE a > least"
    ),
    "{before}SELECT c0, a, CASE WHEN a > 400.5 THEN 'big' ELSE 'small' END AS b FROM ({single}) i",
    "{before}SELECT c0, c1, a, a * 1.0 / MAX(a) OVER (PARTITION BY c0) AS b FROM ({inner}) i",
    "{before}SELECT c0, a, LAG(a) OVER (ORDER BY c0) AS b FROM ({single}) i",
    (
        "{before}SELECT * FROM (SELECT c0, a, LAG(a) OVER (ORDER BY c0) AS b FROM ({single}) i) j WHERE "
        "b IS NOT NULL"
    ),
    "{before}SELECT c0, a, RANK() OVER (ORDER BY a DESC) AS b FROM ({single}) i WHERE a > 200.5",
    (
        "{with}i AS ({single}), m AS (SELECT MAX(a) AS top FROM i) SELECT i.c0, i.a, i.a * 1.0 / m.top AS "
        "b FROM i CROSS JOIN m"
    ),
    "{with}i AS ({single}) SELECT c0, a FROM i WHERE a = (SELECT MAX(a) FROM i)",
    (
        "{with}i AS ({single}), j AS (SELECT {one} AS c0, COUNT(*) AS b FROM {source} GROUP BY 1) SELECT "
        "i.c0, i.a, j.b FROM i JOIN j ON i.c0 = j.c0"
    ),
    (
        "{with}i AS ({single}), j AS (SELECT {one} AS c0, COUNT(*) AS b FROM {source} GROUP BY 1) SELECT "
        "i.c0, i.a, j.b FROM i LEFT JOIN j USING (c0)"
    ),
    (
        "{with}i AS ({inner}), j AS ({single}) SELECT i.c0, i.c1, i.a, j.a AS b FROM i JOIN j ON i.c0 = "
        "j.c0"
    ),
    (
        "{with}i AS (SELECT {one} AS c0, COUNT(*) AS a FROM {source} GROUP BY 1), j AS (SELECT c0 FROM i "
        "ORDER BY a DESC, c0 LIMIT 2) SELECT i.c0, i.a FROM i JOIN j ON i.c0 = j.c0"
    ),
]
"""Statements over the answers {inner} and {single} of a sub-select."""

SIDE_BY_SIDE = [
    (
        "{before}SELECT c1, MAX(CASE WHEN c0 = 'p' THEN a END) AS m, MIN(a) FILTER (WHERE c0 = 'q') AS l FROM "
        "(SELECT {k} AS c0, {n} AS c1, {a} AS a FROM {source} GROUP BY 1, 2) i GROUP BY c1"
    ),
    (
        "{with}i AS (SELECT {k} AS c0, {two} AS c1, {a} AS a FROM {source} GROUP BY 1, 2) SELECT v.c1, v.a "
        "AS b, w.a AS d, v.a - w.a AS e FROM i v JOIN i w ON v.c1 = w.c1 WHERE v.c0 = 'p' AND w.c0 = 'q'"
    ),
]
"""Answers of one group beside those of another."""

OVER_SUMS = [
    "{before}SELECT c0, SUM(a) AS s FROM ({inner}) i GROUP BY c0",
    (
        "{before}SELECT c0, SUM(CASE WHEN c1 IS NOT NULL THEN a ELSE 0 END) AS s FROM ({inner}) i GROUP "
        "BY c0"
    ),
    "{before}SELECT c0, SUM(a) AS s FROM ({inner}) i GROUP BY ROLLUP (c0)",
    "{before}SELECT c0, AVG(a) AS s FROM ({inner}) i GROUP BY c0",
    "{before}SELECT c0, a, SUM(a) OVER (ORDER BY a DESC, c0) AS b FROM ({single}) i",
    "{before}SELECT c0, c1, a, 100.0 * a / SUM(a) OVER (PARTITION BY c1) AS b FROM ({inner}) i",
    "{before}SELECT c0, a, a - (SELECT AVG(a) FROM ({single}) l) AS b FROM ({single}) i",
    (
        "{with}i AS ({single}), m AS (SELECT AVG(a) AS mean FROM i) SELECT c0, a FROM i CROSS JOIN m "
        "WHERE a > mean"
    ),
    (
        "{before}SELECT 'all' AS c0, {a} AS a FROM {source} UNION ALL SELECT 'some', {a} FROM {source} "
        "ORDER BY a"
    ),
    (
        "{before}SELECT COALESCE(CAST({one} AS VARCHAR), 'none') AS c0, {a} AS a FROM {source} GROUP BY 1 UNION ALL SELECT "
        "'Total', {a} FROM {source}"
    ),
]
"""The same for answers that are added up."""
