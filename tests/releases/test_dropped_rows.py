"""A statement depends on the attributes that it uses: rows that another one drops count in it.

``SELECT zone, COUNT(*) … GROUP BY zone`` lost the rows whose fare was missing because another
statement of the batch used the fare. Rows that an attribute drops are now dropped from the
statements that use it and from no other, on every engine, and no statement changes another.
"""

import datetime as dt
import itertools
import random

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import lrm
from engines import empty_postgres_database
from lrm.domain import Bins, Categories, Dates, Domain, Integers, Numbers, PrivacyUnit
from lrm.domain.file import domain_text, parse_domain
from lrm.errors import DomainError
from lrm.queries.builders import marginals, products, total, where
from lrm.queries.files import parse_batch
from lrm.queries.workload.families import stack

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")

ATTRIBUTES = [
    Categories("zone", ["a", "b", "c"]),
    Bins("fare", [0, 10, 20, 50]),
    Integers("riders", 1, 4, null="cell"),
    Dates("day", "2024-01-01", "2024-03-31", by="month", outside="cell"),
]
DECLARED = {
    "zone": "zone IN ('a', 'b', 'c')",
    "fare": "fare >= 0 AND fare < 50",
    "riders": "(riders IS NULL OR riders BETWEEN 1 AND 4)",
    "day": "day IS NOT NULL",
}
STATEMENTS = {
    "SELECT COUNT(*) AS n0 FROM trips": "",
    "SELECT zone, COUNT(*) AS n1 FROM trips GROUP BY zone": "zone",
    "SELECT COUNT(*) AS n2 FROM trips WHERE fare >= 0": "fare",
    "SELECT COUNT(*) AS n3 FROM trips WHERE fare IS NOT NULL": "fare",
    "SELECT COUNT(*) AS n4 FROM trips WHERE zone = zone": "zone",
    "SELECT COUNT(*) AS n5 FROM trips WHERE zone = 'a' OR fare < 10": "zone fare",
    "SELECT SUM(riders) AS n6 FROM trips WHERE zone <> 'b'": "zone riders",
    "SELECT zone, COUNT(*) FILTER (WHERE fare >= 20) AS n7 FROM trips GROUP BY zone": "zone fare",
    "SELECT COUNT(*) AS n8 FROM trips WHERE day < DATE '2024-02-01'": "day",
    "SELECT zone, COUNT(*) AS n9 FROM trips WHERE riders > 2 GROUP BY ROLLUP (zone)": "zone riders",
    "SELECT COUNT(*) AS n10 FROM trips WHERE riders IS NULL": "riders",
    "SELECT zone, AVG(riders) AS n11 FROM trips GROUP BY zone": "zone riders",
}
LARGE = {"epsilon": 100_000}


def domain(unit=None):
    return Domain(ATTRIBUTES, "trips", unit)


def trips(rows=400, seed=0):
    """Rows with missing and undeclared values in every column."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    days = [dt.date(2024, month, 9) for month in (1, 2, 3, 4)]
    return pa.table(
        {
            "who": pa.array([rng.randrange(90) for _ in range(rows)]),
            "zone": pa.array([rng.choice(["a", "b", "c", "?", None]) for _ in range(rows)]),
            "fare": pa.array(
                [rng.choice([None, rng.uniform(-20, 70), rng.uniform(0, 50)]) for _ in range(rows)]
            ),
            "riders": pa.array([rng.choice([1, 2, 3, 4, 9, None]) for _ in range(rows)]),
            "day": pa.array([rng.choice([*days, None]) for _ in range(rows)]),
        }
    )


def truth(statement, table):
    """What DuckDB answers on the rows that no attribute of the statement drops, by group."""
    used = STATEMENTS[statement].split()
    conditions = " AND ".join(DECLARED[name] for name in used) or "TRUE"
    with duckdb.connect() as db:
        db.register("every", table)
        db.execute(f"CREATE VIEW trips AS SELECT * FROM every WHERE {conditions}")
        rows = db.execute(statement).fetchall()
    return {tuple(map(str, row[:-1])): row[-1] or 0 for row in rows}


def answers(release, statement):
    """The released answers of a statement by group; NULL is the total of a ROLLUP."""
    name = statement.split(" AS ")[1].split()[0]
    frame = release.to_pandas()
    frame = frame[frame["query"] == name]
    if "GROUP BY" not in statement:
        return {(): frame["answer"].item()}
    labels = ["None" if pd.isna(zone) else str(zone) for zone in frame["zone"]]
    return {(zone,): answer for zone, answer in zip(labels, frame["answer"], strict=True)}


def check(release, statements, table):
    for statement in statements:
        expected, released = truth(statement, table), answers(release, statement)
        assert released.keys() >= expected.keys()
        for group, answer in released.items():
            assert answer == pytest.approx(float(expected.get(group, 0)), abs=0.3), statement


def sources(table, folder):
    """The table for each engine that needs no server."""
    pq.write_table(table, folder / "trips.parquet")
    pacsv.write_csv(table, folder / "trips.csv")
    with duckdb.connect(str(folder / "trips.duckdb")) as db:
        db.register("rows", table)
        db.execute("CREATE TABLE trips AS FROM rows")
    return {
        "parquet": folder / "trips.parquet",
        "csv": folder / "trips.csv",
        "duckdb": f"{folder / 'trips.duckdb'}::trips",
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
    }


FILES = ["parquet", "csv", "duckdb", "arrow", "pandas", "polars"]


@pytest.fixture(scope="module")
def plan():
    return lrm.plan("; ".join(STATEMENTS), "noise-on-data", domain=domain())


@pytest.mark.parametrize("form", FILES)
def test_each_answer_is_that_of_its_statement_alone(plan, form, tmp_path):
    table = trips()
    release = lrm.release(plan, sources(table, tmp_path)[form], **LARGE, ledger=None)
    check(release, STATEMENTS, table)


def test_on_postgres(plan):
    import psycopg

    table, url = trips(), empty_postgres_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE trips (who int, zone text, fare float8, riders int, day date)")
        with db.cursor().copy("COPY trips FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(tuple(row.values()))
    address = url + ("&" if "?" in url else "?") + "table=trips"
    check(lrm.release(plan, address, **LARGE, ledger=None), STATEMENTS, table)


def test_on_spark(plan, spark, tmp_path):
    table = trips()
    pq.write_table(table, tmp_path / "trips.parquet")
    frame = spark.read.parquet(str(tmp_path / "trips.parquet"))
    check(lrm.release(plan, frame, **LARGE, ledger=None), STATEMENTS, table)


UNITS = {
    "row": None,
    "replaced row": PrivacyUnit(neighbours="substitute"),
    "person": PrivacyUnit("who", max_rows=30),
    "replaced person": PrivacyUnit("who", max_rows=30, neighbours="substitute"),
}


@pytest.mark.parametrize(("unit", "noise"), [*zip(UNITS, itertools.cycle(["pure", "gaussian"]))])
def test_every_unit_and_noise(unit, noise):
    table = trips(seed=1)
    statements = random.Random(f"{unit} {noise}").sample(list(STATEMENTS), 3)  # noqa: S311
    plan = lrm.plan("; ".join(statements), domain=domain(UNITS[unit]), noise=noise, effort="quick")
    amounts = {"rho": 10**6} if noise == "gaussian" else {"epsilon": 10**6}
    check(lrm.release(plan, table, **amounts, ledger=None), statements, table)


@pytest.mark.parametrize("seed", range(3))
def test_adding_a_statement_changes_no_other(seed):
    rng, table = random.Random(seed), trips(seed=seed)  # noqa: S311 - no secret
    some = rng.sample(list(STATEMENTS), rng.randrange(2, 4))
    for batch in (some[:1], some):
        plan = lrm.plan("; ".join(batch), domain=domain(), effort="quick")
        check(lrm.release(plan, table, **LARGE, ledger=None), batch, table)


def test_a_domain_of_one_attribute():
    fare = Domain([Bins("fare", [0, 10, 20, 50])], "trips")
    table, few = trips(), [text for text, used in STATEMENTS.items() if used in {"", "fare"}]
    plan = lrm.plan("; ".join(few), domain=fare)
    check(lrm.release(plan, table, **LARGE, ledger=None), few, table)


def test_numbers_by_knots():
    stay = Domain([Categories("zone", ["a", "b", "c"]), Numbers("fare", [0, 50])], "trips")
    table = trips()
    text = "SELECT zone, COUNT(*) AS n FROM trips GROUP BY zone; SELECT SUM(fare) AS s FROM trips"
    release = lrm.release(lrm.plan(text, domain=stay), table, **LARGE, ledger=None)
    frame = table.to_pandas()
    counted = frame["zone"].value_counts()
    assert release.answers[:3] == pytest.approx([counted[zone] for zone in "abc"], abs=0.05)
    assert release.answers[3] == pytest.approx(frame["fare"].clip(0, 50).sum(), abs=0.5)


def batches():
    yaml = """
lrm-batch: 1
queries:
  - {kind: total, name: n0}
  - {kind: marginals, of: [[zone]], name: n1}
  - {kind: total, where: "fare >= 0", name: n2}
"""
    every = domain()
    yield parse_batch(yaml, every)
    yield stack(
        [
            total(every, name="n0"),
            marginals(every, [["zone"]], name="n1"),
            where(total(every, name="n2"), "fare IS NOT NULL"),
        ]
    )
    yield products(
        every,
        [{}, {"zone": "identity", "fare": "total"}, {"fare": [1, 1, 1]}],
        names=["n0", "n1", "n2"],
    )


@pytest.mark.parametrize("number", range(3))
def test_batches_from_yaml_and_builders(number):
    table, batch = trips(), list(batches())[number]
    release = lrm.release(lrm.plan(batch), table, **LARGE, ledger=None)
    frame = table.to_pandas()
    counted = frame["zone"].value_counts()
    expected = [len(frame), *(counted[zone] for zone in "abc")]
    expected.append(((frame["fare"] >= 0) & (frame["fare"] < 50)).sum())
    assert release.answers == pytest.approx(expected, abs=0.05)


def test_all_marginals():
    table, every = trips(), domain()
    release = lrm.release(
        lrm.plan(marginals(every, range(3)), effort="quick"), table, **LARGE, ledger=None
    )
    rows = table.to_pylist()
    cells = [[one.cell_of(row[one.name]) for one in every.attributes] for row in rows]
    for answer, label in zip(release.answers, release.plan.workload.labels, strict=True):
        wanted = {every.axis(group): every.labels(group).index(text) for group, text in label.group}
        count = sum(all(row[axis] == cell for axis, cell in wanted.items()) for row in cells)
        assert answer == pytest.approx(count, abs=0.05)


def test_counts_of_declared_cells_have_no_dropped_rows():
    text = "SELECT COUNT(*) AS n FROM trips; SELECT COUNT(*) AS m FROM trips WHERE fare >= 10"
    every = Domain(ATTRIBUTES[:2], "trips")
    plan = lrm.plan(text, domain=every)
    rows = trips().to_pylist()
    declared = lrm.release(plan, every.count(rows), **LARGE)
    complete = lrm.release(plan, plan.workload.domain.count(rows), **LARGE)
    assert declared.answers[0] == pytest.approx(every.count(rows).sum(), abs=0.05)
    assert complete.answers[0] == pytest.approx(len(rows), abs=0.05)


def test_the_cell_of_dropped_rows_is_never_displayed(tmp_path):
    statements = list(STATEMENTS)[:3]
    plan = lrm.plan("; ".join(statements), domain=domain(), effort="quick")
    plan.save(tmp_path / "plan.lrm")
    loaded = lrm.load_plan(tmp_path / "plan.lrm")
    assert loaded.digest == plan.digest
    assert loaded.workload.domain.rest_axes == (0, 1, 2, 3)
    release = lrm.release(loaded, trips(), **LARGE, ledger=None)
    release.save(tmp_path / "release.lrm")
    again = lrm.load_release(tmp_path / "release.lrm")
    np.testing.assert_array_equal(again.answers, release.answers)
    assert list(again.to_pandas()["zone"].dropna()) == ["a", "b", "c"]
    texts = [repr(again), repr(plan), plan.workload.domain.__repr__(), again._repr_html_()]
    assert not any("(dropped)" in text or "rest" in text for text in texts)


def test_a_further_query_uses_what_the_release_has():
    statements = list(STATEMENTS)[:3]
    plan = lrm.plan("; ".join(statements), domain=domain(), effort="quick")
    table = trips()
    release = lrm.release(plan, table, **LARGE, ledger=None)
    check(release.query("; ".join(statements)), statements, table)
    alone = lrm.release(lrm.plan(statements[1], domain=domain()), table, **LARGE, ledger=None)
    within = alone.query("SELECT COUNT(*) AS n FROM trips WHERE zone IS NOT NULL")
    everything = alone.query("SELECT COUNT(*) AS n FROM trips")  # that the release counts
    assert everything.answers[0] == within.answers[0]
    declared = sum(truth(statements[1], table)[zone,] for zone in "abc")
    assert within.answers[0] == pytest.approx(declared, abs=0.05)


def test_attributes_that_drop_nothing_have_no_further_cell():
    whole = Domain(
        [
            Categories("zone", ["a", "b"], null="cell", outside="cell"),
            Bins("fare", [0, 9], null="cell", nan="cell", outside="cell"),
        ],
        "trips",
    )
    text = "SELECT zone, COUNT(*) AS n FROM trips GROUP BY zone; SELECT COUNT(*) AS m FROM trips"
    assert lrm.plan(text, domain=whole).workload.domain.digest == whole.digest


def test_statements_that_all_use_an_attribute_need_no_further_cell():
    every = Domain(ATTRIBUTES[:1], "trips")
    text = "SELECT zone, COUNT(*) AS n FROM trips GROUP BY zone; "
    text += "SELECT COUNT(*) AS m FROM trips WHERE zone = 'a'"
    plan = lrm.plan(text, domain=every)
    assert plan.workload.domain == every
    assert plan.workload.domain.digest == every.digest


def test_a_domain_file_with_such_a_cell_is_checked():
    every = domain().with_rest([0, 3])
    assert parse_domain(domain_text(every)).digest == every.digest
    assert parse_domain(domain_text(every)).rest_axes == (0, 3)
    assert parse_domain(domain_text(domain())).digest == domain().digest != every.digest
    assert every == domain() == every.declared  # the declaration is the same
    with pytest.raises(DomainError, match="'dropped': expected cell"):
        parse_domain(domain_text(every).replace("dropped: cell", "dropped: yes", 1))
    whole = Domain([Categories("zone", ["a"], null="cell", outside="cell")])
    text = domain_text(whole).replace("outside: cell", "outside: cell\n  dropped: cell")
    with pytest.raises(DomainError, match="its rules drop none"):
        parse_domain(text)


@pytest.mark.parametrize("rows", [3, 30])
def test_rows_that_are_dropped_give_way_to_others_of_a_person(rows):
    """With at most c rows of a person, those that no attribute drops are chosen first."""
    unit = PrivacyUnit("who", max_rows=3)
    every = Domain([Categories("zone", ["a"]), Integers("riders", 1, 2)], "trips", unit)
    table = pa.table(
        {
            "who": [1] * (2 + rows),
            "zone": ["a"] * 2 + ["?"] * rows,
            "riders": [1] * (2 + rows),
        }
    )
    text = "SELECT zone, COUNT(*) AS n FROM trips GROUP BY zone; "
    text += "SELECT COUNT(*) AS m FROM trips WHERE riders = 1"
    release = lrm.release(lrm.plan(text, domain=every), table, **LARGE, ledger=None)
    assert release.answers == pytest.approx([2, 3], abs=0.05)
