"""The CSV reader, part by part: lines, fields, encodings."""

import csv
import gzip
import io
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lrm.cli import main
from lrm.domain import Bins, Categories, CsvForm, Dates, Domain, Integers
from lrm.domain.file import domain_text, parse_domain
from lrm.errors import DomainError, TableError
from lrm.privacy.unit import PrivacyUnit
from lrm.tables import csv_lines, open_table
from lrm.tables.csv_fields import Marks, split_block
from lrm.tables.csv_lines import UNREADABLE, line_blocks, to_utf8

COMMA = Marks(b",", b'"')
PLAIN = Marks(b";", None)

AWKWARD = st.lists(st.sampled_from([b'"', b'""', b",", b";", b"\r", b"\0", b"a", b"\xc3\xa9", b""]))
LINES = st.lists(AWKWARD.map(b"".join), max_size=12)


def split_line(line, marks):
    """The fields of a line by the grammar itself; None where it does not have this form."""
    if marks.quote is None:
        return [field or None for field in line.split(marks.delimiter)]
    grammar = re.compile(rb'"((?:[^"]|"")*)"|([^,"]*)'.replace(b",", marks.delimiter))
    fields, place = [], 0
    while True:
        field = grammar.match(line, place)
        quoted, plain = field.groups()
        fields.append(plain or None if quoted is None else quoted.replace(b'""', b'"'))
        if field.end() == len(line):
            return fields
        if not line.startswith(marks.delimiter, field.end()):
            return None
        place = field.end() + 1


def rows_one_by_one(lines, marks, width):
    """What `split_block` should return, from one line at a time."""
    rows = Counter()
    for line in lines:
        line = line.removesuffix(b"\r")  # noqa: PLW2901 - the rule itself
        if not line and width > 1:
            continue
        fields = split_line(line, marks)
        if fields is None or len(fields) != width:
            rows[(UNREADABLE.decode(),) * width] += 1
            continue
        rows[tuple(None if field is None else _text(field) for field in fields)] += 1
    return rows


def _text(field):
    return UNREADABLE.decode() if UNREADABLE in field else field.decode()


def rows_of(block, marks, width):
    columns = split_block(block, marks, width, range(width))
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


@settings(max_examples=300, deadline=None)
@given(LINES, st.integers(1, 4), st.sampled_from([COMMA, PLAIN]))
def test_blocks_are_split_as_single_lines_are(lines, width, marks):
    block = b"".join(line + b"\n" for line in lines)
    assert rows_of(block, marks, width) == rows_one_by_one(lines, marks, width)


FIELDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\0") | st.sampled_from('",; \'"'),
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(FIELDS, FIELDS, FIELDS), max_size=8),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_well_formed_files_agree_with_python_csv(rows, quoting, delimiter, ending):
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, quoting=quoting, lineterminator=ending).writerows(rows)
    written.seek(0)
    expected = Counter(tuple(row) for row in csv.reader(written, delimiter=delimiter, strict=True))
    found = rows_of(written.getvalue().encode(), Marks(delimiter.encode(), b'"'), 3)
    assert Counter(tuple(text or "" for text in row) for row in found.elements()) == expected


@pytest.fixture
def short_lines(monkeypatch):
    monkeypatch.setattr(csv_lines, "MAX_LINE", 7)


@pytest.mark.usefixtures("short_lines")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([b"\n", b"a", b"bcd", b'"', b"\xef\xbb\xbf", b"x" * 9])))
def test_lines_end_at_line_feeds_whatever_they_hold_and_however_long_they_are(parts):
    data = b"".join(parts)
    blocks = list(csv_lines._cut(io.BytesIO(data).read))
    assert all(block.endswith(b"\n") and len(block) < 30 for block in blocks)
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    expected = [line if len(line) <= 7 else UNREADABLE for line in lines]
    assert b"".join(blocks) == b"".join(line + b"\n" for line in expected)


@settings(deadline=None)
@given(st.binary(max_size=40), st.sampled_from(["utf-8", "latin-1", "cp1252", "ascii"]))
def test_decoding_moves_no_line_end_delimiter_or_quote(data, encoding):
    decoded = to_utf8(data, encoding)
    assert decoded.decode() == data.decode(encoding, "replace").replace(
        "\ufffd", "\0"
    ) or "\ufffd".encode() in data  # fmt: skip
    for mark in b'\n\r,;"':
        assert decoded.count(mark) == data.count(mark)


def test_a_damaged_gzip_file_is_refused_before_anything_is_spent(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 5000 + bytes(range(11, 256)))[:-9])
    domain = Domain([Integers("a", 0, 1)])
    with pytest.raises(TableError, match="not a complete gzip file"):
        open_table(path).check(domain)
    path.write_bytes(gzip.compress(b"a\n1\n") + gzip.compress(b"0\n1\n"))  # of two members
    open_table(path).check(domain)
    assert open_table(path).counts(domain)._open().tolist() == [1, 2]


def test_the_declared_form_is_used(tmp_path):
    path = tmp_path / "european.csv"
    lines = ["größe;tag;ort;wer", "1,5;2024-01-02;Köln;é", "'2,25';;'a;''b''';é", "1.5;x;Köln;"]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    form = CsvForm(delimiter=";", quote="'", encoding="latin-1", decimal=",")
    attributes = [
        Bins("größe", [1, 2, 3], outside="cell"),
        Dates("tag", "2024-01-02", "2024-01-02", null="cell", outside="cell"),
        Categories("ort", ["Köln", "a;'b'"]),
    ]
    domain = Domain(attributes, csv=form)
    with pytest.raises(TableError, match="not utf-8 text"):
        open_table(path).check(Domain(attributes))
    open_table(path).check(domain)
    counts = open_table(path).counts(domain)._open().reshape(domain.shape)
    assert counts.sum() == 3
    assert counts[0, 0, 0] == counts[1, -1, 1] == 1
    assert counts[-1, -2, 0] == 1  # 1.5 is no number where the decimal mark is a comma
    persons = Domain([attributes[2]], unit=PrivacyUnit("wer", 1), csv=form)
    assert open_table(path).counts(persons)._open().tolist() == [1, 0]
    assert open_table(path, csv=form).columns()[0][0] == "größe"
    with pytest.raises(TableError, match="CSV form that the domain does not declare"):
        open_table(path, csv=CsvForm(delimiter=";")).check(domain)


def test_a_file_of_any_name_can_be_opened_as_csv(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("a|b\n1|2\n")
    table = open_table(path, csv=CsvForm(delimiter="|"))
    assert table.counts(Domain([Integers("b", 1, 3)]))._open().tolist() == [0, 1, 0]
    with pytest.raises(TableError, match="only for CSV files"):
        open_table("postgresql://nowhere/x?table=y", csv=CsvForm())


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ({"delimiter": ",,"}, "delimiter must be one ASCII"),
        ({"delimiter": "é"}, "delimiter must be one ASCII"),
        ({"delimiter": "\n"}, "delimiter must be one ASCII"),
        ({"quote": "a"}, "quote must be one ASCII"),
        ({"quote": ","}, "quote must differ"),
        ({"quote": ";", "delimiter": ";"}, "quote must differ"),
        ({"decimal": ","}, "delimiter and decimal must differ"),
        ({"decimal": "x"}, r"decimal must be '\.' or ','"),
        ({"encoding": "utf-16"}, "encoding must be utf-8"),
        ({"encoding": "shift_jis"}, "encoding must be utf-8"),
        ({"encoding": "none"}, "encoding must be utf-8"),
        ({"encoding": None}, "encoding must be utf-8"),
    ],
)
def test_forms_whose_lines_or_fields_would_be_ambiguous_are_refused(facts, fault):
    with pytest.raises(DomainError, match=fault):
        CsvForm(**facts)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "is empty"),
        (b"\n1\n", "is empty"),
        (b"a,a\n1,2\n", "names columns 1 and 2 alike"),
        (b"a\r1\r2\r", "contains a carriage return"),
        (b"\xe9,b\n1,2\n", "not utf-8 text"),
        (b'"a,b\n1,2\n', "not utf-8 text with fields"),
        (b"a" * (1 << 21) + b"\n1\n", "not utf-8 text"),
    ],
)
def test_headers_that_cannot_be_read(tmp_path, data, fault):
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(TableError, match=fault) as caught:
        open_table(tmp_path / "x.csv").columns()
    assert len(str(caught.value)) < 300


def test_line_ends_and_empty_lines(tmp_path):
    """An empty line is no record, but NULL in a file of one column; the last may lack its LF."""
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_bytes(b"a\n1\r\n\n2\n\r\n1")
    two.write_bytes(b"\xef\xbb\xbfa,b\r\n1,\n\n\r\n2,x\r\n1,\r")
    domain = Domain([Integers("a", 1, 2, null="cell", outside="cell")])
    assert open_table(one).counts(domain)._open().tolist() == [2, 1, 0, 0, 0, 2]
    assert open_table(two).counts(domain)._open().tolist() == [2, 1, 0, 0, 0, 0]
    assert b"".join(line_blocks(str(one))) == b"a\n1\r\n\n2\n\r\n1\n"


MARKS = st.sampled_from(";|:\t'~ #")


@settings(deadline=None)
@given(
    st.none() | MARKS, st.none() | st.sampled_from("\"'`^"), st.sampled_from(["utf-8", "cp1252"])
)
def test_forms_survive_the_domain_file(delimiter, quote, encoding):
    assume(delimiter is None or delimiter != quote)
    form = CsvForm(delimiter, quote, encoding, "." if delimiter is None else ",")
    domain = Domain([Integers("a", 0, 1)], csv=form)
    read = parse_domain(domain_text(domain))
    assert read == domain
    assert read.digest == domain.digest != Domain(domain.attributes).digest


def test_a_draft_declares_the_form_that_read_the_header(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.csv"
    path.write_bytes("größe;alter\n".encode("latin-1"))
    options = ["--delimiter", ";", "--encoding", "latin-1", "--quote", "none", "--decimal", ","]
    result = CliRunner().invoke(main, ["domain", "init", str(path), *options, "-o", "d.yaml"])
    assert result.exit_code == 0, result.output
    text = Path("d.yaml").read_text(encoding="utf-8")
    assert 'name: "größe"' in text
    unit_and_form = text[text.index("unit: TODO") : text.index("attributes:")]
    domain = parse_domain(
        "lrm-domain: 1\n"
        + unit_and_form.replace("TODO", "row")
        + "attributes:\n- {name: alter, kind: integers, low: 0, high: 1, null: drop, outside: drop}"
    )
    assert domain.csv == CsvForm(";", None, "latin-1", ",")
    open_table(path).check(domain)
    refused = CliRunner().invoke(main, ["domain", "init", str(path)])
    assert (refused.exit_code, "not utf-8 text" in refused.stderr) == (1, True)
