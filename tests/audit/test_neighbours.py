"""An audit of the whole release path on neighbouring tables.

The noise is recorded and replayed, so that two runs differ by their tables alone. Then every
true intermediate differs by at most the declared sensitivity, and everything that could be
seen from outside besides the noisy numbers is the same.
"""

import json
import logging
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lrm
from lrm import releases
from lrm.budget import Neighbours, sensitivity_factor
from lrm.cli import main
from lrm.domain import Bins, Categories, Domain, Integers, PrivacyUnit
from lrm.ledger import Ledger
from lrm.mechanism import TrueCounts
from lrm.releases import release_table
from lrm.sql import workload_from_sql
from lrm.tables import open_table

SOURCE = str(Path(lrm.__file__).parent)

QUERIES = """
SELECT state, COUNT(*) AS n FROM visits GROUP BY ROLLUP (state);
SELECT SUM(CASE WHEN age < 20 THEN 3 WHEN income >= 5 THEN -2 ELSE 0 END) AS mixed FROM visits;
SELECT COUNT(*) AS none FROM visits WHERE age IS NULL OR income >= 10 AND state = 'NY';
"""

NAN = float("nan")


def row(person, state, age, income):
    return {"person": person, "state": state, "age": age, "income": income}


BASE = [
    row("a", "NY", 3, 0.5),
    row("a", "NY", 3, 0.5),
    row("b", "NJ", 27, 5.0),
    row("b", "TX", None, NAN),
    row("b", None, 91, -1.0),
    row("c", "ny", 45, 20.0),
    row(None, "NY", 12, None),
]
FAR = [row("z", "NY", 5, 7.0), row("z", "NJ", 88, 11.0), row("z", "TX", None, NAN)]
NEAR = [row("z", "NJ", 31, 1.0), row("z", "NY", 1, 12.0), row("z", "NY", 1, 12.0)]
ODD = [
    row("z", "NY", 5, 7.0),
    row("z", None, None, None),
    row("z", "?", 1000, NAN),
    row("z", "NJ", -1, float("inf")),
    row(None, "NJ", 31, 1.0),
]

ROWS, EXCHANGED = PrivacyUnit(), PrivacyUnit(neighbours="substitute")
PEOPLE = PrivacyUnit("person", 2)
PEOPLE_EXCHANGED = PrivacyUnit("person", 2, "substitute")

PAIRS = {
    **{f"row {i} added": (ROWS, BASE, [*BASE, odd]) for i, odd in enumerate(ODD)},
    "last row removed": (ROWS, BASE[:1], []),
    "a copy added": (ROWS, BASE, [*BASE, BASE[0]]),
    "row exchanged": (EXCHANGED, [*BASE, FAR[0]], [*BASE, FAR[1]]),
    "row exchanged for one outside": (EXCHANGED, [*BASE, ODD[0]], [*BASE, ODD[2]]),
    "person of many rows added": (PEOPLE, BASE, [*BASE, *FAR, *NEAR]),
    "person inserted between others": (PEOPLE, BASE, [*NEAR, *BASE[:3], *FAR, *BASE[3:]]),
    "only person removed": (PEOPLE, NEAR, []),
    "person exchanged": (PEOPLE_EXCHANGED, [*BASE, *FAR], [*BASE, *NEAR, *NEAR]),
}


def domain_of(unit):
    attributes = [
        Categories("state", ["NY", "NJ"], null="cell", outside="cell"),
        Integers("age", 0, 99, 10, null="cell", outside="drop"),
        Bins("income", [0, 5, 10, 100], null="drop", nan="cell", outside="cell"),
    ]
    return Domain(attributes, "visits", unit)


@pytest.fixture(scope="module")
def planned():
    """Plans by unit and noise, each made once."""
    made = {}

    def plan(unit, noise):
        if (unit, noise) not in made:
            workload = workload_from_sql(QUERIES, domain_of(unit))
            made[unit, noise] = lrm.plan(workload, noise=noise, effort="quick")
        return made[unit, noise]

    return plan


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LRM_DEBUG", raising=False)


class Replay:
    """Stands for the sampler: keeps what it is given, and adds the same noise every time."""

    def __init__(self, monkeypatch):
        self.counts, self.true_values = [], []
        really_calibrate, really_measure = releases.calibrate, releases.measure

        def calibrated(*args):
            return replace(really_calibrate(*args), sampler=self._sampled)

        def measured(counts, *args):
            self.counts.append(counts._open().copy())
            return really_measure(counts, *args)

        monkeypatch.setattr(releases, "calibrate", calibrated)
        monkeypatch.setattr(releases, "measure", measured)

    def _sampled(self, true_values):
        self.true_values.append(np.array(true_values))
        noise = np.random.default_rng(7).integers(-(10**9), 10**9, len(true_values))
        return (np.array(true_values) + noise).tolist()


@pytest.fixture
def replay(monkeypatch):
    return Replay(monkeypatch)


def write(rows, kind):
    """The rows as a file; a missing value is an empty field, or a NULL."""
    if kind == "csv":
        lines = [",".join("" if v is None else str(v) for v in one.values()) + "\n" for one in rows]
        Path("visits.csv").write_text("person,state,age,income\n" + "".join(lines))
    else:
        types = {"person": pa.string(), "state": pa.string(), "age": pa.int64()}
        schema = pa.schema({**types, "income": pa.float64()})
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), "visits.parquet")
    return f"visits.{kind}"


def check_intermediates(replay, plan, unit):
    """Counts and measurements of the two runs are as near as the sensitivity says."""
    factor = sensitivity_factor(Neighbours(unit.neighbours), unit.max_rows)
    one, other = replay.counts
    assert one.shape == other.shape
    assert np.abs(one - other).sum() <= factor
    one, other = replay.true_values
    moved = [abs(int(a) - int(b)) for a, b in zip(one, other, strict=True)]
    assert sum(moved) <= plan.measured.sensitivity * factor
    assert sum(m**2 for m in moved) <= plan.measured.squared_l2_sensitivity * factor**2


AMOUNTS = {"laplace": {"epsilon": "0.5"}, "gaussian": {"epsilon": 1, "delta": "1e-6"}}


@pytest.mark.parametrize(("kind", "noise"), [("csv", "laplace"), ("parquet", "gaussian")])
@pytest.mark.parametrize("pair", PAIRS)
def test_true_intermediates_move_by_at_most_the_sensitivity(planned, replay, pair, kind, noise):
    unit, table, neighbour = PAIRS[pair]
    plan = planned(unit, noise)
    for rows in (table, neighbour):
        opened = open_table(write(rows, kind))
        release_table(plan, opened, **AMOUNTS[noise], ledger=None)
    check_intermediates(replay, plan, unit)


def test_the_audit_finds_a_table_that_ignores_the_bound(planned, replay):
    """All rows of a person counted, though the domain admits two: the audit must fail."""
    plan = planned(PEOPLE, "laplace")

    class Unbounded:
        name = "visits"

        def __init__(self, source):
            self.rows = open_table(source)

        def check(self, domain):
            self.rows.check(domain)

        def counts(self, domain, cells=None):
            return self.rows.counts(Domain(domain.attributes, domain.table), cells)

    for rows in (BASE, [*BASE, *FAR, *NEAR]):
        release_table(plan, Unbounded(write(rows, "csv")), epsilon=1, ledger=None)
    with pytest.raises(AssertionError):
        check_intermediates(replay, plan, PEOPLE)


class Trace:
    """The lines of lrm that run between payment and the end of the measurement."""

    def __init__(self):
        self.steps = []

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        self.steps.append((frame.f_code.co_filename, event, frame.f_lineno))
        return self


def traced(intent, count):
    trace, before = Trace(), sys.gettrace()
    sys.settrace(trace)
    try:
        intent.carry_out(count)
    finally:
        sys.settrace(before)
    return trace.steps


@pytest.mark.parametrize("kind", ["csv", "parquet"])
# An empty table has no batch of rows to loop over: the time that takes is not promised.
@pytest.mark.parametrize(
    "pair",
    [pair for pair in PAIRS if ("person" in pair or "removed" in pair) and "only" not in pair],
)
def test_control_flow_is_the_same(planned, replay, pair, kind):
    unit, table, neighbour = PAIRS[pair]
    plan = planned(unit, "laplace")
    intent = releases.intend(plan, 1)
    intent.carry_out(lambda: TrueCounts([0] * 264))  # what is public is cached on first use
    paths = []
    for rows in (table, neighbour):
        opened = open_table(write(rows, kind))
        count = partial(opened.counts, domain_of(unit), plan.measured.cells)
        paths.append(traced(intent, count))
    assert len(paths[0]) > 100
    # How often a loop over batches of rows runs follows the size of the table, as time does;
    # which lines run does not depend on it, nor on any value.
    assert set(paths[0]) == set(paths[1])


def shape_of(value):
    """A JSON value without its numbers."""
    if isinstance(value, dict):
        return {key: shape_of(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shape_of(part) for part in value]
    return float if isinstance(value, float) else value


def seen_from_outside(rows, kind):
    """Run the command, and return all that can be seen of it but noisy numbers."""
    source = write(rows, kind)
    args = ["release", "plan.lrm", "--table", source, "--epsilon", "1", "--ledger", "l.sqlite"]
    result = CliRunner().invoke(main, [*args, "-o", "out.lrm", "--force", "--json"])
    fields = json.loads(result.stdout)
    del fields["ledger_head"]  # counts releases and holds the time, nothing of the table
    files = sorted(path.name for path in Path().iterdir())
    return result.exit_code, shape_of(fields), result.stderr, files


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_can_be_seen_from_outside_is_the_same(planned, replay, kind, caplog):
    caplog.set_level(logging.DEBUG)
    planned(PEOPLE, "laplace").save("plan.lrm")
    Ledger.open("l.sqlite").create("visits", "10", "epsilon")
    one, other = (seen_from_outside(rows, kind) for rows in (NEAR, []))
    assert one == other
    assert one[0] == 0
    assert one[2] == ""
    assert not caplog.records
    answers = one[1]["answers"]
    assert [row["query"] for row in answers][:2] == ["n[state=NY]", "n[state=NJ]"]


@pytest.mark.parametrize("fault", [KeyError, MemoryError, ValueError])
def test_errors_are_the_same_whatever_the_table_holds(planned, monkeypatch, fault):
    """A fault that quotes the counts is told in the same words for both tables."""
    planned(ROWS, "laplace").save("plan.lrm")

    def broken(counts, *args):
        raise fault(counts._open().tolist())

    monkeypatch.setattr(releases, "measure", broken)
    said = []
    for rows in (BASE, [*BASE, ODD[0]]):
        args = ["release", "plan.lrm", "--table", write(rows, "csv"), "--epsilon", "1"]
        result = CliRunner().invoke(main, [*args, "-o", "out.lrm", "--no-ledger"])
        said.append((result.exit_code, result.stdout, result.stderr))
    assert said[0] == said[1]
    assert said[0][0] == 1
    assert not Path("out.lrm").exists()


def test_hidden_counts_are_hidden():
    """What the mechanism is handed shows no count, however it is printed."""
    counts = open_table(write(BASE, "csv")).counts(domain_of(ROWS))
    assert isinstance(counts, TrueCounts)
    assert repr(counts) == str(counts) == f"{counts}" == "<TrueCounts of 264 cells, hidden>"
