"""Tolerances of statements, and the least amount at which a plan meets them."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from benchmarks.evidence.statements import least_variance
from lrm.cli import main
from lrm.domain.file import write_domain
from lrm.errors import BudgetError, SqlError, UsageError, WorkloadError
from lrm.planning.plan.goals import Goals, column_errors
from lrm.planning.plan.tolerances import tolerance_goals, tolerances_of

BATCH = """
-- within: 20
SELECT COUNT(*) AS everybody FROM visits;
-- within: 5 % of 600
SELECT ward, COUNT(*) AS by_ward FROM visits GROUP BY ward;
-- expected: 200
-- within: 2000
-- within mean: 2
SELECT ward, SUM(stay) AS days, AVG(stay) AS mean FROM visits GROUP BY ward;
-- within: 40
SELECT MEDIAN(stay) AS middle FROM visits;
SELECT month, COUNT(*) AS by_month FROM visits GROUP BY month;
"""

RATE = "SELECT ward, COUNT(*) AS n, AVG(stay) AS mean FROM visits GROUP BY ward"


@pytest.fixture(scope="module")
def domain():
    return lrm.Domain(
        [
            lrm.Categories("ward", ["a", "b", "c"]),
            lrm.Integers("month", 1, 4),
            lrm.Integers("stay", 0, 5),
        ],
        "visits",
    )


@pytest.fixture(scope="module")
def batch(domain):
    return lrm.sql(BATCH, domain)


@pytest.fixture(scope="module", params=["pure", "gaussian"])
def plan(batch, request):
    return lrm.plan(batch, noise=request.param, meet=0.95, effort="quick")


def test_tolerances_are_read(batch):
    found = {entry.name: entry.within for entry in tolerances_of(batch)}
    assert found == {"everybody": 20, "by_ward": 30, "days": 2000, "mean": 2, "middle": 40}


def test_the_amount_is_the_least_that_meets_them(plan):
    met = plan.meets()
    assert plan.objective == "within"
    assert 0.999 < max(met.ratios) <= 1.0
    assert met.determining
    less = type(met.privacy)(next(iter(met.privacy.amounts.values())) * 99 / 100)
    ratios = [entry.ratio(plan.workload, plan.accuracy(less), 0.95) for entry in met.tolerances]
    assert max(ratios) > 1.0


def test_intervals_at_the_amount_are_within_the_tolerances(plan):
    met = plan.meets()
    amounts = {name: str(value) for name, value in met.privacy.amounts.items()}
    table = plan.errors(**amounts, expect=200).to_pandas()
    for name, most in {"everybody": 20, "by_ward": 30, "days": 2000, "mean": 2}.items():
        halves = table.loc[table["query"] == name, "half_width"]
        assert len(halves)
        assert halves.max() <= most * (1 + 1e-9)


def test_planning_for_tolerances_needs_less_than_other_objectives(batch, plan):
    noise = "gaussian" if plan.noise == "gaussian" else "pure"
    balanced = lrm.plan(batch, noise=noise, effort="quick")
    amounts = [next(iter(one.meets().privacy.amounts.values())) for one in (plan, balanced)]
    assert amounts[0] < amounts[1]


def test_the_amount_for_tables_is_the_least_of_all_strategies(domain):
    """By any weights of tables, no Gaussian strategy has a smaller weighted mean than the best.

    The optimum for the weights that the search has ended with bounds every maximum from below.
    """
    text = """
    -- within: 20
    SELECT COUNT(*) AS everybody FROM visits;
    -- within: 12
    SELECT ward, COUNT(*) AS by_ward FROM visits GROUP BY ward;
    -- within: 15
    SELECT ward, month, COUNT(*) AS both FROM visits GROUP BY ward, month;
    -- within: 30
    SELECT month, stay, COUNT(*) AS stays FROM visits GROUP BY month, stay;
    """
    plan = lrm.plan(lrm.sql(text, domain), noise="gaussian", meet=0.95)
    goals = tolerance_goals(plan.workload, 0.95)
    strategy = plan.measured, plan.reconstruction_map
    goals = goals.scaled(
        goals.squares(column_errors(goals.columns, *strategy)), goals.squares_of(*strategy)
    )
    # The weight of the one column of a goal is Gᵀe/n.
    shares = goals.shares.toarray()
    first = [int(np.flatnonzero(goals.columns.of_row == c)[0]) for c in shares.argmax(axis=1)]
    sizes = goals.columns.sizes[shares.argmax(axis=1)]
    emphasis = plan.workload.importance[first] * sizes / shares.max(axis=1)
    most = goals.squares_of(*strategy).max()
    assert most <= 1.005 * plan.least_error / emphasis.sum()


def test_the_largest_variance_is_that_of_residual_planner():
    """Its optimum for tables, of attributes that drop no row, is found by a program of its own."""
    attributes = [
        lrm.Categories(name, [f"v{i}" for i in range(size)], null="cell", outside="cell")
        for name, size in {"ward": 1, "month": 2, "stay": 4}.items()
    ]
    text = "".join(
        f"-- within: 10\nSELECT {names}, COUNT(*) AS n{i} FROM visits GROUP BY {names};\n"
        for i, names in enumerate(["ward, month", "ward, stay", "month, stay"])
    )
    batch = lrm.sql(text, lrm.Domain(attributes, "visits"))
    plan = lrm.plan(batch, noise="gaussian", meet=0.95, effort="quick")
    largest = plan.reconstruction_map.row_squared_norms.max() * plan.sensitivity**2
    least = least_variance([3, 4, 6], [(0, 1), (0, 2), (1, 2)])
    assert least * (1 - 1e-9) <= largest <= 1.005 * least


def test_a_wider_tolerance_needs_no_more(domain, batch):
    wider = lrm.sql(BATCH.replace("within: 40", "within: 80"), domain)
    amounts = [
        lrm.plan(one, noise="gaussian", meet=0.95, effort="quick").meets().privacy.rho
        for one in (batch, wider)
    ]
    assert amounts[1] < amounts[0]


def test_more_confidence_needs_more(plan):
    amounts = [
        next(iter(plan.meets(level).privacy.amounts.values())) for level in (0.9, 0.95, 0.99)
    ]
    assert amounts == sorted(amounts)
    assert amounts[0] < amounts[2]


def test_tolerances_are_kept_in_files(plan, tmp_path):
    plan.save(tmp_path / "plan.lrm")
    again = lrm.load_plan(tmp_path / "plan.lrm")
    assert again.meets().privacy == plan.meets().privacy
    assert again.statement_ratios is None


@pytest.mark.parametrize(
    ("remark", "expected", "word"),
    [
        ("-- within: 0", SqlError, "above 0"),
        ("-- within: many", SqlError, "above 0"),
        ("-- within: 5 %", SqlError, "of what"),
        ("-- within m: 5", SqlError, "called 'm'"),
        ("-- within: 1e400", SqlError, "above 0"),
        ("-- within: 5 % of 0", SqlError, "above 0"),
        ("-- within: -5 % of -9", SqlError, "above 0"),
        ("-- within: 1,5", SqlError, "above 0"),
        ("-- within: 1.000,5", SqlError, "above 0"),
        ("-- within: 5\n-- within: 9", SqlError, "two tolerances"),
        ("-- within ward: 5", SqlError, "called 'ward'"),
        ("-- expected: 100\n-- within mean: 5 %", SqlError, "of what"),
        ("-- expected: 100\n-- within: 5 %", SqlError, "of what"),
    ],
)
def test_tolerances_that_make_no_sense(domain, remark, expected, word):
    with pytest.raises(expected, match=word):
        lrm.sql(f"{remark}\n{RATE}", domain)


def test_a_share_is_of_the_answers_that_have_the_expected_size(domain):
    text = "-- expected: 100\n-- within mean: 0.5\n-- within: 5 %"
    assert lrm.sql(f"{text}\n{RATE}", domain).tables[0].within == (("mean", 0.5), ("", 5.0))


@pytest.mark.parametrize(
    "comment", ["within 50", "Expected 500", "importance 4", "within 5 % of 9"]
)
def test_a_comment_without_its_colon_is_warned_about(domain, comment):
    with pytest.warns(lrm.errors.SqlWarning, match="write a colon"):
        lrm.sql(f"-- {comment}\nSELECT COUNT(*) AS n FROM visits", domain)


def test_what_bins_add_is_stated_with_the_amount(tmp_path):
    domain = lrm.Domain([lrm.Bins("age", [0, 20, 50])], "t")
    text = "-- expected: 100\n-- within: 2\nSELECT AVG(age) AS mean FROM t"
    plan = lrm.plan(lrm.sql(text, domain), meet=0.95, effort="quick")
    plan.save(tmp_path / "p.lrm")
    run = CliRunner().invoke(main, ["explain", str(tmp_path / "p.lrm"), "--meet"])
    assert run.output.count("which moves it by at most 15") == 2  # with the amount, and below


def test_what_cannot_be_planned_for_is_said(domain):
    def plan(text, **options):
        return lrm.plan(lrm.sql(text, domain), effort="quick", meet=0.95, **options)

    with pytest.raises(UsageError, match="-- within: 50"):
        plan("SELECT COUNT(*) AS n FROM visits")
    with pytest.raises(UsageError, match="-- expected: 2000"):
        plan("-- within: 1\nSELECT AVG(stay) AS mean FROM visits")
    with pytest.raises(UsageError, match=r"line 2: .* its own value.*; remove its tolerance"):
        plan("-- within: 1\nSELECT STDDEV(stay) AS spread FROM visits")
    with pytest.raises(UsageError, match="name the other answers, as in `-- within n: 50`"):
        plan("-- within: 1\nSELECT COUNT(*) AS n, STDDEV(stay) AS spread FROM visits")
    with pytest.raises(UsageError, match="leave out"):
        plan("-- within: 1\nSELECT COUNT(*) AS n FROM visits", objective="worst")
    with pytest.raises(UsageError, match="for best"):
        lrm.plan(lrm.sql(BATCH, domain), "noise-on-data", meet=0.95)
    with pytest.raises(BudgetError, match="confidence"):
        lrm.plan(lrm.sql(BATCH, domain), effort="quick", meet=95)
    with pytest.raises(BudgetError, match="so wide"):
        plan("-- within: 1e18\nSELECT COUNT(*) AS n FROM visits").meets()
    with pytest.raises(BudgetError, match="wider"):
        plan("-- within: 1e-12\nSELECT COUNT(*) AS n FROM visits").meets()


def test_a_share_of_the_expected_size(domain):
    text = "-- expected: 1,000\n-- within: 5 %\nSELECT COUNT(*) AS n FROM visits"
    (entry,) = tolerances_of(lrm.sql(text, domain))
    assert entry.within == 50
    plan = lrm.plan(lrm.sql(text, domain), noise="laplace", meet=0.95)
    # One count: half-width ln(20)/ε.
    assert float(plan.meets().privacy.epsilon) == pytest.approx(math.log(20) / 50, rel=1e-4)


def test_yaml_has_tolerances_too(domain, tmp_path):
    text = """
lrm-batch: 1
queries:
  - {kind: total, name: all, within: 50}
  - {kind: marginals, of: [[ward], [ward, month]], name: cross, within: 5 % of 400}
  - kind: sql
    text: SELECT ward, COUNT(*) AS n, AVG(stay) AS mean FROM visits GROUP BY ward
    within: {n: 30, mean: 1.5}
    expected: 200
"""
    (tmp_path / "q.yaml").write_text(text)
    batch = lrm.read_batch(tmp_path / "q.yaml", domain)
    found = sorted(entry.within for entry in tolerances_of(batch))
    assert found == [1.5, 20, 20, 30, 50]
    for wrong in ("within: 0", "within: {x: 3}", "within: a lot", "within: 1,5"):
        (tmp_path / "q.yaml").write_text(text.replace("within: 50", wrong))
        with pytest.raises(WorkloadError, match="line 4"):
            lrm.read_batch(tmp_path / "q.yaml", domain)


def test_all_two_way_tables_have_the_least_maximum_variance():
    """With equal tolerances for all tables it is the optimum of ResidualPlanner.

    By symmetry, for d attributes of n values all tables have one variance, and the residuals of 0,
    1 and 2 attributes three; the maximum is the mean, whose optimum has a closed form.
    """
    domain = lrm.Domain([lrm.Integers(f"a{i}", 0, 3) for i in range(4)], "t")
    batch = lrm.marginals(domain, [2])
    equal = lrm.plan(batch, noise="gaussian", objective="total")
    tables = [replace(table, within=(("", 1.0),)) for table in batch.tables]
    plan = lrm.plan(replace(batch, statements=tuple(tables)), noise="gaussian", meet=0.95)
    variances = plan.reconstruction_map.row_squared_norms * plan.sensitivity**2
    assert variances.max() <= 1.002 * equal.strategy_error / batch.shape[0]


def test_tables_of_one_name_have_weights_of_their_own(domain):
    """All tables of one entry were one column, so that a small table could not have more weight."""
    sizes = lrm.Domain([lrm.Integers("a", 0, 1), lrm.Integers("b", 0, 49)], "t")
    batch = lrm.marginals(sizes, [1])
    tables = [replace(table, within=(("", 1.0),)) for table in batch.tables]
    plan = lrm.plan(replace(batch, statements=tuple(tables)), noise="gaussian", meet=0.95)
    ratios = plan.meets().ratios
    assert len(ratios) == 2
    assert min(ratios) > 0.99


def test_the_commands_find_the_amount(domain, tmp_path):
    (tmp_path / "q.sql").write_text(BATCH)
    write_domain(domain, tmp_path / "d.yaml")
    options = ["--domain", str(tmp_path / "d.yaml"), "--effort", "quick", "--noise", "gaussian"]
    plan = str(tmp_path / "p.lrm")
    run = CliRunner().invoke(
        main, ["plan", str(tmp_path / "q.sql"), *options, "--meet", "-o", plan]
    )
    assert run.exit_code == 0
    assert "meets all tolerances" in run.output
    assert "determines it" in run.output
    run = CliRunner().invoke(main, ["explain", plan, "--meet", "--json"])
    facts = json.loads(run.output)
    assert facts["rho"] == facts["meets"]["rho"]
    for entry in facts["meets"]["tolerances"]:
        assert entry["half_width"] <= entry["within"]
    run = CliRunner().invoke(main, ["explain", plan, "--meet", "--rho", "1"])
    assert run.exit_code == 2


def test_goals_without_a_tolerance_have_little_weight(batch):
    goals = tolerance_goals(batch, 0.95)
    assert isinstance(goals, Goals)
    weights = goals.column_weights(goals.even)
    (by_month,) = goals.columns.statements[4]
    assert 0 < weights[by_month] < np.delete(weights, by_month).min()


SHARED = """
-- within n: 20
SELECT COUNT(*) AS n FROM visits;
-- within {name}: 10
SELECT COUNT(*) AS n FROM visits WHERE ward = 'a';
"""


@pytest.mark.parametrize("name", ["n", "q2.n"])
def test_a_name_that_statements_share_keeps_its_tolerances(domain, name):
    batch = lrm.sql(SHARED.format(name=name), domain)
    found = {entry.name: entry.within for entry in tolerances_of(batch)}
    assert found == {"q1.n": 20, "q2.n": 10}


def test_an_answer_may_be_named_with_its_statement(domain):
    text = "SELECT COUNT(*) AS m FROM visits;\n-- within q2.n: 5\nSELECT COUNT(*) AS n FROM visits"
    (entry,) = tolerances_of(lrm.sql(text, domain))
    assert (entry.name, entry.within) == ("n", 5)
    with pytest.raises(SqlError, match=r"is called 'q2\.n'"):
        lrm.sql(text.partition("\n")[2], domain)


def test_parts_of_a_union_keep_their_tolerances(domain):
    text = (
        "-- within n: 5\nSELECT ward, COUNT(*) AS n FROM visits GROUP BY ward "
        "UNION ALL SELECT month, COUNT(*) AS n FROM visits GROUP BY month"
    )
    assert [entry.within for entry in tolerances_of(lrm.sql(text, domain))] == [5, 5]


def test_a_tolerance_of_no_answer_is_refused(batch):
    stale = replace(batch.statements[0], within=(("all", 20.0),))
    with pytest.raises(UsageError, match="line 3: a tolerance is stated for 'all'"):
        tolerances_of(replace(batch, statements=(stale, *batch.statements[1:])))


@pytest.mark.parametrize("within", [1, 1.5, 2, 5])
def test_no_smaller_amount_meets_a_tolerance_on_a_lattice(domain, within):
    """A count with noise on integers has the half-width k from one amount to another."""
    text = f"-- within: {within}\nSELECT COUNT(*) AS n FROM visits"
    plan = lrm.plan(lrm.sql(text, domain), meet=0.95, effort="quick")
    met = plan.meets()
    half = math.floor(within)
    # P(|k| > half) = 2q^(half + 1)/(1 + q) with q = exp(-epsilon) is 0.05 at the least epsilon.
    q = math.exp(-float(met.privacy.epsilon))
    assert 2 * q ** (half + 1) / (1 + q) == pytest.approx(0.05, rel=0.02)
    assert met.determining == met.tolerances


def test_what_determines_an_amount_is_not_met_below_it(domain):
    text = """
    -- within: 2.9
    SELECT COUNT(*) AS n FROM visits;
    -- within: 4
    SELECT ward, COUNT(*) AS by_ward FROM visits GROUP BY ward;
    """
    plan = lrm.plan(lrm.sql(text, domain), meet=0.95, effort="quick")
    met = plan.meets()
    less = type(met.privacy)(met.privacy.epsilon * 995 / 1000)
    accuracy = plan.accuracy(less)
    for entry in met.tolerances:
        missed = entry.ratio(plan.workload, accuracy, 0.95) > 1
        assert missed == (entry in met.determining)


@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
@pytest.mark.parametrize(
    "text",
    [
        (
            "-- within: 1000\nSELECT COUNT(*) AS n FROM visits WHERE ward = 'a';\n"
            "-- within: 1\nSELECT SUM(month) AS s FROM visits WHERE month <= 9"
        ),
        (
            "-- within: 1\nSELECT month, SUM(month) AS s FROM visits WHERE ward = 'a' "
            "GROUP BY month;\n"
            "-- within: 200\nSELECT COUNT(*) AS n FROM visits WHERE month <= 2"
        ),
        (
            "-- within n: 20\nSELECT COUNT(*) AS n FROM visits;\n"
            "-- within n: 20\nSELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
        ),
    ],
)
def test_a_quick_plan_for_tolerances_needs_no_more_than_plain_noise(domain, text, noise):
    """Real noise of a sum of months has steps of 1/12: it took ten times the amount."""
    batch = lrm.sql(text, domain)
    plans = [lrm.plan(batch, meet=0.95, effort="quick", noise=noise)]
    plain = "gaussian" if noise == "gaussian" else "laplace"
    plans += [lrm.plan(batch, name, noise=plain) for name in ("noise-on-data", "noise-on-results")]
    least, *others = (next(iter(plan.meets(0.95).privacy.amounts.values())) for plan in plans)
    assert float(least) <= min(map(float, others)) * 1.0001
