"""Answers whose noise has one law have one interval, found once and kept."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import lrm
from lrm.planning.accuracy import core
from lrm.planning.accuracy.intervals import half_widths, sum_half_widths
from lrm.planning.design.inverses import left_inverse
from lrm.privacy.bodies.base import Body
from lrm.privacy.bodies.cube import Cube
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import Noise
from lrm.privacy.laws import NoiseLaw
from lrm.queries.maps.levels import LevelMap
from lrm.queries.maps.linear import LinearMap, RowWeights
from lrm.queries.maps.matrices import SparseMap
from lrm.queries.maps.words import AllRanges, Prefix

CELLS = 30


def _trees() -> list[LinearMap]:
    shapes = [(2, 3, 5), (30,), (13, 3), (3, 2, 2, 3), (2, 2, 2, 2, 2)]
    trees: list[LinearMap] = [
        LevelMap(CELLS, (2,) * 5, (0.0, 1.0, 2.0, 3.0, 1.5, 2.5, 0.7), contrast=True)
    ]
    for fanouts in shapes:
        weights = tuple(float(k + 1) for k in range(len(fanouts) + 1))
        trees += [LevelMap(CELLS, fanouts, weights), LevelMap(CELLS, fanouts, (*weights[:-1], 0.0))]
    return trees


def _beside_rows() -> list[LinearMap]:
    rng = np.random.default_rng(3)
    rows = [
        np.zeros((0, CELLS)),
        np.ones((1, CELLS)),
        np.repeat(rng.integers(-2, 3, (3, CELLS // 5)).astype(float), 5, axis=1),
    ]
    return [
        SparseMap(sp.csr_array(np.vstack([np.diag(scale), some])))
        for scale in (np.full(CELLS, 2.0), rng.integers(1, 3, CELLS).astype(float))
        for some in rows
    ]


def _queries() -> list[LinearMap]:
    rng = np.random.default_rng(4)
    table = np.vstack([np.eye(CELLS), np.ones(CELLS)])
    scattered = sp.random_array((40, CELLS), density=0.2, rng=rng, format="csr")
    return [Prefix(CELLS), AllRanges(CELLS), SparseMap(sp.csr_array(table)), SparseMap(scattered)]


@pytest.mark.parametrize("strategy", [*_trees(), *_beside_rows()])
def test_short_forms_hold_the_weights_of_every_row(strategy: LinearMap) -> None:
    inverse = left_inverse(strategy)
    short = [queries for queries in _queries() if inverse.weight_count(queries) is not None]
    assert short
    for queries in short:
        matrix = np.abs(inverse.rows_times(queries.dense()))
        weights = inverse.row_weights(queries, 0, len(matrix))
        counts = np.ones(len(weights.values)) if weights.counts is None else weights.counts
        starts = weights.ends - np.diff(weights.ends, prepend=0)
        for row, number in zip(matrix, weights.place, strict=True):
            part = slice(starts[number], weights.ends[number])
            written = np.repeat(weights.values[part], counts[part].astype(int))
            np.testing.assert_allclose(
                np.sort(written[written > 1e-12]), np.sort(row[row > 1e-12]), rtol=1e-8
            )


@pytest.mark.parametrize("epsilon", ["0.1", "40"])
@pytest.mark.parametrize(
    "batch",
    [lrm.families.identity, lrm.families.prefix, lambda n: lrm.families.wrange(n, n, seed=0)],
)
def test_intervals_are_those_of_the_rows_written_out(
    batch: Callable[[int], lrm.Workload], epsilon: str
) -> None:
    plan = lrm.plan(batch(150), noise="laplace", effort="quick")
    accuracy = plan.accuracy(lrm.planning.accuracy.privacy_of("laplace", epsilon))
    rows = accuracy.reconstruction.rows(0, plan.workload.shape[0])
    expected = sum_half_widths(rows, accuracy.law, 0.95) * accuracy.step
    np.testing.assert_allclose(accuracy.half_widths(0.95), expected, rtol=1e-5)


@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian"])
def test_counts_of_one_histogram_have_one_interval(noise: Noise) -> None:
    plan = lrm.plan(lrm.families.identity(10_000), noise=noise, effort="quick")
    amount = {"rho": "0.1"} if noise == "gaussian" else {"epsilon": "0.1"}
    release = lrm.release(plan, np.zeros(10_000, dtype=np.int64), **amount)
    half = release.accuracy.half_widths()
    assert len(np.unique(half)) == 1
    assert len(release.to_pandas()) == 10_000


def test_intervals_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = lrm.plan(lrm.families.prefix(80), noise="laplace", effort="quick")
    release = lrm.release(plan, np.zeros(80, dtype=np.int64), epsilon=1)
    searched: list[tuple[int, int]] = []

    def watched(reconstruction, law, confidence, ranges):  # type: ignore[no-untyped-def]
        several = list(ranges)
        searched.extend(several)
        return half_widths(reconstruction, law, confidence, several)

    half_widths = core.half_widths
    monkeypatch.setattr(core, "half_widths", watched)
    release.head(20)
    frame = release.to_pandas()
    assert searched == [(0, 20), (20, 80)]
    assert release.to_pandas().equals(frame)
    assert release.table().numbers["low"].ravel().tolist() == frame["low"].tolist()
    assert searched == [(0, 20), (20, 80)]
    release.to_pandas(confidence=0.9)
    assert searched[2:] == [(0, 80)]


@pytest.mark.parametrize(
    "body",
    [
        Tables((3, 2, 3, 1, 1), (True, False, True, False, False), 4),
        Cube(6, 2),
        Groups((Tables((2, 2), (True, True), 1), Cube(3, 1)), (WHOLE // 2, WHOLE // 2)),
    ],
)
def test_symmetries_of_a_body_keep_the_deviation_of_an_answer(body: Body) -> None:
    rows = np.random.default_rng(5).integers(-2, 3, (200, body.size)).astype(float)
    moved = body.same_law(rows)
    assert np.array_equal(body.same_law(-rows), moved)
    before, after = (
        np.einsum("ij,jk,ik->i", some, body.covariance, some) for some in (rows, moved)
    )
    np.testing.assert_allclose(after, before, rtol=1e-9)
    draws = body.simulate(60_000, np.random.default_rng(6))[0]
    for row, other in zip(rows[:6], moved[:6], strict=True):
        first, second = (np.mean((draws @ some) ** 4) for some in (row, other))
        assert first == pytest.approx(second, rel=0.2)


def test_equal_counts_with_shaped_noise_have_equal_intervals() -> None:
    domain = lrm.Domain([lrm.Integers(name, 0, 9) for name in "xyz"], table="t")
    statements = ";".join(f"SELECT {name}, COUNT(*) AS n FROM t GROUP BY {name}" for name in "xyz")
    plan = lrm.plan(lrm.sql(statements, domain), noise="pure", effort="quick")
    assert plan.measured.body is not None
    half = plan.accuracy(lrm.planning.accuracy.privacy_of("laplace", "0.1")).half_widths()
    assert len(half) == 30
    np.testing.assert_allclose(half, half[0], rtol=1e-12)


def test_a_weight_that_occurs_in_no_place_changes_nothing() -> None:
    """A class of cells may be empty, such as "all other cells" beside a query of every cell."""
    law, place = NoiseLaw("laplace", 1e6), np.zeros(1, dtype=np.int64)

    def widths(values: list[float], counts: list[float]) -> float:
        weights = RowWeights(np.array(values), np.array(counts), np.array([len(values)]), place)
        rows = SimpleNamespace(row_weights=lambda start, stop: [(start, stop, weights)])
        return float(half_widths(rows, law, 0.95, [(0, 1)])[0])  # type: ignore[arg-type]

    alone = widths([1.0, 2.0], [2.0, 1.0])
    assert widths([500.0, 1.0, 2.0], [0.0, 2.0, 1.0]) == pytest.approx(alone, rel=1e-9)
