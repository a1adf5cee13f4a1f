"""Counts, sums and averages have units of their own: no mean is taken over several of them."""

import numpy as np
import pytest

import lrm
from lrm.views.baselines import errors_by_mechanism
from lrm.views.budgets import preview_lines
from lrm.views.figures import errors_drawing
from lrm.views.plan_document import plan_page
from lrm.views.plans import plan_lines
from lrm.views.statement_errors import StatementErrors, comparable_rows, kind_lines

DOMAIN_TEXT = """\
lrm-domain: 1
table: stays
unit: row
attributes:
  - {name: ward, kind: categories, values: [a, b, c], null: drop, outside: drop}
  - {name: days, kind: integers, low: 0, high: 90, null: drop, outside: drop}
"""
BATCH = """\
SELECT ward, COUNT(*) AS n, SUM(days) AS bed_days FROM stays GROUP BY ward;
SELECT COUNT(*) AS everybody FROM stays;
SELECT ward, AVG(days) AS mean_days FROM stays GROUP BY ward;
SELECT SUM(CASE WHEN days >= 7 THEN 1 ELSE 0 END) AS long_stays FROM stays;
"""


@pytest.fixture(scope="module")
def domain(tmp_path_factory):
    place = tmp_path_factory.mktemp("domain") / "domain.yaml"
    place.write_text(DOMAIN_TEXT)
    return lrm.read_domain(place)


@pytest.fixture(scope="module")
def plan(domain):
    return lrm.plan(lrm.sql(BATCH, domain), "noise-on-data")


def test_an_average_states_no_error_of_its_numerator(plan):
    mean = StatementErrors(plan).at(plan.accuracy(plan.privacy(1)))[3]
    assert mean.part.kind == "derived"
    assert np.isnan([mean.typical, mean.largest, mean.half]).all()


def test_means_are_over_counts_alone(plan):
    accuracy = plan.accuracy(plan.privacy(1))
    names, rows = comparable_rows(plan.workload)
    assert (names, len(rows)) == (("count", "counts"), 5)
    typical = float(np.sqrt((accuracy.standard_errors[rows] ** 2).mean()))
    assert typical < accuracy.root_mean_squared_error / 5
    for errors in errors_by_mechanism(plan, accuracy).values():
        assert len(errors) == 5
    lines = " ".join(value for _, value in plan_lines(plan))
    plain = float(np.sqrt((accuracy.nominal.standard_errors[rows] ** 2).mean()))
    assert f"{plain:.4g} root mean squared error of a count" in lines
    drawn = errors_drawing(plan, accuracy)
    assert f"root mean square {typical:,.3g}" in [text.get_text() for text in drawn.axes.texts]
    assert "5 counts" in plan_page(plan, plan.privacy(1))


def test_a_dry_run_states_the_error_of_a_count(plan):
    preview = lrm.releases.preview(plan, np.zeros(273, dtype=int), epsilon=1)
    errors = StatementErrors(plan).at(preview.accuracy)
    assert ("error of a count", f"{_typical(errors):.4g} (root mean square)") in preview_lines(
        preview
    )


def _typical(errors):
    counts = [error for error in errors if error.part.kind == "count"]
    total = sum(error.typical**2 * error.part.count for error in counts)
    return (total / sum(error.part.count for error in counts)) ** 0.5


def test_a_batch_of_sums_has_the_mean_of_the_first(domain):
    sums = lrm.plan(lrm.sql("SELECT ward, SUM(days) AS d FROM stays GROUP BY ward", domain))
    names, rows = comparable_rows(sums.workload)
    assert (names, len(rows)) == (("sum", "sums"), 3)


def test_a_matrix_has_queries_of_any_weights():
    plan = lrm.plan([[3, -1], [1, 1]], "noise-on-data")
    names, rows = comparable_rows(plan.workload)
    assert (names, len(rows)) == (("query", "queries"), 2)
    errors = StatementErrors(plan).at(plan.accuracy(plan.privacy(1)))
    assert [name for name, _ in kind_lines(errors)] == ["error of a query"]


def test_the_amount_for_an_error_is_for_counts(plan):
    privacy = plan.privacy_for(rmse=10)
    errors = StatementErrors(plan).at(plan.accuracy(privacy))
    assert _typical(errors) == pytest.approx(10, rel=1e-4)
    assert _typical(errors) <= 10
