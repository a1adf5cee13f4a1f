"""Sessions on pages run, links lead somewhere, and every public name is in the reference."""

import io
import json
import os
import re
import sys
import zipfile
from itertools import chain
from pathlib import Path

import pytest
import yaml

import lrm
from lrm import errors
from lrm.cli import COMMANDS
from lrm.planning.strategies import MECHANISMS
from lrm.queries.maps.files import KINDS
from lrm.queries.workload import families
from pages import PAGES, ROOT, blocks, commands, run_page

DOCS = ROOT / "docs"
API = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def name_of(page):
    return str(page.relative_to(ROOT))


def prose(page):
    """The text without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Names of headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


WITH_SESSIONS = [
    page
    for page in PAGES
    # The README has its own test, and so has the page that needs a downloaded table.
    if page.name not in {"README.md", "tutorial-real-table.md"}
    and any(block.language in {"console", "pycon", "python"} for block in blocks(page))
]


@pytest.mark.parametrize("page", WITH_SESSIONS, ids=name_of)
def test_sessions_print_what_the_page_shows(page, tmp_path, monkeypatch):
    # Code on a page may run the command, which is next to the Python that runs the tests.
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", folders)
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in LINK.findall(prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists(), f"{name_of(page)} links to {target}"
        assert not anchor or anchor in anchors(place), f"{name_of(page)} links to {target}"


def test_every_page_is_reached_from_the_index():
    found, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in found:
            continue
        found.add(page)
        targets = (t.partition("#")[0] for t in LINK.findall(prose(page)))
        waiting += [(page.parent / t).resolve() for t in targets if t.endswith(".md")]
    assert set(DOCS.rglob("*.md")) <= found


def test_the_site_loads_nothing_from_other_hosts():
    """The plugin for reading from a folder would load a script; the site has its own."""
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    (script,) = site["extra"]["polyfills"]
    assert "iframe-worker" in script
    assert (DOCS / script).exists()
    assert site["theme"]["font"] is False


def test_every_public_name_is_in_the_reference():
    homes = {"sql": "lrm.queries.sql.sql", "families": "lrm.queries.workload.families"}
    shown = set(re.findall(r"^::: (\S+)$", API, re.MULTILINE))
    for name in {*lrm.__all__} - {"LrmError", "__version__"}:
        assert homes.get(name, f"lrm.{name}") in shown, name
        assert f"`lrm.{name}`" in API, name
    assert "lrm.errors" in shown


def test_what_the_reference_shows_has_docstrings():
    """The reference is made from docstrings: what has none would be missing in it."""
    things = [getattr(lrm, name) for name in lrm.__all__ if name != "__version__"]
    things += [getattr(families, name) for name in families.__all__]
    things += [thing for thing in vars(errors).values() if isinstance(thing, type)]
    for thing in things:
        assert thing.__doc__, thing
        if isinstance(thing, type):
            for name, member in vars(thing).items():
                if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                    assert member.__doc__, f"{thing.__name__}.{name}"


def test_every_mechanism_is_explained():
    page = (DOCS / "explanation" / "mechanism.md").read_text(encoding="utf-8")
    for mechanism in MECHANISMS:
        assert f"**`{mechanism}`**" in page, mechanism


def test_pages_name_no_command_that_does_not_exist():
    for page in PAGES:
        for block in blocks(page):
            if block.language == "console":
                for command, _ in commands(block.text):
                    words = command.split()
                    assert words[0] != "lrm" or words[1] in COMMANDS, command


def names_within(facts):
    """The names of facts at any depth; those of `details` are not part of the format."""
    for name, value in facts.items():
        yield name
        inner = value if isinstance(value, list) else [value]
        for part in inner:
            if isinstance(part, dict) and name != "details":
                yield from names_within(part)


@pytest.mark.parametrize(
    "workload",
    [
        families.prefix(4),
        families.all_ranges(4),
        lrm.Workload([[1.0, 1.0, 2.0], [0.0, 0.0, 1.5]], names=["a", "b"], importance=[1, 2]),
        families.ranges(64, [(0, 31), (8, 40)]),
        families.marginals([2, 3, 2], [1, 2]),
    ],
    ids=["prefix", "all-ranges", "weighted", "sparse", "products"],
)
@pytest.mark.parametrize("mechanism", ["noise-on-results", "hierarchical", "best"])
def test_every_member_of_a_file_is_documented(workload, mechanism, tmp_path):
    page = (DOCS / "reference" / "files.md").read_text(encoding="utf-8")
    options = {"effort": "quick"} if mechanism == "best" else {}
    plan = lrm.plan(workload, mechanism, **options)
    lrm.release(plan, [1] * workload.shape[1], epsilon=1).save(tmp_path / "answers.lrm")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "answers.lrm").read_bytes())) as bundle:
        header = json.loads(bundle.read("header.json"))
        facts = json.loads(bundle.read("facts.json"))
    assert f"format version {header['version']}" in page
    for fact in chain(header, names_within(facts)):
        assert re.search(rf'[`"]{fact}[`"]', page), fact
    for member in header["sha256"]:
        name = re.sub(r"^(workload|strategy|reconstruction)-", "NAME-", member)
        name = re.sub(r"^group-\d+-", "group-G-", name.removesuffix(".npy"))
        name = re.sub(r"-basis-\d+-", "-basis-K-", re.sub(r"-labels-\d+$", "-labels-I", name))
        assert f"`{name}`" in page, member


def test_every_kind_of_map_is_documented():
    page = (DOCS / "reference" / "files.md").read_text(encoding="utf-8")
    table = page.partition("A **linear map** is")[2].partition("In `products`")[0]
    for kind in KINDS:
        rows = [line for line in table.splitlines() if re.match(rf"\| .*`{kind.kind}`", line)]
        assert len(rows) == 1, f"{kind.kind} must have a row in the table of linear maps"
        for value in kind.file_values:
            assert f"`{value}`" in rows[0], (kind.kind, value)


def test_indices_of_formulas_are_lowered_on_the_site():
    sys.path.insert(0, str(DOCS))
    from site_pages import with_indices

    sys.path.remove(str(DOCS))
    shown = with_indices("Σ_B θ_B² over `a_b` at 2^−q, as `max_rows` of x_{i+1}")
    lowered = "Σ<sub>B</sub> θ<sub>B</sub>² over `a_b` at 2<sup>−q</sup>"
    assert shown == f"{lowered}, as `max_rows` of x<sub>i+1</sub>"
    names = "net_trace and [a link](two_a.md#b_c)\n\n    λ_A = 1\n"
    assert with_indices(names) == names
