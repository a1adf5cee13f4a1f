"""An audit of the whole release path on neighbouring tables.

The noise is recorded and replayed, so that two runs differ by their tables alone. Then every
true intermediate differs by at most the declared sensitivity, and everything that could be
seen from outside besides the noisy numbers is the same.
"""

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from engine_talk import Talk
from engines import postgres_url
from long_runs import new_cases
from lrm.cli import main
from lrm.domain import Domain, PrivacyUnit
from lrm.ledger import Ledger
from lrm.planning.design.measured import Measured
from lrm.privacy.mechanism import TrueCounts
from lrm.releases import making as releases
from lrm.releases.making import prepare
from lrm.tables import open_table
from lrm.tables.axes import flat_axes
from lrm.tables.cell_sql import CASE_LIMIT
from neighbouring_tables import (
    BASE,
    ENGINES,
    FAR,
    NEAR,
    ODD,
    PAIRS,
    PEOPLE,
    ROWS,
    domain_of,
    plan_of,
    write,
)

SOURCE = str(Path(lrm.__file__).parent)


@pytest.fixture(scope="session")  # tests of Spark come first, the others much later
def planned():
    """Plans by unit, noise and batch, each made once."""
    made = {}

    def plan(unit, noise, batch="few cells"):
        key = (unit, noise, batch)
        if key not in made:
            made[key] = plan_of(batch, unit, noise)
        return made[key]

    return plan


INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture
def interpreting(spark):
    """The session without compiled queries, which on seven rows are most of Spark's work."""
    before = {name: spark.conf.get(name) for name in INTERPRETED}
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture(params=ENGINES)
def engine(request):
    """Each engine in turn, running."""
    if request.param == "spark":
        request.getfixturevalue("interpreting")
    if request.param == "postgres":
        postgres_url()
    return request.param


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, fixed_key):
    """Work in a folder; of each person the same rows are chosen in both runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LRM_DEBUG", raising=False)


class Replay:
    """Stands for the sampler: keeps what it is given, and adds the same noise every time."""

    def __init__(self, monkeypatch):
        self.declared, self.counts, self.true_values = [], [], []
        really_calibrate, really_measure = releases.calibrate, releases.measure

        def calibrated(strategy, privacy, unit, bits):
            self.declared.append((strategy, unit.factor << bits))
            return replace(really_calibrate(strategy, privacy, unit, bits), sampler=self._sampled)

        def measured(counts, *args):
            self.counts.append(counts._open().copy())
            return really_measure(counts, *args)

        monkeypatch.setattr(releases, "calibrate", calibrated)
        monkeypatch.setattr(releases, "measure", measured)

    def _sampled(self, true_values):
        self.true_values.append(np.array(true_values))
        noise = np.random.default_rng(7).integers(-(10**9), 10**9, len(true_values))
        return (np.array(true_values) + noise).tolist()

    def check(self, tables=1):
        """Counts and measurements of the two runs are as near as the noise was made for.

        A row is in one entry of each of ``tables`` marginals.
        A failure says what is too far, and by no number: the counts are nobody's business.
        """
        (strategy, factor), other = self.declared
        assert (strategy, factor) == other
        one, other = self.counts
        assert one.shape == other.shape
        near = bool(np.abs(one - other).sum() <= factor * tables)
        assert near, "counts differ by more rows than the privacy unit has"
        one, other = self.true_values
        moved = [abs(int(a) - int(b)) for a, b in zip(one, other, strict=True)]
        near = sum(moved) <= strategy.sensitivity * factor
        assert near, "measurements differ by more than the sensitivity"
        near = sum(m**2 for m in moved) <= strategy.squared_l2_sensitivity * factor**2
        assert near, "measurements differ by more than the L2 sensitivity"


@pytest.fixture
def replay(monkeypatch):
    return Replay(monkeypatch)


AMOUNTS = {"laplace": {"epsilon": "0.5"}, "gaussian": {"epsilon": 1, "delta": "1e-6"}}
NOISES = {"csv": "laplace", "parquet": "gaussian", "postgres": "laplace", "spark": "gaussian"}


KINDS = ("row 2 added", "last row removed", "row exchanged")
KINDS += ("person inserted between others", "person exchanged")
"""One pair for every way in which tables are neighbours."""

ALL = [(pair, "few cells") for pair in PAIRS] + [(pair, "many bins") for pair in KINDS]


def on_engines(cases, few):
    """Each case on each engine; on a server, where one takes seconds, the ``few`` every time.

    A whole ``make test-long`` tries the others.
    """
    quick = [(engine, *case) for engine in ("csv", "parquet") for case in cases]
    quick += [(engine, *case) for engine in ("postgres", "spark") for case in few]
    rest = [(engine, *case) for engine in ENGINES for case in cases] if new_cases() else []
    return quick + [pytest.param(*one, marks=pytest.mark.long) for one in rest if one not in quick]


@pytest.mark.parametrize(
    ("engine", "pair", "batch"),
    on_engines(ALL, [(pair, "few cells") for pair in KINDS] + [("person exchanged", "many bins")]),
    indirect=["engine"],
)
def test_true_intermediates_move_by_at_most_the_sensitivity(planned, replay, pair, engine, batch):
    unit, table, neighbour = PAIRS[pair]
    noise = NOISES[engine]
    for rows in (table, neighbour):
        opened = open_table(write(rows, engine))
        lrm.release(planned(unit, noise, batch), opened, **AMOUNTS[noise], ledger=None)
    replay.check()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "pair",
    ["row 2 added", "row exchanged", "person inserted between others", "person exchanged"],
)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_marginals_move_by_at_most_the_sensitivity(planned, replay, pair, noise, form):
    """The same for a plan over products, of which marginals are counted."""
    unit, table, neighbour = PAIRS[pair]
    plan = planned(unit, noise, "products")
    assert plan.measured.cells is None
    for rows in (table, neighbour):
        lrm.release(plan, open_table(write(rows, form)), **AMOUNTS[noise], ledger=None)
    replay.check(len(plan.measured.tabulations))


def test_cells_are_merged_and_bins_are_many(planned):
    """The second batch is one whose cells are counted in classes, by bisection and by joins."""
    plan = planned(ROWS, "laplace", "many bins")
    state, income = flat_axes(plan.workload.domain, plan.measured.cells.labels)
    assert (state.size, state.attribute.size) == (2, 84)
    assert income.size > CASE_LIMIT < state.attribute.regular


@pytest.mark.parametrize("engine", ["csv", "parquet"], indirect=True)  # of the audit itself
def test_the_audit_finds_a_table_that_ignores_the_bound(planned, replay, engine):
    """All rows of a person counted, though the domain admits two: the audit must fail."""
    plan = planned(PEOPLE, "laplace")

    class Unbounded:
        name = "visits"

        def __init__(self, source):
            self.rows = open_table(source)

        def unseen_times(self, domain):
            return self.rows.unseen_times(domain)

        def check(self, domain, cells=None):
            self.rows.check(domain, cells)

        def counts(self, domain, cells=None):
            return self.rows.counts(Domain(domain.attributes, domain.table), cells)

    for rows in (BASE, [*BASE, *FAR, *NEAR]):
        lrm.release(plan, Unbounded(write(rows, engine)), epsilon=1, ledger=None)
    with pytest.raises(AssertionError, match="more rows than the privacy unit has"):
        replay.check()


@pytest.mark.parametrize("engine", ["csv", "parquet"], indirect=True)  # of the audit itself
@pytest.mark.parametrize("batch", ["few cells", "many bins"])
def test_the_audit_finds_a_sensitivity_that_is_too_small(
    planned, replay, engine, batch, monkeypatch
):
    """A strategy that declares less than one row moves gets too little noise."""
    plan = planned(ROWS, "laplace", batch)
    monkeypatch.setattr(Measured, "sensitivity", 1)
    wrong = replace(plan, measured=replace(plan.measured))
    for rows in (BASE, [*BASE, ODD[0]]):
        lrm.release(wrong, open_table(write(rows, engine)), epsilon=1, ledger=None)
    with pytest.raises(AssertionError, match="more than the sensitivity"):
        replay.check()


@pytest.mark.parametrize("engine", ["csv", "parquet"], indirect=True)  # of the audit itself
def test_the_audit_finds_a_unit_that_is_counted_too_small(planned, replay, engine, monkeypatch):
    """Noise for one row, where a person has two."""
    monkeypatch.setattr(PrivacyUnit, "factor", 1)
    for rows in (BASE, [*BASE, *FAR]):
        opened = open_table(write(rows, engine))
        lrm.release(planned(PEOPLE, "laplace"), opened, epsilon=1, ledger=None)
    with pytest.raises(AssertionError, match="more rows than the privacy unit has"):
        replay.check()


class Trace:
    """The lines of lrm that run between payment and the end of the measurement."""

    def __init__(self):
        self.steps = []

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        self.steps.append((frame.f_code.co_filename, event, frame.f_lineno))
        return self


def traced(prepared):
    trace, before = Trace(), sys.gettrace()
    sys.settrace(trace)
    try:
        prepared.run()
    finally:
        sys.settrace(before)
    return trace.steps


# An empty table has no batch of rows to loop over: the time that takes is not promised.
@pytest.mark.parametrize(
    ("engine", "pair", "batch"),
    on_engines(
        [case for case in ALL if case[0] in KINDS and case[0] not in {KINDS[1], KINDS[2]}],
        [("person exchanged", "few cells"), ("person inserted between others", "many bins")],
    ),
    indirect=["engine"],
)
def test_control_flow_is_the_same(planned, replay, pair, engine, batch, monkeypatch):
    unit, table, neighbour = PAIRS[pair]
    plan, domain = planned(unit, "laplace", batch), domain_of(unit, batch)
    lrm.release(plan, [0] * domain.size, 1)  # what is public is cached at first use
    talk, talks, paths = Talk(monkeypatch, engine), [], []
    for rows in (table, neighbour):
        opened = open_table(write(rows, engine))
        prepared = prepare(plan, opened, plan.privacy(1), plan.unit, None)
        talk.clear()
        paths.append(traced(prepared))
        talks.append(tuple(talk))
    assert len(paths[0]) > 100
    # How often a loop over batches of rows runs follows the size of the table, as time does;
    # which lines run does not depend on it, nor on any value.
    assert set(paths[0]) == set(paths[1])
    assert len(talks[0]) >= 1
    assert talks[0] == talks[1]


def shape_of(value):
    """A JSON value without its numbers."""
    if isinstance(value, dict):
        return {key: shape_of(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shape_of(part) for part in value]
    return float if isinstance(value, float) else value


def seen_from_outside(rows, engine, capfd):
    """Run the command, and return all that can be seen of it but noisy numbers."""
    source = write(rows, engine)
    args = ["release", "plan.lrm", "--table", source, "--epsilon", "1", "--ledger", "l.sqlite"]
    result = CliRunner().invoke(main, [*args, "-o", "out.lrm", "--force", "--json"])
    assert result.exit_code == 0, result.stderr
    fields = json.loads(result.stdout)
    del fields["provenance"]["ledger_head"]  # a number of releases and a time
    files = sorted(path.name for path in Path().iterdir())
    return shape_of(fields), result.stderr, files, capfd.readouterr()


@pytest.mark.parametrize(
    ("engine", "batch"),
    on_engines([("few cells",), ("many bins",)], [("many bins",)]),
    indirect=["engine"],
)
def test_what_can_be_seen_from_outside_is_the_same(planned, replay, engine, batch, caplog, capfd):
    planned(PEOPLE, "laplace", batch).save("plan.lrm")
    Ledger.open("l.sqlite").create("visits", "10", unit=PEOPLE)
    logging.getLogger("py4j").setLevel(logging.INFO)  # else every call's own number is logged
    caplog.set_level(logging.DEBUG)
    one, other = (seen_from_outside(rows, engine, capfd) for rows in (NEAR, []))
    assert one == other
    assert one[1] == one[3].out == one[3].err == ""
    assert not caplog.records
    answers = one[0]["answers"]
    labels = ["n[income=[0, 0.25)]", "n[income=[0.25, 0.5)]"]
    expected = labels if batch == "many bins" else ["n[state=NY]", "n[state=NJ]"]
    assert [row["name"] for row in answers][:2] == expected


@pytest.mark.parametrize(
    ("engine", "fault"),
    on_engines([(fault,) for fault in (KeyError, MemoryError, ValueError)], [(ValueError,)]),
    indirect=["engine"],
)
def test_errors_are_the_same_whatever_the_table_holds(planned, monkeypatch, fault, engine):
    """A fault that quotes the counts is told in the same words for both tables."""
    planned(ROWS, "laplace").save("plan.lrm")

    def broken(counts, *args):
        raise fault(counts._open().tolist())

    monkeypatch.setattr(releases, "measure", broken)
    said = []
    for rows in (BASE, [*BASE, ODD[0]]):
        args = ["release", "plan.lrm", "--table", write(rows, engine), "--epsilon", "1"]
        result = CliRunner().invoke(main, [*args, "-o", "out.lrm", "--no-ledger"])
        said.append((result.exit_code, result.stdout, result.stderr))
    assert said[0] == said[1]
    assert said[0][0] == 1
    assert not Path("out.lrm").exists()


def test_hidden_counts_are_hidden():
    """What the mechanism is handed shows no count, however it is printed."""
    counts = open_table(write(BASE, "csv")).counts(domain_of(ROWS))
    assert isinstance(counts, TrueCounts)
    assert repr(counts) == str(counts) == f"{counts}" == "<TrueCounts of 308 cells, hidden>"


def test_counts_in_memory_are_hidden():
    """A release that is prepared shows no count that it was given."""
    plan = lrm.plan([[1, 1]], "noise-on-data")
    given = prepare(plan, [8213, 8214], plan.privacy(1), plan.unit, None)
    assert "821" not in repr(given)
