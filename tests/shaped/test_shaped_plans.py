"""Plans with shaped noise, from the batch to the answers: guarantee, errors, intervals, files."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.optimize import linprog

import lrm
from body_vertices import vertices_of
from forging import resealed
from long_runs import cases
from lrm.cli import main
from lrm.clock import Clock
from lrm.domain import Categories, Domain, Integers, PrivacyUnit
from lrm.errors import BudgetError, FileFormatError, LrmError, StopSolver, WorkloadError
from lrm.planning.design.cells import CellMap
from lrm.planning.design.measured import Measured
from lrm.planning.plan.comparison import Comparison, Outcome
from lrm.planning.strategies.base import Problem
from lrm.planning.strategies.shaped import table_candidates
from lrm.planning.strategies.shaped_tables import tables_of
from lrm.privacy.bodies.facets import Facets
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import PureDP
from lrm.privacy.mechanism import TrueCounts, calibrate, law_of, measure
from lrm.privacy.norms import L1, BodyNorm
from lrm.queries.maps.matrices import DenseMap
from lrm.queries.workload import families
from lrm.tables import open_table
from lrm.views.comparisons import advice, side_by_side_facts

SIGMAS = 5.0

YES_NO = np.array([[0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 0, 1, 1], [1, 0, 1, 0, 1, 0, 1.0]])


def one_way(*sizes):
    """All one-way tables as a matrix."""
    rows = []
    for i in range(len(sizes)):
        parts = [np.eye(n) if j == i else np.ones((1, n)) for j, n in enumerate(sizes)]
        matrix = parts[0]
        for part in parts[1:]:
            matrix = np.kron(matrix, part)
        rows.append(matrix)
    return np.vstack(rows)


def random_batch(seed):
    rng = np.random.default_rng(seed)
    if seed % 40 == 39:  # the hull is sampled by rejection
        return (rng.random((9, 30)) < 0.4).astype(float)
    m, n = rng.integers(2, 5), rng.integers(3, 9)
    if seed % 3 == 0:
        return rng.integers(0, 2, (m, n)).astype(float)
    if seed % 3 == 1:
        return rng.integers(-2, 3, (m, n)).astype(float)
    return rng.normal(size=(m, n))


BATCHES = {
    "yes/no": YES_NO,
    "one-way": one_way(5, 4, 3),
    "groups": one_way(24, 2, 2, 2),  # above the ranks of hulls by parts
    "prefix": np.tri(4),
    "low rank": np.random.default_rng(1).normal(size=(12, 3))
    @ np.random.default_rng(2).normal(size=(3, 30)),
}


@pytest.fixture(scope="module")
def plans():
    made = {name: lrm.plan(W, noise="pure", effort="quick") for name, W in BATCHES.items()}
    assert {plan.noise for plan in made.values()} == {"shaped"}
    return made


@pytest.fixture(params=BATCHES)
def plan(request, plans):
    return plans[request.param]


def noise_of(plan, epsilon, count, unit=None):
    """Noise of the answers, by the exact sampler alone, from the same bits in each run."""
    calibrated = calibrate(plan.measured, PureDP(Fraction(epsilon)), unit or plan.unit)
    bits = random.Random(7).getrandbits  # noqa: S311 - no secret
    drawn = np.array([calibrated.draw(bits) for _ in range(count)], dtype=float)
    return plan.reconstruction_map.apply(drawn.T * 2.0**-plan.measured.bits).T


def test_shaped_noise_has_less_error_than_laplace_noise(plan):
    laplace = lrm.plan(plan.workload, noise="laplace", effort="quick")
    assert laplace.noise == "laplace"
    assert plan.strategy_error < laplace.strategy_error


@pytest.mark.parametrize(
    ("batch", "most"),
    [
        (YES_NO, 7.5),
        (one_way(5, 4, 3, 2), 77.68),
        (one_way(10, 10), 62.07),
        (one_way(20, 2, 2, 2, 2), 175.0),
        (np.tri(4), 9.2),
        (np.tri(16), 92.0),  # 105.8 with Laplace noise: a hull by parts with free points
        (families.marginals([3, 2, 2, 2], [0, 1, 2]), 198.0),  # 264 with Laplace noise, rank 15
    ],
)
def test_errors_of_known_batches(batch, most):
    plan = lrm.plan(batch, noise="pure", effort="quick")
    assert plan.strategy_error <= most


def test_never_above_the_laplace_plan():
    for W in (np.eye(5), np.ones((1, 4)), np.zeros((2, 3)), np.array([[1.0, 2.0], [3.0, 5.0]])):
        pure, laplace = lrm.plan(W), lrm.plan(W, noise="laplace")
        assert pure.strategy_error <= laplace.strategy_error * (1 + 1e-9)


def test_predicted_errors_are_those_of_draws(plan):
    noise = noise_of(plan, 2, 800)
    squares = noise**2
    error = squares.std(axis=0) / math.sqrt(len(noise))
    assert np.all(np.abs(squares.mean(axis=0) - plan.standard_errors(2) ** 2) < SIGMAS * error)
    assert np.all(np.abs(noise.mean(axis=0)) < SIGMAS * noise.std(axis=0) / math.sqrt(len(noise)))


@pytest.mark.parametrize("confidence", [0.95])
def test_intervals_cover_draws(plan, confidence):
    noise = noise_of(plan, 1, 800)
    covered = (np.abs(noise) <= plan.half_widths(1, confidence)).mean(axis=0)
    spread = math.sqrt(confidence * (1 - confidence) / len(noise))
    assert np.all(covered > confidence - SIGMAS * spread)
    assert np.all(covered < confidence + 0.02 + SIGMAS * spread)


def test_a_normal_interval_would_be_too_narrow(plans):
    plan = plans["yes/no"]
    assert np.all(plan.half_widths(1) > 1.99 * plan.standard_errors(1))


def test_units_of_several_rows_and_replacement_scale_the_noise(plan):
    for unit in (PrivacyUnit(max_rows=3), PrivacyUnit(neighbours="substitute")):
        accuracy = plan.accuracy(plan.privacy("0.1"), unit)
        assert accuracy.squared_error == pytest.approx(
            unit.factor**2 * plan.expected_squared_error("0.1"), rel=1e-9
        )
        noise = calibrate(plan.measured, plan.privacy(1), unit)
        assert noise.loss <= 1
        assert noise.scale >= unit.factor * plan.measured.sensitivity


def test_no_neighbour_moves_further_than_the_noise_allows():
    assert_neighbours_are_near(range(24))


@pytest.mark.long
def test_no_neighbour_of_three_hundred_plans_moves_further():
    assert_neighbours_are_near(range(1000, 1000 + cases(600)))


def assert_neighbours_are_near(seeds):
    """The norm of what one record moves, by a linear program over the vertices, on many plans."""
    looked_at = 0
    for seed in seeds:
        W = random_batch(seed)
        plan = lrm.plan(W, noise="pure", effort="quick", time_limit=5)
        body = plan.measured.body
        if body is None:
            continue
        V = vertices_of(body).astype(float)
        size = np.abs(V).max()
        both = np.hstack([V, -V]) / size
        cells = W.shape[1]
        units = [(1, "add-remove"), (2, "add-remove"), (1, "substitute")]
        rng = np.random.default_rng(seed)
        for rows, neighbours in units:
            factor = PrivacyUnit(max_rows=rows, neighbours=neighbours).factor
            for _ in range(3):
                before = np.zeros(cells, dtype=np.int64)
                after = before.copy()
                np.add.at(after, rng.integers(cells, size=rows), 1)
                if neighbours == "substitute":
                    np.add.at(before, rng.integers(cells, size=rows), 1)
                counts = [plan.measured.counts_of(table) for table in (after, before)]
                moved = plan.measured.measure(counts[0]) - plan.measured.measure(counts[1])
                norm = linprog(np.ones(both.shape[1]), A_eq=both, b_eq=moved / size).fun
                assert norm <= factor * (1 + 1e-7)
                looked_at += 1
    assert looked_at >= 2 * len(seeds)  # nine for each plan with shaped noise


def test_a_strategy_refuses_a_body_that_a_record_leaves(plan):
    strategy = plan.measured
    doubled = strategy.cells.matrix.scaled(2.0)
    with pytest.raises(WorkloadError, match=r"beyond the body|common total"):
        Measured.of_cells(doubled, strategy.cells.cell_map, strategy.bits, None, strategy.norm)
    count = strategy.measurement_count + 1
    with pytest.raises(WorkloadError, match="one coordinate"):
        replace(strategy, norm=BodyNorm(Tables((1,) * count, (False,) * count, 2**40)))


def test_merged_cells_that_count_several_times_are_held():
    """A record of a cell with factor 3 moves three times as far."""
    W = np.hstack([YES_NO, 3 * YES_NO[:, [0, 6]]])
    plan = lrm.plan(W, noise="pure")
    body = plan.measured.body
    assert body is not None
    for cell in range(9):
        moved = plan.measured.measure(plan.measured.counts_of(np.eye(9, dtype=np.int64)[cell]))
        assert body.gauge(moved.tolist()) <= 1


def test_weights_and_factors_whose_product_wraps_around_are_refused():
    """2^13·(2^51 + 2^19) is 2^32 in 64 bits: a record moved the second integer by 2^64 more."""
    body = Facets(np.array([[1 << 30, 0], [0, 1]]), np.array([[1, 2], [1, -2]]), 32)
    cells = CellMap(2, np.array([0, 1]), np.array([1 << 13, 1 << 13]))
    matrix = DenseMap(np.diag([2.0**49, 2.0**51 + 2.0**19]))
    for norm in (BodyNorm(body), L1()):
        with pytest.raises(WorkloadError, match="beyond 62 bits"):
            Measured.of_cells(matrix, cells, 0, None, norm)


def test_answers_are_unbiased_and_further_queries_are_free(plan):
    counts = np.arange(plan.workload.shape[1]) * 7
    release = lrm.release(plan, counts, epsilon=20)
    W = BATCHES_BY_SHAPE[plan.workload.shape]
    assert release.answers == pytest.approx(W @ counts, abs=20 * release.standard_errors.max())
    further = release.query(W[:1] + W[1:2])
    assert further.answers[0] == pytest.approx(release.answers[0] + release.answers[1], rel=1e-6)


BATCHES_BY_SHAPE = {W.shape: W for W in BATCHES.values()}


def test_more_records_than_declared_are_measured_without_clamping_first(plans):
    """Clamping the true values could move neighbours further apart in the norm of the body."""
    plan = plans["yes/no"]
    most = plan.measured.max_records
    exact = plan.measured.measure_clamped(np.full(7, most, dtype=np.int64))
    assert exact.dtype == object
    assert max(exact.tolist()) > 1 << 62
    noise = calibrate(plan.measured, plan.privacy(1), PrivacyUnit())
    measured = measure(TrueCounts(np.full(7, most)), plan.measured, noise)
    assert measured.noisy_values.max() == 1 << 62


def test_shaped_noise_takes_epsilon_alone(plan):
    with pytest.raises(BudgetError):
        plan.privacy(epsilon=1, delta="1e-9")
    with pytest.raises(BudgetError):
        plan.privacy(rho=1)


def test_law_and_calibration_agree(plan):
    privacy = plan.privacy("0.3")
    two = PrivacyUnit(max_rows=2)
    assert law_of(plan.measured, privacy, two).scale == calibrate(plan.measured, privacy, two).scale


# --- files --------------------------------------------------------------------------------------


def test_files_give_back_the_same_plan_and_release(plan, tmp_path):
    plan.save(tmp_path / "a.plan")
    loaded = lrm.load_plan(tmp_path / "a.plan")
    assert loaded.digest == plan.digest
    assert loaded.expected_squared_error(1) == pytest.approx(plan.expected_squared_error(1))
    release = lrm.release(loaded, np.ones(plan.workload.shape[1], dtype=int), epsilon="0.5")
    release.save(tmp_path / "a.release")
    again = lrm.load_release(tmp_path / "a.release")
    assert again.answers == pytest.approx(release.answers)
    assert again.intervals() == pytest.approx(release.intervals())
    assert repr(again)
    assert "shaped" in repr(plan)


def change_vertex(_facts, arrays):
    arrays["body-vertices"][0] //= 3


def shrink_vertices(_facts, arrays):
    arrays["body-vertices"] //= 2


def drop_facet(_facts, arrays):
    arrays["body-facets"] = arrays["body-facets"][1:]


def repeat_facet(_facts, arrays):
    arrays["body-facets"] = np.vstack([arrays["body-facets"], arrays["body-facets"][:1]])


def lower_shift(facts, _arrays):
    measured = facts.get("plan", facts)["measured"]
    measured["body"]["shift"] = 0 if measured["body"]["shift"] else 1


@pytest.mark.parametrize(
    "change", [change_vertex, shrink_vertices, drop_facet, repeat_facet, lower_shift]
)
@pytest.mark.parametrize("name", ["prefix", "low rank"])
def test_edited_bodies_by_facets_are_refused(plans, tmp_path, name, change):
    plans[name].save(tmp_path / "a.plan")
    with pytest.raises(FileFormatError):
        lrm.load_plan(resealed(tmp_path / "a.plan", change))


def smaller_unit(body):
    body["unit"] = str(int(body["unit"]) // 2)


def other_sizes(body):
    body["sizes"] = [1] * sum(body["sizes"])
    body["closed"] = [0] * len(body["sizes"])


def open_tables(body):
    body["closed"] = [0] * len(body["closed"])


def unknown_kind(body):
    body["kind"] = "ball"


def negative_size(body):
    body["sizes"][0] = -1


@pytest.mark.parametrize(
    "change", [smaller_unit, other_sizes, open_tables, unknown_kind, negative_size]
)
def test_edited_bodies_of_tables_are_refused(plans, tmp_path, change):
    plans["one-way"].save(tmp_path / "a.plan")
    forged = resealed(tmp_path / "a.plan", lambda facts, _: change(facts["measured"]["body"]))
    with pytest.raises(FileFormatError):
        lrm.load_plan(forged)


@pytest.mark.parametrize("shares", [[1 << 24, 1 << 24], [0, 1 << 24], [1 << 23, 1 << 22], ["a", 1]])
def test_edited_shares_are_refused(plans, tmp_path, shares):
    plans["groups"].save(tmp_path / "a.plan")

    def change(facts, _):
        assert facts["measured"]["body"]["kind"] == "groups"
        facts["measured"]["body"]["shares"] = shares

    with pytest.raises(FileFormatError):
        lrm.load_plan(resealed(tmp_path / "a.plan", change))


def test_a_plan_cannot_pretend_to_have_other_noise(plans, tmp_path):
    plans["one-way"].save(tmp_path / "a.plan")
    for noise in ("laplace", "gaussian"):
        with pytest.raises(LrmError):
            lrm.load_plan(
                resealed(
                    tmp_path / "a.plan",
                    lambda facts, _, n=noise: facts.update(noise=n),
                    tmp_path / "b.plan",
                )
            )


def test_a_release_cannot_state_another_scale(plans, tmp_path):
    release = lrm.release(plans["yes/no"], np.ones(7, dtype=int), epsilon=1)
    release.save(tmp_path / "a.release")

    def change(facts, _):
        facts["noise"]["scale"] = (float.fromhex(facts["noise"]["scale"]) / 4).hex()

    with pytest.raises(FileFormatError):
        lrm.load_release(resealed(tmp_path / "a.release", change))


# --- from SQL -----------------------------------------------------------------------------------


def test_overlapping_groups_from_sql():
    domain = Domain(
        [
            Integers("age", 0, 99),
            Categories("region", ["n", "e", "s", "w"]),
            Categories("sex", ["f", "m"]),
        ],
        "t",
    )
    text = """
    SELECT COUNT(*) FROM t WHERE age < 30;
    SELECT COUNT(*) FROM t WHERE age >= 20 AND age < 45;
    SELECT COUNT(*) FROM t WHERE age >= 40;
    SELECT COUNT(*) FROM t WHERE region = 'n' OR region = 's';
    SELECT COUNT(*) FROM t WHERE sex = 'm';
    SELECT COUNT(*) FROM t WHERE sex = 'm' AND age < 45 AND region = 'n';
    """
    pure = lrm.plan(text, domain=domain, noise="pure", effort="quick")
    laplace = lrm.plan(text, domain=domain, noise="laplace", effort="quick")
    assert pure.noise == "shaped"
    assert pure.expected_squared_error(1) < 0.75 * laplace.expected_squared_error(1)


def test_derived_answers_use_the_joint_law():
    domain = Domain(
        [Categories("group", ["a", "b", "c"]), Categories("positive", ["no", "yes"])], "t"
    )
    rate = "AVG(CASE WHEN positive = 'yes' THEN 1 ELSE 0 END) AS rate"
    text = f'SELECT "group", {rate} FROM t GROUP BY "group"'
    plan = lrm.plan(text, domain=domain, noise="pure")
    release = lrm.release(plan, [400, 100, 300, 200, 250, 250], epsilon=1)
    table = release.to_pandas()
    assert np.all(table["low"] < table["high"])
    assert len(table) == 3


def test_importance_is_heeded():
    weights = np.array([100.0, 1.0, 1.0])
    heavy = lrm.Workload(YES_NO, importance=weights)
    plain = lrm.plan(YES_NO, noise="pure")
    chosen = lrm.plan(heavy, noise="pure")
    errors = chosen.standard_errors(1) ** 2 @ weights
    assert errors <= plain.standard_errors(1) ** 2 @ weights * (1 + 1e-6)


def test_rows_of_different_importance_are_measured_exactly():
    """Weighted rows were rounded at one scale, too coarse for the least important of them."""
    from benchmarks.evidence.shaped import unseen

    batch = unseen(1)["groups with importances"][0]()
    plan = lrm.plan(batch, noise="pure", effort="quick", objective="total")
    assert plan.strategy_error < 300  # 355 with Laplace noise


def test_wrong_noise_is_refused():
    with pytest.raises(lrm.errors.UsageError, match="pure, laplace, gaussian"):
        lrm.plan(YES_NO, noise="round")


# --- one-way tables of many attributes ----------------------------------------------------------


def all_one_way(*sizes):
    names = [
        ["identity" if i == j else "total" for j in range(len(sizes))] for i in range(len(sizes))
    ]
    return families.products(list(sizes), names)


def of_tables(sizes, tables):
    """Tables of some attributes each."""
    names = [["identity" if i in table else "total" for i in range(len(sizes))] for table in tables]
    return families.products(list(sizes), names)


SURVEYS = {
    "one-way": all_one_way(5, 5, 5, 3, 2),
    "two-way": of_tables([4, 3, 3, 2, 2], [(0, 1), (0, 2), (0, 3), (4,)]),
}


@pytest.fixture(scope="module", params=SURVEYS)
def survey(request):
    plan = lrm.plan(SURVEYS[request.param], noise="pure", effort="quick", objective="total")
    assert plan.measured.cells is None
    assert (request.param == "two-way") == ("common" in plan.measured.body.words)
    return plan


@pytest.mark.parametrize(
    ("sizes", "tables", "most"),
    [
        ((2,) * 12, [], 420.01),
        ((2,) * 20, [], 1687.0),
        ((5,) * 12, [], 3175.0),
        ((10,) * 4, [], 429.9),
        # Laplace noise: 55,981, 58,430, 6,255 and 2,249
        ((2,) * 50, [(2 * i, 2 * i + 1) for i in range(10)], 23_136),
        ((2,) * 50, [(i, i + 20) for i in range(9)] + [(0, 49)], 24_807),
        ((8, 10, 5, 4, 3, 2, 2, 5, 4, 3, 2, 6), [(0, 1)], 3818),
        ((6, 5, 4, 2), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), ()], 1793),
    ],
)
def test_errors_of_tables_of_many_attributes(sizes, tables, most):
    batch = of_tables(sizes, [*((i,) for i in range(len(sizes))), *tables])
    plan = lrm.plan(batch, noise="pure", effort="quick", objective="total")
    assert plan.strategy_error <= most


def test_tables_agree_with_the_same_strategy_over_all_cells(survey):
    """Measurements, norms of neighbours and answers, by the matrix over all cells."""
    tables = survey.measured
    flat = tables.flat()
    rng = np.random.default_rng(0)
    count = math.prod(tables.sizes)
    cells = rng.integers(0, 50, count)
    assert np.array_equal(tables.measure(tables.counts_of(cells)), flat.measure(cells))
    for cell in rng.integers(count, size=20):
        moved = flat.measure(np.eye(count, dtype=np.int64)[cell])
        assert tables.body.gauge(moved.tolist()) <= 1
    values = flat.real_map.apply(rng.normal(size=count))  # what some table would give
    answers = flat.reconstruction_of(survey.workload.queries).apply(values)
    assert survey.reconstruction_map.apply(values) == pytest.approx(answers, abs=1e-6)
    norms = flat.reconstruction_of(survey.workload.queries).row_squared_norms
    assert survey.reconstruction_map.row_squared_norms == pytest.approx(norms, rel=1e-6)


def test_errors_and_intervals_of_tables_are_those_of_draws(survey):
    noise = noise_of(survey, 1, 800)
    squares = noise**2
    error = squares.std(axis=0) / math.sqrt(len(noise))
    assert np.all(np.abs(squares.mean(axis=0) - survey.standard_errors(1) ** 2) < SIGMAS * error)
    covered = (np.abs(noise) <= survey.half_widths(1)).mean(axis=0)
    assert np.all(covered > 0.95 - SIGMAS * math.sqrt(0.95 * 0.05 / len(noise)))


def bodies_of(facts):
    body = facts["measured"]["body"]
    return body.get("bodies", [body])


def other_order(facts, _):
    facts["measured"]["tables"] = facts["measured"]["tables"][::-1]


def other_labels(_, arrays):
    arrays["measured"][:5] = 0


def smaller(facts, _):
    for one in bodies_of(facts):
        one["unit"] = str(int(one["unit"]) // 4)


def fewer_bits(facts, _):
    facts["measured"]["bits"] += 1


def fewer_tables(facts, _):
    del facts["measured"]["tables"][-1]


def fewer_bodies(facts, _):
    facts["measured"]["body"] = bodies_of(facts)[0] | {"unit": "1"}


def no_attributes(facts, _):
    facts["measured"]["tables"] = ["a", [0, "b"], [99]]


def test_files_of_tables_and_edited_ones(survey, tmp_path):
    survey.save(tmp_path / "a.plan")
    assert lrm.load_plan(tmp_path / "a.plan").digest == survey.digest
    edits = [other_order, other_labels, smaller, fewer_bits]
    for change in [*edits, fewer_tables, fewer_bodies, no_attributes]:
        with pytest.raises(FileFormatError):
            lrm.load_plan(resealed(tmp_path / "a.plan", change, tmp_path / "b.plan"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The file of a plan whose tables share an attribute."""
    batch = of_tables([3, 4, 2], [(0, 1), (0, 2)])
    path = tmp_path_factory.mktemp("shared") / "a.plan"
    lrm.plan(batch, noise="pure", effort="quick", objective="total").save(path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda tables: [[x + 10 * (place % 2 == 0) for place, x in enumerate(t)] for t in tables],
        lambda tables: [[t[0], t[1] + 1, *t[2:]] for t in tables],
        lambda tables: [[*t, 3] for t in tables],
        lambda tables: [[str(x) for x in t] for t in tables],
        lambda _: {},
    ],
)
def test_edited_bodies_of_shared_tables_are_refused(shared, tmp_path, change):
    def edited(facts, _):
        body = facts["measured"]["body"]
        assert body["kind"] == "shared tables"
        body["tables"] = change(body["tables"])

    with pytest.raises(FileFormatError):
        lrm.load_plan(resealed(shared, edited, tmp_path / "b.plan"))


def test_a_release_of_a_survey_from_sql(tmp_path):
    questions = [Categories(f"q{i}", list("abcde")) for i in range(10)]
    domain = Domain(questions, "survey")
    rng = np.random.default_rng(1)
    table = pd.DataFrame({one.name: rng.choice(list("abcde"), 300) for one in questions})
    text = "".join(f"SELECT q{i}, COUNT(*) FROM survey GROUP BY q{i};" for i in range(10))
    plan = lrm.plan(text, domain=domain, noise="pure", effort="quick")
    assert plan.noise == "shaped"
    release = lrm.release(plan, table, epsilon=20, ledger=None)
    wanted = np.concatenate(
        [table[q.name].value_counts().reindex(list("abcde")) for q in questions]
    )
    assert release.answers == pytest.approx(wanted, abs=20 * release.standard_errors.max())
    release.save(tmp_path / "a.release")
    assert lrm.load_release(tmp_path / "a.release").answers == pytest.approx(release.answers)
    release.report(tmp_path / "a.html")
    assert "shaped" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_the_commands_take_pure_noise(tmp_path):
    (tmp_path / "w.csv").write_text("0,0,0,1,1,1,1\n0,1,1,0,0,1,1\n1,0,1,0,1,0,1\n")
    run = CliRunner()
    path = str(tmp_path / "p.lrm")
    made = run.invoke(main, ["plan", str(tmp_path / "w.csv"), "--noise", "pure", "-o", path])
    assert made.exit_code == 0, made.output
    assert "shaped to the batch (3 yes/no counts)" in made.output
    told = run.invoke(main, ["explain", path, "--epsilon", "1"])
    assert told.exit_code == 0, told.output
    assert "any strategy" not in told.output
    (tmp_path / "c.csv").write_text("\n".join(map(str, range(7))) + "\n")
    out = str(tmp_path / "r.lrm")
    args = [
        "release",
        path,
        "--counts",
        str(tmp_path / "c.csv"),
        "--epsilon",
        "1",
        "-o",
        out,
        "--no-ledger",
    ]
    released = run.invoke(main, args)
    assert released.exit_code == 0, released.output
    assert "noise shaped to the batch (3 yes/no counts)" in " ".join(released.output.split())
    shown = run.invoke(main, ["show", out, "--json"])
    assert shown.exit_code == 0, shown.output


def test_a_row_is_in_every_table_or_in_none():
    """The body of closed tables holds what a record moves only if no table leaves out its row."""
    attributes = [
        Categories("a", list("xyz")),
        Integers("b", 0, 4),
        Categories("c", ["u", "v"]),
        Categories("unused", ["p", "q"]),
    ]
    domain = Domain(attributes, "t")
    text = "".join(f"SELECT {x}, COUNT(*) FROM t GROUP BY {x};" for x in "abc")
    plan = lrm.plan(text, domain=domain, noise="pure", effort="quick")
    measured = plan.measured
    assert measured.cells is None
    inside = {"a": "x", "b": 1, "c": "u", "unused": "p"}
    odd = {"a": ["w", None], "b": [9, -1, None], "c": ["zz", None], "unused": ["r", None]}
    before = pd.DataFrame([inside])
    rows = [inside, *({**inside, name: value} for name in odd for value in odd[name])]
    for row in rows:
        after = pd.DataFrame([inside, row])
        counts = [
            open_table(table, "t").counts(plan.workload.domain, measured.tabulations)._open()
            for table in (before, after)
        ]
        moved = measured.measure(counts[1]) - measured.measure(counts[0])
        assert np.any(moved)  # some statement counts each of these rows
        assert measured.body.gauge(moved.tolist()) <= 1


def test_a_stopped_search_keeps_what_was_found():
    """StopSolver in the search for a hull leaves the body of tables, which was found before."""
    batch = (np.random.default_rng(5).random((9, 40)) < 0.4).astype(float)

    def stop(step):
        if step.stage == "shaped noise":
            raise StopSolver

    plan = lrm.plan(batch, effort="quick", on_step=stop)
    assert isinstance(plan.measured.body, Tables)
    laplace = lrm.plan(batch, noise="laplace", effort="quick")
    assert plan.strategy_error < laplace.strategy_error


def test_advice_names_the_noise_of_the_plan():
    pure, gaussian = lrm.plan(YES_NO), lrm.plan(YES_NO, noise="gaussian")
    promises = pure.privacy(1), gaussian.privacy(1, delta="1e-9")
    both = [Comparison((Outcome("best", one),)) for one in (pure, gaussian)]
    words = advice(side_by_side_facts(both, *promises))
    assert words.startswith("Shaped noise guarantees pure ε = 1")
    assert "Laplace" not in words


def test_more_counts_than_a_body_of_tables_has_cells_are_planned_without_one():
    """All 4,095 conditions on twelve cells: the search for tables ended with an error."""
    counts = np.array(list(itertools.product([0.0, 1.0], repeat=12)))[1:]
    assert table_candidates(Problem(lrm.Workload(DenseMap(counts))), Clock()) == []
    assert table_candidates(Problem(lrm.Workload(DenseMap(counts[:7]))), Clock())


def test_cells_of_dropped_rows_do_not_lose_the_shape():
    """Tables of 378 values are shaped with a cell each for rows that their attribute drops, too."""
    domain = lrm.Domain([lrm.Integers(f"x{i}", 0, 8) for i in range(42)], "t")
    plan = lrm.plan(lrm.marginals(domain, [1]), effort="quick")
    assert plan.measured.measurement_count == 420
    assert plan.noise == "shaped"


def test_rows_are_put_into_the_first_table_that_they_are_disjoint_from():
    rows = np.unique(np.random.default_rng(5).random((40, 12)) < 0.2, axis=0)
    rows = rows[rows.any(axis=1)].astype(float)
    problem = Problem(lrm.Workload(rows))
    tables = tables_of(problem)
    assert sum(len(table.rows) for table in tables) == len(rows)
    for number, table in enumerate(tables):
        assert table.rows.sum(axis=0).max() == 1
        for before in tables[:number]:
            assert np.all((table.rows @ before.rows.T).any(axis=1))
    assert tables_of(problem, most=len(rows) - 1) is None
