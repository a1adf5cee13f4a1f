"""Laws of reading amounts: nothing is rounded, and nothing absurd gets in."""

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm.errors import BudgetError
from lrm.privacy.amounts import (
    LEAST_AMOUNT,
    MOST_AMOUNT,
    format_amount,
    parse_amount,
    spell_amount,
    upward_float,
)

amounts = st.fractions(min_value=LEAST_AMOUNT, max_value=MOST_AMOUNT, max_denominator=10**30)
floats = st.floats(min_value=1e-12, max_value=1e6)


@given(amounts)
def test_a_fraction_survives_its_spelling(amount):
    assert parse_amount(str(amount), "epsilon") == amount
    assert parse_amount(amount, "epsilon") == amount


@given(floats)
def test_a_float_is_its_decimal_spelling(number):
    exact = parse_amount(number, "epsilon")
    assert exact == Fraction(repr(number))
    assert exact == parse_amount(Decimal(repr(number)), "epsilon")
    assert exact == parse_amount(repr(number), "epsilon")
    assert float(exact) == number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (" 1/3 ", Fraction(1, 3)),
        ("1 / 3", Fraction(1, 3)),
        ("1e-3", Fraction(1, 1000)),
        (".5", Fraction(1, 2)),
        ("+2.", Fraction(2)),
        (1, Fraction(1)),
        (1_000_000, Fraction(10**6)),
        ("1e-12", Fraction(1, 10**12)),
    ],
)
def test_spellings(value, expected):
    assert parse_amount(value, "epsilon") == expected


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), math.inf, -math.inf, "nan", "-inf", "Infinity", Decimal("NaN")),
        *(Decimal("sNaN"), True, False, 0, 0.0, -0.0, "0", "0/1", -1, "-0.1", "-1/3"),
        *("", " ", "one", "1/0", "1/3/5", "0x1", "1_000", "\u0661", "1,5", "1e", "1/1e3"),
        *(
            5e-324,
            9.9e-13,
            1000000.1,
            "1e-999999999999",
            "1e999999999",
            pytest.param(10**5000, id="huge"),
            10**400,
        ),
        *("0" * 101, Fraction(1, 3**300), Fraction(10**300 + 1, 10**300), Decimal("1e-13")),
        *(None, b"1", [1], 1j, np.float32(0.1), np.bool_(1)),
    ],
)
def test_everything_else_is_refused_in_one_sentence(value):
    with pytest.raises(BudgetError, match=r"^epsilon must [^\n]{10,300}$"):
        parse_amount(value, "epsilon")


def test_zero_is_not_positive_and_a_hundred_digits_are_enough():
    with pytest.raises(BudgetError, match="0 is not positive"):
        parse_amount(0, "epsilon")
    longest = Fraction(10**99 + 1, 10**100)
    assert parse_amount(longest, "epsilon") == longest
    with pytest.raises(BudgetError, match="at most 100 digits"):
        parse_amount(Fraction(10**99, 10**100 + 1), "epsilon")


@given(
    st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
    st.integers(0, 10**30),
)
def test_upward_float_is_the_smallest_float_above(base, nudge):
    exact = base + Fraction(nudge, 10**60)
    if exact > Fraction(np.finfo(float).max):
        with pytest.raises(BudgetError, match="float64"):
            upward_float(exact)
        return
    above = upward_float(exact)
    assert Fraction(above) >= exact
    below = math.nextafter(above, -math.inf)
    assert math.isinf(below) or Fraction(below) < exact


def test_a_scale_beyond_all_floats_is_refused():
    largest = Fraction(sys.float_info.max)
    assert upward_float(largest) == sys.float_info.max
    for scale in (largest + 1, Fraction(10) ** 400):
        with pytest.raises(BudgetError, match="must fit a float64"):
            upward_float(scale)


def test_upward_float_never_loses_a_tiny_scale():
    assert upward_float(Fraction(1, 10**400)) == 5e-324
    for huge in (Fraction(10) ** 400, Fraction(np.finfo(float).max) + 1):
        with pytest.raises(BudgetError, match="float64"):
            upward_float(huge)


@given(st.fractions(min_value=Fraction(1, 10**24), max_value=5 * 10**11, max_denominator=10**40))
def test_a_short_spelling_never_makes_a_budget_larger(amount):
    """Rounded up it is at least the amount, rounded down at most, and unmarked it is exact."""
    down, near, up = (spell_amount(amount, way) for way in ("down", "nearest", "up"))
    low, middle, high = (Fraction(text.lstrip("≈")) for text in (down, near, up))
    assert low <= amount <= high
    assert low <= middle <= high
    assert high - low <= amount / 10**5
    for text, value in ((down, low), (near, middle), (up, high)):
        assert text.startswith("≈") == (value != amount)
        assert len(text) <= 13


@given(st.integers(1, 5 * 10**29))
def test_an_exact_spelling_is_exact(digits):
    amount = Fraction(digits, 10**18)
    assert Fraction(format_amount(amount)) == amount
