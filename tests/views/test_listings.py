"""Listings are whole: every group is there, and where rows are left out, whole rows are."""

from dataclasses import replace

import numpy as np
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain import Categories, Domain, Integers
from lrm.views.release_document import EVERYTHING, listed_tables, release_document, terminal

DOMAIN = Domain(
    [Categories("zone", ["a", "b", "c", "d"]), Integers("day", 1, 60), Integers("hour", 0, 5)], "t"
)
SIZES = np.arange(DOMAIN.size) % 7


def _release(text):
    plan = lrm.plan(lrm.sql(text, DOMAIN), "noise-on-data")
    return lrm.release(plan, SIZES, epsilon=1, ledger=None)


def _shown(text):
    """For each row of the one table: its label, its answer and its standard error."""
    (table,) = listed_tables(_release(text), EVERYTHING)
    labels = [column.labels for column in table.frame.columns]
    groups = [tuple(labels[k][code] for k, code in enumerate(codes)) for codes in table.frame.codes]
    return groups, table.numbers["answer"], table.numbers["standard_error"]


def test_groups_whose_answers_carry_no_noise_are_listed():
    groups, answers, errors = _shown("SELECT hour, SUM(hour) AS hours FROM t GROUP BY hour")
    assert groups == [("0",), ("1",), ("2",), ("3",), ("4",), ("5",)]
    assert answers[0, 0] == errors[0, 0] == 0
    assert np.all(errors[1:] > 0)


def test_limit_counts_groups_whose_answers_carry_no_noise():
    text = "SELECT hour, SUM(-hour) AS less FROM t GROUP BY hour ORDER BY less DESC LIMIT 2"
    groups, _, _ = _shown(text)
    assert groups == [("0",), ("1",)]


def test_ranks_count_groups_whose_answers_carry_no_noise():
    text = """SELECT hour, SUM(-hour) AS less, RANK() OVER (ORDER BY SUM(-hour) DESC) AS place
    FROM t GROUP BY hour"""
    groups, answers, _ = _shown(text)
    assert len(groups) == 6
    assert answers[:, 1].tolist()[:2] == [1, 2]


CROSSED = "SELECT day, zone, COUNT(*) AS n FROM t GROUP BY day, zone"
TURNED = "SELECT day, zone, COUNT(*) AS n FROM t GROUP BY zone, day"


def test_a_listing_cuts_whole_rows_of_a_cross_tab_and_says_how_many():
    for text in (CROSSED, TURNED):
        release = _release(text)
        (table,) = release_document(release, terminal(8)).parts[0].blocks
        assert [heading.name for heading in table.headings] == ["day", "a", "b", "c", "d"]
        assert [row[0].text for row in table.rows] == [str(day) for day in range(1, 9)]
        assert all(cell.text for row in table.rows for cell in row)
        assert table.note == "… the first 8 of 60 rows."


def test_a_page_cuts_whole_rows_of_a_cross_tab():
    for table in listed_tables(_release(TURNED), replace(EVERYTHING, each=30)):
        assert (table.count, table.total, table.lines) == (28, 240, 60)
        assert set(table.frame.codes[:, 1].tolist()) == {0, 1, 2, 3}


def test_order_and_limit_hold_in_a_listing_of_fewer_rows():
    text = "SELECT day, hour, COUNT(*) AS n FROM t GROUP BY 1, 2 ORDER BY day DESC, hour LIMIT 30"
    (table,) = release_document(_release(text), terminal(3)).parts[0].blocks
    assert [row[0].text for row in table.rows] == ["60", "60", "60"]
    assert [row[1].text for row in table.rows] == ["0", "1", "2"]
    assert table.note.startswith("… the first 3 of 30 rows. ")


def test_the_command_says_how_many_rows_there_are(tmp_path):
    file = tmp_path / "answers.lrm"
    _release(TURNED).save(file)
    done = CliRunner().invoke(main, ["show", str(file), "--limit", "5"])
    assert done.exit_code == 0, done.output
    assert "the first 5 of 60 rows" in done.output


def test_the_line_of_totals_is_the_last_of_a_cross_tab():
    """Groups that the first label does not have came after it."""
    text = "SELECT least(zone, 'c') AS k, zone, COUNT(*) AS n FROM t GROUP BY CUBE (k, zone)"
    (table,) = listed_tables(_release(text), EVERYTHING)
    assert [line[0].text for line in table.table().rows] == ["a", "b", "c", "d", "total"]


def test_having_compares_groups_whose_answers_carry_no_noise():
    hours = "SELECT hour, SUM(hour) AS hours FROM t GROUP BY hour"
    assert _shown(f"{hours} HAVING SUM(hour) < 1")[0] == [("0",)]
    assert _shown(f"{hours} HAVING SUM(hour) > -1")[0][0] == ("0",)
    text = "SELECT zone, hour, 0 * COUNT(*) AS none FROM t WHERE hour < 2 GROUP BY zone, hour"
    assert len(_shown(f"{text} HAVING 0 * COUNT(*) >= 0 ORDER BY none LIMIT 9")[0]) == 8
