"""Post-processing: a function of the release alone, with the laws that its words state."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import nnls

import lrm
from lrm.errors import UsageError
from lrm.queries.workload.products import marginals, products
from lrm.releases import consistent, interior
from lrm.releases.postprocess import STEPS, process

BATCH = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0]])
COUNTS = [3, 0, 1, 40]
DAYS = "2024-01-01", "2024-01-03"
COLUMNS = "mean", "mean_processed"
TOTAL_IS_SUM = np.array([1, -1, -1, 0, 0])


@pytest.fixture(scope="module", params=["noise-on-data", "noise-on-results", "hierarchical"])
def plan(request):
    return lrm.plan(BATCH, request.param)


def simulated(plan, measurements):
    """A release whose noisy measurements are chosen by the test."""
    bits = plan.measured.bits
    values = np.round(np.asarray(measurements) * 2.0**bits).astype(np.int64)
    empty = np.zeros(plan.workload.shape[1], dtype=int)
    return replace(lrm.release(plan, empty, epsilon="0.1"), noisy_measurements=values)


def test_consistent_answers_add_up(plan):
    for _ in range(5):
        done = process(lrm.release(plan, COUNTS, epsilon="0.1"), ["consistent"])
        assert abs(done.answers @ TOTAL_IS_SUM) < 1e-7
        assert abs(done.answers @ [0, 1, 0, -1, -1]) < 1e-7


def test_consistent_answers_are_exact_without_noise(plan):
    truth = np.asarray(plan.strategy) @ COUNTS
    for steps in (["consistent"], ["non-negative"], ["consistent", "integer"]):
        done = process(simulated(plan, truth), steps)
        assert np.allclose(done.answers, BATCH @ COUNTS, atol=1e-6)


def joint_nearest(matrix, answers):
    return matrix @ nnls(matrix, answers)[0]


KINDS = {
    "matrix": lrm.Workload(np.vstack([BATCH, [[1, -1, 0, 0]]])),
    "products": products([3, 4], [["identity", "prefix"], ["total", "all-ranges"]]),
    "tables": products(
        [3, 4, 2], [["identity", "identity", "total"], ["total", "identity", "identity"]]
    ),
    "conditions": products([5, 4], [[[1, 1, 0, 0, 0], "identity"], ["total", [0, 1, 1, 1]]]),
    "sums": products([4, 2], [[[0, 10, 20, 30], "identity"], ["total", "identity"]]),
    "weeks and months": products(
        [6, 2, 3],
        [
            [[[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]], "identity", "total"],
            [[[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], "total", "identity"],
        ],
    ),
    "weeks and months of one table": products(
        [6, 2, 3],
        [
            [[[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]], "identity", "total"],
            [[[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], "identity", [1, 1, 0]],
        ],
    ),
}


METHODS = {
    "joint": {},
    "interior": {"JOINT_CELLS": 0},
    "residuals": {"JOINT_CELLS": 0, "INTERIOR_CELLS": 0},
}


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("kind", list(KINDS))
def test_consistent_answers_are_those_of_the_nearest_joint_table(monkeypatch, kind, method):
    """All methods agree with NNLS on the joint table, where tables form no cycle."""
    for name, value in METHODS[method].items():
        monkeypatch.setattr(consistent, name, value)
    batch = KINDS[kind]
    rng = np.random.default_rng(7)
    for size in (3.0, 300.0):
        matrix = batch.queries.dense()
        truth = matrix @ rng.poisson(2.0, batch.shape[1])
        noisy = truth + rng.laplace(size=batch.shape[0]) * size
        answers = consistent.consistent_answers(batch, noisy)
        expected = joint_nearest(matrix, noisy)
        assert np.allclose(answers, expected, atol=1e-6 * max(np.abs(noisy).max(), 1.0))
        # The truth is among the answers that are projected on: squared errors do not grow.
        assert np.sum((answers - truth) ** 2) <= np.sum((noisy - truth) ** 2) * (1 + 1e-6)
        counts = np.all(matrix >= 0, axis=1)
        assert answers[counts].min() >= 0
        # Consistent: some table has exactly these answers.
        table = np.linalg.lstsq(matrix, answers, rcond=None)[0]
        assert np.allclose(matrix @ table, answers, atol=1e-9 * max(np.abs(noisy).max(), 1.0))


def test_a_direction_that_rounding_spoils_is_computed_anew(monkeypatch):
    """As in all pairs of five columns of 14, 9, 16, 7 and 6 values, near the end."""
    direction, spoiled = interior._Interior._direction, []

    def rounded(self, dual, primal, gap):
        found = direction(self, dual, primal, gap)
        if found is None or self.regularised > interior.REGULARISED or gap > 1e-6:
            return found
        spoiled.append(gap)
        return tuple(1e48 * part for part in found)

    monkeypatch.setattr(interior._Interior, "_direction", rounded)
    batch = KINDS["tables"]
    matrix = batch.queries.dense()
    noisy = matrix @ np.full(batch.shape[1], 2.0) + np.random.default_rng(7).laplace(size=20) * 9
    answers = consistent.consistent_answers(batch, noisy)
    assert spoiled
    assert np.allclose(answers, joint_nearest(matrix, noisy), atol=1e-6 * np.abs(noisy).max())


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_squared_errors_do_not_grow_in_cycles_of_tables(noise):
    """Three pairs of three attributes: a cycle, over more cells than the joint method takes."""
    batch = marginals([8, 9, 7], [0, 1, 2])
    plan = lrm.plan(batch, noise=noise, effort="quick")
    counts = np.random.default_rng(3).poisson(0.7, 8 * 9 * 7)
    amount = {"epsilon": "0.5"} if noise == "laplace" else {"rho": "0.05"}
    release = lrm.release(plan, counts, **amount)
    fixed = release.consistent()
    truth = batch.queries.apply(counts.astype(float))
    before, after = (np.sum((a - truth) ** 2) for a in (release.answers, fixed.answers))
    assert after <= before * (1 + 1e-6)
    assert fixed.answers.min() >= 0
    total, ones = fixed.answers[0], fixed.answers[1:9]
    assert abs(total - ones.sum()) <= 1e-9 * max(total, 1.0)
    assert set(fixed.moved) == {s.name for s in batch.tables}
    assert fixed.to_pandas().columns.tolist() == [*release.to_pandas().columns, "processed"]


NOISES = {"laplace": {"epsilon": "0.3"}, "gaussian": {"rho": "0.03"}, "pure": {"epsilon": "0.3"}}


@pytest.mark.parametrize("noise", list(NOISES))
@pytest.mark.parametrize("kind", list(KINDS))
def test_squared_errors_never_grow(kind, noise):
    """The truth is among the answers that are projected on, for any noise and any batch."""
    batch, rng = KINDS[kind], np.random.default_rng(11)
    plan = lrm.plan(batch, noise=noise, effort="quick")
    for _ in range(3):
        counts = rng.poisson(0.8, batch.shape[1]) * rng.integers(1, 30)
        release = lrm.release(plan, counts, **NOISES[noise])
        fixed = release.consistent().answers
        truth = batch.queries.apply(counts.astype(float))
        before, after = (np.sum((a - truth) ** 2) for a in (release.answers, fixed))
        assert after <= before * (1 + 1e-8) + 1e-8


@pytest.mark.parametrize("method", ["joint", "interior", "residuals"])
def test_tables_that_close_cycles_bring_answers_to_those_of_a_joint_table(monkeypatch, method):
    """Over three attributes the table that closes the cycle is the joint table itself."""
    for name, value in METHODS[method].items():
        monkeypatch.setattr(consistent, name, value)
    batch = marginals([3, 4, 3], [2])
    matrix = batch.queries.dense()
    noisy = matrix @ np.arange(36.0) + np.random.default_rng(5).laplace(size=len(matrix)) * 300
    answers = consistent.consistent_answers(batch, noisy)
    scale = np.abs(noisy).max()
    assert np.allclose(answers, joint_nearest(matrix, noisy), atol=1e-5 * scale)


def test_every_three_attributes_of_a_cycle_have_a_table(monkeypatch):
    """All pairs of four attributes: some table of each three has their pairs as its sums."""
    monkeypatch.setattr(consistent, "JOINT_CELLS", 0)
    sizes = [3, 4, 3, 3]
    batch = marginals(sizes, [2])
    noisy = batch.queries.apply(np.full(108, 0.5)) + np.random.default_rng(1).laplace(size=63) * 20
    answers = consistent.consistent_answers(batch, noisy)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    ends = np.cumsum([sizes[a] * sizes[b] for a, b in pairs])[:-1]
    tables = dict(zip(pairs, np.split(answers, ends), strict=True))
    for left_out in range(4):
        axes = [i for i in range(4) if i != left_out]
        own = [pair for pair in pairs if left_out not in pair]
        sums = marginals([sizes[i] for i in axes], [2]).queries.dense()
        _, missing = nnls(sums, np.concatenate([tables[pair] for pair in own]))
        assert missing <= 1e-6 * answers.max()


def test_cells_that_no_query_counts_are_empty():
    """Rows that both statements drop are nobody's: they would be made up as synthetic rows."""
    inside = np.eye(14)[:13]
    batch = products([14, 14, 14, 3], [[inside] * 3 + ["total"], ["total"] * 3 + [[1, 1, 0]]])
    noisy = np.append(np.random.default_rng(2).normal(2.0, 9.0, 13**3), 40_000.0)
    tables = consistent.consistent_tables(batch, noisy).tables
    assert all(table.counts.sum() <= np.maximum(noisy, 0.0).sum() for table in tables)


def test_a_known_total_is_kept():
    batch = marginals([6, 5], [1, 2])
    plan = lrm.plan(batch)
    release = lrm.release(plan, np.full(30, 4), epsilon=1)
    answers = release.consistent(total=120).answers
    assert answers[:6].sum() == pytest.approx(120, rel=1e-9)
    assert answers.min() >= 0
    stated = release.consistent(total=120, source="Yearbook 2024, table 3").sentences
    assert any("120 rows is known from: Yearbook 2024" in sentence for sentence in stated)
    with pytest.raises(UsageError, match="not negative"):
        release.consistent(total=-1)
    with pytest.raises(UsageError, match="give total="):
        release.consistent(source="Yearbook 2024, table 3")
    with pytest.raises(UsageError, match="'consistent'"):
        process(release, ["integer"], 120)


def test_consistent_leaves_differences_free():
    plan = lrm.plan([[1, -1, 0], [0, 0, -1]])
    release = lrm.release(plan, [0, 500, 300], epsilon=1)
    difference, minus = process(release, ["consistent"]).answers
    assert -600 < difference < -400
    assert -400 < minus < -200
    below = simulated(plan, np.asarray(plan.strategy) @ [0, 0, -900])
    assert process(below, ["consistent"]).answers[1] == 0


def test_integers_are_whole_where_weights_are():
    plan = lrm.plan([[1, 1], [0.5, 0.25]], "noise-on-data")
    release = lrm.release(plan, [10, 20], epsilon="0.1")
    done = process(release, ["integer"])
    assert done.answers[0] == np.rint(release.answers[0])
    assert done.answers[1] == release.answers[1]


@pytest.mark.parametrize("method", list(METHODS))
def test_a_known_total_of_no_rows_has_no_counts(monkeypatch, method):
    for name, value in METHODS[method].items():
        monkeypatch.setattr(consistent, name, value)
    release = lrm.release(lrm.plan(marginals([6, 5], [1, 2])), np.full(30, 4), epsilon=1)
    assert not release.consistent(total=0).answers.any()


def test_whole_rows_have_a_known_total_and_no_known_table():
    domain = lrm.Domain([lrm.Integers("a", 0, 3), lrm.Integers("b", 0, 2)], "t")
    text = "SELECT a, COUNT(*) AS n FROM t GROUP BY a; SELECT b, COUNT(*) AS m FROM t GROUP BY b"
    plan = lrm.plan(text, domain=domain, effort="quick")
    release = lrm.release(plan, np.full(plan.workload.domain.declared.size, 4), epsilon=1)
    both = ["consistent", "integer"]
    done = process(release, both, total=60, source="Yearbook")
    parts = [done.answers[:4].sum(), done.answers[4:].sum()]
    assert max(parts) <= 60
    assert all(part == round(part) for part in parts)
    assert not process(release, both, total=0).answers.any()
    known = lrm.KnownTable("SELECT COUNT(*) AS n FROM t", [[60]], "Yearbook")
    with pytest.raises(UsageError, match="leave 'integer' out"):
        process(release, both, known=[known])
    with pytest.raises(UsageError, match="whole number"):
        process(release, both, total=60.5)
    with pytest.raises(UsageError, match="are about 30,000,000: leave 'integer' out"):
        process(release, both, total=30_000_000)


def test_tables_of_columns_that_never_lack_a_value_add_up_to_the_total():
    never = {"null": "never", "outside": "never"}
    attributes = [lrm.Categories("sex", ["f", "m"], **never), lrm.Dates("day", *DAYS, **never)]
    sql = "SELECT COUNT(*) AS n FROM t; SELECT sex, COUNT(*) AS s FROM t GROUP BY sex;"
    sql += "SELECT day, COUNT(*) AS d FROM t GROUP BY day"
    plan = lrm.plan(lrm.sql(sql, lrm.Domain(attributes, table="t")), effort="quick")
    assert plan.workload.unused_axes == ()
    rows = [{"sex": "m", "day": dt.date(2024, 1, 2)}] * 30
    rows += [{"sex": None, "day": dt.date(2024, 1, 2)}, {"sex": "m", "day": dt.date(2025, 1, 2)}]
    made = lrm.release(plan, pa.Table.from_pylist(rows), epsilon=1, ledger=None)
    exact = made.plan.workload.queries.apply(made.plan.workload.domain.count(rows) * 1.0)
    assert exact[:3].tolist() == [30, 0, 30]  # the last two rows are in no count
    fixed = made.consistent(progress=False).answers
    assert fixed[1:3].sum() == pytest.approx(fixed[0]) == pytest.approx(fixed[3:].sum())


def test_averages_say_how_far_they_moved():
    domain = lrm.Domain([lrm.Integers("age", 0, 9), lrm.Categories("sex", ["f", "m"])], table="t")
    sql = "SELECT sex, AVG(age) AS mean, MEDIAN(age) AS median FROM t GROUP BY sex"
    sql += "; SELECT COUNT(*) AS n FROM t"
    plan = lrm.plan(lrm.sql(sql, domain), "noise-on-data")
    made = simulated(plan, np.random.default_rng(1).normal(1.0, 5.0, plan.measurement_count))
    fixed = made.consistent()
    before, after = (made.frame("mean", processed=fixed).number_columns()[k] for k in COLUMNS[:2])
    assert (before != after).any()
    assert fixed.moved["mean"] > 0


def test_steps_have_one_order_and_keep_the_raw_answers(plan):
    release = lrm.release(plan, COUNTS, epsilon=1)
    one, other = (process(release, steps) for steps in (list(STEPS), list(STEPS)[::-1]))
    assert one.steps == other.steps == tuple(STEPS)
    assert np.array_equal(one.answers, other.answers)
    assert one.raw_answers is release.answers
    assert not one.answers.flags.writeable
    assert [name for name, _ in one.notes] == list(STEPS)


def test_processing_looks_at_nothing_but_the_file(plan, tmp_path):
    release = lrm.release(plan, COUNTS, epsilon=1)
    release.save(tmp_path / "answers.lrm")
    again = lrm.load_release(tmp_path / "answers.lrm")
    for steps in (["consistent"], ["non-negative", "integer"]):
        assert np.allclose(process(release, steps).answers, process(again, steps).answers)


def test_wrong_steps_are_refused(plan):
    release = lrm.release(plan, COUNTS, epsilon=1)
    with pytest.raises(UsageError, match="not 'clip'"):
        process(release, ["integer", "clip"])
    with pytest.raises(UsageError, match="an empty list"):
        process(release, [])
