"""Neighbours by replacement: bodies of differences, and plans that have them."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

import lrm
from forging import resealed
from long_runs import cases
from lrm.errors import BudgetError, ConvergenceError, FileFormatError, WorkloadError
from lrm.planning.design.cells import CellMap
from lrm.planning.design.measured import Measured
from lrm.planning.strategies.base import Problem, Search
from lrm.planning.strategies.shaped import shaped_strategy
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.facets import Facets
from lrm.privacy.mechanism import calibrate
from lrm.privacy.norms import L1, BodyNorm
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.matrices import DenseMap

REPLACED = PrivacyUnit(neighbours="substitute")


def survey(k, unit=REPLACED):
    """K yes/no counts of people who are replaced."""
    domain = lrm.Domain([lrm.Categories(f"q{i}", [0, 1]) for i in range(k)], "t", unit)
    text = ";".join(f"SELECT COUNT(*) AS n{i} FROM t WHERE q{i} = 1" for i in range(k))
    return lrm.sql(text, domain)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT i, COUNT(*) AS n FROM t GROUP BY i",
        "SELECT COUNT(*) AS a FROM t WHERE i < 3; SELECT COUNT(*) AS b FROM t WHERE i > 1",
        "SELECT COUNT(*) AS a FROM t WHERE i < 3; SELECT COUNT(*) AS b FROM t WHERE i IN (1, 4)",
    ],
)
def test_plans_and_releases_over_a_list_of_cells_can_be_read_again(text, tmp_path):
    """What is stored states no bound: about replaced units nothing is proven."""
    made = lrm.plan(text, domain=lrm.Domain([lrm.Integers("i", 0, 5)], "t", REPLACED))
    assert made.measured.norm.replaced
    assert made.least_error == 0
    made.save(tmp_path / "plan.lrm")
    assert lrm.load_plan(tmp_path / "plan.lrm").digest == made.digest
    release = lrm.release(made, [3] * 6, epsilon=1)
    release.save(tmp_path / "answers.lrm")
    assert np.array_equal(lrm.load_release(tmp_path / "answers.lrm").answers, release.answers)


def test_a_file_with_a_bound_of_added_records_is_read_without_the_bound(tmp_path):
    """Such files were written before: a figure of reports must not make them unreadable."""
    domain = lrm.Domain([lrm.Integers("i", 0, 5)], "t", REPLACED)
    made = lrm.plan("SELECT i, COUNT(*) AS n FROM t GROUP BY i", domain=domain)
    for factor in (0.9, 1.1):
        stated = replace(made, least_error=factor * made.weighted_strategy_error)
        stated.save(tmp_path / "plan.lrm")
        assert lrm.load_plan(tmp_path / "plan.lrm").least_error == 0


@pytest.fixture(scope="module")
def plan():
    made = lrm.plan(survey(3), effort="quick", objective="total")
    assert isinstance(made.measured.body, Cube)
    return made


@pytest.mark.parametrize(("k", "error"), [(3, 10), (4, 20)])
def test_the_cube_has_a_third_of_the_error_of_the_doubled_hull(k, error):
    made = lrm.plan(survey(k), effort="quick", objective="total")
    assert made.expected_squared_error("0.1") == pytest.approx(2 * error * 100, rel=1e-9)
    plain = lrm.plan(survey(k, PrivacyUnit()), effort="quick", objective="total")
    doubled = 4 * plain.expected_squared_error("0.1")
    assert doubled / made.expected_squared_error("0.1") == pytest.approx(2 * (k + 3) / (k + 1))


def random_matrix(seed):
    rng = np.random.default_rng(seed)
    rows, cells = rng.integers(2, 5), rng.integers(3, 7)
    kinds = [(0, 2), (-1, 3), (0, 5)]
    return rng.integers(*kinds[seed % 3], (rows, cells)).astype(float)


def test_no_neighbour_moves_further_than_the_noise_allows():
    assert_neighbours_are_near(range(18))


@pytest.mark.long
def test_no_neighbour_of_a_hundred_plans_moves_further():
    assert_neighbours_are_near(range(cases(120)))


def assert_neighbours_are_near(seeds):
    """Norms of what every replacement moves, and of every row that comes or goes."""
    bodies = []
    for seed in seeds:
        matrix = random_matrix(seed)
        if np.linalg.matrix_rank(matrix) < 2:
            continue
        problem = Problem(lrm.Workload(DenseMap(matrix)))
        choice = shaped_strategy(problem, Search(0), 1e9, "quick", replaced=True)
        if choice is None or not choice.replaced:
            continue
        measured, reconstruction = choice.rounded(problem, L1(), None)
        assert measured.norm.replaced
        assert reconstruction.relative_residual < 1e-9
        bodies.append(type(measured.body))
        moves = [np.zeros(measured.measurement_count, dtype=np.int64)]
        cells = np.eye(matrix.shape[1], dtype=np.int64)
        moves += [measured.measure(measured.counts_of(cell)) for cell in cells]
        norms = [
            measured.body.gauge((one - two).tolist())
            for one, two in itertools.product(moves, moves)
        ]
        assert max(norms) <= 2
        # Not much larger than it must be: some replacement reaches the boundary.
        assert max(norms) > 1.9 or isinstance(measured.body, Facets)
    assert len(bodies) >= 0.8 * len(seeds)
    assert Facets in bodies


def test_several_rows_of_a_person_add_up(plan):
    """A person with c rows is replaced row by row: the factor is that of other noise."""
    unit = PrivacyUnit(max_rows=2, neighbours="substitute")
    noise = calibrate(plan.measured, plan.privacy(1), unit)
    assert noise.scale >= 4 * plan.measured.sensitivity
    rng = np.random.default_rng(0)
    cells = plan.measured.sizes
    for _ in range(50):
        tables = []
        for _ in range(2):
            table = np.zeros(int(np.prod(cells)), dtype=np.int64)
            np.add.at(table, rng.integers(table.size, size=rng.integers(0, 3)), 1)
            tables.append(plan.measured.measure(plan.measured.counts_of(table)))
        assert plan.measured.body.gauge((tables[0] - tables[1]).tolist()) <= unit.factor


def test_stated_errors_and_intervals_are_those_of_draws(plan):
    accuracy = plan.accuracy(plan.privacy(1))
    noise = calibrate(plan.measured, plan.privacy(1), plan.unit)
    bits = random.Random(8).getrandbits  # noqa: S311 - no secret
    draws = np.array([noise.draw(bits) for _ in range(2000)]) * accuracy.step
    errors = draws @ np.asarray(plan.reconstruction).T
    measured = (errors**2).mean(axis=0) / accuracy.standard_errors**2
    assert np.all(np.abs(measured - 1) < 5 * 2.5 / 2000**0.5)
    inside = (np.abs(errors) <= accuracy.half_widths(0.95)).mean(axis=0)
    assert np.all(inside > 0.95 - 5 * (0.95 * 0.05 / 2000) ** 0.5)


def test_signs_of_merged_cells_count():
    """A record of a cell with factor −1 moves the other way: a difference is then a sum."""
    matrix = DenseMap(np.array([[2.0, 0.0], [0.0, 2.0]]))
    plain = CellMap(2, np.array([0, 1]), np.array([1, 1]))
    Measured.of_cells(matrix, plain, 1, None, BodyNorm(Cube(2, 1), replaced=True))
    signed = CellMap(2, np.array([0, 1, 1]), np.array([1, 1, -1]))
    with pytest.raises(WorkloadError, match="replacing"):
        Measured.of_cells(matrix, signed, 1, None, BodyNorm(Cube(2, 1), replaced=True))
    Measured.of_cells(matrix, signed, 1, None, BodyNorm(Cube(2, 2), replaced=True))


def test_many_columns_and_odd_differences_are_not_taken_for_held():
    body = Facets(np.array([[4, 4], [4, -4]]), np.array([[1, 2], [1, -2]]), 0)
    assert body.holds_differences(np.array([[2, 0], [0, 2]]))
    assert not body.holds_differences(np.array([[1, 0], [0, 2]]))
    many = 2 * np.array([np.arange(300), np.zeros(300, dtype=np.int64)])
    wide = Facets(np.array([[4000, 4000], [4000, -4000]]), np.array([[1, 2], [1, -2]]), 0)
    assert not wide.holds_differences(many)
    assert wide.holds_differences(many[:, :100])


# --- files ------------------------------------------------------------------------------------


def smaller_cube(facts, _arrays):
    facts["measured"]["body"]["unit"] = str(int(facts["measured"]["body"]["unit"]) - 1)


def for_single_records(facts, _arrays):
    facts["measured"]["kind"] = "shaped"


def fewer_sides(facts, _arrays):
    facts["measured"]["body"]["sides"] = 2


def other_neighbours(facts, _arrays):
    facts["domain"]["unit"]["neighbours"] = "add-remove"


def test_a_plan_for_replaced_units_is_read_back(plan, tmp_path):
    plan.save(tmp_path / "plan.lrm")
    again = lrm.load_plan(tmp_path / "plan.lrm")
    assert again.digest == plan.digest
    assert again.measured.norm.replaced
    assert again.expected_squared_error(1) == plan.expected_squared_error(1)
    release = lrm.release(again, np.arange(8), epsilon=1)
    release.save(tmp_path / "answers.lrm")
    np.testing.assert_array_equal(
        lrm.load_release(tmp_path / "answers.lrm").answers, release.answers
    )


@pytest.mark.parametrize("change", [smaller_cube, for_single_records, fewer_sides])
def test_edited_plans_for_replaced_units_are_refused(plan, tmp_path, change):
    plan.save(tmp_path / "plan.lrm")
    with pytest.raises(FileFormatError):
        lrm.load_plan(resealed(tmp_path / "plan.lrm", change))


def test_such_noise_is_for_no_other_unit(plan):
    with pytest.raises(BudgetError):
        lrm.release(plan, np.arange(8), epsilon=1, neighbours="add-remove")
    added = survey(3, PrivacyUnit()).domain.with_rest(plan.workload.domain.rest_axes)
    other = replace(plan.workload, domain=added)
    with pytest.raises(ConvergenceError, match="replaced"):
        replace(plan, workload=other)
