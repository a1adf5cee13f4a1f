"""Numbers by knots: shares of records, sums and averages, refusals, the guarantee."""

import json
import math
import random
import struct
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain import Categories, Domain, Integers, Numbers, PrivacyUnit
from lrm.domain.file import domain_text, parse_domain
from lrm.domain.numbers import RECORD, pieces_of
from lrm.errors import DomainError, SqlError, UsageError, WorkloadError
from lrm.privacy.mechanism import shown_to_owner
from lrm.releases.postprocess import process, whole_queries
from lrm.tables import open_table
from lrm.tables.row_check import check_rows
from lrm.tables.shares import divided_words

KNOTS = [
    [0, 7, 30, 200],
    [-1e300, -1, 0, 5e-324, 0.1, 1e300],
    [0.1, 0.3],
    [-(2.0**53), 1, 2.0**53],
    [1e-310, 2e-310, 1],
]


def extreme(rng):
    """A float64 of random bits, or one near those that matter."""
    if rng.random() < 0.5:
        return struct.unpack("<d", rng.randbytes(8))[0]
    near = rng.choice([0.0, 5e-324, 7.0, 30.0, 200.0, 0.1, 0.3, 1e300, -1e300, math.inf, 1e-310])
    return rng.choice([1, -1]) * rng.choice([near, math.nextafter(near, 0), near * rng.random()])


@pytest.mark.parametrize("knots", KNOTS)
def test_a_share_is_the_exact_one_to_one_unit(knots):
    rng = random.Random(0)  # noqa: S311 - no secret
    attribute = Numbers("x", knots)
    before = {}
    for x in [extreme(rng) for _ in range(2000)] + [float(knot) for knot in attribute.knots]:
        position = attribute.position_of(x)
        if math.isnan(x):
            assert position is None
            continue
        clipped = Fraction(min(max(x, attribute.knots[0]), attribute.knots[-1]))
        cell, share = attribute.divided(position)
        low = Fraction(attribute.knots[cell])
        high = Fraction(attribute.knots[min(cell + 1, len(knots) - 1)])
        found = low + Fraction(share, RECORD) * (high - low)
        steps = [Fraction(b) - Fraction(a) for a, b in zip(attribute.knots, attribute.knots[1:])]  # noqa: B905
        assert abs(found - clipped) <= Fraction(3, 4) * max(steps) / RECORD
        before[clipped] = position
    ordered = [before[x] for x in sorted(before)]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize("records", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_pieces_of_extreme_records_sum_to_one_record(records):
    rng = random.Random(1)  # noqa: S311 - no secret
    attributes = [Numbers("a", KNOTS[0], null="cell"), Numbers("b", KNOTS[1], nan="cell")]
    attributes += [Numbers("c", KNOTS[2]), Categories("d", ["u", "v"])]
    made = 0
    while made < records:
        values = [extreme(rng), extreme(rng), extreme(rng), rng.choice(["u", "v"])]
        values[0] = rng.choice([values[0], None])
        positions = [one.position_of(x) for one, x in zip(attributes, values, strict=True)]
        if None in positions:
            continue
        made += 1
        pieces = pieces_of(attributes, positions)
        assert sum(units for _, units in pieces) == RECORD
        assert all(units > 0 for _, units in pieces)
        words, units = divided_words(
            {place: attributes[place] for place in range(3)},
            [np.array([position]) for position in positions],
            np.array([3]),
        )
        listed = sorted(zip(*(word.tolist() for word in words), units.tolist(), strict=True))
        assert listed == sorted((*cells, 3 * own) for cells, own in pieces)
        for place in range(3):  # each attribute has the marginal counts of its own
            alone = dict(pieces_of([attributes[place]], [positions[place]]))
            joint = {}
            for cells, own in pieces:
                joint[cells[place],] = joint.get((cells[place],), 0) + own
            assert joint == alone


@pytest.mark.parametrize(
    ("knots", "says"),
    [
        ([0], "2 to 100"),
        ([0, math.inf], "finite"),
        ([0, 0], "strictly increasing"),
        ([0, True], "finite numbers"),
        ([0, 2**53 + 1], "exact in float64"),
        (range(101), "2 to 100"),
    ],
)
def test_wrong_knots(knots, says):
    with pytest.raises(DomainError, match=says):
        Numbers("x", knots)


def test_outside_is_clip_or_drop():
    with pytest.raises(DomainError, match="outside must be clip or drop"):
        Numbers("x", [0, 1], outside="cell")
    with pytest.raises(DomainError, match="outside must be drop or cell"):
        Integers("x", 0, 1, outside="clip")
    assert Numbers("x", [0, 1], outside="drop").position_of(1.5) is None


def domain():
    return Domain(
        [
            Categories("ward", ["a", "b", "c"]),
            Numbers("stay", [0, 7, 30, 200], null="cell"),
            Numbers("cost", [0, 1000, 50000], outside="drop"),
        ],
        "visits",
    )


def test_a_domain_file_reads_back():
    assert parse_domain(domain_text(domain())) == domain()
    with pytest.raises(DomainError, match="field 'knots': knots must be strictly increasing"):
        parse_domain(domain_text(domain()).replace("200.0", "20.0"))


def table(rows=3000):
    rng = np.random.default_rng(0)
    stay, cost = rng.lognormal(1.3, 1, rows), rng.lognormal(7, 1.5, rows)
    stay[:4] = [math.inf, -5, 1e9, -math.inf]
    ward = rng.integers(0, 3, rows)
    names = pa.array(["a", "b", "c"]).take(pa.array(ward))
    days = pa.array(stay, mask=np.arange(rows) % 50 == 7)
    return pa.table({"ward": names, "stay": days, "cost": cost})


BATCH = """
SELECT ward, COUNT(*) AS n, SUM(stay) AS s, AVG(stay) AS m FROM visits GROUP BY ward;
SELECT SUM(cost) AS c, COUNT(stay) AS k FROM visits WHERE ward <> 'a';
SELECT SUM(CASE WHEN ward = 'a' THEN 2 * stay - 1 END) AS d, SUM(COALESCE(stay, 0)) AS e
FROM visits;
"""


@pytest.fixture(scope="module")
def plans():
    batch = lrm.sql(BATCH, domain())
    return {
        noise: lrm.plan(batch, noise=noise, effort="quick")
        for noise in ("laplace", "gaussian", "pure")
    }


def truth():
    frame = table().to_pandas()
    costly = frame.cost > 50000  # dropped from the statement that uses the cost
    clipped = frame.stay.clip(0, 200)
    known = frame.stay.notna()
    found = {}
    for ward in "abc":
        own = frame.ward == ward
        found |= {("n", ward): own.sum(), ("s", ward): clipped[own].sum()}
        found["m", ward] = clipped[own].mean()
    found["c", None] = frame.cost[(frame.ward != "a") & ~costly].sum()
    found["k", None] = (known & (frame.ward != "a") & ~costly).sum()
    found["d", None] = (2 * clipped - 1)[known & (frame.ward == "a")].sum()
    found["e", None] = clipped[known].sum()
    return found


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "pure"])
def test_sums_and_averages_have_no_binning_error(plans, noise):
    plan = plans[noise]
    amount = {"rho": 10**4} if noise == "gaussian" else {"epsilon": 10**4}
    with pytest.warns(lrm.errors.PrivacyWarning):
        release = lrm.release(plan, table(), ledger=None, **amount)
    expected = truth()
    for row in release.to_pandas().itertuples():
        key = (row.query, row.ward if isinstance(row.ward, str) else None)
        steps = {"s": 170, "c": 49000, "d": 340, "e": 170, "m": 0.1}.get(row.query, 0)
        rounding = steps * 3000 / RECORD
        assert abs(row.answer - expected[key]) < 16 * row.standard_error + rounding, key


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "pure"])
def test_one_record_moves_the_measured_integers_by_what_is_declared(plans, noise):
    plan = plans[noise]
    measured, unit = plan.measured, plan.unit
    moved = unit.factor << plan.record_bits
    assert moved == RECORD
    law = plan.accuracy(plan.privacy(1) if noise != "gaussian" else plan.privacy(rho=1)).law
    sensitivity = measured.norm.sensitivity(measured)
    spread = 1.0 if noise != "gaussian" else math.sqrt(0.5)
    assert math.isclose(law.scale, sensitivity * RECORD * spread, rel_tol=1e-12)
    rng = random.Random(2)  # noqa: S311 - no secret
    for _ in range(20):
        row = {"ward": ["b"], "stay": [extreme(rng)], "cost": [extreme(rng)]}
        one = open_table(pa.table(row)).counts(plan.workload.domain, measured.tabulations)
        values = measured.measure(shown_to_owner(one)).astype(object)
        if noise == "gaussian":
            assert sum(values**2) <= measured.squared_l2_sensitivity * moved**2
        elif measured.body is None:
            assert sum(abs(values)) <= measured.sensitivity * moved
        else:
            assert measured.body.holds(np.array(values // moved, dtype=np.int64)[:, None])


def test_the_release_states_clipping_and_reads_back(plans, tmp_path):
    release = lrm.release(plans["laplace"], table(), epsilon=1, ledger=None)
    release.save(tmp_path / "r.lrm")
    again = lrm.load_release(tmp_path / "r.lrm")
    np.testing.assert_array_equal(again.answers, release.answers)
    page = tmp_path / "r.html"
    release.report(page)
    assert "stay below 0 counts as 0, and above 200 as 200" in page.read_text()
    assert "rows with cost below 0 or above 50000 are dropped" in page.read_text()
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "r.lrm")]).output
    assert "counts as" in shown
    clipped = "; ".join(plans["laplace"].clipping)
    assert release.to_pandas().attrs["clipped"] == clipped
    assert release.to_arrow().schema.metadata[b"clipped"].decode() == clipped
    release.write(tmp_path / "r.parquet")
    assert pq.read_schema(tmp_path / "r.parquet").metadata[b"clipped"].decode() == clipped
    assert clipped in release._repr_html_()
    facts = CliRunner().invoke(main, ["show", str(tmp_path / "r.lrm"), "--json"]).output
    assert json.loads(facts)["privacy"]["unit"]["clipped"] == list(plans["laplace"].clipping)
    more = release.query("SELECT SUM(stay) AS all_days FROM visits WHERE ward IS NOT NULL")
    assert abs(more.answers[0] - release["e"].to_pandas().answer[0]) < 1e-6


def test_only_counts_are_rounded_to_whole_numbers(plans):
    release = lrm.release(plans["laplace"], table(), epsilon=1, ledger=None)
    whole = whole_queries(release)
    marked = zip(release.names, whole, strict=True)
    rounded = {name.partition("[")[0] for name, one in marked if one}
    assert {"n", "k"} <= rounded
    assert rounded.isdisjoint({"s", "c", "d", "e"})
    processed = process(release, ["integer"]).answers
    np.testing.assert_array_equal(processed[~whole], release.answers[~whole])


def test_counts_of_whole_records_are_refused(plans):
    with pytest.raises(UsageError, match="release from the table itself"):
        lrm.release(plans["laplace"], np.zeros(domain().size, dtype=int), epsilon=1)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT stay, COUNT(*) FROM visits GROUP BY stay",
        "SELECT FLOOR(stay), COUNT(*) FROM visits GROUP BY 1",
        "SELECT COUNT(*) FROM visits WHERE stay < 7",
        "SELECT COUNT(*) FROM visits WHERE stay IN (0, 7)",
        "SELECT COUNT(*) FROM visits WHERE stay BETWEEN 0 AND 200",
        "SELECT COUNT(*) FROM visits WHERE stay + 1 > 3",
        "SELECT SUM(stay * stay) FROM visits",
        "SELECT MODE(stay) FROM visits",
        "SELECT SUM(stay * cost) FROM visits",
        "SELECT SUM(GREATEST(stay, 7)) FROM visits",
        "SELECT SUM(ABS(stay)) FROM visits",
        "SELECT SUM(SQRT(stay)) FROM visits",
        "SELECT CORR(stay, cost) FROM visits",
        "SELECT COUNT(DISTINCT stay) FROM visits",
        "SELECT ward, SUM(stay) AS s FROM visits GROUP BY ward, stay",
        "SELECT SUM(CASE WHEN stay > 7 THEN 1 ELSE 0 END) FROM visits",
        "SELECT COUNT(CASE WHEN stay = 7 THEN stay END) FROM visits",
    ],
)
def test_what_shares_cannot_answer_is_refused(statement):
    with pytest.raises(SqlError):
        lrm.sql(statement, domain())


def test_builders_refuse_shares_as_counts():
    for made in (
        lambda: lrm.marginals(domain(), 1),
        lambda: lrm.marginals(domain(), [["stay"]]),
        lambda: lrm.prefix(domain(), "stay"),
        lambda: lrm.ranges(domain(), "stay", [(0, 7)]),
        lambda: lrm.ranges(domain(), "stay"),
        lambda: lrm.products(domain(), [{"stay": "identity"}]),
    ):
        with pytest.raises((WorkloadError, SqlError), match="declared by knots"):
            made()
    assert lrm.products(domain(), [{"stay": [0, 7, 30, 200, 0]}]).shape[0] == 1


def test_the_owner_sees_how_many_rows_are_kept():
    checked = check_rows(open_table(table()), domain())
    frame = table().to_pandas()
    assert checked.rows == 3000
    assert checked.counted == int((frame.cost <= 50000).sum())
    stay = checked.attributes[1]
    assert (stay.null, stay.outside, stay.kept) == (60, 4, 3000)


def test_a_person_has_the_same_rows_on_every_path(fixed_key):
    unit = PrivacyUnit("who", 2)
    declared = Domain([Numbers("x", [0, 10]), Categories("g", ["u", "v"])], unit=unit)
    rng = np.random.default_rng(3)
    rows = [
        {"who": int(rng.integers(0, 20)), "x": float(rng.random() * 12 - 1), "g": "uv"[i % 2]}
        for i in range(200)
    ]
    counted = shown_to_owner(open_table(pa.Table.from_pylist(rows)).counts(declared))
    np.testing.assert_array_equal(counted, declared.count(rows))
    assert counted.sum() == 40 * RECORD


def test_a_draft_suggests_knots_and_guesses_none(tmp_path):
    pq.write_table(table(), tmp_path / "visits.parquet")
    run = CliRunner().invoke(main, ["domain", "init", str(tmp_path / "visits.parquet")])
    assert "numbers by knots have no binning error" in run.output
    run = CliRunner().invoke(
        main, ["domain", "init", str(tmp_path / "visits.parquet"), "--kinds", "stay=numbers"]
    )
    assert "knots: TODO" in run.output
    assert "outside: clip" in run.output


def test_the_table_of_a_domain_says_that_numbers_are_clipped():
    """It said that those beyond the knots have a cell of their own."""
    by_name = {
        line.split()[0]: line for line in str(Domain([Numbers("stay", [0, 9])])).splitlines()
    }
    assert by_name["stay"].endswith("row is not counted  counts as the nearest end")


@pytest.mark.parametrize("months", [12, 24])
def test_counts_beside_numbers_are_planned_with_gaussian_noise(months):
    """Weights that were rounded up needed 62 bits and a little more, for any number of records."""
    attributes = [Integers("month", 1, months), Numbers("cost", [0, 500, 1000])]
    attributes += [Categories("sex", ["f", "m"], null="cell"), Integers("age", 0, 104)]
    text = "SELECT month, COUNT(*) AS n FROM stays GROUP BY month"
    plan = lrm.plan(text, domain=Domain(attributes, "stays"), noise="gaussian", effort="quick")
    assert plan.max_records >= 1 << 18
