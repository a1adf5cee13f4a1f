"""A rehearsal needs no data and no ledger, and is marked wherever it is shown."""

from pathlib import Path

import numpy as np
import pytest

import lrm
from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.errors import UsageError
from lrm.views.rehearsal import expected_rows, rehearse, synthetic_rows

DOMAIN = Domain(
    [
        Categories("ward", ["north", "south"], null="cell"),
        Categories("urgent", [True, False]),
        Integers("age", 0, 99, width=10, outside="cell"),
        Bins("delay", [-1.5, 0, 10]),
        Dates("day", "2023-01-01", "2023-12-31", by="month"),
    ],
    "visits",
    unit=PrivacyUnit("person", 2),
)


def test_every_synthetic_row_is_within_the_domain():
    rows = synthetic_rows(DOMAIN, 2000).to_pylist()
    counts = DOMAIN.count(rows)
    assert counts.sum() == 2000
    assert len({row["person"] for row in rows}) == 2000


def test_a_rehearsal_has_the_noise_of_a_release_and_promises_nothing():
    text = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    plan = lrm.plan(lrm.sql(text, DOMAIN), "noise-on-data")
    made = rehearse(plan, plan.privacy("0.5"), 10_000)
    assert made.simulated
    assert made.ledger_head is None
    np.testing.assert_allclose(
        made.standard_errors, plan.accuracy(plan.privacy("0.5")).standard_errors, rtol=1e-6
    )
    # Uniform: each of two wards has half of the rows.
    assert np.all(np.abs(made.answers[:2] - 5000) < 20 * made.standard_errors[:2] + 500)
    with pytest.raises(UsageError, match="between 1 and"):
        rehearse(plan, plan.privacy(1), 0)


def test_plans_of_numbered_cells_can_be_rehearsed():
    plan = lrm.plan(np.eye(5), "noise-on-data", noise="gaussian")
    made = rehearse(plan, plan.privacy(rho=1), 1000)
    assert abs(made.answers.sum() - 1000) < 50


def test_the_command_marks_the_page_and_the_file_beside_it(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from lrm.cli import main

    monkeypatch.chdir(tmp_path)
    plan = lrm.plan(np.resize(np.eye(2), (2001, 2)), "noise-on-data")
    plan.save("plan.lrm")
    done = CliRunner().invoke(main, ["rehearse", "plan.lrm", "--epsilon", "0.5", "-o", "page.html"])
    assert done.exit_code == 0, done.output
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Rehearsal" in page
    assert "nothing is guaranteed" in page
    assert "times as likely" not in page
    assert Path("page.rehearsal.csv").exists()
    again = CliRunner().invoke(main, ["rehearse", "plan.lrm", "-o", "page.html"])
    assert again.exit_code == 2


def test_expected_sizes_decide_the_number_of_rows():
    domain = Domain([Categories("ward", ["a", "b"]), Categories("sex", ["f", "m"])], "visits")
    text = "-- expected: 6000\nSELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    plan = lrm.plan(lrm.sql(text, domain), "noise-on-data")
    assert abs(expected_rows(plan) - 12_000) < 200
    made = rehearse(plan, plan.privacy("10"))
    assert made.simulated
    assert abs(float(made.answers.sum()) - 12_000) < 300
    sums = Domain([*domain.attributes, lrm.Integers("days", 0, 60)], "visits")
    more = text.replace("AS n", "AS n, SUM(days) AS days, AVG(days) AS mean")
    both = lrm.plan(lrm.sql(more, sums), "noise-on-data")
    assert abs(expected_rows(both) - 12_000) < 200  # sums of days are no sizes of groups
    plain = lrm.plan(lrm.sql(text.partition("\n")[2], domain), "noise-on-data")
    assert expected_rows(plain) == 100_000
