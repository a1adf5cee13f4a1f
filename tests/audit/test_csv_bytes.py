"""Neighbouring CSV files, byte by byte: one record replaced by any bytes but a line feed.

Counts then differ by one record that goes and one that comes, and nothing else that can be seen
differs: outcome, messages and exit code.
"""

import datetime as dt
import gzip
import io
import itertools
import random
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from long_runs import cases
from lrm.cli import main
from lrm.domain import Bins, Categories, CsvForm, Dates, Domain, Integers, PrivacyUnit
from lrm.queries.sql import sql
from lrm.tables import csv_lines, open_table
from lrm.tables.csv_fields import Marks, split_block
from lrm.tables.csv_lines import to_utf8

CELL = {"null": "cell", "outside": "cell"}
NAMES = ("who", "kind", "age", "day", "x", "ok")
ATTRIBUTES = (
    Categories("kind", ["a", "b", "é"], {"a": ["A", "1", "a a"], "é": ["e\u0301", '"']}, **CELL),
    Integers("age", 0, 9, width=5, nan="cell", **CELL),
    Dates("day", "2024-01-01", "2024-12-31", "month", **CELL),
    Bins("x", [0, 0.5, 1], nan="cell", **CELL),
    Categories("ok", [True, False], **CELL),
)
MANY_EDGES = Domain([Bins("x", np.linspace(0, 1, 101), nan="cell", **CELL)])
FORMS = (
    CsvForm(),
    CsvForm(delimiter=";", decimal=","),
    CsvForm(quote=None),
    CsvForm(encoding="latin-1", quote="'"),
    CsvForm(encoding="cp1252", delimiter="|"),
    CsvForm(delimiter=";", decimal=",", dates="%d.%m.%Y", true=["ja", "1"], false=["nein", "é"]),
    CsvForm(delimiter="|", dates="%m/%d/%y %H:%M", true=["'x'"], false=["f"], encoding="latin-1"),
)
PIECES = (
    *(b'"', b'""', b"'", b"''", b",", b";", b"|", b"\r", b"\0", b"\\", b'\\"', b"\t", b" ", b","),
    *(b"a", b"b", b"1", b"7", b"99", b"-3", b"0.25", b"0,75", b"1e400", b"nan", b"inf", b"2.5"),
    *(b"2024-02-29", b"2024-02-30", b"9999-12-31", b"2024-05-05T23:59:59-11:00", b"290000-01-01"),
    *(
        b"3.5.2024",
        b"29.02.2023",
        b"0.0.0000",
        b"02/29/24 1:2",
        b"ja",
        b"JA ",
        b"nein",
        b"'x'",
        b"A",
    ),
    *(b"\xef\xbb\xbf", b"\xc3\xa9", b"\xe9", b"\x81", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f"),
)


def any_record(rng, form):
    """A good record, one put together from awkward pieces, or noise; never with a line feed."""
    kind = rng.randrange(10)
    if kind < 4:
        return good_record(rng, form)
    if kind < 5:
        good = good_record(rng, form)
        place = rng.randrange(len(good) + 1)
        return good[:place] + rng.choice(PIECES) + good[place:]
    if kind < 9:
        return b"".join(rng.choices(PIECES, k=rng.randrange(12)))
    return rng.randbytes(rng.randrange(40)).replace(b"\n", b"\r")


def good_record(rng, form):
    mark = (form.delimiter or ",").encode()
    x = str(rng.random()).replace(".", form.decimal)
    day = dt.date(2024, rng.randrange(1, 13), 11).strftime(form.dates or "%Y-%m-%d")
    ok = rng.choice([*form.true_texts, *form.false_texts])
    fields = [f"p{rng.randrange(6)}", rng.choice("abA"), str(rng.randrange(12)), day, x, ok]
    return mark.join(field.encode(form.encoding) for field in fields)


def file_of(records, form, ending):
    mark = (form.delimiter or ",").encode()
    return mark.join(name.encode() for name in NAMES) + b"\n" + ending.join(records) + b"\n"


def pair(rng, form):
    """Two lists of records that differ in one of them."""
    records = [any_record(rng, form) for _ in range(rng.randrange(1, 8))]
    place = rng.randrange(len(records))
    return records, [*records[:place], any_record(rng, form), *records[place + 1 :]]


def rows_of(data, form):
    marks = Marks((form.delimiter or ",").encode(), form.quote and form.quote.encode())
    found = Counter()
    for block in csv_lines._cut(io.BytesIO(data).read):
        columns = split_block(to_utf8(block, form.encoding), marks, len(NAMES), range(len(NAMES)))
        found.update(zip(*(column.to_pylist() for column in columns), strict=True))
    return found


def read_pairs(monkeypatch, seed, pairs):
    rng = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(pairs):
        form, ending = rng.choice(FORMS), rng.choice([b"\n", b"\r\n"])
        # Blocks and the longest line are as short as can be, so that every place is a border.
        monkeypatch.setattr(csv_lines, "MAX_LINE", rng.choice([20, 40, 1000]))
        one, other = (rows_of(file_of(records, form, ending), form) for records in pair(rng, form))
        assert (one - other).total() <= 1, "more than the replaced record went"
        assert (other - one).total() <= 1, "more than the new record came"


def count_pairs(tmp_path, seed, files, neighbours):
    """Count random files and some neighbours of each: by row, by person, among many edges."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    for number in range(files):
        form, ending = FORMS[number % len(FORMS)], rng.choice([b"\n", b"\r\n"])
        domains = [
            Domain(rng.sample(ATTRIBUTES, 2), csv=form),
            Domain(MANY_EDGES.attributes, csv=form),
            Domain([rng.choice(ATTRIBUTES)], unit=PrivacyUnit("who", 2), csv=form),
        ]
        domain = domains[number % len(domains)]
        records, _ = pair(rng, form)
        place = rng.randrange(len(records))
        path = tmp_path / ("x.csv.gz" if number % 5 == 4 else "x.csv")
        seen = []
        for neighbour in range(neighbours + 1):
            data = file_of(records, form, ending)
            path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
            table = open_table(path)
            if neighbour < 2:
                table.check(domain)
            seen.append(table.counts(domain)._open())
            records[place] = any_record(rng, form)
        # Of a person, the row that goes may make room for another, and the one that comes
        # may take another's: one row each, for the two persons concerned.
        most = 2 if domain.unit.column is None else 4
        for one, other in itertools.pairwise(seen):
            assert bool(np.abs(one - other).sum() <= most), "counts differ by more than a record"


def test_rows_of_neighbouring_files(monkeypatch):
    read_pairs(monkeypatch, 1, 500)


def test_counts_of_neighbouring_files(tmp_path):
    count_pairs(tmp_path, 2, 14, 3)


@pytest.mark.long
def test_rows_of_many_neighbouring_files(monkeypatch):
    read_pairs(monkeypatch, 3, cases(10_000))


@pytest.mark.long
def test_counts_of_many_neighbouring_files(tmp_path):
    count_pairs(tmp_path, 4, cases(60), 8)


@pytest.mark.parametrize("size", [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20])
def test_a_huge_record_is_one_record(tmp_path, size):
    path = tmp_path / "x.csv"
    domain = Domain([ATTRIBUTES[0]])
    mark = b"p,a,1,2024-01-01,1,"
    path.write_bytes(file_of([mark + b"0"] * 9, FORMS[0], b"\n"))
    one = open_table(path).counts(domain)._open()
    for filler in (b"0", b'"', b"\r", b"\0", b",", b"\xff"):
        records = [mark + b"0"] * 4 + [mark + filler * (size - len(mark))] + [mark + b"0"] * 4
        path.write_bytes(file_of(records, FORMS[0], b"\n"))
        other = open_table(path).counts(domain)._open()
        assert bool(np.abs(one - other).sum() <= 2), "counts differ by more than a record"


def test_adding_a_record_adds_at_most_one(tmp_path):
    rng, path = random.Random(5), tmp_path / "x.csv"  # noqa: S311 - no secret
    domain = Domain(ATTRIBUTES[:2])
    records = [good_record(rng, FORMS[0]) for _ in range(6)]
    path.write_bytes(file_of(records, FORMS[0], b"\n"))
    one = open_table(path).counts(domain)._open()
    for _ in range(15):
        place = rng.randrange(len(records) + 1)
        added = [*records[:place], any_record(rng, FORMS[0]), *records[place:]]
        path.write_bytes(file_of(added, FORMS[0], b"\n"))
        other = open_table(path).counts(domain)._open()
        assert bool((other >= one).all())
        assert bool(np.sum(other - one) <= 1), "counts differ by more than a record"


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("who", 2)])
def test_commands_on_neighbouring_files_say_the_same(tmp_path, monkeypatch, unit):
    monkeypatch.chdir(tmp_path)
    rng, form = random.Random(6), FORMS[1]  # noqa: S311 - no secret
    domain = Domain(ATTRIBUTES[:2], "t", unit, csv=form)
    workload = sql("SELECT kind, COUNT(*) AS n FROM t GROUP BY kind", domain)
    lrm.plan(workload, "noise-on-results").save("plan.lrm")
    command = ["release", "plan.lrm", "--table", "x.csv", "--epsilon", "1", "--no-ledger"]
    seen = set()
    records = [good_record(rng, form) for _ in range(5)]
    for _ in range(6):
        records[2] = any_record(rng, form)
        (tmp_path / "x.csv").write_bytes(file_of(records, form, b"\n"))
        tried = CliRunner().invoke(main, [*command, "--dry-run"])
        done = CliRunner().invoke(main, [*command, "-o", "out.lrm", "--force"])
        seen.add((tried.exit_code, tried.output, done.exit_code, done.stderr))
    assert len(seen) == 1
    assert next(iter(seen))[::2] == (0, 0)
