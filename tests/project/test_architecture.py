"""The page on architecture is true: its tables list the calls that happen, in that order."""

import re
import sys
from importlib import import_module

import pytest

import lrm
from import_graph import packages
from lrm.cli.demo_table import DOMAIN, QUESTIONS, SyntheticPatients
from lrm.domain.file import parse_domain
from pages import PAGES, ROOT

PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")


def hops(heading):
    """The functions of the table under a heading."""
    section = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(lrm\.[\w.]+)` \|", section, re.MULTILINE)


@pytest.fixture
def entered():
    """Names of lrm's functions in the order in which they are first entered."""
    names: dict[str, None] = {}

    def note(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("lrm."):
            names.setdefault(f"{module}.{frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    yield names
    sys.setprofile(before)


def assert_in_order(walk, entered):
    assert len(walk) > 8
    found = list(entered)
    missing = [hop for hop in walk if hop not in entered]
    assert not missing, f"never entered: {missing}"
    assert sorted(walk, key=found.index) == walk


def test_the_walk_of_a_plan(entered):
    """The call of the README: its batch, and no option."""
    lrm.plan(QUESTIONS, domain=parse_domain(DOMAIN))
    assert_in_order(hops("Plan"), entered)


def test_the_walk_of_a_release(tmp_path, entered):
    SyntheticPatients.generate(patients=50).write(tmp_path / "patients.csv")
    ledger = tmp_path / "budget.sqlite"
    lrm.Ledger.open(ledger).create("patients", 1)
    plan = lrm.plan(QUESTIONS, "noise-on-data", domain=parse_domain(DOMAIN))
    entered.clear()
    release = lrm.release(plan, tmp_path / "patients.csv", epsilon="0.1", ledger=ledger)
    assert len(release.answers)
    assert_in_order(hops("Release"), entered)


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
