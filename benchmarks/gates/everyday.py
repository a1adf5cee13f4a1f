"""Batches as people write them, planned as people plan them: ``lrm.plan(batch)`` and no more.

The golden set (`benchmarks.gates.golden`) plans these with the default noise and objective. No
setting of the search was chosen on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import lrm
from benchmarks.evidence import shaped
from benchmarks.evidence.statements import BATCHES as REPORTS
from benchmarks.evidence.statements import read
from lrm.cli.demo_table import DOMAIN, QUESTIONS
from lrm.domain.file import parse_declared, parse_domain
from lrm.queries.maps.products.batch import cross_tabs, sum_batch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.workload import Workload, families

__all__ = ["default_batches", "kind_batches", "many_statements", "rows_by_month"]

SHAPED = (
    *("yes/no 5", "people 6", "patients 22", "one-way 10x8x5x2x2", "one-way 2^12"),
    *("up to 2-way 2^4", "2-way 3x3x3", "12 one-way, 8x10", "rank 6 x 900", "ranges 8"),
)
"""Batches of `benchmarks.evidence.shaped`: one per way in which noise is shaped."""

MANY = (40, 80, 160)
"""Numbers of statements of the large batches."""


def many_statements(count: int, seed: int) -> Workload:
    """So many statements over a clinic's register: tables, rates, sums and any conditions."""
    rng = np.random.default_rng([seed, count])
    sizes = {"ward": 9, "sex": 2, "region": 12, "payer": 4, "triage": 5, "season": 4, "smoker": 2}
    attributes: list[lrm.Attribute] = [
        lrm.Categories(name, [f"{name[0]}{k}" for k in range(size)]) for name, size in sizes.items()
    ]
    attributes += [lrm.Integers("age", 0, 99), lrm.Integers("stay", 0, 44)]
    names = list(sizes)

    def condition() -> str:
        name, other = rng.choice(names, 2, replace=False)
        value, further = rng.integers(sizes[name]), rng.integers(sizes[other])
        age, stay = int(rng.integers(10, 80)), int(rng.integers(2, 30))
        equal = f"{name} = '{name[0]}{value}'"
        choices = (
            equal,
            f"age >= {age}",
            f"age BETWEEN {age} AND {age + 15} AND stay > {stay}",
            f"({equal} OR {other} = '{other[0]}{further}')",
            f"NOT ({equal} AND age > {age})",
            f"(age < {age} OR stay > {stay})",
        )
        return str(choices[rng.integers(len(choices))])

    statements = []
    for number in range(count):
        groups = ", ".join(rng.choice(names, rng.integers(0, 3), replace=False))
        answers = (
            "COUNT(*)",
            "COUNT(*)",
            f"COUNT(*) FILTER (WHERE {condition()})",
            "SUM(stay)",
            "AVG(age)",
            f"AVG(CASE WHEN {condition()} THEN 1.0 ELSE 0 END)",
        )
        answer = answers[rng.integers(len(answers))]
        where = f" WHERE {condition()}" if rng.random() < 0.5 else ""
        by = f" GROUP BY {groups}" if groups else ""
        columns = f"{groups}, {answer}" if groups else answer
        statements.append(f"SELECT {columns} AS a{number} FROM register{where}{by}")  # noqa: S608 - no value of a caller
    return lrm.sql(";\n".join(statements), lrm.Domain(attributes, "register"))


def default_batches() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Names and batches of the default call."""
    yield "default readme", lambda: lrm.sql(QUESTIONS, parse_domain(DOMAIN))
    for report in (*REPORTS, "hospital-conditions"):
        yield f"default {report}", partial(read, report)
    for name in SHAPED:
        yield f"default shaped {name}", partial(_shaped, name)
    for count in MANY:
        yield f"default {count} statements", partial(many_statements, count, 1)


def _shaped(name: str) -> Workload:
    return _workload(shaped.BATCHES[name][0]())


def _workload(batch: shaped.Floats | Workload) -> Workload:
    return batch if isinstance(batch, Workload) else Workload(batch)


VISITS = (
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;"
    "SELECT days, COUNT(*) AS n FROM visits GROUP BY days"
)


UNITS = (
    lrm.PrivacyUnit(),
    lrm.PrivacyUnit(None, 1, "substitute"),
    lrm.PrivacyUnit("person", 3),
    lrm.PrivacyUnit("person", 2, "substitute"),
)
"""Whom a guarantee may protect."""


def _visits(unit: lrm.PrivacyUnit) -> Workload:
    attributes = [lrm.Categories("ward", ["a", "b"]), lrm.Integers("days", 0, 3)]
    return lrm.sql(VISITS, lrm.Domain(attributes, "visits", unit=unit))


def _ages(unit: lrm.PrivacyUnit) -> Workload:
    domain = lrm.Domain([lrm.Integers("age", 0, 5)], "visits", unit=unit)
    text = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age; SELECT COUNT(*) FROM visits"
    return lrm.sql(text, domain)


def _fares() -> Workload:
    fare = lrm.Numbers("fare", [0, 10, 50, 200])
    domain = lrm.Domain([lrm.Categories("zone", ["n", "e", "s"]), fare], "trips")
    return lrm.sql("SELECT zone, COUNT(*) AS n, AVG(fare) AS m FROM trips GROUP BY zone", domain)


def _running_totals() -> Workload:
    """Running totals over two attributes together: residuals are mixed with Gaussian noise."""
    terms = [
        [(1, [np.eye(4)[[x]], [3 * x + np.arange(3) <= c], "total"]) for x in range(c // 3 + 1)]
        for c in range(12)
    ]
    return Workload(ProductMap(sum_batch([4, 3, 10**5], terms)))


def _compared_attributes() -> Workload:
    """Conditions on two attributes together, beside tables: combinations are in classes."""
    domain = lrm.Domain(
        [lrm.Integers("arrival", 0, 23), lrm.Integers("departure", 0, 23), *_flags(9)], "stays"
    )
    return lrm.sql(
        "SELECT COUNT(*) AS late FROM stays WHERE arrival > departure;"
        "SELECT f0, COUNT(*) AS n FROM stays WHERE departure - arrival > 5 GROUP BY f0;"
        "SELECT f1, f2, COUNT(*) AS n FROM stays GROUP BY f1, f2;"
        "SELECT arrival, COUNT(*) AS n FROM stays GROUP BY arrival",
        domain,
    )


def _flags_and_averages() -> Workload:
    """Yes/no counts, whose group has a body of its own, beside an average and a condition."""
    others = [lrm.Integers("region", 0, 4), lrm.Integers("age", 0, 99)]
    domain = lrm.Domain([*_flags(4), *others], "people")
    statements = [
        f"SELECT f{i}, COUNT(*) AS y{i} FROM people GROUP BY f{i}"  # noqa: S608 - names above
        for i in range(4)
    ]
    statements.append("SELECT region, AVG(age) AS mean_age FROM people GROUP BY region")
    statements.append("SELECT COUNT(*) AS old FROM people WHERE age >= 65")
    return lrm.sql(";".join(statements), domain)


def _flags(count: int) -> list[lrm.Categories]:
    return [lrm.Categories(f"f{k}", ["no", "yes"]) for k in range(count)]


def _counted_flags(count: int, unit: lrm.PrivacyUnit) -> Workload:
    domain = lrm.Domain(_flags(count), "persons", unit=unit)
    text = ";".join(
        f"SELECT COUNT(*) AS n{k} FROM persons WHERE f{k} = 'yes'"  # noqa: S608 - numbers alone
        for k in range(count)
    )
    return lrm.sql(text, domain)


def _long_prefixes() -> Workload:
    return families.products([4096, 5], [["prefix", "identity"], ["total", "identity"]])


def rows_by_month(wards: int, ages: int) -> Workload:
    """Events of persons, of whom each has one per month at most."""
    unit = lrm.PrivacyUnit("person", 6, by=lrm.GroupLimit("month", 1))
    attributes = [
        lrm.Integers("month", 1, 12),
        lrm.Categories("ward", [f"w{k}" for k in range(wards)]),
        lrm.Integers("age", 0, ages - 1),
    ]
    return lrm.sql(
        "SELECT month, COUNT(*) AS n FROM events GROUP BY month;"
        "SELECT month, ward, COUNT(*) AS m FROM events GROUP BY month, ward",
        lrm.Domain(attributes, "events", unit=unit),
    )


PEOPLE = """\
lrm-domain: 2
people: shop
tables:
  - name: customers
    person: id
    rows: one
    attributes:
      - {name: region, kind: categories, values: [n, e, s], null: drop, outside: drop}
  - name: orders
    person: customer
    rows: {most: 4}
    attributes:
      - {name: paid, kind: categories, values: [cash, card], null: drop, outside: drop}
"""


def _levels() -> Workload:
    """A statement about persons, and one about the rows that they have."""
    text = (
        "SELECT region, COUNT(*) AS customers FROM customers GROUP BY region;"
        "SELECT paid, COUNT(*) AS orders FROM orders GROUP BY paid"
    )
    return lrm.sql(text, parse_declared(PEOPLE))


def _judged(first: str) -> Workload:
    """Statements of which the first says what it needs, and the last is a median."""
    attributes = [lrm.Categories("ward", ["a", "b"]), lrm.Integers("days", 0, 7)]
    statements = [*VISITS.split(";"), "SELECT MEDIAN(days) AS middle FROM visits"]
    text = f"-- {first}\n" + ";\n".join(statements)
    return lrm.sql(text, lrm.Domain(attributes, "visits"))


def _multiples() -> Workload:
    """Queries in which cells count for multiples of each other, with either sign."""
    return _workload(np.array([[1.0, 2, -3, 0, 1], [2, 4, -6, 5, 0]]))


def kind_batches() -> Iterator[tuple[str, Callable[[], Workload], dict[str, Any]]]:
    """Names, batches and options whose plans have kinds of measurement that others have not."""
    pure: dict[str, Any] = {"noise": "pure"}
    laplace: dict[str, Any] = {"noise": "laplace"}
    gaussian: dict[str, Any] = {"noise": "gaussian"}
    replaced = UNITS[1]
    yield "kind flags of replaced rows", lambda: _counted_flags(9, replaced), pure
    yield "kind few counts", lambda: _workload(shaped.people(6)), pure
    yield "kind one-way tables", lambda: _workload(shaped.one_way(5, 4, 3, 2)), pure
    shared = [(0, 1), (0, 2), (0, 3)]
    yield "kind shared tables", lambda: shaped.table_products([3, 6, 6, 6], shared), pure
    yield "kind groups of tables", partial(_shaped, "12 one-way, 8x10"), pure
    yield "kind flags beside averages", _flags_and_averages, pure
    yield "kind hull by parts", lambda: _workload(shaped.tables([3, 2, 2, 2], [0, 1, 2])), pure
    yield "kind replaced rows", lambda: _ages(replaced), pure
    for unit in UNITS:
        for noise in (pure, laplace, gaussian):
            name = f"kind {noise['noise']}, {unit.protected} {unit.change}"
            yield name.replace("(column 'person') ", ""), partial(_visits, unit), noise
    yield "kind numbers by knots", _fares, pure
    yield "kind numbers by knots, gaussian", _fares, gaussian
    yield "kind running totals", _running_totals, gaussian
    yield "kind compared attributes", _compared_attributes, laplace
    yield "kind compared attributes, gaussian", _compared_attributes, gaussian
    yield "kind long prefixes", _long_prefixes, gaussian
    folded = ProductMap(cross_tabs([2] * 24, [2]))
    yield "kind folded tables", lambda: Workload(folded), laplace
    yield "kind rows by month, gaussian", lambda: rows_by_month(20, 90), gaussian
    yield "kind levels", _levels, pure
    yield "kind levels, gaussian", _levels, gaussian
    yield "kind importances", lambda: _judged("importance: 4"), pure
    yield "kind worst statement", lambda: _judged("importance: 4"), {**pure, "objective": "worst"}
    yield "kind tolerances", lambda: _judged("within: 20"), {**pure, "meet": 0.95}
    yield "kind multiples", _multiples, laplace
