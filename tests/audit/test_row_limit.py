"""The limit of rows per person biased answers by the order of declared values.

The rows with the lowest cell numbers were kept. Flights by origin with one row for each plane
counted 452 from EWR when it was declared last and 3,040 when it was declared first, against 1,503
for a random row of each plane. Now each row of a person is equally likely to be kept, every
engine makes the same choice with the same key, and the key is new for every count.
"""

import math
import random
from itertools import count

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from lrm.domain import Categories, Domain, Integers, PrivacyUnit, persons
from lrm.tables import open_table
from lrm.testing.domains import DOMAINS
from lrm.testing.table import rows as awkward_rows
from table_forms import build

WHERE = ["EWR", "JFK", "LGA"]


def planes(number):
    """Rows of planes, each with up to nine flights from up to three airports."""
    rng = random.Random(12)  # noqa: S311 - no secret
    return [
        {"plane": plane, "origin": rng.choice(WHERE)}
        for plane in range(number)
        for _ in range(rng.randint(1, 9))
    ]


def by_origin(rows, declared, max_rows=1):
    unit = PrivacyUnit("plane", max_rows)
    domain = Domain([Categories("origin", declared)], unit=unit)
    counted = open_table(pl.DataFrame(rows)).counts(domain)._open()
    return dict(zip(declared, counted.tolist(), strict=True))


@pytest.mark.parametrize("max_rows", [1, 2, 5])
def test_counts_do_not_depend_on_the_order_of_declared_values(max_rows):
    """Every airport gets its share of each plane's flights, wherever it is declared.

    With 4,000 planes a count deviates from its mean by at most 6 standard deviations, but for
    one run in 10^8; the lowest-numbered rows deviate by 30 and more.
    """
    rows = planes(4000)
    flights = [[] for _ in range(4000)]
    for row in rows:
        flights[row["plane"]].append(row["origin"])
    for declared in (WHERE, WHERE[::-1]):
        counted = by_origin(rows, declared, max_rows)
        for origin in WHERE:
            shares = [own.count(origin) * min(1, max_rows / len(own)) for own in flights]
            # A plane's count in one cell differs from its share by less than one row.
            spread = math.sqrt(sum(s % 1 * (1 - s % 1) for s in shares))
            assert abs(counted[origin] - sum(shares)) <= 6 * spread + 1e-9


@pytest.mark.parametrize(("total", "max_rows"), [(2, 1), (7, 3), (12, 5), (9, 8), (5, 5), (4, 6)])
def test_each_row_of_a_person_is_equally_likely_to_be_kept(total, max_rows):
    """Over all offsets every row is kept equally often, and never more than the limit."""
    kept = np.zeros(total)
    for offset in range(total):
        places = [t for t in range(total) if (t * max_rows + offset) % total < max_rows]
        assert total <= max_rows or len(places) == max_rows
        kept[places] += 1
    assert total <= max_rows or set(kept.tolist()) == {max_rows}


def test_offsets_are_spread_evenly_over_persons():
    """The offsets of 7,000 persons with seven rows: chi-square with 6 degrees of freedom."""
    drawn = [persons.offset_of(b"%d" % number, 7, b"key") for number in range(7000)]
    found = np.bincount(drawn, minlength=7)
    assert ((found - 1000) ** 2 / 1000).sum() < 38  # exceeded once in a million keys


def test_every_count_has_a_key_of_its_own():
    """100 persons with a row in each of two cells: 20 counts are not all the same."""
    frame = pl.DataFrame({"who": list(range(100)) * 2, "x": [0] * 100 + [1] * 100})
    domain = Domain([Integers("x", 0, 1)], unit=PrivacyUnit("who", 1))
    table = open_table(frame)
    assert len({tuple(table.counts(domain)._open().tolist()) for _ in range(20)}) > 1
    assert len({persons.fresh_key() for _ in range(100)}) == 100


NAMES = ["persons", "persons by text", "persons with many bins", "persons as an attribute"]
FORMS = ["parquet", "csv", "duckdb", "polars", "postgres", "spark"]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_key_keeps_the_same_rows_on_every_engine(form, tmp_path, request, monkeypatch):
    """Several keys, each against plain Python."""
    session = request.getfixturevalue("spark") if form == "spark" else None
    table, rows = build(form, awkward_rows(300, 12), tmp_path, session)
    for name in NAMES[:2] if form == "spark" else NAMES:
        domain = DOMAINS[name]
        for key in (b"k" * 16, bytes(16)):
            monkeypatch.setattr(persons, "fresh_key", lambda key=key: key)
            expected = domain.count(rows, key).tolist()
            assert table.counts(domain)._open().tolist() == expected


def test_a_persons_rows_alone_decide_which_are_kept(fixed_key):
    """Other persons' rows do not move a person's: counts of all are the sum of counts of each."""
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"who": rng.integers(0, 40, 600), "x": rng.integers(0, 6, 600)})
    domain = Domain([Integers("x", 0, 5)], unit=PrivacyUnit("who", 4))
    whole = open_table(frame).counts(domain)._open()
    parts = [
        open_table(frame.filter(pl.col("who") == who)).counts(domain)._open() for who in range(40)
    ]
    assert all(part.sum() <= 4 for part in parts)
    np.testing.assert_array_equal(whole, np.sum(parts, axis=0))


def test_a_person_of_very_many_rows_spans_batches(fixed_key):
    """Rows of one person in several batches are chosen as if they came at once."""
    numbers = np.arange(400_000) % 5
    table = pa.table({"who": np.zeros(400_000, dtype=np.int64), "x": numbers})
    domain = Domain([Integers("x", 0, 4)], unit=PrivacyUnit("who", 1000))
    counted = open_table(table).counts(domain)._open().tolist()
    assert counted == [200] * 5  # every 400th row, in the order of cells


def test_rows_without_a_person_are_dropped():
    frame = pl.DataFrame({"who": [None, None, "a"], "x": [0, 0, 1]})
    domain = Domain([Integers("x", 0, 1)], unit=PrivacyUnit("who", 3))
    assert open_table(frame).counts(domain)._open().tolist() == [0, 1]


def test_a_kept_row_is_never_kept_twice():
    """However many rows: exactly as many as the limit, each once."""
    for total, key in zip(range(1, 60), count(), strict=False):
        cells = list(range(total))
        kept = persons.kept_rows(b"someone", cells, 9, b"%d" % key)
        assert kept == sorted(set(kept))
        assert len(kept) == min(9, total)


def test_releases_say_that_a_limit_was_applied(tmp_path):
    """In the facts, on the page and in ``lrm show``."""
    from click.testing import CliRunner

    import lrm
    from lrm.cli import main
    from lrm.queries.builders import marginals
    from lrm.views.releases import release_facts

    domain = Domain([Integers("x", 0, 2)], "visits", PrivacyUnit("who", 2))
    plan = lrm.plan(marginals(domain, [("x",)]), "noise-on-data")
    release = lrm.release(
        plan, pl.DataFrame({"who": [1, 1, 1], "x": [0, 1, 2]}), epsilon=1, ledger=None
    )
    words = "at most 2 rows of each person are counted, chosen at random"
    assert words in release_facts(release)["privacy"]["unit"]["limit"]
    release.save(tmp_path / "r.lrm")
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "r.lrm")], env={"COLUMNS": "300"})
    assert words in " ".join(shown.stdout.split())
    page = tmp_path / "page.html"
    made = CliRunner().invoke(main, ["report", str(tmp_path / "r.lrm"), "-o", str(page)])
    assert made.exit_code == 0, made.stderr
    assert words in page.read_text()
    assert PrivacyUnit().limit is None
