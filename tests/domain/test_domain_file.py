"""Domain files: round trips, errors that name line and field, drafts that must be completed."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.domain.draft import draft
from lrm.domain.file import domain_text, parse_domain, read_domain, write_domain
from lrm.errors import DomainError, FileFormatError
from lrm.files import yaml_nodes

GOOD = """\
lrm-domain: 1
table: visits
unit:
  column: who
  max_rows: 3
  neighbours: add-remove
attributes:
  - name: state
    kind: categories
    values: [NY, no, "01"]
    null: drop
    outside: cell
  - name: age
    kind: integers
    low: 0
    high: 99
    width: 5
    null: cell
    outside: drop
  - name: income
    kind: bins
    edges: [0, 1e3, 2500.5, .inf]
    null: drop
    nan: cell
    outside: cell
  - name: day
    kind: dates
    start: 2024-01-01
    end: 2024-12-31
    by: month
    null: drop
    outside: drop
"""
DOMAIN = Domain(
    [
        Categories("state", ["NY", "no", "01"], outside="cell"),
        Integers("age", 0, 99, 5, null="cell"),
        Bins("income", [0, 1000, 2500.5, float("inf")], nan="cell", outside="cell"),
        Dates("day", "2024-01-01", "2024-12-31", "month"),
    ],
    "visits",
    PrivacyUnit("who", 3),
)


def test_a_file_says_what_python_says(tmp_path):
    path = tmp_path / "domain.yaml"
    path.write_text(GOOD)
    assert read_domain(path) == DOMAIN
    write_domain(DOMAIN, path)
    assert read_domain(path) == DOMAIN


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="()\0"), max_size=6)
TRICKY = [
    *[
        "yes",
        "NO",
        "~",
        "null",
        "1e3",
        "01",
        "0x1F",
        "1_000",
        "2024-01-01",
        "TODO",
        "-",
        "#x",
        "'",
        "é",
        "1:30",
        ".5",
        ".inf",
        "true",
        "=",
        "<<",
        "*a",
        "&a",
    ],
    *("", " a ", "a: b", "- a", "\n", "\x85", '"'),
]


@given(st.lists(st.sampled_from(TRICKY) | WORDS, min_size=1, max_size=8, unique=True))
def test_text_survives_the_round_trip(values):
    domain = Domain([Categories(values[0].strip() or "a", values, null="cell")], "t")
    assert parse_domain(domain_text(domain)) == domain


@given(st.sets(st.floats(allow_nan=False), min_size=2, max_size=8))
def test_edges_survive_the_round_trip_bit_by_bit(edges):
    domain = Domain([Bins("x", sorted(edges), nan="cell")], unit=PrivacyUnit("w", 2, "substitute"))
    assert parse_domain(domain_text(domain)) == domain


CHANGES = [
    ("lrm-domain: 1", "lrm-domain: 2", 1, "'lrm-domain'"),
    ("lrm-domain: 1", "lrm-domain: one", 1, "'lrm-domain'"),
    ("lrm-domain: 1", "lrm_domain: 1", 1, "'lrm_domain'"),
    ("table: visits", "table: [visits]", 2, "'table'"),
    ("table: visits", "table: visits\ntable: visits", 3, "'table'"),
    ("  column: who", "  column: 5", 4, "'column'"),
    ("max_rows: 3", "max_rows: 0", 5, "'max_rows'"),
    ("max_rows: 3", "max_rows: many", 5, "'max_rows'"),
    ("  max_rows: 3\n", "", 4, "'max_rows'"),
    ("neighbours: add-remove", "neighbours: swap", 6, "'neighbours'"),
    ("neighbours: add-remove", "neighbors: swap", 6, "'neighbors'"),
    ("name: state", "name: [x]", 8, "'name'"),
    ("name: state", "name: ''", 8, "name"),
    ("name: state", "title: state", 8, "'title'"),
    ("kind: categories", "kind: categorical", 9, "'kind'"),
    ('values: [NY, no, "01"]', "values: NY", 10, "'values'"),
    ('values: [NY, no, "01"]', "values: []", 10, "'values'"),
    ('values: [NY, no, "01"]', "values: [NY, 5]", 10, "'values'"),
    ('values: [NY, no, "01"]', "values: [NY, NY]", 10, "'values'"),
    ('values: [NY, no, "01"]', "values: [NY, [NJ]]", 10, "'values'"),
    ('01"]\n    null: drop', '01"]\n    null: keep', 11, "'null'"),
    ("    outside: cell\n  - name: age", "  - name: age", 8, "'outside'"),
    ("    outside: cell\n  - name: age", "    outside: maybe\n  - name: age", 12, "'outside'"),
    ("low: 0", "low: 0.5", 15, "'low'"),
    ("low: 0", "low: 100", 15, "'low'"),
    ("low: 0", "low: '0'", 15, "'low'"),
    ("low: 0", "lo: 0", 15, "'lo'"),
    ("    high: 99\n", "", 13, "'high'"),
    ("high: 99", "high: 99999999999999999999", 16, "'high'"),
    ("width: 5", "width: 0", 17, "'width'"),
    ("name: age", "name: State", 8, "'attributes'"),
    ("edges: [0, 1e3, 2500.5, .inf]", "edges: [0, x]", 22, "'edges'"),
    ("edges: [0, 1e3, 2500.5, .inf]", "edges: [0, .nan]", 22, "'edges'"),
    ("edges: [0, 1e3, 2500.5, .inf]", "edges: [0, 2, 1]", 22, "'edges'"),
    ("edges: [0, 1e3, 2500.5, .inf]", "edges: [0]", 22, "'edges'"),
    ("start: 2024-01-01", "start: 2024-01-32", 28, "'start'"),
    ("start: 2024-01-01", "start: 2024-01-02", 28, "'start'"),
    ("start: 2024-01-01", "start: 5", 28, "'start'"),
    ("end: 2024-12-31", "end: 2024-12-30", 29, "'end'"),
    ("by: month", "by: week", 30, "'by'"),
    ("by: month", "by: month\n    nan: drop", 31, "'nan'"),
    ("values: [NY", "values: [NY, ]]", 10, ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "field"), CHANGES)
def test_an_error_names_line_and_field(old, new, line, field):
    assert GOOD.count(old) == 1, "the change must be one"
    with pytest.raises(DomainError) as caught:
        parse_domain(GOOD.replace(old, new), "visits.yaml")
    sentence = str(caught.value)
    assert sentence.startswith(f"visits.yaml line {line}"), sentence
    assert field in sentence


@pytest.mark.parametrize(
    "text", ["", "# nothing", "5", "[1, 2]", "a: &x 1\nb: *x", "unit: row", "\t", "a: b: c", "{"]
)
def test_text_that_is_no_domain_is_an_error(text):
    with pytest.raises(DomainError, match=r"^domain\.yaml"):
        parse_domain(text)


@given(st.text(max_size=60))
def test_any_text_is_a_domain_or_an_error(text):
    with pytest.raises(DomainError, match=r"^domain\.yaml"):
        parse_domain(text)


@given(st.data())
def test_any_damaged_line_is_a_domain_or_an_error(data):
    lines = GOOD.splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    lines[number] = data.draw(st.text("aT:[]{}&*!-0 \"'", max_size=12))
    try:
        parse_domain("\n".join(lines))
    except DomainError as error:
        assert re.match(r"domain\.yaml( line \d+)?", str(error))  # noqa: PT017


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileFormatError, match="no file at"):
        read_domain(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"table: caf\xe9")
    with pytest.raises(FileFormatError, match="not UTF-8"):
        read_domain(tmp_path / "latin.yaml")


COLUMNS = [
    ("state", "VARCHAR"),
    ("Größe: #1", "double precision"),
    ("age", "INTEGER"),
    ("day", "TIMESTAMP WITH TIME ZONE"),
    ("smoker", "boolean"),
    ("price", "DECIMAL(18,3)"),
    ("tags", "VARCHAR[]"),
    ("point", "STRUCT(x INTEGER)"),
    ("odd", ""),
]


def test_a_draft_must_be_completed():
    text = draft(COLUMNS, "visits")
    with pytest.raises(DomainError) as caught:
        parse_domain(text)
    sentence = str(caught.value)
    assert "is a draft that must be completed" in sentence
    for part in (
        "'unit'",
        "'state', field 'values'",
        "'Größe: #1', field 'edges'",
        "'age', field 'high'",
    ):
        assert part in sentence
    assert sentence.count("line ") == text.count("TODO") - 1  # the header speaks of TODO, too
    assert "no\n# value was read" in text
    assert 'left out: "tags"' in text


def test_a_draft_of_a_csv_file_says_that_it_knows_no_types():
    columns = [("state", "text (CSV)"), ("age", "text (CSV)")]
    assert "--kinds age=integers" in draft(columns)
    typed = draft(columns, kinds={"state": "categories", "age": "integers"})
    assert "--kinds" not in typed
    assert "low: TODO" in typed


def test_a_draft_of_dates_in_a_csv_file_says_where_their_format_is_declared():
    columns = [("day", "text (CSV)"), ("ok", "text (CSV)"), ("age", "text (CSV)")]
    formats = 'csv: {dates: "%d.%m.%Y", true: [ja], false: [nein]}'
    for kinds in ({"day": "dates"}, {"ok": "boolean"}):
        assert formats in draft(columns, kinds=kinds)
    assert formats not in draft(columns, kinds={"age": "integers"})
    assert formats not in draft([("day", "DATE")])


def test_a_completed_draft_is_a_domain():
    text = draft(COLUMNS, "visits").replace("unit: TODO", "unit: row")
    text = text.replace("values: TODO", "values: [NY]").replace("edges: TODO", "edges: [0, 1]")
    text = text.replace("low: TODO", "low: 0").replace("high: TODO", "high: 9")
    text = text.replace("start: TODO", "start: 2024-01-01").replace("end: TODO", "end: 2024-12-31")
    domain = parse_domain(text.replace("by: TODO", "by: year"))
    assert domain.names == ("state", "Größe: #1", "age", "day", "smoker", "price")
    assert domain.shape == (1, 1, 10, 1, 2, 1)


@pytest.mark.parametrize("kind", ["kind: integers, low: 0, high: 9", "kind: bins, edges: [0, 9]"])
def test_nan_is_dropped_where_nothing_is_said_of_it(kind):
    text = (
        f"lrm-domain: 1\nunit: row\nattributes:\n  - {{name: x, {kind}, null: drop, outside: drop}}"
    )
    assert parse_domain(text).attribute("x").nan == "drop"
    assert (
        parse_domain(text.replace("null: drop", "null: drop, nan: cell")).labels("x")[-1] == "(nan)"
    )


LONG_LISTS = {
    "texts": ("kind: categories, values", [f"v{i}" for i in range(200)]),
    "integers": ("kind: categories, values", list(range(200))),
    "edges": ("kind: bins, edges", [i / 4 for i in range(200)]),
}


def _with_list(kind, values):
    listed = ", ".join(map(str, values))
    return (
        "lrm-domain: 1\nunit: row\nattributes:\n"
        f"  - {{name: c, {kind}: [{listed}], null: drop, outside: drop}}"
    )


@pytest.mark.parametrize("kind", LONG_LISTS)
def test_a_long_list_is_read_by_one_loader_and_its_values_in_c(kind, monkeypatch):
    """300,000 categories or 200,000 edges took 7 to 10 s: scanned in Python, a loader for each."""
    scanned, loaders = [], []
    scan = yaml.SafeLoader.scan_plain
    monkeypatch.setattr(
        yaml.SafeLoader, "scan_plain", lambda self: scanned.append(1) or scan(self), raising=False
    )
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        monkeypatch.setattr(
            loader,
            "__init__",
            lambda self, text, begin=loader.__init__: loaders.append(1) or begin(self, text),
        )
    field, values = LONG_LISTS[kind]
    attribute = parse_domain(_with_list(field, values)).attributes[0]
    assert list(attribute.edges if kind == "edges" else attribute.values) == values
    assert scanned == []
    assert len(loaders) == 1


@pytest.fixture
def python_loader(monkeypatch):
    """PyYAML as it is where it was built without C."""
    monkeypatch.delattr(yaml, "CSafeLoader")
    yaml_nodes._loader.cache_clear()
    yield
    yaml_nodes._loader.cache_clear()


def _read(text):
    try:
        return parse_domain(text)
    except DomainError as error:
        return str(error)


WRITTEN = [
    GOOD,
    *(_with_list(kind, values) for kind, values in LONG_LISTS.values()),
    _with_list("kind: categories, values", ["&a x", "*a"]),
    _with_list("kind: categories, values", ["a*b", "yes", "007", "'1'"]),
    _with_list("kind: categories, values", ["é", "東京", '"\\u00e9"', "!!binary aGk="]),
    _with_list("kind: categories, values", ["[" * 40 + "]" * 40]),
    _with_list("kind: categories, values", ["[" * 31 + "]" * 31]),
    _with_list("kind: bins, edges", ["-.inf", "-1.5e3", ".5", "+7", "0x1F", ".inf"]),
    _with_list("kind: bins, edges", [0, "TODO", 2]),
    _with_list("kind: bins, edges", [0, "2024-01-01"]),
    _with_list("kind: integers, low", [1]),
    GOOD.replace("table: visits", "table: visits: x"),
    GOOD + "\t- x: 1\n",
]


def _without_words(answer):
    """An error up to the parser's words, which differ."""
    return answer.partition("cannot parse")[0] if isinstance(answer, str) else answer


def test_yaml_is_read_alike_with_and_without_the_parser_in_c(request):
    in_c = [_read(text) for text in WRITTEN]
    assert any(isinstance(answer, str) for answer in in_c)
    request.getfixturevalue("python_loader")
    in_python = [_read(text) for text in WRITTEN]
    assert list(map(_without_words, in_c)) == list(map(_without_words, in_python))


def test_a_text_that_cannot_be_written_is_refused():
    with pytest.raises(DomainError, match="surrogate pair"):
        parse_domain(GOOD + "# \ud800")
