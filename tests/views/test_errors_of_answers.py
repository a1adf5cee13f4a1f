"""Errors of rates and averages are those of the answers, or nothing is stated."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.views.answers import statement_table
from lrm.views.plan_document import PlanDetail, plan_document, plan_page
from lrm.views.rehearsal import rehearse
from lrm.views.release_page import release_page
from lrm.views.statement_errors import StatementErrors, statement_facts
from lrm.views.text import to_text

DOMAIN = lrm.Domain(
    [
        lrm.Categories("town", ["a", "b", "c", "d"]),
        lrm.Integers("spent", 0, 1_000_000, width=50_000),
    ],
    table="t",
)
AVERAGE = "SELECT town, AVG(spent) AS mean_spent FROM t GROUP BY town;"
COUNTS = "SELECT town, COUNT(*) AS n FROM t GROUP BY town;"
MIXED = "SELECT town, COUNT(*) AS n, AVG(spent) AS mean_spent FROM t GROUP BY town;"


def _plan(*statements: str) -> lrm.Plan:
    return lrm.plan(lrm.sql("\n".join(statements), DOMAIN), effort="quick")


def _rows(count: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"town": rng.choice(list("abcd"), count), "spent": rng.integers(0, 1_000_000, count)}
    )


def _errors(plan: lrm.Plan, epsilon: str = "1"):  # type: ignore[no-untyped-def]
    return StatementErrors(plan).at(plan.accuracy(plan.privacy(epsilon)))


def test_nothing_is_stated_of_averages_without_an_expected_size() -> None:
    plan = _plan(COUNTS, AVERAGE)
    errors = _errors(plan)
    assert [math.isnan(error.half) for error in errors] == [False, True]
    facts = json.loads(json.dumps(statement_facts(errors), allow_nan=False))
    assert facts[1]["half_width"] is None
    document = plan_document(plan, PlanDetail("errors", 5), plan.accuracy(plan.privacy("1")))
    text = to_text(document, 100)
    assert "—" in text
    assert "numerator" not in text


@pytest.mark.parametrize("epsilon", ["0.1", "1", "20"])
def test_with_an_expected_size_the_error_is_that_of_the_answer(epsilon: str) -> None:
    plan = _plan(COUNTS, f"-- expected: 5000\n{AVERAGE}")
    (_, error) = _errors(plan, epsilon)
    stated = plan.errors(epsilon=epsilon, expect=5000)
    assert error.half == pytest.approx(float(stated.numbers["half_width"][-1, 0]), rel=1e-6)
    assert error.typical == pytest.approx(float(stated.numbers["standard_error"][-1, 0]), rel=1e-6)
    released = lrm.release(plan, _rows(20_000), ledger=None, epsilon=epsilon).unclipped
    numbers = released.table().of("mean_spent").numbers
    assert np.all((numbers["high"] - numbers["low"]) / 2 <= 1.3 * error.half)


def test_a_share_is_of_the_rows_of_all_expected_groups() -> None:
    """The total had the rows of one group: the error was four times that of the release."""
    share = "SELECT town, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY town;"
    plan = _plan(f"-- expected: 5000\n{share}")
    (error,) = _errors(plan)
    rows = pd.DataFrame({"town": list("abcd") * 5000, "spent": 0})
    released = lrm.release(plan, rows, ledger=None, epsilon=1).to_pandas()
    assert error.largest == pytest.approx(released["standard_error"].max(), rel=0.2)


def test_a_released_page_states_the_errors_of_its_averages() -> None:
    plan = _plan(COUNTS, AVERAGE)
    release = lrm.release(plan, _rows(20_000), ledger=None, epsilon=1)
    error = np.median(release.table().of("mean_spent").numbers["standard_error"])
    page = release_page(release)
    assert lrm.files.spelling.number(float(error)) in page
    assert "numerator" not in page
    assert "numerator" not in plan_page(plan, plan.privacy("1"))


@pytest.mark.parametrize("statement", [COUNTS, MIXED])
@pytest.mark.parametrize("expected", [40, 200, 4000])
def test_plan_rehearsal_and_release_have_one_verdict(statement: str, expected: int) -> None:
    plan = _plan(f"-- expected: {expected}\n{statement}", AVERAGE)
    before = _errors(plan)[0].verdict
    table = plan.workload.tables[0]
    privacy = plan.privacy("1")
    assert statement_table(rehearse(plan, privacy), table).verdict == before
    released = lrm.release(plan, _rows(4 * expected), ledger=None, epsilon=1)
    assert statement_table(released, table).verdict == before
