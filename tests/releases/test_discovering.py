"""Values that are discovered: from a table to a domain, and to releases that state all of it."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.domain.discovery import Discovery
from lrm.domain.file import domain_text, parse_declared, read_domain
from lrm.errors import TableError, UsageError
from lrm.privacy.budget import ApproxZCDP
from lrm.releases.discovering import discover
from lrm.views.release_page import release_page
from lrm.views.releases import release_facts

SHOP = """
lrm-domain: 1
table: orders
unit: {column: who, max_rows: 4}
editions: {by: month, date: day}
attributes:
  - {name: day, kind: dates, start: edition, by: day, null: drop, outside: drop}
  - {name: tag, kind: categories, values: [books], null: drop, outside: cell}
"""
PEOPLE = """
lrm-domain: 2
people: shop
tables:
  - name: orders
    person: who
    rows: {most: 4}
    attributes:
      - {name: size, kind: categories, values: [s, m], null: drop, outside: drop}
"""
AMOUNTS = {"most": 2, "rho": "0.05", "delta": "1e-7"}


@pytest.fixture(scope="module")
def orders():
    """Orders of 900 customers; in February they buy plants, and each one a gift of their own."""
    g = np.random.default_rng(1)
    frame = pd.DataFrame({"who": np.tile(np.arange(900), 4)})
    frame["day"] = pd.to_datetime(np.where(np.arange(3600) % 3, "2025-02-28", "2025-01-31")).date
    frame["tag"] = g.choice(["books", "toys"], 3600)
    february = np.arange(3600) % 3 != 0
    frame.loc[february & (np.arange(3600) % 2 == 0), "tag"] = "plants"
    frame.loc[3000:, "tag"] = [f"gift for {who}" for who in frame["who"][3000:]]
    frame["size"] = "s"
    return frame


def ledger_for(tmp_path, declared):
    ledger = lrm.Ledger.open(tmp_path / "ledger.sqlite")
    name = getattr(declared, "table", None)
    name = declared.name if callable(name) else name
    ledger.create(name, 1, "rho", unit=declared.unit, delta_limit="1e-6")
    return ledger, name


def test_values_of_many_persons_become_those_of_a_domain(orders, tmp_path):
    shop = parse_declared(SHOP)
    ledger, _ = ledger_for(tmp_path, shop)
    january = discover(shop, orders, "tag", edition="2025-01", ledger=ledger, **AMOUNTS)
    assert list(january.persons) == ["toys"]
    both = discover(january.domain, orders, "tag", edition="2025-02", ledger=ledger, **AMOUNTS)
    assert list(both.persons) == ["plants"], "toys are declared by now"
    tag = both.domain.attribute("tag")
    assert tag.labels[:3] == ("books", "toys", "plants")
    assert tag.outside == "cell"
    assert [(e.edition, e.count, e.head) for e in tag.discovered] == [
        (entry.editions[0], 1, entry.head) for entry in ledger.history() if entry.editions
    ]
    again = parse_declared(domain_text(both.domain))
    assert again == both.domain
    assert again.digest != shop.digest
    for edition in ("2025-01", "2025-02"):
        assert ledger.remaining("orders", edition) == Fraction(95, 100)


def test_releases_state_the_whole_guarantee(orders, tmp_path):
    found = discover(parse_declared(SHOP), orders, "tag", edition="2025-02", ledger=None, **AMOUNTS)
    text = "SELECT tag, COUNT(*) AS n FROM orders GROUP BY tag"
    for edition, whole in (
        ("2025-02", ApproxZCDP(Fraction(15, 100), Fraction(1, 10**7))),
        ("2025-03", None),
        ("2025-01..2025-03", ApproxZCDP(Fraction(15, 100), Fraction(1, 10**7))),
    ):
        plan = lrm.plan(text, domain=found.domain.at(edition), noise="gaussian", effort="quick")
        made = lrm.release(plan, orders, rho="0.1", ledger=None)
        made.save(tmp_path / "answers.lrm")
        read = lrm.load_release(tmp_path / "answers.lrm")
        assert read.whole.guarantee == whole
        words = (
            "together with this release that is ρ = 0.15, δ = 1e-07"
            if whole
            else "discovered in 2025-02"
        )
        assert words in read.stated["guarantee"]
        assert words in release_page(read)
        facts = release_facts(read)["privacy"]
        assert (facts["together"] is None) == (whole is None)
        json.dumps(facts)
        assert read.frame("n").columns[0].labels[:3] == ("books", "plants", "toys")
    pure = lrm.plan(text, domain=found.domain.at("2025-02"), effort="quick")
    whole = lrm.release(pure, orders, epsilon="0.2", ledger=None).whole.guarantee
    assert whole == ApproxZCDP(Fraction(7, 100), Fraction(1, 10**7))


def test_a_table_of_a_people(orders, tmp_path):
    people = parse_declared(PEOPLE)
    ledger, name = ledger_for(tmp_path, people)
    found = discover(people, orders, "tag", table="orders", ledger=ledger, **AMOUNTS)
    assert list(found.persons) == ["books", "plants", "toys"]
    assert ledger.budget(name).delta.spent == Fraction(1, 10**7)
    again = parse_declared(domain_text(found.domain))
    assert again == found.domain
    text = "SELECT tag, COUNT(*) AS n FROM orders GROUP BY tag; SELECT COUNT(*) AS m FROM orders"
    plan = lrm.plan(text, domain=again, noise="gaussian", effort="quick")
    made = lrm.release(plan, {"orders": orders}, rho="0.1", ledger=ledger)
    assert made.whole.guarantee.delta == Fraction(1, 10**7)
    with pytest.raises(UsageError, match="name the table of 'shop'"):
        discover(people, orders, "tag", ledger=None, **AMOUNTS)


def test_values_that_only_conditions_name_count_as_used(orders):
    """Numbers of persons by value are yes/no features: the attribute is none of their table."""
    found = discover(
        parse_declared(PEOPLE), orders, "tag", table="orders", ledger=None, **AMOUNTS
    ).domain
    for text in (
        "SELECT tag, COUNT(DISTINCT who) AS n FROM orders GROUP BY tag",
        "SELECT tag, COUNT(DISTINCT who) FROM orders GROUP BY tag; SELECT COUNT(*) FROM orders",
    ):
        plan = lrm.plan(text, domain=found, noise="gaussian", effort="quick")
        made = lrm.release(plan, {"orders": orders}, rho="0.1", ledger=None)
        assert [name for name, _ in made.whole.discoveries] == ["tag"]
        assert made.whole.guarantee == ApproxZCDP(Fraction(15, 100), Fraction(1, 10**7))


def test_equal_records_are_discoveries_of_their_own():
    entry = Discovery(1, "0.05", "1e-7", most=1, least=18, scale=3.2, length=40)
    tag = lrm.Categories("tag", ["a", "b"], discovered=[entry, entry])
    plan = lrm.plan("SELECT tag, COUNT(*) AS n FROM t GROUP BY tag", domain=lrm.Domain([tag], "t"))
    made = lrm.release(plan, [3, 4], epsilon="0.2")
    assert made.whole.guarantee == ApproxZCDP(Fraction(12, 100), Fraction(2, 10**7))


def test_several_editions_need_a_higher_threshold(orders):
    """Rows of one month decide which of a person's values count in all of them."""
    shop = parse_declared(SHOP)
    one, several = (
        discover(shop, orders, "tag", edition=edition, ledger=None, **AMOUNTS).record
        for edition in ("2025-02", "2025-01..2025-03")
    )
    assert several.scale == pytest.approx(one.scale * 2**0.5)
    assert several.least > one.least
    replaced = parse_declared(SHOP.replace("max_rows: 4}", "max_rows: 4, neighbours: substitute}"))
    assert replaced != shop
    with pytest.raises(UsageError, match="discover the values of one edition"):
        discover(replaced, orders, "tag", edition="2025-01..2025-03", ledger=None, **AMOUNTS)


def test_what_is_wrong_is_found_before_the_charge(orders, tmp_path):
    shop = parse_declared(SHOP)
    ledger, _ = ledger_for(tmp_path, shop)
    common = {"edition": "2025-02", "ledger": ledger, **AMOUNTS}
    for attribute, more, message in [
        ("label", {}, "no column 'label'"),
        ("tag", {"edition": None}, "name the one to read"),
        ("day", {}, "is declared as dates"),
        ("tag", {"column": "size"}, "is read from column 'tag'"),
        ("who", {}, "names the persons"),
        ("size", {"pattern": "["}, "no regular expression"),
        ("size", {"length": 0}, "length must be"),
        ("size", {"most": 0}, "most must be a whole number"),
        ("size", {"delta": "1e-5"}, "delta left"),
    ]:
        with pytest.raises((UsageError, TableError, lrm.LrmError), match=message):
            discover(shop, orders, attribute, **{**common, **more})
    with pytest.raises(UsageError, match="needs ledger="):
        discover(shop, orders, "size", edition="2025-02", **AMOUNTS)
    assert len(ledger.history()) == 1
    rows = orders[["day", "size", "who"]].iloc[:10]
    few = discover(shop, rows, "size", **common)
    assert few.persons == {}
    assert few.domain == shop, "a category needs a value"


def test_a_file_whose_record_is_damaged_is_refused():
    record = (
        "discovered: [{count: 1, rho: 0.1, delta: 1e-8, most: 2, least: 30, scale: 3.2, length: 9}]"
    )
    text = SHOP.replace("values: [books]", f"values: [books, toys], {record}")
    assert parse_declared(text).attribute("tag").discovered[0].guarantee.rho == Fraction(1, 10)
    for old, new, message in [
        ("rho: 0.1", "rho: -1", "rho must be"),
        ("delta: 1e-8", "delta: 2", "delta must be"),
        ("count: 1", "count: 3", "fewer values than were discovered"),
        ("scale: 3.2", "scale: 0", "scale must be"),
        (", length: 9", "", "length"),
        ("least: 30", "least: 30, head: x", "head of a ledger"),
    ]:
        with pytest.raises(lrm.LrmError, match=message):
            parse_declared(text.replace(old, new))


def test_the_command(orders, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from lrm.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(SHOP)
    orders.to_csv("orders.csv", index=False)

    def run(*args):
        return CliRunner().invoke(main, [str(arg) for arg in args])

    made = run(
        *("budget", "create", "orders", "--limit", "1", "--accounting", "rho"),
        *("--delta-limit", "1e-6", "--domain", "shop.yaml", "--ledger", "l.sqlite"),
    )
    assert "1 rho, and 1e-06 delta" in made.output
    command = ["domain", "discover", "shop.yaml", "--table", "orders.csv", "--attribute", "tag"]
    command += ["--edition", "2025-02", "-o", "new.yaml"]
    pure = run(*command, "--most", "2", "--epsilon", "1", "--ledger", "l.sqlite")
    assert pure.exit_code == 2
    assert "from a public list" in pure.stderr
    assert "buckets of a public hash" in pure.stderr
    assert run(*command, "--most", "2", "--rho", "0.05", "--ledger", "l.sqlite").exit_code == 2
    amounts = ["--most", "2", "--rho", "0.05", "--delta", "1e-7"]
    assert run(*command, *amounts).exit_code == 2, "with or without a ledger?"
    done = run(*command, *amounts, "--ledger", "l.sqlite")
    assert done.exit_code == 0, done.output
    assert "plants" in done.output
    assert "gift" not in done.output
    assert read_domain("new.yaml").attribute("tag").labels[:3] == ("books", "plants", "toys")
    assert run(*command, *amounts, "--ledger", "l.sqlite").exit_code == 2, "the file exists"
    facts = json.loads(run(*command, *amounts, "--ledger", "l.sqlite", "--force", "--json").stdout)
    assert set(facts["values"]) == {"plants", "toys"}
    assert "2e-07 is spent" in run("budget", "show", "--ledger", "l.sqlite").output
