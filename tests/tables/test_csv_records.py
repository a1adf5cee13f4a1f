"""One record of a CSV file moved all counts.

DuckDB's reader lets a quote extend a record over lines, so that one stray quote swallowed the rows
after it; read in parallel, it restarted inside quotes; a carriage return or a byte of Latin-1
raised an error, before or after payment; lines that it could not read vanished, even where the
domain gives values outside a cell.
"""

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain import Categories, CsvForm, Domain, Integers, PrivacyUnit
from lrm.errors import DomainError
from lrm.queries.sql import sql
from lrm.tables import open_table

CELL = {"null": "cell", "outside": "cell"}
DOMAIN = Domain([Categories("kind", ["a", "b"], **CELL), Integers("age", 0, 4, **CELL)])
HEADER = b"who,kind,age,note\n"
INVALID = (2, 7)
"""Cell of a line that cannot be read: ``(other)`` and ``(invalid)``."""

BAD_LINES = {
    "stray quote": b'x,a,1,"he said',
    "backslash quote": b'x,a,1,"he said \\"no\\""',
    "text after a quote": b'x,a,1,"he" said',
    "quote inside a plain field": b'x,a,1,5" pipe',
    "too few fields": b"x,a",
    "too many fields": b"x,a,1,y,z",
    "very long": b"x,a,1," + b"y" * (1 << 20),
    "one NUL": b"\0",
}
READ_LINES = {
    "Latin-1 byte": (b"caf\xe9,a,1,", (0, 1)),
    "Latin-1 byte in a value": (b"x,caf\xe9,1,", (2, 1)),
    "NUL in a value": (b"x,a,1\0,", (0, 7)),
    "carriage return": (b"x,a,1,one\rtwo", (0, 1)),
    "carriage return at the end": (b"x,a,1,y\r", (0, 1)),
    "only a carriage return in a value": (b"x,\r,1,y", (2, 1)),
    "byte-order mark": (b"\xef\xbb\xbfx,a,1,", (0, 1)),
    "quotes that are closed": (b'"x, ""y""",a,"1",', (0, 1)),
}


def counts_of(path, domain=DOMAIN):
    return open_table(path).counts(domain)._open().reshape(domain.shape)


def write(path, line, place, lines=40):
    """Write equally many lines of each declared combination, and ``line`` among them."""
    rows = [b"p%d,%c,%d,text" % (i, b"ab"[i % 2], i % 5) for i in range(lines)]
    path.write_bytes(HEADER + b"\n".join([*rows[:place], line, *rows[place:]]) + b"\n")


def with_one_in(cell):
    """Counts of what `write` writes, where its line is in ``cell``."""
    expected = np.zeros(DOMAIN.shape, dtype=int)
    expected[:2, :5] = 4
    expected[cell] += 1
    return expected.tolist()


@pytest.mark.parametrize("place", [0, 40])
@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_line_that_cannot_be_read_is_one_outside_value(tmp_path, bad, place):
    path = tmp_path / "x.csv"
    write(path, BAD_LINES[bad], place)
    assert counts_of(path).tolist() == with_one_in(INVALID)


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_line_that_cannot_be_read_is_dropped_with_outside_values(tmp_path, bad):
    dropped = Domain([Categories("kind", ["a", "b"]), Integers("age", 0, 4)])
    write(tmp_path / "x.csv", BAD_LINES[bad], 20)
    assert counts_of(tmp_path / "x.csv", dropped).tolist() == [[4] * 5] * 2


@pytest.mark.parametrize("place", [0, 40])
@pytest.mark.parametrize("case", READ_LINES)
def test_a_field_that_cannot_be_read_is_one_outside_value(tmp_path, case, place):
    path = tmp_path / "x.csv"
    line, cell = READ_LINES[case]
    write(path, line, place)
    assert counts_of(path).tolist() == with_one_in(cell)


def test_a_quoted_line_break_at_byte_8_000_000_of_a_large_file(tmp_path):
    """Three lines differ, so counts may differ by three records: they differed by 160,001."""
    line = b"p1,a,1,text text text text text t\n"
    lines = 40_000_000 // len(line)
    middle = (8_000_000 - len(HEADER)) // len(line) - 1
    paths = [tmp_path / "one.csv", tmp_path / "other.csv"]
    for path, record in zip(paths, [line * 3, b'p1,a,1,"y\np2,b,2,y\nz"\n'], strict=True):
        with path.open("wb") as opened:
            opened.write(HEADER + line * middle + record + line * (lines - middle))
    one, other = map(counts_of, paths)
    assert np.abs(one - other).sum() <= 6
    assert one.sum() == other.sum() == lines + 3


def test_mixed_line_ends(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"kind,age\r\na,1\nb,2\r\na,3\n\nb,4")
    counts = counts_of(path)
    assert counts.sum() == 4
    assert counts[0, 1] == counts[1, 2] == counts[0, 3] == counts[1, 4] == 1


@pytest.mark.parametrize("line", [*BAD_LINES.values(), *(line for line, _ in READ_LINES.values())])
def test_other_persons_are_counted_as_before(tmp_path, line):
    """Whom an unreadable line belongs to cannot be known: it is nobody's."""
    path = tmp_path / "x.csv"
    unit = PrivacyUnit("who", 2)
    domain = Domain(DOMAIN.attributes, unit=unit)
    write(path, line, 20)
    added = counts_of(path, domain)
    added[:2, :5] -= 4
    assert added.min() >= 0
    assert added.sum() <= 1


def test_a_declared_encoding_reads_every_byte(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("kind,âge\n".encode("latin-1") + b"\xe9,1\n\xff,2\n")
    domain = Domain(
        [Categories("kind", ["é", "ÿ"]), Integers("âge", 1, 2)], csv=CsvForm(encoding="latin-1")
    )
    assert counts_of(path, domain).tolist() == [[1, 0], [0, 1]]


def test_the_command_says_and_returns_the_same_whatever_the_record(tmp_path, monkeypatch):
    """Of two commands, one may not fail because of a record, before payment or after it."""
    monkeypatch.chdir(tmp_path)
    workload = sql("SELECT kind, COUNT(*) AS n FROM t GROUP BY kind", DOMAIN)
    lrm.plan(workload, "noise-on-results").save("plan.lrm")
    command = ["release", "plan.lrm", "--table", "x.csv", "--epsilon", "1", "--no-ledger"]
    seen = set()
    bad = [BAD_LINES[name] for name in ("stray quote", "backslash quote", "too few fields")]
    for line in (b"p,a,1,", *bad, b"caf\xe9,a,1,", b"x,a,1,one\rtwo", b"\0"):
        write(tmp_path / "x.csv", line, 0, lines=3)
        tried = CliRunner().invoke(main, [*command, "--dry-run"])
        done = CliRunner().invoke(main, [*command, "-o", "out.lrm", "--force"])
        seen.add((tried.exit_code, tried.output, done.exit_code, done.stderr))
    assert len(seen) == 1
    assert next(iter(seen))[::2] == (0, 0)


def test_a_unit_column_that_differs_from_an_attribute_in_case_alone_is_refused():
    """DuckDB took the attribute for both: with ``id,ID`` each value of id was a person."""
    with pytest.raises(
        DomainError, match="unit column 'ID' and attribute 'id' differ only in case"
    ):
        Domain([Integers("id", 1, 2)], unit=PrivacyUnit("ID", 1))
    assert Domain([Integers("id", 1, 2)], unit=PrivacyUnit("id", 1)).size == 2
