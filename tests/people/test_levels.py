"""Statements about persons and about rows in one batch: one plan, one guarantee, one charge."""

import dataclasses
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.domain.file import domain_text, parse_domain
from lrm.domain.people import Levels
from lrm.errors import LrmError
from lrm.files.archive import read_archive, write_archive
from lrm.planning.plan.levels import LevelsPlan, best_shares, weights_as_shares
from lrm.privacy.budget import ZCDP, PureDP
from lrm.privacy.mechanism import measure
from lrm.queries.workload.levels import split_levels
from lrm.releases.core import from_measurements
from lrm.releases.levels import LevelsRelease
from lrm.releases.making import prepare
from lrm.releases.postprocess import process
from people.shop import SHOP, tables

BATCH = """\
SELECT region, COUNT(*) AS customers FROM customers GROUP BY region;
SELECT category, COUNT(*) AS orders FROM orders GROUP BY category;
SELECT date_trunc('month', day) AS month, COUNT(DISTINCT customer) AS buyers FROM orders GROUP BY 1;
SELECT c.region, AVG(o.amount) AS mean FROM orders o JOIN customers c ON o.customer = c.id
  GROUP BY c.region;
SELECT category, COUNT(*) / COUNT(DISTINCT customer) AS per_buyer FROM orders GROUP BY category;
SELECT COUNT(*) AS visits FROM visits
"""

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")


@pytest.fixture(scope="module")
def data():
    return tables()


@pytest.fixture(scope="module")
def plans():
    return {
        noise: lrm.plan(BATCH, domain=SHOP, noise=noise, effort="quick")
        for noise in ("pure", "gaussian")
    }


def truth(data, most=4):
    """What the statements are about, where no customer has too many orders."""
    orders = data["orders"]
    known = orders[orders["customer"].isin(data["customers"]["id"])]
    return {
        "customers": data["customers"].groupby("region").size(),
        "buyers": known.groupby(known["day"].dt.strftime("%Y-%m"))["customer"].nunique(),
        "visits": data["visits"].groupby("customer").size().clip(upper=6).sum(),
    }


def releases(plan, data, count, **amount):
    """Many releases of the same tables, which are counted once."""
    prepared = prepare(plan, data, plan.privacy(**amount), plan.unit, None)
    counts = [part.source.counts() for part in prepared.parts]
    for _ in range(count):
        parts = []
        for part, own in zip(prepared.parts, counts, strict=True):
            measured = measure(own, part.plan.measured, part.noise.drawn())
            parts.append(from_measurements(part.plan, measured, part.unit))
        yield LevelsRelease.of(plan, parts, prepared.privacy, plan.unit)


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_each_statement_is_about_its_own_level(plans, data, noise):
    amount = {"epsilon": 3000} if noise == "pure" else {"rho": 300_000}
    release = lrm.release(plans[noise], data, ledger=None, **amount)
    expected = truth(data)
    customers = release.frame("customers").to_pandas().set_index("region")["customers"]
    assert customers.to_dict() == pytest.approx(expected["customers"].to_dict(), abs=0.2)
    buyers = release.frame("buyers").to_pandas()["buyers"]
    assert sorted(buyers) == pytest.approx(sorted(expected["buyers"]), abs=0.2)
    assert release["visits"].numbers["answer"][0] == pytest.approx(expected["visits"], abs=0.3)


def test_a_ratio_of_two_levels_is_that_of_its_parts(data):
    """Rows per buyer is the answer about rows divided by the answer about persons."""
    text = """SELECT category, COUNT(*) AS n FROM orders GROUP BY category;
        SELECT category, COUNT(DISTINCT customer) AS k FROM orders GROUP BY category;
        SELECT category, COUNT(*) / COUNT(DISTINCT customer) AS r FROM orders GROUP BY category;
        SELECT COUNT(*) * 1.0 / COUNT(DISTINCT customer) AS all_r FROM orders"""
    plan = lrm.plan(text, domain=SHOP, effort="quick")
    release = lrm.release(plan, data, epsilon=50, ledger=None)
    n, k, r = (release.frame(name).to_pandas()[name].to_numpy() for name in "nkr")
    np.testing.assert_allclose(r, n / k)
    ends = release.frame("r").to_pandas()
    assert (ends["r_low"] < r).all()
    assert (r < ends["r_high"]).all()


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_the_interval_of_a_ratio_holds_as_often_as_it_says(data, noise):
    text = "SELECT COUNT(*) / COUNT(DISTINCT customer) AS r FROM orders"
    plan = lrm.plan(text, domain=SHOP, noise=noise, effort="quick")
    amount = {"epsilon": 2} if noise == "pure" else {"rho": 1}
    exact = {"epsilon": 10**5} if noise == "pure" else {"rho": 10**8}
    true = lrm.release(plan, data, ledger=None, **exact)["r"].numbers["answer"][0]
    held = 0
    for release in releases(plan, data, 40, **amount):
        numbers = release["r"].numbers
        held += numbers["low"][0] - 1e-3 <= true <= numbers["high"][0] + 1e-3
    assert held >= 32  # 95 %: fewer with probability below 1e-4


def test_shares_add_up_to_the_guarantee_and_are_the_best(plans):
    for noise, plan in plans.items():
        assert sum(plan.shares) == 1
        whole = PureDP(Fraction(1)) if noise == "pure" else ZCDP(Fraction(1))
        parts = [next(iter(part.amounts.values())) for _, part in plan.releases(whole)]
        assert sum(parts) == 1
        squares = float((plan.statement_ratios**2).sum())
        for first, second in ((0, 1), (1, 0), (0, 2), (1, 2)):
            shares = list(plan.shares)
            shares[first] += Fraction(1, 20)
            shares[second] -= Fraction(1, 20)
            other = LevelsPlan.of(plan.workload, plan.parts, shares, plan.objective)
            # A statement of two levels counts in both, and its ratio is the larger one.
            assert float((other.statement_ratios**2).sum()) > 0.97 * squares


@pytest.mark.parametrize(("gaussian", "power"), [(False, 1 / 3), (True, 1 / 2)])
def test_best_shares_of_the_total_error(gaussian, power):
    class Part:
        noise = "gaussian" if gaussian else "laplace"

        def __init__(self, error, factor):
            self.weighted_strategy_error = error
            self.unit = type("Unit", (), {"factor": factor})

    shares = best_shares([Part(1.0, 1), Part(9.0, 3)], "total")
    assert float(shares[1] / shares[0]) == pytest.approx(81**power, rel=0.01)
    assert sum(weights_as_shares([0.0, 1e9, 1.0])) == 1


def test_stated_errors_are_those_of_the_noise(plans, data):
    """The plan's errors at a guarantee are those that many releases have."""
    plan = plans["pure"]
    stated = plan.standard_errors(epsilon=1)
    total = plan.expected_squared_error(epsilon=1)
    assert float((stated**2).sum()) == pytest.approx(total)
    draws = np.array([release.answers for release in releases(plan, data, 60, epsilon=1)])
    assert draws.std(axis=0) == pytest.approx(stated, rel=0.5)
    assert float(np.mean(draws.var(axis=0) / stated**2)) == pytest.approx(1, rel=0.25)


def test_a_file_holds_the_whole_plan_and_release(plans, data, tmp_path):
    for noise, plan in plans.items():
        plan.save(tmp_path / "plan.lrm")
        loaded = lrm.load_plan(tmp_path / "plan.lrm")
        assert isinstance(loaded, LevelsPlan)
        assert loaded.digest == plan.digest
        amount = {"epsilon": 1} if noise == "pure" else {"epsilon": 1, "delta": "1e-6"}
        release = lrm.release(loaded, data, ledger=None, **amount)
        release.save(tmp_path / "release.lrm")
        again = lrm.load_release(tmp_path / "release.lrm")
        np.testing.assert_array_equal(again.answers, release.answers)
        assert (again.loss, again.privacy) == (release.loss, release.privacy)
        assert again.loss == sum(part.loss for part in again.levels)


def test_a_domain_of_several_levels_is_written_and_read_again(plans):
    domain = plans["pure"].workload.domain
    assert isinstance(domain.level, Levels)
    assert parse_domain(domain_text(domain)) == domain
    assert domain.unit == SHOP.unit


def forged(path, change):
    facts, arrays = read_archive(path, "plan", 5)
    change(facts)
    write_archive(path, "plan", 5, facts, dict(arrays._arrays))
    return path


FORGERIES = {
    "a larger share": lambda facts: facts["levels"][0].update(share="999/1000"),
    "a share of nothing": lambda facts: facts["levels"][0].update(share="0"),
    "a level left out": lambda facts: facts["levels"].pop(),
    "levels in another order": lambda facts: facts["levels"].reverse(),
    "a smaller limit of rows": lambda facts: facts["levels"][1]["plan"].update(
        domain=facts["levels"][1]["plan"]["domain"].replace("most: 4", "most: 1")
    ),
    "a smaller limit everywhere": lambda facts: [
        entry.update(domain=entry["domain"].replace("most: 4", "most: 1"))
        for entry in (facts, *(level["plan"] for level in facts["levels"]))
    ],
    "an attribute of persons for one of rows": lambda facts: facts.update(
        domain=facts["domain"].replace("events: orders", "events: visits")
    ),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_plan_is_refused(plans, tmp_path, change):
    plans["pure"].save(tmp_path / "plan.lrm")
    forged(tmp_path / "plan.lrm", change)
    with pytest.raises(LrmError):
        lrm.load_plan(tmp_path / "plan.lrm")


def test_levels_with_other_shares_are_refused(plans, data):
    release = lrm.release(plans["pure"], data, epsilon=1, ledger=None)
    other = lrm.release(plans["pure"], data, epsilon=2, ledger=None)
    with pytest.raises(LrmError, match="shares"):
        dataclasses.replace(release, parts=(other.parts[0], *release.parts[1:]))
    with pytest.raises(LrmError):
        dataclasses.replace(release, loss=release.loss / 2)


def test_the_budget_is_charged_once(plans, data, tmp_path):
    ledger = lrm.Ledger.open(tmp_path / "budget.sqlite")
    ledger.create("shop", limit=1, unit=SHOP.unit)
    lrm.release(plans["pure"], data, epsilon="0.7", ledger=ledger)
    assert ledger.budget("shop").remaining == Fraction(3, 10)
    with pytest.raises(LrmError, match=r"0\.3"):
        lrm.release(plans["pure"], data, epsilon="0.4", ledger=ledger)
    assert ledger.budget("shop").remaining == Fraction(3, 10)


def test_further_queries_are_about_their_levels(plans, data):
    release = lrm.release(plans["pure"], data, epsilon=10**6, ledger=None)
    more = release.query(
        """SELECT COUNT(*) AS k FROM customers WHERE region <> 'east';
           SELECT COUNT(*) AS n FROM orders WHERE category IN ('food', 'books');
           SELECT date_trunc('month', day) AS m, COUNT(DISTINCT customer) AS b FROM orders
             GROUP BY 1"""
    )
    customers = release.frame("customers").to_pandas().set_index("region")["customers"]
    assert more["k"].numbers["answer"][0] == pytest.approx(customers[["north", "south"]].sum())
    orders = release.frame("orders").to_pandas().set_index("category")["orders"]
    assert more["n"].numbers["answer"][0] == pytest.approx(orders[["food", "books"]].sum())
    buyers = release.frame("buyers").to_pandas()["buyers"]
    assert more["b"].numbers["answer"].ravel() == pytest.approx(buyers)
    alone = release.query("SELECT COUNT(*) AS n FROM orders WHERE category = 'food'")
    assert alone.answers[0] == pytest.approx(orders["food"])
    for text in (
        "SELECT COUNT(DISTINCT customer) AS n FROM orders WHERE amount >= 100",
        "SELECT COUNT(*) AS n FROM orders WHERE day < '2025-02-01'",
    ):
        with pytest.raises(LrmError):
            release.query(text)


def test_every_report_states_the_limit_of_rows(plans, data, tmp_path):
    release = lrm.release(plans["pure"], data, epsilon=1, ledger=None)
    caveats = {name: str(release.frame(name).caveats) for name in release}
    for name, caveat in caveats.items():
        assert ("at most 4 rows" in caveat) == (name in {"orders", "mean", "per_buyer"})
        assert ("at most 6 rows" in caveat) == (name == "visits")
        register = "'customers'; others are not counted" in caveat
        assert register == (name in {"customers", "buyers", "per_buyer"})
    release.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "at most 4 rows of each person" in page
    assert "are those with a row in" in page
    plans["pure"].report(tmp_path / "plan.html", epsilon=1)
    for ending in (".csv", ".parquet", ".json", ".xlsx", ".md"):
        release.write(tmp_path / f"answers{ending}")
    assert len(release.to_pandas()) == len(release.plan.workload.shown)
    consistent = dict(zip(release.names, release.consistent().answers, strict=True))
    assert consistent["visits"] >= 0
    assert min(value for name, value in consistent.items() if name.startswith("orders")) >= 0
    whole = process(release, ["consistent", "integer"])
    counts = [n for name, n in zip(release.names, whole.answers, strict=True) if "mean" not in name]
    assert np.array_equal(counts, np.rint(counts))  # of each level its own rows
    with pytest.raises(LrmError, match=r"release\.levels"):
        release.synthesize()


def test_the_queries_of_the_batch_are_those_of_the_levels(plans):
    """The matrix over all levels has the rows of each level's own matrix, and 0 elsewhere."""
    batch = plans["pure"].workload
    split, domain = split_levels(batch), batch.domain
    owners, _ = split.places.of(np.arange(batch.shape[0]))
    whole = batch.queries.dense().reshape(-1, *domain.shape)
    for number, (level, part) in enumerate(zip(domain.level.levels, split.batches, strict=True)):
        axes = domain.level.axes(level)
        own = part.queries.dense().reshape(-1, *part.domain.shape)
        rows = whole[owners == number]
        assert not np.delete(rows, number, axis=1).any()
        others = [k for k in range(1, len(domain.shape)) if k not in axes]
        at_first = rows[:, number]
        for k in reversed(others):
            at_first = np.take(at_first, 0, axis=k)
        places = [sorted(axes).index(axis) for axis in axes]
        np.testing.assert_array_equal(np.transpose(at_first, (0, *(1 + p for p in places))), own)


def test_intervals_of_a_level_are_those_of_its_own_release():
    """Of medians, too, whose intervals follow from the joint noise of running totals."""
    orders = lrm.PrivateTable("orders", "who", [lrm.Integers("x", 0, 19)], most=4)
    text = """SELECT COUNT(DISTINCT who) AS b FROM orders; SELECT MEDIAN(x) AS mid FROM orders;
        SELECT AVG(x) AS mean FROM orders"""
    plan = lrm.plan(text, domain=lrm.People("shop", [orders]), effort="quick")
    rows = pd.DataFrame({"who": np.arange(400) % 100, "x": np.arange(400) % 20})
    release = lrm.release(plan, {"orders": rows}, epsilon=1, ledger=None)
    (own,) = [level for level in release.levels if "mid" in level]
    for name in ("mid", "mean"):
        both = [each.frame(name).to_pandas() for each in (release, own)]
        np.testing.assert_allclose(
            both[0].to_numpy(dtype=float), both[1].to_numpy(dtype=float), rtol=1e-9
        )
        low, high = (both[0][f"{name}_{end}"].item() for end in ("low", "high"))
        assert low <= both[0][name].item() <= high
