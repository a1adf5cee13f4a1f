"""Laws of the domain: cells partition the values, and errors name the fault."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.domain import Bins, Categories, Dates, Domain, Integers, PrivacyUnit
from lrm.errors import DomainError

RULE = st.sampled_from(["drop", "cell"])
NAN, INF = float("nan"), float("inf")


@st.composite
def attributes(draw, name="a"):  # noqa: PLR0911 - one per kind
    null, outside = draw(RULE), draw(RULE)
    kind = draw(st.sampled_from(["text", "codes", "flags", "integers", "bins", "dates"]))
    if kind == "text":
        words = st.text(st.characters(codec="utf-8", exclude_characters="()\0"), max_size=5)
        values = draw(st.lists(words, min_size=1, max_size=5, unique=True))
        return Categories(name, values, null=null, outside=outside)
    if kind == "codes":
        codes = st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5, unique=True)
        return Categories(name, draw(codes), null=null, outside=outside)
    if kind == "flags":
        return Categories(name, [True, False], null=null, outside=outside)
    if kind == "integers":
        low = draw(st.integers(-(2**62), 2**62 - 100))
        high = low + draw(st.integers(0, 99))
        width = draw(st.integers(1, high - low + 1))
        return Integers(name, low, high, width, null=null, nan=draw(RULE), outside=outside)
    if kind == "bins":
        edge = st.floats(allow_nan=False, allow_infinity=True)
        edges = sorted(draw(st.sets(edge, min_size=2, max_size=6)))
        return Bins(name, edges, null=null, nan=draw(RULE), outside=outside)
    start, days = draw(st.dates(max_value=dt.date(9000, 1, 1))), draw(st.integers(0, 40))
    by = draw(st.sampled_from(["day", "month", "year"]))
    if by == "day":
        return Dates(name, start, start + dt.timedelta(days), by, null=null, outside=outside)
    first = start.replace(day=1) if by == "month" else start.replace(month=1, day=1)
    after = first.replace(year=first.year + 1 + days % 3)
    return Dates(name, first, after - dt.timedelta(1), by, null=null, outside=outside)


@st.composite
def domains(draw):
    count = draw(st.integers(1, 3))
    unit = draw(
        st.sampled_from([PrivacyUnit(), PrivacyUnit("who", 3), PrivacyUnit("w", 1, "substitute")])
    )
    table = draw(st.sampled_from([None, "t", "main.people"]))
    return Domain([draw(attributes(f"a{i}")) for i in range(count)], table, unit)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-5, 105),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.text(max_size=3),
    st.dates(),
    st.datetimes(),
    st.binary(max_size=2),
    st.just([1]),
)


@given(attributes(), VALUES)
@settings(max_examples=400)
def test_every_value_has_one_cell_or_is_dropped(attribute, value):
    """No value of any kind is an error, and no cell is out of range."""
    cell = attribute.cell_of(value)
    assert cell is None or 0 <= cell < attribute.size
    if value is None:
        assert cell == attribute.special_cell("(null)")


@given(attributes())
def test_labels_are_one_per_cell_and_distinct(attribute):
    assert len(attribute.labels) == attribute.size == len(set(attribute.labels))
    assert attribute.size >= attribute.regular >= 1


@given(attributes())
def test_each_declared_value_lies_in_its_own_cell(attribute):
    """Both ends of every declared cell come back to it."""
    for cell in range(attribute.regular):
        if isinstance(attribute, Categories):
            ends = [attribute.values[cell]]
        elif isinstance(attribute, Bins):
            low, high = attribute.edges[cell : cell + 2]
            ends = [low, math.nextafter(high, -INF)]
        else:
            ends = [int(attribute.starts[cell]), int(attribute.ends[cell])]
            if isinstance(attribute, Dates):
                ends = [dt.date.fromordinal(day) for day in ends]
        assert [attribute.cell_of(value) for value in ends] == [cell] * len(ends)


@given(st.integers(-20, 20), st.integers(0, 30), st.integers(1, 7))
def test_integer_cells_partition_the_range_in_order(low, span, width):
    width = min(width, span + 1)
    attribute = Integers("k", low, low + span, width)
    cells = [attribute.cell_of(value) for value in range(low, low + span + 1)]
    assert cells == [offset // width for offset in range(span + 1)]
    assert attribute.cell_of(low - 1) is None
    assert attribute.cell_of(low + span + 1) is None


@given(domains(), st.data())
def test_cells_are_numbered_in_c_order(domain, data):
    place = tuple(data.draw(st.integers(0, size - 1)) for size in domain.shape)
    index = int(np.ravel_multi_index(place, domain.shape))
    expected = tuple(a.labels[cell] for a, cell in zip(domain.attributes, place, strict=True))
    assert domain.cell_labels(index) == expected
    assert domain.size == math.prod(domain.shape)


@given(domains(), domains())
def test_digests_agree_exactly_with_equality(one, two):
    assert (one.digest == two.digest) == (one == two)
    assert one.digest == Domain(one.attributes, one.table, one.unit).digest


def test_awkward_values():
    """NULL, NaN, ±inf, bool against int, blanks and case, huge integers, Decimal, datetimes."""
    age = Integers("age", 0, 99, null="cell", nan="cell", outside="cell")
    below, above, invalid, nan, null = range(100, 105)
    cases = [
        ([7, 7.0, Decimal(7), Decimal("7.00"), Fraction(7), np.int8(7), np.float32(7)], 7),
        ([True, np.True_, "7", 7.5, Decimal("7.5"), b"7", dt.date(2024, 1, 7)], invalid),
        ([-1, -INF, -(10**400), Decimal("-Infinity"), Decimal("-1E+999999")], below),
        ([100, INF, 10**400, Decimal("Infinity"), 1e300], above),
        ([NAN, Decimal("NaN"), Decimal("sNaN"), np.float64("nan")], nan),
        (
            [
                None,
            ],
            null,
        ),
        ([-0.0, 0], 0),
    ]
    for values, cell in cases:
        assert [age.cell_of(value) for value in values] == [cell] * len(values)
    state = Categories("state", ["NY", " NY", "ny", ""], outside="cell")
    assert [state.cell_of(v) for v in ("NY", " NY", "ny", "", "NY ", "nY", 1, NAN, [])] == [
        0, 1, 2, 3, 4, 4, 4, 4, 4,
    ]  # fmt: skip
    code = Categories("code", [0, 1])
    assert [code.cell_of(v) for v in (1, 1.0, Decimal(1), True, "1", None)] == [1, 1, 1] + [
        None
    ] * 3
    flag = Categories("flag", [False, True])
    assert [flag.cell_of(v) for v in (True, np.True_, 1, "true")] == [1, 1, None, None]
    tenth = Bins("x", [0, 0.1, 0.2], outside="cell")
    assert [tenth.cell_of(v) for v in (Decimal("0.1"), 0.1, 10**400, -(10**400))] == [1, 1, 3, 2]
    day = Dates("day", "2024-01-01", "2024-01-03")
    late = dt.datetime(2024, 1, 2, 23, 59, tzinfo=dt.timezone(dt.timedelta(hours=-5)))
    assert day.cell_of(dt.datetime(2024, 1, 2, 23, 59)) == 1  # noqa: DTZ001 - naive on purpose
    assert day.cell_of(late) == 2  # read in UTC
    assert day.cell_of("2024-01-02") is None
    assert day.cell_of(dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=9)))) is None


def test_a_person_is_bounded_by_own_rows_alone():
    """Adding one person's rows changes the counts by at most max_rows, whoever else is there."""
    domain = Domain([Integers("k", 0, 2, null="cell")], unit=PrivacyUnit("who", 2))
    others = [{"who": who, "k": k} for who, k in itertools.product("ab", (2, 0, 1))]
    one = [{"who": "c", "k": k} for k in (1, None, 0, 2)]
    for key in (b"a", b"b", b"c"):
        before, after = domain.count(others, key), domain.count([*one, *others], key)
        assert np.abs(after - before).sum() == 2
        assert domain.count([*others, *reversed(one)], key).tolist() == after.tolist()
    assert domain.count([{"who": None, "k": 1}]).sum() == 0
    assert domain.count([]).tolist() == [0, 0, 0, 0]


FAULTS = [
    (lambda: Categories("", ["a"]), "name must be non-empty"),
    (lambda: Categories("s", []), "not empty"),
    (lambda: Categories("s", "NY"), "must be a list"),
    (lambda: Categories("s", ["a", 1]), "all of one type, not int, str"),
    (lambda: Categories("s", [1.5]), "not float"),
    (lambda: Categories("s", ["a", "a"]), "'a' is declared twice"),
    (lambda: Categories("s", ["(null)"], null="cell"), "the name of a special cell"),
    (lambda: Categories("s", [2**63]), "within ±2^62"),
    (lambda: Categories("s", ["a"], null="keep"), "null must be drop or cell or never, not 'keep'"),
    (lambda: Integers("k", 5, 4), "low must be at most high, but 5 > 4"),
    (lambda: Integers("k", 0.5, 4), "low must be an integer"),
    (lambda: Integers("k", low=True, high=4), "low must be an integer"),
    (lambda: Integers("k", 0, 2**63), "high must be within"),
    (lambda: Integers("k", 0, 9, 0), "width must be between 1 and 10"),
    (lambda: Integers("k", 0, 9, 11), "width must be between 1 and 10"),
    (lambda: Integers("k", 0, 10**9), "at most 10,000,000 are allowed; declare wider cells"),
    (lambda: Bins("x", [1]), "at least two"),
    (lambda: Bins("x", [0, 1, 1]), "1 is followed by 1"),
    (lambda: Bins("x", [0, NAN]), "not NaN"),
    (lambda: Bins("x", [0, "1"]), "must be a number, not '1'"),
    (lambda: Dates("d", "2024-02-30", "2024-03-01"), "start must be a date"),
    (lambda: Dates("d", "2024-03-02", "2024-03-01"), "must not be after end"),
    (lambda: Dates("d", "2024-03-02", "2024-03-31", "month"), "first day of a month"),
    (lambda: Dates("d", "2024-03-01", "2024-03-30", "month"), "last day of a month"),
    (lambda: Dates("d", "2024-03-01", "2024-03-30", "week"), "by must be day, month or year"),
    (
        lambda: Domain([Integers("k", 0, 1)], unit=PrivacyUnit(None, 2)),
        "no column identifies the person",
    ),
    (lambda: Domain([]), "at least one attribute"),
    (lambda: Domain(["age"]), "not str"),
    (
        lambda: Domain([Integers("k", 0, 1), Integers("K", 0, 1)]),
        "'K' is declared twice, also as 'k'",
    ),
    (lambda: Domain([Integers("k", 0, 1)], ""), "table must be"),
    (lambda: Domain([Integers("k", 0, 1)]).cell_labels(2), "the domain has 2 cells"),
    (lambda: Domain([Integers("k", 0, 1)]).labels("x"), "no attribute is called 'x'"),
    (lambda: Domain([Integers("k", 0, 1)]).cell_of({}), "no column 'k'"),
]


@pytest.mark.parametrize(("make", "sentence"), FAULTS)
def test_a_wrong_declaration_is_an_error_that_names_it(make, sentence):
    with pytest.raises(DomainError) as caught:
        make()
    assert sentence in str(caught.value)
