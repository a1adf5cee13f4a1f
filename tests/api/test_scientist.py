"""The way of a scientist in Python: from a domain and SQL to a frame of answers."""

import sqlite3
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lrm
from lrm.errors import MissingExtra, PrivacyWarning, UnsupportedQuery, WorkloadError

SQL = """
SELECT region, COUNT(*) AS n FROM patients GROUP BY region;
SELECT region, COUNT(*) AS young FROM patients WHERE age < 20 GROUP BY ROLLUP (region);
"""
BAD = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def domain():
    region, age = lrm.Categories("region", ["N", "E"]), lrm.Integers("age", 0, 99, width=5)
    return lrm.Domain([region, age], table="patients")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"region": rng.choice(["N", "E"], 900), "age": rng.integers(0, 99, 900)})


@pytest.fixture(scope="module")
def plan(domain):
    return lrm.plan(lrm.sql(SQL, domain), "noise-on-data")


@pytest.fixture(scope="module")
def release(plan, frame, tmp_path_factory):
    ledger = str(tmp_path_factory.mktemp("ledger") / "budget.sqlite")
    lrm.Ledger.open(ledger).create("patients", limit=1)
    made = lrm.release(plan, frame, epsilon="0.1", ledger=ledger)
    with sqlite3.connect(ledger) as db:
        assert db.execute("SELECT COUNT(*) FROM entries").fetchone() == (2,)
    return made


def test_frames_have_labels_in_columns(release):
    table = release.to_arrow()
    numbers = ["answer", "standard_error", "low", "high"]
    assert table.column_names == ["statement", "region", "query", *numbers]
    assert table["region"].to_pylist() == ["N", "E", "N", "E", None]
    assert table["query"].to_pylist() == ["n", "n", "young", "young", "young"]
    assert np.array_equal(table["answer"], release.answers)
    ends = np.column_stack([table["low"], table["high"]])
    assert np.array_equal(ends, release.intervals(0.95))
    pandas, polars = release.to_pandas(), release.to_polars()
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert list(pandas.columns) == polars.columns == table.column_names
    assert np.array_equal(pandas["answer"], polars["answer"])
    wide = release.to_pandas(confidence=0.99)
    assert (wide["high"] > pandas["high"]).all()


def test_one_query_by_its_name(release):
    table = release["young"]
    assert len(table) == 3
    assert np.array_equal(table.to_pandas()["answer"], release.answers[2:])
    assert list(release["n"].to_pandas()["region"]) == ["N", "E"]
    with pytest.raises(WorkloadError, match="no query is called 'yung'; near it is 'young'"):
        release["yung"]
    with pytest.raises(WorkloadError, match="there are 'n', 'young'"):
        release["everything else"]


def test_queries_without_groups_have_no_group_columns():
    plan = lrm.plan(np.eye(3), "noise-on-data")
    release = lrm.release(plan, [1, 2, 3], epsilon=1)
    assert release.to_arrow().column_names[:2] == ["statement", "query"]
    assert release["q2"].to_pandas()["query"].tolist() == ["q2"]
    assert release["q2"].numbers["answer"] == release.answers[1]
    named = lrm.plan(lrm.stack([lrm.Workload(np.eye(3)), lrm.Workload([[1, 1, 1]], names=["all"])]))
    assert [label.name for label in named.errors(1).of("all").labels()] == ["all"]


def test_a_group_called_like_a_column_has_its_own_title():
    domain = lrm.Domain([lrm.Categories("answer", ["a", "b"])], table="t")
    plan = lrm.plan("SELECT COUNT(*) AS n FROM t GROUP BY answer", "noise-on-data", domain=domain)
    assert plan.errors(1).header[1:] == ["answer", "query", "standard_error", "half_width"]
    columns = lrm.release(plan, [1, 2], epsilon=1).to_arrow().column_names
    assert columns[:4] == ["statement", "answer_group", "query", "answer"]


def test_errors_before_anything_is_spent(plan, release):
    table = plan.errors(epsilon=0.1)
    assert table.header == ["statement", "region", "query", "standard_error", "half_width"]
    assert np.allclose(table.number_columns()["standard_error"], release.standard_errors)
    wide = table.number_columns()["half_width"] * 2
    assert np.allclose(wide, np.diff(release.unclipped.intervals()).ravel())
    gaussian = lrm.plan(np.eye(2), "noise-on-data", noise="gaussian")
    assert "ρ = 0.5" in repr(gaussian.errors(rho=0.5))


def test_further_queries_cost_nothing(release):
    more = release.query("SELECT COUNT(*) AS everybody FROM patients")
    assert more.answers == pytest.approx(release["n"].numbers["answer"].sum())
    text = "SELECT COUNT(*) AS a FROM patients;\nSELECT COUNT(*) AS b FROM patients WHERE age < 5"
    plan = lrm.plan(text.partition(";")[0], domain=release.plan.workload.domain)
    coarse = lrm.release(plan, [1] * 40, epsilon=1)
    with pytest.raises(UnsupportedQuery, match=r"'b' \(line 2\)"):
        coarse.query(text)


def test_pages(plan, release, tmp_path):
    release.report(tmp_path / "page.html")
    plan.report(tmp_path / "plan.html", epsilon="0.1")
    assert "5 answers about patients" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "5 queries about patients" in (tmp_path / "plan.html").read_text(encoding="utf-8")


def test_a_plan_takes_whatever_says_queries(domain):
    batch = lrm.sql(SQL, domain)
    written = lrm.plan(SQL, "noise-on-data", domain=domain)
    assert written.digest == lrm.plan(batch, "noise-on-data").digest
    assert lrm.plan(batch, "noise-on-data", domain=domain).digest == written.digest
    for made in (
        lrm.total(domain),
        lrm.marginals(domain, 1),
        lrm.ranges(domain, "age", [(0, 19), (20, 99)]),
        lrm.prefix(domain, "age", by=["region"]),
        lrm.where(lrm.total(domain), "age >= 50"),
        lrm.with_importance(lrm.total(domain), 2),
        lrm.stack([lrm.total(domain), lrm.marginals(domain, [("region",)])]),
    ):
        assert lrm.plan(made, "noise-on-data").workload.domain == domain
    assert lrm.plan(np.eye(40), "noise-on-data", domain=domain).workload.domain == domain
    with pytest.raises(WorkloadError, match=r"domain="):
        lrm.plan(SQL)
    with pytest.raises(WorkloadError, match=r"lrm\.read_batch"):
        lrm.plan("queries.sql", domain=domain)
    with pytest.raises(WorkloadError, match="a domain other than"):
        lrm.plan(batch, domain=lrm.Domain([lrm.Integers("x", 0, 39)]))


def test_a_frame_of_weights_keeps_its_names():
    frame = pd.DataFrame([[1, 1], [1, 0]], index=["all", "young"], columns=["0-19", "20-99"])
    release = lrm.release(lrm.plan(frame, "noise-on-data"), [5, 6], epsilon=1)
    assert release.to_pandas()["query"].tolist() == ["all", "young"]


def test_compare(domain):
    result = lrm.compare(SQL, ["noise-on-data", "noise-on-results"], domain=domain)
    lines = repr(result).splitlines()
    assert lines[0].split()[:5] == ["mechanism", "error", "at", "ε", "="]
    names = [line.split()[0] for line in lines[2:4]]  # below the rule, the least error first
    assert names == ["noise-on-results", "noise-on-data"]


def test_a_missing_package_is_named(release, monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr("lrm.queries.workload.frames.import_module", refuse)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        release.to_pandas()
    with pytest.raises(MissingExtra, match="pip install polars"):
        release.to_polars()


@pytest.mark.parametrize(
    "amount", [{"epsilon": 10_000}, {"epsilon": 21, "delta": 1e-9}, {"rho": 50}]
)
def test_a_promise_that_protects_nobody_is_told(amount):
    noise = "laplace" if amount == {"epsilon": 10_000} else "gaussian"
    plan = lrm.plan([[1, 1]], "noise-on-data", noise=noise)
    with pytest.warns(PrivacyWarning, match="protects nobody") as caught:
        lrm.release(plan, [1, 2], **amount)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lrm.release(plan, [1, 2], **({"epsilon": 20} if noise == "laplace" else {"rho": 20}))


class Elements(HTMLParser):
    """Elements that are opened and closed, none of which may be a script."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):  # noqa: ARG002 - what the parser passes
        self.found.add(tag)
        if tag not in {"br", "hr", "img", "meta", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_notebooks_show_records(plan, release, domain, tmp_path):
    ledger = lrm.Ledger.open(str(tmp_path / "budget.sqlite"))
    budget = ledger.create("patients", limit=1)
    compared = lrm.compare(SQL, ["noise-on-data"], domain=domain)
    records = [domain, plan.workload, plan, release, release["n"], compared, budget]
    for record in records:
        html = record._repr_html_()
        tree = Elements(html)
        assert not tree.open
        assert "script" not in tree.found
        assert tree.found & {"table", "dl"}
        if record in (plan, release, compared):
            assert "svg" in tree.found
    assert "<Ledger" in repr(ledger)
    assert "1 epsilon left of 1" in repr(budget)
    assert "age        integers       20  0..4, 5..9, …, 95..99" in repr(domain)
    assert "protects one row" in repr(release)


def test_names_from_outside_are_escaped(tmp_path):
    domain = lrm.Domain([lrm.Categories(BAD, [BAD, "\x1b[2J"])], table=BAD)
    batch = lrm.marginals(domain, 1, name=BAD)
    plan = lrm.plan(batch, "noise-on-data")
    release = lrm.release(plan, [1, 2], epsilon=1)
    budget = lrm.Ledger.open(str(tmp_path / "budget.sqlite")).create(BAD, limit=1)
    for record in (domain, batch, plan, release, release[BAD], plan.errors(1), budget):
        assert "<script" not in record._repr_html_()
        assert "\x1b" not in record._repr_html_()
        assert "\x1b" not in repr(record)


def test_a_batch_too_large_to_list_is_refused():
    plan = lrm.plan(lrm.families.all_ranges(2_900), "wavelet")
    with pytest.raises(WorkloadError, match="too large to list"):
        plan.errors(1)
    assert "<svg" not in plan._repr_html_()
