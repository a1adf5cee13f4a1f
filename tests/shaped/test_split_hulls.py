"""Hulls sampled by rejection: certified decisions, exact law, refused files.

Statistical tests have a false-alarm rate of about 1e-6 each.
"""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

import lrm
from forging import resealed
from lrm.errors import ConvergenceError, FileFormatError, WorkloadError
from lrm.planning.solvers.hulls import Hull, mean_square
from lrm.planning.strategies.split_hulls import Split, split_body, verified_bodies
from lrm.privacy.bodies import split
from lrm.privacy.bodies.facets import Facets
from lrm.privacy.bodies.gauges import _independent, decide, exact_norm, minimise, solve_exactly
from lrm.privacy.bodies.split import SplitHull, distinct
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import PureDP
from lrm.privacy.shaped import calibrate_shaped

ALARM = 1e-6
SIGMAS = 5.0


def source(seed):
    """A reproducible source of bits for tests of the law."""
    return random.Random(seed).getrandbits  # noqa: S311 - the law is tested, not secrecy


def body_of(points, sizes, tree):
    return split_body(points, Split(np.zeros(points.T.shape), sizes, tree), 0)


def random_points(k, n, seed, size=2**20):
    return np.random.default_rng(seed).integers(-size, size, (n, k))


def norms_by_program(points, vectors):
    both = np.hstack([points.T, -points.T]) / np.abs(points).max()
    right = vectors / np.abs(points).max()
    return np.array([linprog(np.ones(both.shape[1]), A_eq=both, b_eq=v).fun for v in right])


# --- norms and decisions ------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), [(2, 3), (4, 9), (7, 7), (9, 40)])
def test_norms_are_those_of_a_linear_program(k, n):
    points = random_points(k, n, k)
    vectors = np.random.default_rng(1).normal(size=(30, k)) * 2**20
    bases = minimise(points / 2**20, vectors / 2**20)
    wanted = norms_by_program(points.astype(float), vectors)
    assert bases.norms == pytest.approx(wanted, rel=1e-8)
    corners = points[bases.members] * bases.signs[:, :, None]
    assert np.einsum("mi,mic->mc", bases.weights, corners) == pytest.approx(vectors, rel=1e-6)
    assert np.abs(bases.planes @ points.T).max() <= 2**20 * (1 + 1e-6)


def test_exact_norms_and_solutions():
    rng = np.random.default_rng(2)
    for k, n in ((2, 4), (3, 7), (5, 12), (8, 20)):
        points = rng.integers(-9, 10, (n, k))
        if np.linalg.matrix_rank(points) < k:
            continue
        for _ in range(10):
            vector = rng.integers(-20, 21, k)
            exact = exact_norm(points, vector.tolist())
            assert isinstance(exact, Fraction)
            wanted = norms_by_program(points.astype(float), vector[None].astype(float))[0]
            assert float(exact) == pytest.approx(wanted, abs=1e-7)
    matrices = np.array([[[0, 2], [3, 1]], [[1, 2], [2, 4]], [[2, 1], [4, 3]]])
    dets, solutions = solve_exactly(matrices, np.array([[[4], [5]], [[1], [1]], [[1], [1]]]))
    assert [abs(d) for d in dets] == [6, 0, 2]
    assert [Fraction(int(x), dets[0]) for x in solutions[0, :, 0]] == [1, 2]
    assert [Fraction(int(x), dets[2]) for x in solutions[2, :, 0]] == [1, -1]
    singular = np.array([[2, 1, 0], [4, 2, 1], [0, 0, 1]])
    dets, solutions = solve_exactly(
        np.array([singular, np.eye(3, dtype=int) * 5]), np.ones((2, 3, 1), int)
    )
    assert dets.tolist() == [0, 125]
    assert solutions[1, :, 0].tolist() == [25, 25, 25]
    points = np.array(
        [[0, 0, 0], [2, 4, 0], [1, 2, 0], [3, 1, 0], [7, 7, 0], [0, 5, 5]], dtype=object
    )
    assert _independent(points).tolist() == [1, 3, 5]


def test_degenerate_vectors_have_exact_norms():
    """Vectors on edges and faces, where many bases are the same: 0/1 columns and unit vectors."""
    points = np.array(list(itertools.product([0, 1], repeat=4)))[1:]
    for vector in itertools.product([-1, 0, 1], repeat=4):
        norm = exact_norm(points, vector)
        assert norm == max([*vector, 0]) - min([*vector, 0])


def test_points_that_float64_takes_for_dependent_ones_have_exact_norms():
    """A basis of float64 had one point twice, which raised an error instead of giving the norm."""
    near = [[0, 1, -1], [0, 0, 0], [0, 1, 1], [0, -1, 0], [0, 1, 1], [0, 1, -1], [0, -1, 1]]
    far = [-820789195076, 987113518741, 615623128792, 85399280046, -1046927187544]
    points = np.array(near) + np.array([*far, -892305063246, 822016542031])[:, None]
    vector = [-1046927187543, -1046927187542, -1046927187542]
    norm = exact_norm(points, vector)
    assert norm == exact_norm(points[::-1], vector) == exact_norm(points, [-x for x in vector])
    assert exact_norm(points, points[3].tolist()) <= 1


def test_decisions_are_right_or_open():
    """Points at, just inside and just outside the boundary, with errors of several sizes."""
    rng = np.random.default_rng(3)
    points = random_points(5, 14, 4)
    unit = 2.0**20
    exact_points = points / unit
    norms = np.array(
        [float(exact_norm(points, row)) * unit for row in np.eye(5, dtype=int).tolist()]
    )
    vectors = rng.normal(size=(400, 5))
    vectors /= minimise(exact_points, vectors).norms[:, None]
    for gap in (1e-3, 1e-7, 1e-11, 1e-13, 0.0):
        for error in (0.0, 1e-9, 1e-5):
            for sign in (1, -1):
                moved = vectors * (1 + sign * gap)
                errors = np.full(moved.shape, error)
                marks = decide(exact_points, moved, errors, norms * (1 + 1e-9))
                wrong = marks == (1 if sign > 0 and gap > 0 else -1 if gap > 0 else 2)
                for vector in moved[wrong]:  # float64 put it on the other side of the boundary
                    whole = [int(x) for x in vector * 2.0**80]
                    norm = exact_norm(points, whole) / 2**60
                    assert (norm > 1) == (sign < 0)
                if gap >= 1e-3 and error == 0.0:
                    assert np.all(marks == -sign)
                if error / gap > 1e3 if gap else True:
                    assert np.all(marks == 0) or gap == 0.0


def test_the_exact_way_decides_as_float64_does(monkeypatch):
    """The same digits with all decisions in whole numbers, another path to the same draws."""
    body = body_of(random_points(4, 8, 6), (2, 2), (0, 1))
    for seed in range(12):
        usual = body.draw(Fraction(3, 7), source(seed))
        with monkeypatch.context() as patch:
            patch.setattr(split, "decide", lambda _, v, *__: np.zeros(len(v), dtype=np.int64))
            patch.setattr(split, "BATCH", 8)
            exact = body.draw(Fraction(3, 7), source(seed))
        with monkeypatch.context() as patch:
            patch.setattr(split, "BATCH", 8)
            small = body.draw(Fraction(3, 7), source(seed))
        assert exact == small
        assert len(usual) == 4


def test_few_digits_first_give_the_same_law(monkeypatch):
    body = body_of(random_points(3, 6, 7), (2, 1), (0, 1))
    fine = np.array([body.draw(Fraction(1, 2**19), source(i)) for i in range(500)])
    monkeypatch.setattr(split, "LEAST_WORD", 3 << 62)  # most points have exact digits at once
    monkeypatch.setattr(split, "decide", lambda _, v, *__: np.zeros(len(v), dtype=np.int64))
    coarse = np.array([body.draw(Fraction(1, 2**19), source(1000 + i)) for i in range(150)])
    for column in range(3):
        assert stats.ks_2samp(fine[:, column], coarse[:, column]).pvalue > ALARM


# --- the law ------------------------------------------------------------------------------------


def uniform_in_hull(points, count, rng):
    """Uniform points by another method: rejection in a box, planes by qhull."""
    both = np.vstack([points, -points]).astype(float)
    planes = ConvexHull(both).equations
    reach, found = np.abs(both).max(axis=0), []
    while sum(map(len, found)) < count:
        trial = rng.uniform(-1, 1, (20_000, len(reach))) * reach
        found.append(trial[(trial @ planes[:, :-1].T + planes[:, -1] <= 0).all(axis=1)])
    return np.vstack(found)[:count]


@pytest.mark.parametrize(
    ("sizes", "n", "tree"),
    [((1, 1), 5, (0, 1)), ((2, 2), 8, (0, 1)), ((1, 1, 2), 9, ((0, 1), 2))],
)
def test_draws_have_the_law_of_another_method(sizes, n, tree):
    points = random_points(sum(sizes), n, n, size=2**16)
    body = body_of(points, sizes, tree)
    rng = np.random.default_rng(9)
    other = uniform_in_hull(points, 1200, rng)
    other *= rng.gamma(len(points[0]) + 1, size=len(other))[:, None]
    bits = source(31)
    exact = np.array([body.draw(Fraction(1), bits) for _ in range(1200)], dtype=float)
    k = points.shape[1]
    for weights in [*np.eye(k), *rng.normal(size=(4, k))]:
        assert stats.ks_2samp(exact @ weights, other @ weights).pvalue > ALARM
        assert stats.ks_2samp(exact @ weights, -exact @ weights).pvalue > ALARM
    sizes_of = [np.linalg.norm(one, axis=1) for one in (exact, other)]
    assert stats.ks_2samp(*sizes_of).pvalue > ALARM


def test_norms_of_draws_have_the_gamma_distribution():
    points = random_points(6, 20, 11)
    body = body_of(points, (3, 3), (0, 1))
    bits = source(4)
    norms = [float(body.gauge(body.draw(Fraction(1000), bits)) / 1000) for _ in range(150)]
    assert stats.kstest(norms, stats.gamma(6).cdf).pvalue > ALARM


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_every_outcome_of_every_neighbour_pair(epsilon):
    """Likelihood ratios of all outcomes for all integer moves in the body, and the law of draws."""
    side = Tables((1,), (False,), 3)
    body = SplitHull(np.array([[3, 0], [2, 3], [1, -3], [3, 2]]), (side, side), (0, 1))
    both = np.vstack([body.points, -body.points]).astype(float)
    equations = ConvexHull(both).equations
    planes = equations[:, :-1] / -equations[:, -1:]
    reach = int(80 / float(epsilon)) + 4
    grid = (np.arange(8) + 0.5) / 8 - 0.5
    cells = np.arange(-reach, reach + 1)
    places = (cells[:, None] + grid).ravel()
    x, y = np.meshgrid(places, places, indexing="ij")
    norms = np.max(planes @ np.stack([x.ravel(), y.ravel()]), axis=0).reshape(x.shape)
    density = np.exp(-float(epsilon) * norms)
    mass = density.reshape(len(cells), 8, len(cells), 8).mean(axis=(1, 3))
    mass /= mass.sum()
    moves = [m for m in itertools.product(range(-4, 5), repeat=2) if any(m) and body.gauge(m) <= 1]
    assert len(moves) > 20
    inner = slice(8, -8)
    for dx, dy in moves:
        ratio = mass[inner, inner] / np.roll(mass, (dx, dy), (0, 1))[inner, inner]
        assert ratio.max() <= math.exp(epsilon) * (1 + 1e-9)
    bits = source(41)
    draws = np.array([body.draw(1 / epsilon, bits) for _ in range(2000)])
    counts = np.zeros_like(mass)
    kept = np.abs(draws).max(axis=1) <= reach
    np.add.at(counts, (draws[kept, 0] + reach, draws[kept, 1] + reach), 1)
    common = mass * len(draws) > 8
    observed = [*counts[common], len(draws) - counts[common].sum()]
    expected = [*(mass[common] * len(draws)), (1 - mass[common].sum()) * len(draws)]
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > ALARM


# --- errors and intervals -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        # Yes/no patterns: (k + 2)(k + 3)/12·(I + J).
        (
            np.array(list(itertools.product([0, 1], repeat=7)))[1:],
            7.5 * (np.eye(7) + np.ones((7, 7))),
        ),
        # The cross-polytope, and one point inside.
        (np.vstack([np.eye(8, dtype=int) * 2**10, np.full(8, 100)]), 2.0 * 4**10 * np.eye(8)),
    ],
)
def test_simulated_covariances_are_those_in_closed_form(points, wanted):
    k = points.shape[1]
    whole = points * 2**20
    body = body_of(whole, (k // 2, k - k // 2), (0, 1))
    white = np.linalg.inv(np.linalg.cholesky(wanted * 4.0**20))
    relative = white @ body.covariance @ white.T
    assert np.trace(relative) / k == pytest.approx(1.0, abs=0.005)
    assert np.diag(relative) == pytest.approx(np.ones(k), abs=5 * body.standard_error)
    assert relative == pytest.approx(np.eye(k), abs=0.04)
    assert body.standard_error < 0.02


def test_weights_of_directions_sum_to_one_and_lie_on_the_boundary():
    body = body_of(random_points(5, 12, 13), (3, 2), (0, 1))
    assert body.direction_weights.sum() == pytest.approx(1.0)
    own = minimise(body.points / 2.0**20, body.directions[:200] / 2.0**20)
    assert own.norms == pytest.approx(np.ones(200), rel=3e-6)  # points are moved by 1e-6


# --- what is refused ----------------------------------------------------------------------------


def test_split_hulls_that_do_not_hold_are_refused():
    side, small = Tables((1,), (False,), 4), Tables((1,), (False,), 3)
    points = np.array([[4, 0], [0, 4], [3, 3]])
    with pytest.raises(WorkloadError, match="does not contain"):
        SplitHull(points, (side, small), (0, 1))
    with pytest.raises(WorkloadError, match="in order"):
        SplitHull(points, (side, side), (1, 0))
    with pytest.raises(WorkloadError, match="in order"):
        SplitHull(points, (side, side), (0, 0))
    with pytest.raises(WorkloadError, match="all coordinates"):
        SplitHull(points, (side, Tables((2,), (False,), 4)), (0, 1))
    with pytest.raises(WorkloadError, match="one open table"):
        SplitHull(points, (side, Tables((1,), (True,), 4)), (0, 1))
    with pytest.raises(WorkloadError, match="one open table"):  # its unit is not exact in float64
        SplitHull(points, (side, Tables((1,), (False,), 2**53 + 1)), (0, 1))
    for flat in ([[4, 4], [2, 2]], [[4, 0], [0, 0]], [[0, 0], [0, 0]]):
        with pytest.raises(WorkloadError, match="span"):
            SplitHull(np.array(flat), (side, side), (0, 1))
    with pytest.raises(WorkloadError, match="53 bits"):
        SplitHull(np.array([[2**53, 0], [0, 4]]), (side, side), (0, 1))


def test_many_columns_that_are_no_points_are_not_taken_for_held(monkeypatch):
    side = Tables((1,), (False,), 4)
    hull = SplitHull(np.array([[4, 0], [0, 4], [3, 3]]), (side, side), (0, 1))
    columns = np.array([[4, -3, 1, 2], [0, -3, 1, 2]])
    monkeypatch.setattr(split, "MOST_POINTS", 2)  # those that are points do not count
    assert hull.holds(columns)
    assert not hull.holds(np.column_stack([columns, [2, 1]]))


def flat_hull(step):
    """A product of two cross-polytopes with corners that are nearly dependent."""
    k = 5
    corners = np.eye(k, dtype=np.int64) + step * np.eye(k, k=1, dtype=np.int64)
    signs = itertools.product((1, -1), repeat=k - 1)
    leaf = Facets(corners, np.array([[1, *chosen] for chosen in signs]) * np.arange(1, k + 1), 0)
    points = np.array([[*a, *(s * b)] for a in corners for b in corners for s in (-1, 1)])
    return SplitHull(points, (leaf, leaf), (0, 1))


def test_hulls_that_are_too_flat_for_float64_are_refused():
    """They would be decided in whole numbers every time, and have no covariance in float64."""
    assert flat_hull(8).standard_error < 0.01
    with pytest.raises(WorkloadError, match="near to a plane"):
        flat_hull(100)


def test_distinct_points_are_those_of_the_same_hull():
    points = np.array([[0, 0], [1, -2], [-1, 2], [3, 0], [3, 0]])
    assert distinct(points).tolist() == [[1, -2], [3, 0]]


@pytest.fixture(scope="module")
def people():
    """Ten overlapping groups of people, as in SELECT COUNT(*) … WHERE."""
    rng = np.random.default_rng(5)
    batch = (rng.random((9, 40)) < 0.4).astype(float)
    plan = lrm.plan(batch, effort="quick")
    assert isinstance(plan.measured.body, SplitHull)
    return plan, batch


def test_covariances_need_not_be_known_to_read_a_plan(people, tmp_path):
    """Answers follow from independent rows alone; errors are simulated where they are asked for."""
    people[0].save(tmp_path / "plan.lrm")
    plan = lrm.load_plan(tmp_path / "plan.lrm")
    body = plan.measured.body
    assert isinstance(body, SplitHull)
    assert "_sample" not in body.__dict__
    lrm.release(plan, np.arange(plan.workload.shape[1]), 1)
    assert "_sample" not in body.__dict__
    assert plan.expected_squared_error(1) > 0
    assert "_sample" in body.__dict__


def test_a_release_of_another_sample_is_read_and_another_claim_is_not(people, tmp_path):
    """A version that drew another sample called releases of an hour ago damaged."""
    plan, _ = people
    path = tmp_path / "a.release"
    for factor, is_read in ((1 + 3 * plan.measured.body.standard_error, True), (1.5, False)):
        release = lrm.release(plan, np.arange(40), epsilon=1)
        release.save(path)

        def scale(facts, arrays, factor=factor):
            arrays["standard-errors"] = arrays["standard-errors"] * factor

        resealed(path, scale)
        if is_read:
            # What the file states is not believed.
            loaded = lrm.load_release(path)
            np.testing.assert_allclose(loaded.standard_errors, release.standard_errors)
        else:
            with pytest.raises(FileFormatError, match="standard-errors do not follow"):
                lrm.load_release(path)


def test_a_plan_with_a_split_hull_from_batch_to_answers(people, tmp_path):
    plan, batch = people
    laplace = lrm.plan(batch, noise="laplace", effort="quick")
    assert plan.expected_squared_error(1) < 0.9 * laplace.expected_squared_error(1)
    assert plan.measured.body.standard_error < 0.02
    plan.save(tmp_path / "a.plan")
    loaded = lrm.load_plan(tmp_path / "a.plan")
    assert loaded.digest == plan.digest
    assert loaded.expected_squared_error(1) == pytest.approx(plan.expected_squared_error(1))
    counts = np.arange(40) * 10
    release = lrm.release(loaded, counts, epsilon=20)
    assert release.answers == pytest.approx(
        batch @ counts, abs=20 * float(release.standard_errors.max())
    )
    release.save(tmp_path / "a.release")
    assert lrm.load_release(tmp_path / "a.release").answers == pytest.approx(release.answers)
    for cell in range(40):
        moved = plan.measured.measure(plan.measured.counts_of(np.eye(40, dtype=np.int64)[cell]))
        assert plan.measured.body.gauge(moved.tolist()) <= 1


def shrink_points(_facts, arrays):
    arrays["body-points"] //= 2


def move_point(_facts, arrays):
    arrays["body-points"][3] //= 2


def drop_points(_facts, arrays):
    arrays["body-points"] = arrays["body-points"][5:]


def shrink_leaf(_facts, arrays):
    name = next(name for name in arrays if name.startswith("body-") and "vertices" in name)
    arrays[name] //= 2


def drop_facet(_facts, arrays):
    name = next(name for name in arrays if name.startswith("body-") and "facets" in name)
    arrays[name] = arrays[name][1:]


def swap_leaves(facts, _arrays):
    facts["measured"]["body"]["tree"] = facts["measured"]["body"]["tree"][::-1]


def deep_tree(facts, _arrays):
    tree = [0, 1]
    for _ in range(50):
        tree = [tree, 1]
    facts["measured"]["body"]["tree"] = tree


def nested(facts, _arrays):
    body = facts["measured"]["body"]
    body["leaves"][0] = {**body, "leaves": list(body["leaves"])}


@pytest.mark.parametrize(
    "change",
    [
        shrink_points,
        move_point,
        drop_points,
        shrink_leaf,
        drop_facet,
        swap_leaves,
        deep_tree,
        nested,
    ],
)
def test_edited_split_hulls_are_refused(people, tmp_path, change):
    plan, _ = people
    plan.save(tmp_path / "a.plan")
    with pytest.raises(FileFormatError):
        lrm.load_plan(resealed(tmp_path / "a.plan", change, tmp_path / "b.plan"))


def test_predicted_errors_and_intervals_are_those_of_draws(people):
    plan, _ = people
    body = plan.measured.body
    bits = source(17)
    scale = Fraction(1)
    drawn = np.array([body.draw(scale, bits) for _ in range(600)], dtype=float)
    noise = plan.reconstruction_map.apply(drawn.T * 2.0**-plan.measured.bits).T
    squares = noise**2
    error = squares.std(axis=0) / math.sqrt(len(noise))
    wanted = plan.standard_errors(1) ** 2
    assert np.all(np.abs(squares.mean(axis=0) - wanted) < SIGMAS * error + 0.03 * wanted)
    covered = (np.abs(noise) <= plan.half_widths(1)).mean(axis=0)
    assert np.all(covered > 0.95 - SIGMAS * math.sqrt(0.95 * 0.05 / len(noise)))
    assert isinstance(body.leaves[0], Facets | Tables)


def test_a_draw_with_hopeless_acceptance_ends(monkeypatch):
    """A plan file with leaves far too large would let a draw go on for ever."""
    wide = Tables((1,), (False,), 1 << 40)
    body = SplitHull(np.array([[4, 0], [0, 4]]), (wide, wide), (0, 1))
    monkeypatch.setattr(split, "MOST_SECONDS", 0.5)
    with pytest.raises(ConvergenceError, match="takes too long to draw"):
        body.draw(Fraction(1))
    noise = calibrate_shaped(body, 1, 1, PureDP(Fraction(1)), np.ones(1, dtype=int))
    with pytest.raises(ConvergenceError):
        noise.drawn()  # what a release does before it charges the budget


def test_a_leaf_of_many_dimensions_is_not_listed():
    """Free points moved a cross-polytope of 16 dimensions off its axes, and the list had no end."""
    points = np.vstack([np.eye(18, dtype=int) * 2**20, np.ones((1, 18), dtype=int) * 2**19])
    with pytest.raises(WorkloadError, match="too many dimensions"):
        body_of(points, (16, 2), (0, 1))


def test_bodies_of_points_are_moved_further_and_further_outwards():
    """Where facets are no simplices, or a column is not inside, the next body is taken."""
    points = np.random.default_rng(3).integers(-(2**20), 2**20, (9, 4))
    bodies = list(verified_bodies(points.astype(np.float64)))
    assert len(bodies) == 3
    assert all(body.holds(points.T) for body in bodies)
    volumes = [body.log_volume for body in bodies]
    assert volumes == sorted(volumes)


def test_slopes_of_free_points_are_those_of_the_error_by_all_facets():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(9, 4))
    directions = rng.standard_normal((40_000, 4)) @ np.linalg.cholesky(points.T @ points).T
    # Directions of an ellipsoid weigh ‖x‖_K^−k alone where its norm of them is 1.
    directions /= np.linalg.norm(
        np.linalg.solve(np.linalg.cholesky(points.T @ points), directions.T), axis=0
    )[:, None]
    met = mean_square(points, minimise(points, directions))
    assert met.mean / 2 == pytest.approx(Hull.of(points).error, rel=0.02)
    assert met.mean == pytest.approx(np.trace(met.second_moment))
    size, moved = 1e-5, np.zeros(points.shape)
    for place in np.ndindex(points.shape):
        ends = []
        for side in (-size, size):
            points[place] += side
            ends.append(2 * Hull.of(points).error)
            points[place] -= side
        moved[place] = (ends[1] - ends[0]) / (2 * size)
    assert met.gradient == pytest.approx(moved, abs=0.05 * np.abs(moved).max())
