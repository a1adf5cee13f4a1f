"""Small releases of every shape, stored as files: what they show must not change by accident.

``python tests/support/stored_releases.py write`` makes the releases that have no file yet, and
states the tables of each in ``tables.json``. ``render FOLDER`` writes what every format shows of
them, as text; two such folders, of two versions, are compared with ``diff -r``.
"""

import datetime as dt
import json
import math
import sys
import tempfile
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd

import lrm
from lrm.domain import Bins, Categories, Dates, Domain, Integers, Lookup, Numbers

FOLDER = Path(__file__).parents[1] / "views" / "stored"
TABLES = FOLDER / "tables.json"

VISITS = Domain(
    [
        Dates("admitted", "1997-01-01", "1997-04-30", by="month"),
        Categories("ward", ["=north", "south, east"], null="cell"),
        Categories("urgent", [True, False]),
        Integers("age", 0, 3),
    ],
    "visits",
)
TRIPS = Domain(
    [
        Dates("day", "2024-02-27", "2024-03-02"),
        Integers("hour", 0, 3, outside="cell"),
        Bins("fare", [0, 10, 20, 40]),
        Categories("weekday", ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]),
    ],
    "trips",
)
STAYS = Domain(
    [
        Numbers("days", [0, 7, 30]),
        Categories("code", [3, 1, 2]),
        Dates("year", "2021-01-01", "2023-12-31", by="year"),
    ],
    "stays",
)
ZONES = Domain(
    [Categories("zone", ["a1", "a2", "b1"]), Integers("hour", 0, 2)],
    "trips",
    lookups=[Lookup("zones", "zone", ["region"], [["a1", "A"], ["a2", "A"], ["b1", "B"]])],
)


@dataclass(frozen=True)
class Case:
    """A batch, how it is planned, and for whom."""

    batch: object  # SQL text, or a workload
    domain: Domain | None = None
    mechanism: str = "noise-on-data"
    choices: dict = field(default_factory=dict)  # of the plan
    amounts: dict = field(default_factory=lambda: {"epsilon": "0.5"})

    @property
    def workload(self):
        """The batch as a workload."""
        return lrm.sql(self.batch, self.domain) if isinstance(self.batch, str) else self.batch

    def release(self):
        """A new release of made-up counts."""
        plan = lrm.plan(self.workload, self.mechanism, **self.choices)
        draw = np.random.default_rng(7)
        if self.domain is STAYS:  # its records are divided, so that whole counts are not enough
            rows = {
                "days": draw.integers(0, 30, 500),
                "code": draw.integers(1, 4, 500),
                "year": [dt.date(2022, 5, 1)] * 500,
            }
            return lrm.release(plan, pd.DataFrame(rows), ledger=None, **self.amounts)
        counts = draw.integers(0, 300, plan.workload.shape[1])
        return lrm.release(plan, counts, **self.amounts)


def _unit(domain, column="person", most=2, neighbours="add-remove"):
    unit = lrm.PrivacyUnit(column, most, neighbours)
    return Domain(domain.attributes, domain.table, unit=unit)


RHO = {"amounts": {"rho": "0.1"}}
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
MONTHS = """-- Visits by month
SELECT ward, YEAR(admitted) AS year, MONTH(admitted) AS month, COUNT(*) AS by_month
FROM visits GROUP BY ward, YEAR(admitted), MONTH(admitted)"""

CASES = {
    "single-number": Case("SELECT COUNT(*) FROM visits", VISITS),
    "single-numbers": Case(
        "-- Visits\nSELECT COUNT(*) AS n FROM visits; -- Urgent visits\n"
        "SELECT COUNT(*) AS urgent, SUM(age) AS ages FROM visits WHERE urgent",
        VISITS,
    ),
    "one-group": Case(BY_WARD, VISITS),
    "null-group": Case("SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY 1, 2", VISITS),
    "best-laplace": Case(BY_WARD + "; SELECT COUNT(*) AS total FROM visits", VISITS, "best"),
    "shaped": Case(
        BY_WARD + "; SELECT COUNT(*) AS total FROM visits",
        VISITS,
        "best",
        {"noise": "pure", "effort": "quick"},
    ),
    "gaussian": Case(MONTHS, VISITS, "noise-on-data", {"noise": "gaussian"}, **RHO),
    "gaussian-best": Case(
        BY_WARD + "; SELECT age, COUNT(*) AS m FROM visits GROUP BY age",
        VISITS,
        "best",
        {"noise": "gaussian", "effort": "quick"},
        {"epsilon": 1, "delta": "1e-6"},
    ),
    "on-results": Case(BY_WARD, VISITS, "noise-on-results"),
    "persons": Case(BY_WARD, _unit(VISITS)),
    "substitute": Case(BY_WARD, _unit(VISITS, "person", 1, "substitute")),
    "rollup": Case(
        "SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, urgent)", VISITS
    ),
    "cube": Case(
        "SELECT urgent, age, COUNT(*) AS n FROM visits GROUP BY CUBE (urgent, age)", VISITS
    ),
    "grouping-sets": Case(
        "SELECT ward, age, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (age))",
        VISITS,
    ),
    "limit": Case(
        "SELECT ward, age, COUNT(*) AS n FROM visits GROUP BY ward, age ORDER BY n DESC LIMIT 3",
        VISITS,
    ),
    "having": Case(
        "SELECT age, COUNT(*) AS n FROM visits GROUP BY age HAVING COUNT(*) > 1000 ORDER BY age",
        VISITS,
    ),
    "rank": Case(
        "SELECT age, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits "
        "GROUP BY age",
        VISITS,
    ),
    "year-and-month": Case(MONTHS, VISITS),
    "months": Case("SELECT admitted, COUNT(*) AS n FROM visits GROUP BY admitted", VISITS),
    "truncated-months": Case(
        "SELECT DATE_TRUNC('month', admitted) AS day, COUNT(*) AS n FROM visits GROUP BY 1", VISITS
    ),
    "days": Case("SELECT day, COUNT(*) AS n FROM trips GROUP BY day", TRIPS),
    "days-and-hours": Case("SELECT hour, day, COUNT(*) AS n FROM trips GROUP BY day, hour", TRIPS),
    "outside-cells": Case(
        "SELECT hour, COUNT(*) AS n FROM trips GROUP BY hour; "
        "SELECT hour, COUNT(*) AS early FROM trips WHERE hour < 2 GROUP BY hour",
        TRIPS,
    ),
    "bins": Case("SELECT fare, COUNT(*) AS n FROM trips GROUP BY fare", TRIPS),
    "weekdays": Case("SELECT weekday, COUNT(*) AS n FROM trips GROUP BY weekday", TRIPS),
    "average-of-bins": Case(
        "SELECT weekday, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY weekday".replace(
            "weekday", "ward"
        ),
        VISITS,
    ),
    "rates": Case(
        "SELECT ward, 100.0 * SUM(CASE WHEN urgent THEN 1 ELSE 0 END) / COUNT(*) AS share "
        "FROM visits GROUP BY ward",
        VISITS,
    ),
    "quantile": Case(
        "SELECT ward, MEDIAN(age) AS middle FROM visits GROUP BY ward; "
        "SELECT MEDIAN(age) AS overall FROM visits",
        VISITS,
    ),
    "knots": Case(
        "SELECT code, SUM(days) AS days, AVG(days) AS mean FROM stays GROUP BY code", STAYS
    ),
    "years": Case("SELECT year, COUNT(*) AS n FROM stays GROUP BY year", STAYS),
    "equal-names": Case(
        BY_WARD + "; SELECT age, COUNT(*) AS n FROM visits GROUP BY age; "
        "SELECT COUNT(*) AS n FROM visits",
        VISITS,
    ),
    "equal-columns-of-other-kinds": Case(
        "SELECT age AS x, COUNT(*) AS n FROM visits GROUP BY age; "
        "SELECT ward AS x, COUNT(*) AS m FROM visits GROUP BY ward",
        VISITS,
    ),
    "union": Case(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL "
        "SELECT 'all' AS ward, COUNT(*) AS n FROM visits",
        VISITS,
    ),
    "several-answers": Case(
        "SELECT urgent, COUNT(*) AS n, SUM(age) AS ages, AVG(age) AS mean_age FROM visits "
        "GROUP BY urgent",
        VISITS,
    ),
    "numbers-as-groups": Case(
        "SELECT CASE WHEN urgent THEN 0.5 ELSE 1.5 END AS weight, COUNT(*) AS n FROM visits "
        "GROUP BY 1",
        VISITS,
    ),
    "awkward-names": Case(
        'SELECT ward AS "answer", urgent AS "query", COUNT(*) AS "low" FROM visits GROUP BY 1, 2',
        VISITS,
    ),
    "lookup": Case(
        "SELECT z.region, COUNT(*) AS n FROM trips JOIN zones z ON trips.zone = z.zone "
        "GROUP BY z.region",
        ZONES,
    ),
    "matrix": Case(lrm.Workload([[1, 1, 1], [1, 0, 0], [0, 1, -1]])),
    "named-matrix": Case(lrm.Workload([[1, 1], [1, 0]], names=["all", "young"]), None, "best"),
    "list-of-cells": Case(lrm.families.identity(6)),
    "ranges-of-cells": Case(lrm.families.all_ranges(4)),
    "builder-ranges": Case(lrm.ranges(VISITS, "age", [(0, 2), (1, 3)])),
    "builder-prefix": Case(lrm.prefix(VISITS, "age")),
    "marginals": Case(lrm.marginals(VISITS, [0, 1, 2])),
    "products": Case(
        lrm.products(VISITS, [{"ward": "identity"}, {"urgent": [1, 0], "age": "prefix"}])
    ),
}


def stored(name):
    """The stored release of a case."""
    return lrm.load_release(FOLDER / f"{name}.lrm")


def table_facts(release):
    """The statements of a release: names, titles, labels, answers and errors to ten digits.

    The ends of intervals are left out: they follow from the law of the noise, whose computation
    may become sharper.
    """
    return [_stated(frame) for frame in release.frames()]


def _stated(frame):
    places = [k for k, name in enumerate(frame.header) if not name.endswith(("_low", "_high"))]
    return {
        "statement": frame.name,
        "title": frame.title,
        "note": frame.note,
        "columns": [frame.header[k] for k in places],
        "rows": [[_rounded(row[k]) for k in places] for row in frame.plain_rows()],
    }


def _rounded(value):
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else str(value)
    return value


def write():
    """Make the releases that have no file yet, and state the tables of all."""
    FOLDER.mkdir(exist_ok=True)
    for name, case in CASES.items():
        path = FOLDER / f"{name}.lrm"
        if not path.exists():
            case.release().save(path)
    facts = {name: table_facts(stored(name)) for name in CASES}
    lines = [f" {json.dumps(name)}: {json.dumps(fact)}" for name, fact in facts.items()]
    TABLES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def render(folder):
    """Write what every format shows of each stored release, as text."""
    for name in CASES:
        place = Path(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        _render(name, place)


def _render(name, place):
    from click.testing import CliRunner

    from lrm.cli import main

    release = stored(name)
    file = str(FOLDER / f"{name}.lrm")
    with tempfile.TemporaryDirectory() as made:
        parquet, book = Path(made) / "answers.parquet", Path(made) / "answers.xlsx"
        release.write(parquet)
        commands = {
            "show.txt": ["show", file],
            "show.json": ["show", file, "--json"],
            "": ["show", file, "--csv", f"{place}/tables/", "--xlsx", str(book)],
            "long": ["show", file, "--csv", f"{place}/long.csv", "--export", f"{place}/all.json"],
            "page": ["report", file, "-o", f"{place}/page.html", "--force"],
        }
        for target, arguments in commands.items():
            result = CliRunner().invoke(main, arguments)
            text = result.output.replace(file, "FILE").replace(str(place), "PLACE")
            if result.exit_code:
                text += repr(result.exception)
            if target.endswith((".txt", ".json")) or result.exit_code:
                (place / (target or "tables.txt")).write_text(text)
        _write_frames(release, parquet, place)
        (place / "sheets.txt").write_text(sheet_text(book))


def _write_frames(release, parquet, place):
    import pyarrow.parquet as pq

    table = pq.read_table(parquet)
    (place / "parquet.txt").write_text(f"{_types(table)}\n{table.to_pandas().to_csv()}")
    (place / "arrow.txt").write_text(
        f"{_types(release.to_arrow())}\n{release.to_pandas().to_csv()}{release.to_pandas().dtypes}\n"
        f"{release.to_polars().schema}\n"
    )


def _types(table):
    return "\n".join(f"{entry.name}: {entry.type}" for entry in table.schema)


def sheet_text(path):
    """Every cell of a workbook, as its files have it."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    lines = []
    with zipfile.ZipFile(path) as book:
        names = book.namelist()
        texts = []
        if "xl/sharedStrings.xml" in names:
            root = ET.fromstring(book.read("xl/sharedStrings.xml"))  # noqa: S314 - own file
            texts = ["".join(entry.itertext()) for entry in root]
        lines.append(book.read("xl/workbook.xml").decode())
        for name in sorted(n for n in names if n.startswith("xl/worksheets/sheet")):
            for cell in ET.fromstring(book.read(name)).iter(f"{space}c"):  # noqa: S314 - own file
                value = cell.findtext(f"{space}v") or "".join(cell.itertext())
                shown = texts[int(value)] if cell.get("t") == "s" else value
                lines.append(f"{name} {cell.get('r')} {cell.get('t')} {cell.get('s')} {shown}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["write"]:
        write()
    elif sys.argv[1:2] == ["render"] and len(sys.argv) == 3:
        render(sys.argv[2])
    else:
        sys.exit(__doc__)
