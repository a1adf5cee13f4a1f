"""Tables with shaped noise as a group beside groups with Laplace noise, in one plan."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import lrm
from forging import resealed
from lrm.errors import FileFormatError, WorkloadError
from lrm.privacy.bodies.sums import WHOLE, Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import PureDP
from lrm.privacy.mechanism import calibrate
from lrm.privacy.norms import BodyNorm

SIGMAS = 5.0

FLAGS = [f"SELECT COUNT(*) AS y{i} FROM t WHERE f{i} = 1" for i in range(4)]
OTHERS = [
    "SELECT region, AVG(age) AS a FROM t GROUP BY region",
    "SELECT sex, COUNT(*) AS b FROM t WHERE age >= 65 GROUP BY sex",
]


def domain(unit=None):
    """Four flags and three attributes, in few enough cells to be counted one by one."""
    flags = [lrm.Integers(f"f{i}", 0, 1) for i in range(4)]
    others = [lrm.Integers("region", 0, 2), lrm.Integers("sex", 0, 1), lrm.Integers("age", 0, 99)]
    return lrm.Domain([*flags, *others], "t", *([unit] if unit else []))


def planned(statements, **options):
    options = {"objective": "total", "effort": "quick"} | options
    return lrm.plan(";".join(statements), domain=domain(), **options)


@pytest.fixture(scope="module")
def plan():
    return planned(FLAGS + OTHERS)


def test_flags_beside_other_statements_have_the_error_of_the_best_shares(plan):
    halves = [planned(some).expected_squared_error(1) for some in (FLAGS, OTHERS)]
    together = sum(error ** (1 / 3) for error in halves) ** 3
    assert plan.noise == "shaped"
    assert plan.measured.is_mixed
    assert plan.expected_squared_error(1) <= 1.002 * together
    laplace = planned(FLAGS + OTHERS, noise="laplace").expected_squared_error(1)
    assert plan.expected_squared_error(1) < 0.97 * laplace


def moves(measured):
    """What a record moves the measurements by: all values of each attribute, 200 records."""
    columns = set()
    sizes = [range(size) if size < 5 else (0, 64, size - 1) for size in measured.sizes]
    records = list(itertools.product(*sizes))
    drawn = np.random.default_rng(0).permutation(len(records))[:200]
    for values in (records[place] for place in drawn):
        cells = np.zeros(math.prod(measured.sizes), dtype=np.int64)
        cells[np.ravel_multi_index(values, measured.sizes)] = 1
        columns.add(tuple(measured.measure(measured.counts_of(cells)).tolist()))
    return columns


def test_no_record_moves_further_than_the_noise_allows(plan):
    body = plan.measured.body
    norms = [body.gauge(column) for column in moves(plan.measured)]
    assert len(norms) > 50
    assert max(norms) <= 1


def smaller_ball(body):
    first, *others = body.bodies
    return replace(body, bodies=(replace(first, unit=first.unit - 1), *others))


def open_ball(body):
    first, *others = body.bodies
    cells = (1,) * first.size
    several = Tables(cells, (False,) * first.size, first.unit)
    return replace(body, bodies=(several, *others))


def smaller_tables(body):
    *others, last = body.bodies
    return replace(body, bodies=(*others, replace(last, unit=last.unit // 2)))


def no_tables(body):
    unit = body.bodies[0].unit * 2
    return Groups((Tables((body.size,), (False,), unit),), (WHOLE,))


def other_order(body):
    return replace(body, bodies=body.bodies[::-1], shares=body.shares[::-1])


@pytest.mark.parametrize(
    "change", [smaller_ball, open_ball, smaller_tables, no_tables, other_order]
)
def test_bodies_that_a_record_leaves_are_refused(plan, change):
    with pytest.raises(WorkloadError):
        replace(plan.measured, norm=BodyNorm(change(plan.measured.body)))


def test_errors_are_those_of_draws(plan):
    noise = calibrate(plan.measured, PureDP(Fraction(1)), plan.unit, 0)
    bits = random.Random(5).getrandbits  # noqa: S311 - simulated noise
    draws = np.array([noise.draw(bits) for _ in range(400)], dtype=np.float64)
    answers = np.array([plan.reconstruction_map.apply(d * 2.0**-plan.measured.bits) for d in draws])
    squares = answers**2
    error = squares.std(axis=0) / math.sqrt(len(draws))
    assert np.all(np.abs(squares.mean(axis=0) - plan.standard_errors(1) ** 2) < SIGMAS * error)


@pytest.mark.filterwarnings("ignore:.* protects nobody")
def test_answers_are_those_of_the_table(plan, tmp_path):
    plan.save(tmp_path / "a.plan")
    loaded = lrm.load_plan(tmp_path / "a.plan")
    assert loaded.digest == plan.digest
    counts = np.random.default_rng(1).integers(0, 3, plan.workload.shape[1])
    release = lrm.release(loaded, counts, epsilon=10**6, ledger=None)
    truth = plan.workload.queries.apply(counts.astype(float))
    assert release.answers == pytest.approx(truth, abs=0.05)
    release.save(tmp_path / "a.release")
    again = lrm.load_release(tmp_path / "a.release")
    assert again.answers == pytest.approx(release.answers)
    again.report(tmp_path / "a.html")
    assert "shaped to the batch" in (tmp_path / "a.html").read_text()


def one_group(facts, arrays):
    facts["measured"]["groups"] = facts["measured"]["groups"][-1:]


def other_kind(facts, arrays):
    facts["measured"]["kind"] = "products"


def laplace(facts, arrays):
    facts["noise"] = "laplace"


def unit_of(place):
    def change(facts, arrays):
        body = facts["measured"]["body"]["bodies"][place]
        body["unit"] = str(int(body["unit"]) // 2)

    return change


def larger_weight(facts, arrays):
    arrays["measured"][arrays["measured"].argmax()] *= 4


def more_shares(facts, arrays):
    facts["measured"]["body"]["shares"] = [WHOLE] * len(facts["measured"]["body"]["shares"])


@pytest.mark.parametrize(
    "change",
    [one_group, other_kind, laplace, unit_of(0), unit_of(-1), larger_weight, more_shares],
)
def test_edited_files_are_refused(plan, tmp_path, change):
    plan.save(tmp_path / "a.plan")
    with pytest.raises(FileFormatError):
        lrm.load_plan(resealed(tmp_path / "a.plan", change, tmp_path / "b.plan"))


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_units_scale_the_noise(plan, neighbours):
    unit = lrm.PrivacyUnit("who", 2, neighbours)
    other = lrm.plan(
        ";".join(FLAGS + OTHERS),
        domain=domain(unit=unit),
        objective="total",
        effort="quick",
    )
    assert other.measured.is_mixed
    factor = 4 if neighbours == "substitute" else 2
    assert other.standard_errors(1) == pytest.approx(factor * plan.standard_errors(1), rel=0.01)
