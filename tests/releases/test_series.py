"""The releases of one report over its editions: alignment, changes, and their intervals."""

import json
import math
import re

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain.discovery import Discovery
from lrm.errors import UsageError
from lrm.planning.accuracy.intervals import independent_half_widths
from lrm.privacy.laws import LatticeLaw, NoiseLaw

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")

SQL = """
SELECT day, COUNT(*) AS orders FROM shop GROUP BY day;
SELECT kind, COUNT(*) AS n, AVG(amount) AS mean FROM shop GROUP BY kind;
SELECT COUNT(*) AS total FROM shop WHERE kind <> 'food';
"""


def domain(*kinds, by="month"):
    day = lrm.Dates("day", "2000-01-01", "2000-01-31", "day", null="drop", relative=True)
    amount = lrm.Integers("amount", 0, 3)
    attributes = [day, lrm.Categories("kind", kinds or ("books", "food")), amount]
    return lrm.Domain(attributes, "shop", editions=lrm.Editions(by, "day"))


def published(edition, *kinds, epsilon=1000, rows=2, sql=SQL, noise="laplace"):
    """A release of an edition in which every cell has as many rows."""
    own = domain(*kinds).at(edition)
    plan = lrm.plan(sql, "noise-on-data", domain=own, noise=noise)
    amount = {"rho": epsilon} if noise == "gaussian" else {"epsilon": epsilon}
    counts = np.zeros(plan.workload.domain.shape, dtype=np.int64)
    counts[tuple(map(slice, own.shape))] = rows  # none that an attribute drops
    return lrm.release(plan, counts.ravel(), **amount)


@pytest.fixture(scope="module")
def months():
    return {
        "2024-03": published("2024-03", rows=5),
        "2025-01": published("2025-01", rows=2),
        "2025-02": published("2025-02", "books", "food", "toys", rows=3),
        "2025-03": published("2025-03", "books", "food", "toys", rows=7),
    }


def column(frame, name):
    place = frame.header.index(name)
    return [row[place] for row in frame.rows()]


def test_changes_are_differences_of_the_same_rows(months):
    series = lrm.Series([months[name] for name in ("2025-03", "2024-03", "2025-02", "2025-01")])
    assert series.names == tuple(months)
    frame = series.frame("n")
    kinds = ["books", "food"] * 2 + ["books", "food", "toys"] * 2
    assert column(frame, "kind") == kinds
    n = column(frame, "n")
    days = [31, 31, 31, 31, 28, 28, 28, 31, 31, 31]
    rows = [5, 5, 2, 2, 3, 3, 3, 7, 7, 7]
    assert np.allclose(n, [4 * d * r for d, r in zip(days, rows, strict=True)], atol=1)
    change = column(frame, "n_change")
    missing = [0, 1, 2, 3, 6]  # no edition before, and a kind that it does not have
    assert [k for k in range(10) if change[k] is None] == missing
    assert np.allclose([change[4], change[9]], [n[4] - n[2], n[9] - n[6]])
    year = column(frame, "n_year_change")
    assert [k for k in range(10) if year[k] is not None] == [7, 8], "toys were not sold then"
    assert np.isclose(year[7], n[7] - n[0])
    for name in ("n_change", "mean_change", "n_year_change"):
        low, high = column(frame, f"{name}_low"), column(frame, f"{name}_high")
        ends = zip(low, column(frame, name), high, strict=True)
        assert all(a <= b <= c for a, b, c in ends if b is not None)


def test_dated_rows_are_compared_with_the_same_place(months):
    frame = lrm.Series(list(months.values())[1:]).frame("orders")
    days, change = column(frame, "day"), column(frame, "orders_change")
    of = {day.isoformat(): value for day, value in zip(days, change, strict=True)}
    assert of["2025-01-31"] is None
    assert np.isclose(of["2025-02-28"], 12 * 3 - 8 * 2, atol=1)
    assert np.isclose(of["2025-03-05"], 12 * 7 - 12 * 3, atol=1)
    assert of["2025-03-31"] is None, "February has no 31st day"


def test_a_single_edition_and_a_missing_one(months):
    series = lrm.Series([months["2025-01"]])
    assert "total_change" not in series.frame("total").number_columns()
    gap = lrm.Series([months["2025-01"], months["2025-03"]]).frame("total")
    assert "total_change" not in gap.number_columns(), "February is the edition before March"
    assert len(gap) == 2


def test_what_is_not_one_report_is_refused(months, tmp_path):
    first = months["2025-01"]
    other = published("2025-02", sql="SELECT kind, COUNT(*) AS n FROM shop GROUP BY kind")
    condition = published("2025-03", sql=SQL.replace("<> 'food'", "<> 'books'"))
    timeless = lrm.release(lrm.plan([[1, 1]]), [1, 2], epsilon=1)
    several = published("2025-01..2025-02")
    for releases, words in [
        ([], "a series needs a list of releases"),
        (first, "a series needs a list of releases"),
        ([first, 3], "made of releases or their files, not int"),
        ([first, first], "release 1 and release 2 are both of 2025-01"),
        ([first, other], "the first has the statements orders"),
        ([first, condition], "count other rows"),
        ([first, timeless], "release 2 is of no edition"),
        ([first, several], "release 2 is of several editions"),
    ]:
        with pytest.raises(UsageError, match=words):
            lrm.Series(releases)
    place = tmp_path / "plan.lrm"
    first.plan.save(place)
    with pytest.raises(lrm.LrmError, match=r"plan\.lrm"):
        lrm.Series([first, place])


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_intervals_of_changes_are_of_both_noises(noise):
    pair = [published(name, noise=noise, epsilon=0.25) for name in ("2025-01", "2025-03")]
    pair.insert(1, published("2025-02", noise=noise, epsilon=1))
    frame = lrm.Series(pair).frame("total")
    half = frame.numbers["half_width"][:, 0]
    change = (frame.numbers["change_high"] - frame.numbers["change_low"])[:, 0] / 2
    for k in (1, 2):
        assert change[k] < half[k] + half[k - 1]
        if noise == "gaussian":
            assert math.isclose(change[k], math.hypot(half[k], half[k - 1]), rel_tol=1e-3)
        else:
            assert change[k] > 0.95 * math.hypot(half[k], half[k - 1])


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_what_a_person_loses_has_each_discovery_once(noise, tmp_path):
    found = Discovery(1, "0.01", "1e-8", 1, 40, 7.1, 40, edition="2025-02")
    kind = lrm.Categories("kind", ["books", "food"], discovered=[found])
    releases = []
    for name in ("2025-01", "2025-02", "2025-03"):
        own = domain()
        attributes = [kind if a.name == "kind" and name > "2025-01" else a for a in own.attributes]
        unit = lrm.PrivacyUnit("customer", 4)
        editions = lrm.Editions("month", "day")
        own = lrm.Domain(attributes, "shop", unit, editions=editions).at(name)
        plan = lrm.plan(SQL, "noise-on-data", domain=own, noise=noise)
        counts = np.zeros(plan.workload.domain.shape, dtype=np.int64).ravel()
        amount = {"rho": "0.1"} if noise == "gaussian" else {"epsilon": "0.2"}
        releases.append(lrm.release(plan, counts, **amount))
    series = lrm.Series(releases)
    series.write(tmp_path / "series.md")
    text = (tmp_path / "series.md").read_text()
    total = {"gaussian": "0.31", "laplace": "0.07"}[noise]  # three times 0.1 or 0.2²/2, and 0.01
    assert f"at most ρ = {total} with δ = 1e-08 for somebody who is in all 3 editions" in text
    lrm.Series(releases[:1]).write(tmp_path / "first.md")
    alone = {"gaussian": "ρ = 0.1", "laplace": "ε = 0.2"}[noise]
    assert f"at most {alone} for somebody" in (tmp_path / "first.md").read_text()


def test_computed_columns_have_the_values_of_the_release(tmp_path):
    sql = """
    SELECT MAX(n) AS most FROM (SELECT kind, COUNT(*) AS n FROM shop GROUP BY kind);
    SELECT kind, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS part
    FROM shop GROUP BY kind HAVING COUNT(*) > 1;
    """
    series = lrm.Series([published(name, sql=sql) for name in ("2025-01", "2025-02")])
    for name in ("most", "part"):
        frame = series.frame(name)
        own = [column(release.frame(name), name) for release in series.each]
        values = column(frame, name)
        half = len(values) // 2
        assert None not in values
        assert [set(values[:half]), set(values[half:])] == [set(entry) for entry in own]
        assert set(column(frame, f"{name}_low")) == {None}
        assert set(column(frame, f"{name}_change")) == {None}
        assert "by the noisy answers" in str(frame.caveats)
    series.write(tmp_path / "series.md")
    text = (tmp_path / "series.md").read_text()
    assert "most: by the noisy answers, without an interval" in text
    assert "unbounded" not in text


def test_files_of_several_editions_are_left_out(months, tmp_path):
    names = ("2025-01", "2025-02", "2025-01..2025-02")
    files = [str(tmp_path / f"{name}.lrm") for name in names]
    for name, file in zip(names, files, strict=True):
        (months[name] if name in months else published(name)).save(file)
    place = str(tmp_path / "series.md")
    result = CliRunner().invoke(main, ["report", *files, "-o", place])
    assert result.exit_code == 0, result.output
    assert f"left out, since a series has single editions: {files[2]}" in result.output
    assert "the series of 2 editions" in result.output
    result = CliRunner().invoke(main, ["report", files[2], files[2], "-o", f"{place}.md"])
    assert result.exit_code == 2
    assert "leave it out" in result.output


def _survival(pairs, h):
    """P(|Σ| > h) of discrete Laplace noises (scale, step), by their exact laws."""
    law = np.ones(1)
    for scale, step in pairs:
        k = np.arange(-1200, 1201)
        mass = np.where(k % step == 0, np.exp(-np.abs(k) / scale), 0.0)
        law = np.convolve(law, mass / mass.sum())
    k = np.arange(len(law)) - len(law) // 2
    return law[np.abs(k) > h].sum()


@pytest.mark.parametrize(
    "pairs",
    [
        [(20, 1), (50, 1)],
        [(1.2, 1), (0.7, 1)],
        [(6, 4), (3, 6)],
        [(5, 20), (9, 1)],
        [(40, 1), (4, 9)],
    ],
)
def test_half_widths_of_two_noises_by_their_exact_law(pairs):
    def law(scale, step):
        return NoiseLaw("laplace", scale) if step == 1 else LatticeLaw("laplace", scale, (step,))

    one = np.ones((1, 1))
    parts = [(one, one, law(scale, step)) for scale, step in pairs]
    h = float(independent_half_widths(parts, 0.95)[0])
    assert _survival(pairs, h) <= 0.05 * (1 + 1e-9)
    assert _survival(pairs, 0.75 * h) > 0.05 or h < 12, "not far wider than it has to be"


def test_a_page_names_undeclared_values_as_that_of_a_release_does(tmp_path):
    kind = lrm.Categories("kind", ["books", "food"], null="cell", outside="cell")
    day = lrm.Dates("day", "2000-01-01", "2000-01-31", "month", null="drop", relative=True)
    shop = lrm.Domain([day, kind], "shop", editions=lrm.Editions("month", "day"))
    text = "SELECT kind, COUNT(*) AS n FROM shop GROUP BY kind"
    plans = [lrm.plan(text, "noise-on-data", domain=shop.at(f"2025-0{k}")) for k in (1, 2)]
    cells = plans[0].workload.domain.size
    releases = [lrm.release(plan, [5] * cells, epsilon=1) for plan in plans]
    lrm.Series(releases).write(tmp_path / "series.html")
    releases[0].report(tmp_path / "release.html")
    for page in ("series.html", "release.html"):
        shown = (tmp_path / page).read_text()
        assert ">not stated<" in shown
        assert "(null)" not in re.sub(r"<(script|style).*?</\1>", "", shown, flags=re.DOTALL)


def test_files_of_a_series(months, tmp_path):
    series = lrm.Series(list(months.values()))
    files = []
    for name, release in months.items():
        files.append(tmp_path / f"{name}.lrm")
        release.save(files[-1])
    assert lrm.Series(files[::-1]).frame("n").rows() == series.frame("n").rows()
    for ending in ("html", "md", "json", "xlsx"):
        series.write(tmp_path / f"series.{ending}")
    page = (tmp_path / "series.html").read_text()
    assert page.count('class="chart"') == 3
    assert "change since 2025-02" in page
    assert "change since 2024-03" in (tmp_path / "series.md").read_text()
    facts = json.loads((tmp_path / "series.json").read_text())
    assert [entry["edition"] for entry in facts["editions"]] == list(months)
    series.write(tmp_path / "tables/")
    header = (tmp_path / "tables" / "total.csv").read_text().splitlines()[0]
    assert header.startswith("edition,total,")
    assert "total_year_change_high" in header
    series.write(tmp_path / "n.parquet", statement="n")
    assert "change since" in series._repr_html_()
    with pytest.raises(UsageError, match="written to a file ending in"):
        series.write(tmp_path / "series.csv")
