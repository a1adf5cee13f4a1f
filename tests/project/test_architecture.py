"""The page on architecture is true: its tables list the calls that happen, in that order."""

import re
from importlib import import_module

import pytest

import lrm
from benchmarks.gates.shape import walk
from import_graph import packages
from lrm.cli.demo_table import DOMAIN, QUESTIONS, SyntheticPatients
from lrm.domain.file import parse_domain
from pages import PAGES, ROOT

PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")

MOST_FILES, MOST_ROUNDINGS = 60, 2
"""Files of the planning packages that the README's plan enters, and strategies that it rounds."""


def hops(heading):
    """The functions of the table under a heading."""
    section = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(lrm\.[\w.]+)` \|", section, re.MULTILINE)


def assert_in_order(table, entered):
    assert len(table) > 8
    found = list(entered.calls)
    missing = [hop for hop in table if hop not in entered.calls]
    assert not missing, f"never entered: {missing}"
    assert sorted(table, key=found.index) == table


@pytest.fixture(scope="module")
def plan_walk():
    """The call of the README: its batch, and no option."""
    return walk(lambda: lrm.plan(QUESTIONS, domain=parse_domain(DOMAIN)))


def test_the_walk_of_a_plan(plan_walk):
    assert_in_order(hops("Plan"), plan_walk)


def test_a_plan_enters_few_files_and_rounds_few_strategies(plan_walk):
    """What a reader of this call must open; ``python -m benchmarks shape`` prints the figures."""
    assert len(plan_walk.modules) <= MOST_FILES
    assert plan_walk.roundings <= MOST_ROUNDINGS


def test_a_plan_is_constructed_once(plan_walk):
    assert plan_walk.plans == 1


def test_the_walk_of_a_release(tmp_path):
    SyntheticPatients.generate(patients=50).write(tmp_path / "patients.csv")
    ledger = tmp_path / "budget.sqlite"
    lrm.Ledger.open(ledger).create("patients", 1)
    plan = lrm.plan(QUESTIONS, "noise-on-data", domain=parse_domain(DOMAIN))

    def release():
        made = lrm.release(plan, tmp_path / "patients.csv", epsilon="0.1", ledger=ledger)
        assert len(made.answers)

    assert_in_order(hops("Release"), walk(release))


def names_on_pages():
    """Dotted names of the package on all pages but the changelog, which speaks of the past."""
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            text = page.read_text(encoding="utf-8")
            yield from re.findall(r"`(lrm(?:\.\w+){2,})[`(]", text)


@pytest.mark.parametrize("name", sorted(set(names_on_pages())))
def test_every_name_on_a_page_exists(name):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return
    pytest.fail(f"no module for {name}")


def test_every_room_is_on_the_page():
    rooms = re.findall(r"^\| `(\w+)/?` \|", PAGE, re.MULTILINE)
    assert sorted(rooms) == sorted(packages())
