"""Plans with shaped noise, from the batch to the answers: guarantee, errors, intervals, files."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import lrm
from body_vertices import vertices_of
from forging import resealed
from lrm.domain import Categories, Domain, Integers, PrivacyUnit
from lrm.errors import BudgetError, FileFormatError, LrmError, WorkloadError
from lrm.exact.integers import IntegerStrategy
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import PureDP
from lrm.privacy.mechanism import TrueCounts, calibrate, law_of, measure
from lrm.workload import families

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
    m, n = rng.integers(2, 5), rng.integers(3, 9)
    if seed % 3 == 0:
        return rng.integers(0, 2, (m, n)).astype(float)
    if seed % 3 == 1:
        return rng.integers(-2, 3, (m, n)).astype(float)
    return rng.normal(size=(m, n))


BATCHES = {
    "yes/no": YES_NO,
    "one-way": one_way(5, 4, 3),
    "groups": one_way(12, 2, 2, 2),
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
    """Noise of the answers, by the exact sampler alone."""
    calibrated = calibrate(plan.measured, PureDP(Fraction(epsilon)), (unit or plan.unit).factor)
    zeros = np.zeros(plan.measurement_count, dtype=np.int64)
    drawn = np.array([calibrated.add_to(zeros) for _ in range(count)], dtype=float)
    return plan.reconstruction_map.apply(drawn.T * 2.0**-plan.measured.bits).T


def test_shaped_noise_has_less_error_than_laplace_noise(plan):
    laplace = lrm.plan(plan.workload, effort="quick")
    assert laplace.noise == "laplace"
    assert plan.expected_squared_error(1) < laplace.expected_squared_error(1)


@pytest.mark.parametrize(
    ("batch", "most"),
    [
        (YES_NO, 7.5),
        (one_way(5, 4, 3, 2), 77.68),
        (one_way(10, 10), 62.07),
        (one_way(20, 2, 2, 2, 2), 175.0),
        (np.tri(4), 9.2),
    ],
)
def test_errors_of_known_batches(batch, most):
    plan = lrm.plan(batch, noise="pure", effort="quick")
    assert plan.expected_squared_error(1) / 2 <= most


def test_never_above_the_laplace_plan():
    for W in (np.eye(5), np.ones((1, 4)), np.zeros((2, 3)), np.array([[1.0, 2.0], [3.0, 5.0]])):
        pure, laplace = lrm.plan(W, noise="pure"), lrm.plan(W)
        assert pure.expected_squared_error(1) <= laplace.expected_squared_error(1) * (1 + 1e-9)


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
        accuracy = plan.accuracy(plan.privacy(1), unit)
        assert accuracy.squared_error == pytest.approx(
            unit.factor**2 * plan.expected_squared_error(1), rel=1e-9
        )
        noise = calibrate(plan.measured, plan.privacy(1), unit.factor)
        assert noise.loss <= 1
        assert noise.scale >= unit.factor * plan.measured.sensitivity


def test_no_neighbour_moves_further_than_the_noise_allows():
    """The norm of what one record moves, by a linear program over the vertices, on many plans."""
    looked_at = 0
    for seed in range(24):
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
                moved = plan.measured.measure(after) - plan.measured.measure(before)
                norm = linprog(np.ones(both.shape[1]), A_eq=both, b_eq=moved / size).fun
                assert norm <= factor * (1 + 1e-7)
                looked_at += 1
    assert looked_at > 60


def test_a_strategy_refuses_a_body_that_a_record_leaves(plan):
    strategy = plan.measured
    assert isinstance(strategy, IntegerStrategy)
    doubled = strategy.matrix.scaled(2.0)
    with pytest.raises(WorkloadError, match=r"beyond the body|common total"):
        replace(strategy, matrix=doubled)
    with pytest.raises(WorkloadError, match="one coordinate"):
        replace(
            strategy,
            body=Tables(
                (1,) * (strategy.measurement_count + 1),
                (False,) * (strategy.measurement_count + 1),
                2**40,
            ),
        )


def test_merged_cells_that_count_several_times_are_held():
    """A record of a cell with factor 3 moves three times as far."""
    W = np.hstack([YES_NO, 3 * YES_NO[:, [0, 6]]])
    plan = lrm.plan(W, noise="pure")
    body = plan.measured.body
    assert body is not None
    for cell in range(9):
        moved = plan.measured.measure(np.eye(9, dtype=np.int64)[cell])
        assert body.gauge(moved.tolist()) <= 1


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
    noise = calibrate(plan.measured, plan.privacy(1), 1)
    measured = measure(TrueCounts(np.full(7, most)), plan.measured, noise)
    assert measured.noisy_values.max() == 1 << 62


def test_shaped_noise_takes_epsilon_alone(plan):
    with pytest.raises(BudgetError):
        plan.privacy(epsilon=1, delta="1e-9")
    with pytest.raises(BudgetError):
        plan.privacy(rho=1)


def test_law_and_calibration_agree(plan):
    privacy = plan.privacy("0.3")
    assert law_of(plan.measured, privacy, 2).scale == calibrate(plan.measured, privacy, 2).scale


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
    laplace = lrm.plan(text, domain=domain, effort="quick")
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


def test_wrong_noise_is_refused():
    with pytest.raises(lrm.errors.UsageError, match="pure, laplace, gaussian"):
        lrm.plan(YES_NO, noise="round")


def test_families_of_products_are_planned():
    plan = lrm.plan(
        families.products(
            [5, 4, 3],
            [
                ["identity", "total", "total"],
                ["total", "identity", "total"],
                ["total", "total", "identity"],
            ],
        ),
        noise="pure",
    )
    assert plan.noise in {"shaped", "laplace"}
