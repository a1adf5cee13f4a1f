"""Bodies of shaped noise: their norms, covariances and exact samplers, against other methods.

Statistical tests have a false-alarm rate of about 1e-6 each.
"""

import decimal
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from body_vertices import vertices_of
from lrm.errors import WorkloadError
from lrm.planning.solvers.hulls import list_facets
from lrm.planning.strategies.split_hulls import Split, split_body, verified_bodies
from lrm.privacy.bodies import base, drawing
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.drawing import (
    EXPONENTIAL_ERROR,
    LEAST_WORD,
    Exponentials,
    below,
    choose,
    exponentials,
    round_sums,
    shuffle,
    words,
)
from lrm.privacy.bodies.facets import Facets, _Chances, _exact_normals, _solve_facets
from lrm.privacy.bodies.shared import SharedTables, shared_attributes
from lrm.privacy.bodies.split import SplitHull
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables

ALARM = 1e-6
SIGMAS = 5.0


def facets_of(points):
    """A body by facets from integer points in general position."""
    facets = list_facets(points.astype(float))
    used = np.unique(np.abs(facets)) - 1
    number = np.zeros(len(points) + 1, dtype=np.int64)
    number[used + 1] = np.arange(1, len(used) + 1)
    return Facets(points[used], np.sign(facets) * number[np.abs(facets)], 0)


def random_facets(k, n, seed):
    rng = np.random.default_rng(seed)
    return facets_of(rng.integers(-(2**12), 2**12, (n, k)))


def norm_by_program(body, vector):
    """The norm as a linear program over the vertices."""
    V = vertices_of(body)
    size = np.abs(V).max()
    both = np.hstack([V, -V]) / size
    found = linprog(np.ones(both.shape[1]), A_eq=both, b_eq=np.asarray(vector) / size)
    return found.fun if found.success else math.inf


def random_split(seed, sizes, n, tree):
    """The hull of random integer points, by parts of its coordinates."""
    k = sum(sizes)
    points = np.random.default_rng(seed).integers(-(2**20), 2**20, (n, k))
    return split_body(points, Split(np.zeros((k, n)), sizes, tree), 0)


BODIES = {
    "yes/no": Tables((1, 1, 1), (False,) * 3, 2**20),
    "cube": Cube(3, 2**20),
    "cross-polytope": Tables((4,), (False,), 2**20),
    "one-way": Tables((3, 2, 2), (True,) * 3, 2**20),
    "mixed": Tables((2, 1, 3), (True, False, False), 2**20),
    "with a total": Tables((1, 1, 1), (True, False, False), 2**20),
    "shared": SharedTables((((0, 3), (1, 2)), ((1, 2), (2, 2)), ((1, 2), (3, 2))), 2**20),
    "facets 3": random_facets(3, 9, 1),
    "facets 5": random_facets(5, 12, 2),
    "split 2+2": random_split(4, (2, 2), 7, (0, 1)),
    "split in a tree": random_split(7, (2, 1, 2), 16, ((0, 1), 2)),
    "groups": Groups(
        (Tables((2, 2), (True, True), 2**20), random_facets(2, 5, 3)), (WHOLE // 3, WHOLE // 2)
    ),
}


@pytest.fixture(params=BODIES, ids=str, scope="module")
def body(request):
    return BODIES[request.param]


def source(seed):
    """A reproducible source of bits for tests of the law."""
    return random.Random(seed).getrandbits  # noqa: S311 - the law is tested, not secrecy


SCALE = Fraction(10**6)


@pytest.fixture(scope="module")
def exact(body):
    """Exact draws of a body, which several tests look at."""
    bits = source(7)
    return [body.draw(SCALE, bits) for _ in range(1000)]


def drawn(body, count, seed):
    bits = source(seed)
    return np.array([body.draw(SCALE, bits) for _ in range(count)], dtype=float) / float(SCALE)


# --- exact drawing ------------------------------------------------------------------------------


def test_whole_numbers_below_a_bound_are_equally_likely():
    """Every sequence of three bits once: each number has the same share of those accepted."""
    for bound in range(1, 9):
        counts = np.zeros(bound, dtype=int)
        for word in range(8):
            feed = iter([word, 0])
            width = (bound - 1).bit_length()
            value = below(bound, lambda w, feed=feed: next(feed) & ((1 << w) - 1))
            if (word & ((1 << width) - 1)) < bound:
                counts[value] += 1
        assert len(set(counts.tolist())) == 1


def test_choice_and_order_follow_their_weights():
    bits = source(1)
    counts = np.bincount([choose([3, 3, 4, 10], bits) for _ in range(20_000)], minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], [6000, 2000, 12_000]).pvalue > ALARM
    orders = []
    for _ in range(12_000):
        items = [0, 1, 2]
        shuffle(items, bits)
        orders.append(tuple(items))
    counts = [orders.count(one) for one in itertools.permutations(range(3))]
    assert stats.chisquare(counts).pvalue > ALARM


def test_sums_are_rounded_to_the_nearest_integers():
    """Uniform variables of a half: every exponential variable is ln 2 = 0.693."""

    def half(count):
        return 1 << (count - 1)

    sums = [[(0, 1)], [(0, -1)], [(0, 10)], [(0, 10), (1, -3)]]
    assert round_sums(sums, 2, Fraction(1), half) == [1, -1, 7, 5]
    assert round_sums(sums, 2, Fraction(7, 10), half) == [0, 0, 5, 3]
    assert round_sums(sums, 2, Fraction(1000), half) == [693, -693, 6931, 4852]


def minus_log(x, terms=200):
    """−ln x for a Fraction in (0, 1], by the series of the inverse hyperbolic tangent."""
    halves = 0
    while x < Fraction(1, 2):
        x, halves = 2 * x, halves + 1

    def series(y):
        r, total = (1 - y) / (1 + y), Fraction(0)
        power = r
        for i in range(terms):
            total += power / (2 * i + 1)
            power = (power * r * r).limit_denominator(10**60)
        return 2 * total

    return series(x) + halves * series(Fraction(1, 2))


def test_intervals_hold_the_logarithm_and_shrink():
    for seed in range(20):
        one = Exponentials(1, source(seed))
        u, p = one._uniforms[0], one.precision
        low, high = Fraction(one.low[0], 2**p), Fraction(one.high[0], 2**p)
        slack = Fraction(1, 10**35)
        assert low <= minus_log(Fraction(u + 1, 2**p)) + slack
        assert high >= minus_log(Fraction(u, 2**p)) - slack
        one.refine()
        q = one.precision
        finer = Fraction(one.low[0], 2**q), Fraction(one.high[0], 2**q)
        assert low - slack <= finer[0] <= finer[1] <= high + slack
        assert finer[1] - finer[0] < Fraction(1, 2 ** (p + 20)) < high - low
        assert one._uniforms[0] >> (q - p) == u


def test_exponentials_in_float64_are_near_all_that_their_digits_may_become():
    edges = [LEAST_WORD, LEAST_WORD + 1, 2**63 - 1, 2**63, 2**64 - 2**10, 2**64 - 2, 2**64 - 1]
    half = math.isqrt(2**127)  # 2^64·√½, where the exponent changes
    near = [half + i for i in range(-2000, 2001, 400)]
    random_words = [word for word in words(2000, source(5)).tolist() if word >= LEAST_WORD]
    uniforms = np.array([*edges, *near, *random_words], dtype=np.uint64)
    context = decimal.Context(prec=60)
    whole = decimal.Decimal(2**64)
    for word, value in zip(uniforms.tolist(), exponentials(uniforms).tolist(), strict=True):
        for end in (word, word + 1):
            exact = -context.ln(context.divide(decimal.Decimal(end), whole))
            assert abs(context.subtract(exact, decimal.Decimal(value))) < EXPONENTIAL_ERROR / 2


def test_words_have_all_their_digits():
    drawn = words(4000, source(8))
    assert drawn.dtype == np.uint64
    for place in range(64):
        ones = int((drawn >> np.uint64(place) & np.uint64(1)).sum())
        assert stats.binomtest(ones, 4000).pvalue > ALARM
    assert words(0).shape == (0,)


def test_few_digits_first_give_the_same_law(monkeypatch):
    """With 3 digits at first nearly every draw is refined, and zeros occur."""
    terms = [[(0, 5), (1, -3)], [(1, 2)]]
    bits = source(3)
    fine = np.array([round_sums(terms, 2, Fraction(3, 2), bits) for _ in range(1200)])
    monkeypatch.setattr(drawing, "FIRST_BITS", 3)
    coarse = np.array([round_sums(terms, 2, Fraction(3, 2), bits) for _ in range(1200)])
    for column in range(2):
        assert stats.ks_2samp(fine[:, column], coarse[:, column]).pvalue > ALARM


def test_the_same_digits_give_the_same_integers_at_any_first_precision(monkeypatch):
    """Rounding is a function of the infinite sequence of digits, not of where it is cut."""

    class Tape:
        """Digits per variable, handed out as the sampler asks for them."""

        def __init__(self, seed, count):
            self.digits = [source(f"{seed} {i}")(4096) for i in range(count)]
            self.used = [0] * count
            self.turn = 0

        def __call__(self, width):
            i = self.turn % len(self.digits)
            self.turn += 1
            self.used[i] += width
            return (self.digits[i] >> (4096 - self.used[i])) & ((1 << width) - 1)

    terms = [[(0, 7), (1, -3), (2, 1)], [(1, 11), (2, -5)]]
    for seed in range(60):
        found = []
        for first in (4, 16, 128):
            monkeypatch.setattr(drawing, "FIRST_BITS", first)
            found.append(round_sums(terms, 3, Fraction(100, 7), Tape(seed, 3)))
        assert found[0] == found[1] == found[2]


# --- norms --------------------------------------------------------------------------------------


def test_norms_are_those_of_the_hull(body):
    rng = np.random.default_rng(5)
    V = vertices_of(body)
    for _ in range(20):
        point = np.rint(V @ rng.normal(size=V.shape[1]))
        if isinstance(body, Tables | SharedTables):  # in the space of common totals
            point = (V // 2**18).astype(int) @ rng.integers(-3, 4, V.shape[1])
        if isinstance(body, Groups):
            point = np.concatenate([[5, -3, 1, 1], point[4:]])
        vector = [int(x) for x in point]
        assert float(body.gauge(vector)) == pytest.approx(norm_by_program(body, vector), rel=1e-9)


def test_vertices_are_held_and_nothing_beyond():
    for name, one in BODIES.items():
        if name == "groups":
            continue
        V = vertices_of(one).astype(np.int64)
        assert one.holds(V), name
        assert one.holds(-V), name
        assert all(one.gauge(column.tolist()) <= 1 for column in V.T)
        beyond = V.copy()
        if isinstance(one, SplitHull | SharedTables) or (
            isinstance(one, Tables) and any(one.closed)
        ):
            beyond = V * 2
        else:
            beyond[np.argmax(np.abs(V[:, 0])), 0] += np.sign(V[np.argmax(np.abs(V[:, 0])), 0])
        assert not one.holds(beyond), name


def test_a_vector_outside_the_space_of_tables_is_refused():
    with pytest.raises(WorkloadError, match="common total"):
        BODIES["one-way"].gauge([1, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    "tables",
    [
        (),
        (((0, 2), (1, 2)),),
        (((0, 2), (1, 2)), ((2, 2), (3, 2))),  # they share nothing
        (((0, 2), (1, 2)), ((0, 2), (2, 2)), ((1, 2), (2, 2))),
        (((0, 2), (1, 2)), ((0, 3), (2, 2))),
        (((0, 2), (1, 2)), ((0, 2),)),
        (((1, 2), (0, 2)), ((0, 2), (2, 2))),
        (((0, 2), (1, 0)), ((0, 2), (2, 2))),
        (((0, 40), (1, 40)), ((0, 40), (2, 40))),
    ],
)
def test_tables_that_do_not_share_the_same_attributes_are_refused(tables):
    with pytest.raises(WorkloadError):
        SharedTables(tables, 1)
    with pytest.raises(WorkloadError, match="62"):
        SharedTables((((0, 2), (1, 2)), ((0, 2), (2, 2))), 0)


def test_what_tables_share():
    assert shared_attributes([(0, 3, 4), (0, 1, 4), (0, 2, 4)]) == {0, 4}
    assert shared_attributes([(0,), (1,), (2, 3)]) == frozenset()
    for tables in ([(0, 1), (1, 2), (2, 3)], [(0, 1), (0,)], [(0, 1), (0, 1)]):
        assert shared_attributes(tables) is None


def test_groups_add_norms_by_their_shares():
    one, two = Tables((1,), (False,), 1), Tables((2,), (False,), 1)
    both = Groups((one, two), (WHOLE // 4, WHOLE // 2))
    assert both.gauge([4, 1, -1]) == Fraction(4, 4) + Fraction(2, 2)
    assert not both.holds(np.array([[4], [1], [-1]]))
    assert both.holds(np.array([[2], [1], [0]]))  # 2/4 + 1/2: beyond one group, not beyond the sum


# --- laws ---------------------------------------------------------------------------------------


def test_covariances_of_exact_draws(body, exact):
    values = np.array(exact, dtype=float) / float(SCALE) / np.sqrt(np.diag(body.covariance))
    wanted = body.covariance / np.sqrt(np.outer(np.diag(body.covariance), np.diag(body.covariance)))
    products = values[:, :, None] * values[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(values))
    slack = 6 * body.standard_error + 1e-12
    assert np.all(np.abs(products.mean(axis=0) - wanted) < SIGMAS * error + slack)
    assert np.all(np.abs(values.mean(axis=0)) < SIGMAS / math.sqrt(len(values)))


def test_norms_of_exact_draws_have_the_gamma_distribution(body, exact):
    few = 150 if isinstance(body, Facets | SplitHull) else 600
    norms = [float(body.gauge(one) / SCALE) for one in exact[:few]]
    dimension = np.linalg.matrix_rank(body.covariance)
    assert stats.kstest(norms, stats.gamma(dimension).cdf).pvalue > ALARM


def test_simulated_noise_has_the_law_of_exact_draws(body, exact):
    values, totals = body.simulate(40_000, np.random.default_rng(1))
    assert stats.kstest(totals, stats.gamma(body.variables).cdf).pvalue > ALARM
    draws = np.array(exact, dtype=float) / float(SCALE)
    rng = np.random.default_rng(2)
    for weights in [*np.eye(body.size), *rng.normal(size=(3, body.size))]:
        assert stats.ks_2samp(draws @ weights, values @ weights).pvalue > ALARM
    sizes = np.linalg.norm(values, axis=1)
    assert stats.ks_2samp(np.linalg.norm(draws, axis=1), sizes).pvalue > ALARM


def in_the_hull_of(V, count, rng):
    """Noise by another method: uniform in a box, kept in the hull, times a Gamma variable."""
    from scipy.spatial import ConvexHull

    both = np.hstack([V, -V]).T
    planes = ConvexHull(both).equations
    reach, found = np.abs(both).max(axis=0), []
    while sum(map(len, found)) < count:
        points = rng.uniform(-1, 1, (20_000, len(reach))) * reach
        found.append(points[(points @ planes[:, :-1].T + planes[:, -1] <= 0).all(axis=1)])
    points = np.vstack(found)[:count]
    return points * rng.gamma(len(reach) + 1, size=count)[:, None]


@pytest.mark.parametrize("name", ["yes/no", "cross-polytope", "facets 3", "split 2+2"])
def test_draws_agree_with_rejection_in_a_box(name):
    one = BODIES[name]
    rng = np.random.default_rng(3)
    other = in_the_hull_of(vertices_of(one).astype(float), 1500, rng)
    exact = drawn(one, 1500, seed=21)
    for weights in [*np.eye(one.size), *rng.normal(size=(4, one.size))]:
        assert stats.ks_2samp(exact @ weights, other @ weights).pvalue > ALARM
        assert stats.ks_2samp(exact @ weights, -exact @ weights).pvalue > ALARM


def test_yes_no_noise_agrees_with_spacings_in_random_order():
    """The norm is the range of (0, z): sorted values have exponential spacings."""
    k, rng = 5, np.random.default_rng(4)
    one = Tables((1,) * k, (False,) * k, 1)
    gaps = np.cumsum(rng.exponential(size=(1500, k)), axis=1)
    levels = np.hstack([np.zeros((1500, 1)), gaps])
    levels = np.take_along_axis(
        levels, rng.permuted(np.tile(np.arange(k + 1), (1500, 1)), axis=1), 1
    )
    other = levels[:, 1:] - levels[:, :1]
    exact = drawn(one, 1500, seed=22)
    for weights in [*np.eye(k), np.ones(k), *rng.normal(size=(3, k))]:
        assert stats.ks_2samp(exact @ weights, other @ weights).pvalue > ALARM


def test_marginals_follow_the_characteristic_function():
    """E exp(iτ b·z) = Σ_F p_F Π 1/(1 − iτ b·v), both signs of F."""
    one, rng = BODIES["facets 5"], np.random.default_rng(6)
    values, _ = one.simulate(200_000, rng)
    chances = one.probabilities
    corners = one.vertices[np.abs(one.facets) - 1] * np.sign(one.facets)[:, :, None]
    for weights in rng.normal(size=(3, 5)) / 1500:
        for tau in (0.3, 1.0, 3.0):
            exact = (chances * (1 / (1 - 1j * tau * (corners @ weights))).prod(axis=1)).sum().real
            waves = np.cos(tau * (values @ weights))
            assert abs(waves.mean() - exact) < SIGMAS * waves.std() / math.sqrt(len(waves))


@pytest.mark.parametrize(
    ("sizes", "error"),
    [
        ((2,) * 8, 440 / 3),
        ((5, 4, 3, 2), 77.675),
        ((10, 10), 62.0658),
        ((10, 8, 5, 2, 2), 286.0456),
        ((5,) * 12, 3174.94),
    ],
)
def test_errors_of_one_way_tables(sizes, error):
    tables = Tables(sizes, (True,) * len(sizes), 1)
    assert np.trace(tables.covariance) / 2 == pytest.approx(error, rel=1e-5)
    assert np.linalg.matrix_rank(tables.covariance) == sum(sizes) - len(sizes) + 1


@pytest.mark.parametrize("k", [1, 2, 5, 16])
def test_errors_of_yes_no_counts(k):
    covariance = Tables((1,) * k, (False,) * k, 1).covariance
    wanted = (k + 2) * (k + 3) / 12 * (np.eye(k) + np.ones((k, k)))
    assert covariance == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("size", [1, 30, 1000])
def test_errors_of_one_open_table(size):
    """It is the cross-polytope: independent Laplace noise, for any number of cells."""
    covariance = Tables((size,), (False,), 1).covariance
    assert covariance == pytest.approx(2 * np.eye(size), rel=1e-12, abs=1e-12)


# --- privacy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize(
    "one",
    [
        Tables((1, 1), (False, False), 1),
        Tables((2,), (False,), 1),
        Cube(2, 1),
        Facets(np.array([[1, 1], [1, -1]]), np.array([[1, 2], [1, -2]]), 0),
        Facets(np.array([[2, 1], [0, 3], [3, -2]]), np.array([[1, 2], [1, 3], [2, -3]]), 0),
    ],
)
def test_every_outcome_of_every_neighbour_pair(one, epsilon):
    """Likelihood ratios of all outcomes for all integer moves in the body, and the law of draws.

    The probability of an outcome is the integral of the density over a unit square. At every point
    of the quadrature the norm is the largest |h·z| over planes found by another program.
    """
    from scipy.spatial import ConvexHull

    V = vertices_of(one).T.astype(float)
    equations = ConvexHull(np.vstack([V, -V])).equations
    planes = equations[:, :-1] / -equations[:, -1:]
    reach = int(60 / float(epsilon)) + 4
    grid = (np.arange(8) + 0.5) / 8 - 0.5
    cells = np.arange(-reach, reach + 1)
    places = (cells[:, None] + grid).ravel()
    x, y = np.meshgrid(places, places, indexing="ij")
    norms = np.max(planes @ np.stack([x.ravel(), y.ravel()]), axis=0).reshape(x.shape)
    density = np.exp(-float(epsilon) * norms)
    mass = density.reshape(len(cells), 8, len(cells), 8).mean(axis=(1, 3))
    mass /= mass.sum()
    moves = [
        move
        for move in itertools.product(range(-4, 5), repeat=2)
        if one.gauge(move) <= 1 and any(move)
    ]
    assert moves
    inner = slice(8, -8)
    for dx, dy in moves:
        ratio = mass[inner, inner] / np.roll(mass, (dx, dy), (0, 1))[inner, inner]
        assert ratio.max() <= math.exp(epsilon) * (1 + 1e-9)
    bits = source(31)
    draws = np.array([one.draw(1 / epsilon, bits) for _ in range(2000)])
    counts = np.zeros_like(mass)
    kept = np.abs(draws).max(axis=1) <= reach
    np.add.at(counts, (draws[kept, 0] + reach, draws[kept, 1] + reach), 1)
    common = mass * len(draws) > 8
    observed = [*counts[common], len(draws) - counts[common].sum()]
    expected = [*(mass[common] * len(draws)), (1 - mass[common].sum()) * len(draws)]
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > ALARM


# --- lists of facets ----------------------------------------------------------------------------


def test_a_changed_list_of_facets_is_refused():
    one = BODIES["facets 3"]
    rng = np.random.default_rng(8)
    with pytest.raises(WorkloadError, match="gaps"):
        Facets(one.vertices, one.facets[1:], 0)
    with pytest.raises(WorkloadError, match="twice"):
        Facets(one.vertices, np.vstack([one.facets, one.facets[:1]]), 0)
    with pytest.raises(WorkloadError, match="twice"):
        Facets(one.vertices, np.vstack([one.facets, -one.facets[:1]]), 0)
    for _ in range(40):
        place = rng.integers(len(one.vertices))
        moved = one.vertices.copy()
        moved[place] //= rng.integers(2, 9)
        try:
            Facets(moved, one.facets, 0)
        except WorkloadError:
            continue
        # A small move may leave the list true; then it is the list of the moved body.
        assert set(map(tuple, list_facets(moved.astype(float)))) == set(map(tuple, one.facets))
    for _ in range(40):
        facets = one.facets.copy()
        facets[rng.integers(len(facets)), rng.integers(3)] *= -1
        with pytest.raises(WorkloadError):
            Facets(one.vertices, facets, 0)


def test_a_list_of_facets_of_an_inner_body_is_refused():
    """All facets of the hull of some vertices, beside vertices outside of it."""
    square = np.array([[1, 1], [1, -1], [3, 0]])
    with pytest.raises(WorkloadError, match="beyond"):
        Facets(square, np.array([[1, 2], [1, -2]]), 0)
    with pytest.raises(WorkloadError, match="beyond"):
        Facets(np.array([[1, 1], [1, -1], [1, 0]]), np.array([[1, 2], [1, -2]]), 0)


def test_dependent_vertices_are_refused():
    with pytest.raises(WorkloadError, match="dependent"):
        Facets(np.array([[1, 1], [2, 2]]), np.array([[1, 2], [1, -2]]), 0)


@pytest.mark.parametrize(
    ("vertices", "facets"),
    [
        (np.array([[1, 1], [1, -1]]), np.array([[1, 3], [1, -3]])),
        (np.array([[1, 1], [1, -1]]), np.array([[0, 2], [1, -2]])),
        (np.array([[2**31, 1], [1, -1]]), np.array([[1, 2], [1, -2]])),
        (np.array([[1], [2]]), np.array([[1], [2]])),
        (np.eye(13, dtype=int), np.arange(1, 14)[None]),
    ],
)
def test_facets_out_of_bounds_are_refused(vertices, facets):
    with pytest.raises(WorkloadError):
        Facets(vertices, facets, 0)


ONE = Tables((1,), (False,), 1)


@pytest.mark.parametrize(
    ("make", "good", "wrong"),
    [
        (Cube, [(1, 1), (400, 1 << 62)], [(0, 1), (401, 1), (1, 0), (1, (1 << 62) + 1)]),
        (
            Tables,
            [((1000,), (False,), 1 << 62), ((1, 1), (True, False), 1)],
            [
                ((), (), 1),
                ((1, 1), (True,), 1),
                ((1, 0), (False, False), 1),
                ((1,), (False,), 0),
                ((1,), (False,), (1 << 62) + 1),
                ((1001,), (False,), 1),
                ((500, 501), (True, True), 1),
            ],
        ),
        (
            Groups,
            [((ONE,), (1,)), ((ONE, ONE), (WHOLE - 1, 1))],
            [
                ((), ()),
                ((ONE,), (1, 1)),
                ((ONE,), (0,)),
                ((ONE, ONE), (WHOLE, 1)),
                ((Groups((ONE,), (1,)),), (1,)),
                ((Tables((501,), (False,), 1),) * 2, (1, 1)),
            ],
        ),
        (
            lambda shift: Facets(np.array([[1, 1], [1, -1]]), np.array([[1, 2], [1, -2]]), shift),
            [(0,), (40,)],
            [(-1,), (41,)],
        ),
    ],
)
def test_bodies_out_of_bounds_are_refused(make, good, wrong):
    for facts in good:
        assert make(*facts).words
    for facts in wrong:
        with pytest.raises(WorkloadError):
            make(*facts)


@pytest.mark.parametrize(
    ("columns", "held"),
    [
        ([[4, 0], [0, 4]], True),
        ([[6, 0], [0, 4]], False),
        ([[8, 0], [0, 0]], True),
        ([[10, 0], [0, 0]], False),
        ([[4, -4], [0, 0]], True),
        ([[6, -4], [0, 0]], False),
        ([[-8, 0], [0, 0]], True),
        ([[4, 1], [0, 0]], False),
    ],
)
def test_differences_of_norm_two_are_held_and_no_others(columns, held):
    """Norms of differences in the cross-polytope of unit 4; what is odd is not looked at."""
    assert Tables((2,), (False,), 4).holds_differences(np.array(columns)) == held
    cube = Cube(2, 4).holds_differences(np.array(columns))
    assert cube == all(max(0, *row) - min(0, *row) <= 8 for row in columns)


def test_differences_of_integers_of_62_bits_do_not_wrap_around():
    """A record and its negative differ by 2^63, which with the other sign would be held."""
    record = np.array([1 << 51, -(1 << 62)])
    half = record >> 34
    vertices = np.array([2 * half * [1, -1], half]) // 1024 * 1025
    thin = Facets(vertices, np.array([[1, 2], [1, -2]]), 33)
    assert thin.gauge(np.abs(record).tolist()) < 1 < thin.gauge(record.tolist()) < 2
    moves = np.column_stack([record, -record])
    assert not thin.holds_differences(moves)
    assert Facets(2 * vertices, thin.facets, 33).holds_differences(moves)


def test_more_columns_than_are_compared_are_not_taken_for_held(monkeypatch):
    monkeypatch.setattr(base, "MOST_COLUMNS", 4)  # the column of zeros is one of them
    columns = np.array([[2, 4, 2, 0], [0, 0, 2, 2]])
    assert Tables((2,), (False,), 4).holds_differences(columns[:, :3])
    assert not Tables((2,), (False,), 4).holds_differences(columns)


def test_facets_of_one_open_table_are_its_cells_with_signs():
    table = Tables((3,), (False,), 5)
    drawn_facets = table.corners(table.draw_facets(200, source(9)))
    assert all(np.array_equal(np.abs(facet), 5 * np.eye(3)) for facet in drawn_facets)
    signs = {tuple(np.sign(np.diag(facet)).tolist()) for facet in drawn_facets}
    assert signs == set(itertools.product((-1, 1), repeat=3))


def test_shares_are_parts_of_a_number_that_files_rely_on():
    assert WHOLE == 1 << 24


def test_words_name_the_body():
    assert ONE.words == "a table of 1 cell"
    assert Tables((1, 1), (False,) * 2, 1).words == "2 yes/no counts"
    assert Tables((3, 2), (True,) * 2, 1).words == "tables of 3, 2 cells"
    assert Tables((3,) * 7, (True,) * 7, 1).words == "7 tables of 3 cells"
    assert Tables((3,) * 6 + (2,), (True,) * 7, 1).words == "7 tables of 2 to 3 cells"
    assert Groups((ONE, Cube(2, 1)), (1, 1)).words.startswith(
        "2 groups: a table of 1 cell; 2 yes/no"
    )
    assert BODIES["facets 3"].words == f"hull of {len(BODIES['facets 3'].vertices)} points"


def test_exact_volumes_and_covariances_by_facets():
    for k in (2, 3, 4, 6):
        points = np.array(list(itertools.product([0, 1], repeat=k))[1:])
        one = next(verified_bodies(points * 2.0**24))
        assert math.exp(one.log_volume - 24 * k * math.log(2)) == pytest.approx(k + 1, rel=1e-3)
        closed = Tables((1,) * k, (False,) * k, 2**24).covariance
        assert one.covariance == pytest.approx(closed, rel=1e-3)


@pytest.mark.parametrize("bits", [3, 12, 30])
def test_error_bounds_of_facets_contain_the_exact_values(bits):
    """Random facets, and some whose last vertex is nearly a sum of the others."""
    rng = np.random.default_rng(bits)
    k, high = 6, 2**bits
    corners = rng.integers(-high, high, (300, k, k))
    corners[::3, -1] = corners[::3, 0] - corners[::3, 1] + rng.integers(0, 2, (100, k))
    dets, numerators = _exact_normals(corners)
    corners, dets, numerators = corners[dets != 0], dets[dets != 0], numerators[dets != 0]
    assert 250 < len(dets) < 300
    found = _solve_facets(corners)
    assert np.all(found.errors < 1e-5 * found.determinants)
    for i, (det, top) in enumerate(zip(dets, numerators, strict=True)):
        assert abs(Fraction(found.determinants[i]) - abs(det)) <= Fraction(found.errors[i])
        for near, error, exact in zip(found.vectors[i], found.vector_errors[i], top, strict=True):
            assert abs(Fraction(near) - Fraction(int(exact), int(det))) <= Fraction(error)


def test_bounds_of_volumes_are_on_either_side_of_the_exact_ones():
    """Vertices of 31 bits: volumes of 150 bits, which float64 does not hold."""
    one = facets_of(np.random.default_rng(6).integers(-(2**30), 2**30, (8, 5)))
    exact = [one._exact_normal(facet)[0] for facet in one.facets]
    chances = one._chances
    assert chances.low_digits > 60
    for low, volume, high in zip(chances.certain, exact, chances.widths, strict=True):
        unit = 1 << chances.low_digits
        assert int(low) * unit < volume < int(high) * unit < (1 + 2**-30) * volume
        assert int(low) * unit > (1 - 2**-30) * volume
    assert chances.ends.tolist() == list(itertools.accumulate(chances.widths.tolist()))


@pytest.mark.parametrize("name", ["facets 3", "facets 5"])
def test_bounds_of_determinants_contain_them(name):
    """Below the lower one, facets are accepted without an exact determinant."""
    one = BODIES[name]
    exact = [one._exact_normal(facet)[0] for facet in one.facets]
    chances = one._chances
    for low, det, high in zip(chances.certain, exact, chances.widths, strict=True):
        unit = 1 << chances.low_digits
        assert 0.999 * det < int(low) * unit <= det <= int(high) * unit < 1.001 * det


@pytest.mark.parametrize("low_digits", [0, 3])
def test_facets_are_chosen_by_exact_volumes_whatever_the_bounds(low_digits):
    one = Facets(np.array([[7, 1], [2, 5], [-3, 4]]), np.array([[1, 2], [2, 3], [1, -3]]), 0)
    exact = np.array([33, 23, 31])  # |det| of the facets
    unit = 1 << low_digits
    widths = -(-np.array([33, 90, 40]) // unit)
    certain = np.array([33, 5, 0]) // unit
    vars(one)["_chances"] = _Chances(low_digits, widths, np.cumsum(widths), certain)
    numbers = one.draw_facets(3000, source(3))
    observed = np.bincount(np.abs(numbers) - 1, minlength=3)
    assert stats.chisquare(observed, exact / exact.sum() * 3000).pvalue > ALARM
    assert stats.binomtest(int((numbers > 0).sum()), 3000).pvalue > ALARM
    assert np.array_equal(one.corners(np.array([-2])), [[[-2.0, -5.0], [3.0, -4.0]]])
