"""Reading privacy amounts exactly, and the one safe way back to floating point.

Every amount is a :class:`fractions.Fraction`: a budget that is summed in floating
point drifts, and a spend that is lost in rounding is privacy that is not accounted
for.
"""

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, Inexact
from fractions import Fraction
from numbers import Integral
from typing import Literal

from lrm.errors import BudgetError

Amount = str | int | float | Decimal | Fraction

LEAST_AMOUNT = Fraction(1, 10**12)
MOST_AMOUNT = Fraction(10**6)
# Bounds how fast the exact sum of a history can grow. The decimal spelling of a
# float in the allowed range needs 28 digits, half the square of one twice that.
MOST_DENOMINATOR = 10**100

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_RATIO = re.compile(r"([+-]?\d+)\s*/\s*(\d+)", re.ASCII)
_MOST_TEXT = 100
_MOST_EXPONENT = 200
_MOST_DECIMALS = 18
_SHOWN = 40
_EXACT = Context(prec=400, traps=[Inexact])
_EXPECTED = "a positive number such as 0.1, 1/3 or 1e-3"


def parse_amount(
    value: Amount,
    name: str,
    *,
    least: Fraction = LEAST_AMOUNT,
    most: Fraction = MOST_AMOUNT,
) -> Fraction:
    """Read a privacy amount exactly; a float is taken at its decimal spelling.

    Amounts outside ``least`` to ``most`` are refused rather than rounded: a spend
    so small that it vanishes in floating-point arithmetic must never count as zero.

    Parameters
    ----------
    value
        Text (``"0.1"``, ``"1/3"``, ``"1e-3"``), an integer, a float, a Decimal or
        a Fraction.
    name
        What the amount is called in an error, for example ``"epsilon"``.
    least, most
        The allowed range, both ends included.

    Raises
    ------
    BudgetError
        When the value is not a number, not finite, not positive or out of range.

    Examples
    --------
    >>> parse_amount(0.1, "epsilon")
    Fraction(1, 10)
    >>> parse_amount("1/3", "epsilon")
    Fraction(1, 3)
    """
    if isinstance(value, bool):
        raise BudgetError(f"{name} must be {_EXPECTED}, but {value} is a truth value")
    number = _read(value, name)
    if isinstance(number, Decimal) and not number.is_finite():
        raise BudgetError(f"{name} must be {_EXPECTED}, but {spell(value)} is not finite")
    if number <= 0:
        raise BudgetError(f"{name} must be {_EXPECTED}, but {spell(value)} is not positive")
    # The magnitude is looked at first: 1e-999999999 as a Fraction would fill the memory.
    if isinstance(number, Decimal) and abs(number.adjusted()) > _MOST_EXPONENT:
        raise BudgetError(_out_of_range(name, spell(value), least, most))
    exact = Fraction(number)
    check_exact(exact, name, least, most)
    return exact


def upward_float(value: Fraction) -> float:
    """Return the smallest float64 that is at least ``value``.

    A noise scale rounded to nearest may be too small by half a unit in the last
    place, and the guarantee with it; rounded up, it keeps the guarantee.

    >>> upward_float(Fraction(1, 10)) >= Fraction(1, 10) > Fraction(0.09999999999999999)
    True
    """
    try:
        nearest = float(value)
        above = nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
    except OverflowError:
        above = math.inf
    if math.isinf(above):
        raise BudgetError(
            "a noise scale must fit a float64, but it is above 1.8e308; spend more or scale down"
        )
    return above


def format_amount(value: Fraction) -> str:
    """Spell an exact amount as people write it: a short decimal, else a ratio.

    >>> format_amount(Fraction(1, 8)), format_amount(Fraction(1, 3))
    ('0.125', '1/3')
    """
    if 10**_MOST_DECIMALS % value.denominator:
        return str(value)
    # Decimal's usual 28 digits would round an amount of many digits on both sides of the point.
    return f"{decimal_of(value, _EXACT):f}"


def decimal_of(value: Fraction, context: Context) -> Decimal:
    """The quotient of an exact amount, rounded as a context says."""
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def check_exact(value: Fraction, name: str, least: Fraction, most: Fraction) -> None:
    """Refuse a value that is not a Fraction, is out of range, or has absurd precision."""
    if not isinstance(value, Fraction):
        raise BudgetError(
            f"{name} must be an exact Fraction, but it is of type {type(value).__name__}; "
            "read it with parse_amount"
        )
    if not least <= value <= most:
        raise BudgetError(_out_of_range(name, spell(value), least, most))
    if value.denominator > MOST_DENOMINATOR:
        raise BudgetError(
            f"{name} must have at most 100 digits below the fraction bar, "
            f"but {spell(value)} has more; give a shorter number"
        )


def spell(value: object) -> str:
    """Spell a value for an error message, shortened, whatever it is."""
    try:
        text = f"'{value}'" if isinstance(value, str) else str(value)
    except ValueError:  # Python refuses to spell integers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _read(value: Amount, name: str) -> Fraction | Decimal:
    """Read ``value`` without expanding its exponent."""
    if isinstance(value, Fraction):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        return Decimal(float.__repr__(value))
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, str):
        return _read_text(value, name)
    raise BudgetError(f"{name} must be {_EXPECTED}, but it is of type {type(value).__name__}")


def _read_text(text: str, name: str) -> Fraction | Decimal:
    bare = text.strip()
    if len(bare) <= _MOST_TEXT:
        if _NUMBER.fullmatch(bare):
            return Decimal(bare)
        ratio = _RATIO.fullmatch(bare)
        if ratio and int(ratio[2]) != 0:
            return Fraction(int(ratio[1]), int(ratio[2]))
        if bare.lstrip("+-").lower() in {"nan", "inf", "infinity"}:
            return Decimal(bare)
    raise BudgetError(f"{name} must be {_EXPECTED}, not {spell(text)}")


def _out_of_range(name: str, shown: str, least: Fraction, most: Fraction) -> str:
    return (
        f"{name} must be between {float(least):.3g} and {float(most):.3g}, "
        f"not {shown}; amounts beyond that guarantee nothing or vanish in noise"
    )


_SHORT = 12
"""Characters up to which an exact amount is spelt; longer ones are shown rounded."""

_DIGITS = 6
_DIRECTIONS = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}


def spell_amount(value: Fraction, rounding: Literal["nearest", "up", "down"] = "nearest") -> str:
    """Spell an amount for people: exactly where that is short, else marked as rounded.

    What was or would be spent is rounded up and what is left is rounded down, so that a
    budget never looks larger than it is.

    >>> spell_amount(Fraction(1, 3)), spell_amount(Fraction(1, 10**9))
    ('1/3', '1e-09')
    >>> spell_amount(Fraction(29946115347177, 2 * 10**15))
    '≈0.0149731'
    >>> third = Fraction(10**12, 3 * 10**12 + 1)
    >>> spell_amount(third, "up"), spell_amount(third, "down")
    ('≈0.333334', '≈0.333333')
    """
    exact = format_amount(value)
    if len(exact) <= _SHORT and not exact.startswith("0.0000"):
        return exact
    rounded = decimal_of(value, Context(prec=_DIGITS, rounding=_DIRECTIONS[rounding]))
    # A float64 holds six digits of a decimal, and gives them back.
    short = f"{float(rounded):.{_DIGITS}g}"
    return short if Fraction(rounded) == value else f"≈{short}"


def equation(sign: str, value: Fraction) -> str:
    """A parameter and its amount, rounded where the exact one is long.

    >>> equation("ρ", Fraction(1, 7**20))
    'ρ ≈ 1.25325e-17'
    """
    amount = spell_amount(value)
    return f"{sign} ≈ {amount[1:]}" if amount.startswith("≈") else f"{sign} = {amount}"
