"""Numbers and names for people: some digits, groups of three, no control characters."""

import math
import re
import sys
from collections.abc import Callable, Sequence

_CONTROL = re.compile(
    # C0, delete and C1 (a terminal obeys them); what changes the direction of text, line and
    # paragraph separators, byte order mark, tags (a reader does not see them); lone surrogates
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

_MOST_EXACT = 10**15


def number(value: float, digits: int = 4) -> str:
    """Spell a number for people: some digits, groups of three, no exponent where avoidable.

    >>> number(1234567.8), number(38.0), number(0.0123), number(1.5e-9)
    ('1,234,568', '38', '0.0123', '1.5e-09')
    """
    if not math.isfinite(value):
        return "—"
    if value == 0:
        return "0"
    if abs(value) >= 1e15 or abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def beside(value: float, error: float) -> str:
    """Spell a value to the digits that an error of this size leaves of it.

    >>> beside(1620.7432, 95.1), beside(81.77512, 4.0), beside(-0.012, 0.4)
    ('1,621', '81.8', '-0.01')
    """
    if not (error > 0 and math.isfinite(error)):
        return number(value, 6)
    return rounded(value, min(12, max(0, 1 - math.floor(math.log10(error)))))


def rounded(value: float, decimals: int) -> str:
    """Spell a value to a number of decimals, 0 without a sign.

    >>> rounded(1620.7432, 1), rounded(-0.01, 1)
    ('1,620.7', '0.0')
    """
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def listed(names: Sequence[str], last: str = "and", most: int = sys.maxsize) -> str:
    """Spell several names, the first ``most`` of them.

    >>> listed(["age", "sex", "ward"]), listed(["age", "sex"], "or"), listed("abcd", most=2)
    ('age, sex and ward', 'age or sex', 'a, b and 2 more')
    """
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    *first, final = names or [""]
    return f"{', '.join(first)} {last} {final}" if first else final


def ratio(value: float) -> str:
    """Spell a ratio.

    >>> ratio(1.0), ratio(2.4321), ratio(1234.5)
    ('1.000', '2.432', '1,234')
    """
    if not math.isfinite(value):
        return "—"
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def many(count: int, singular: str, several: str) -> str:
    """Spell how many there are of something.

    >>> many(1, "query", "queries"), many(1200, "query", "queries")
    ('1 query', '1,200 queries')
    """
    return f"{how_many(count)} {singular if count == 1 else several}"


def how_many(count: int) -> str:
    """Spell a number of things: exactly up to a million billions, else by its size.

    >>> how_many(4_147_200), how_many(10**30), how_many(3 * 10**400 // 2)
    ('4,147,200', '10^30', '1.5·10^400')
    """
    if count < _MOST_EXACT:
        return f"{count:,}"
    exponent = len(str(count)) - 1
    leading = f"{count // 10 ** (exponent - 2) / 100:.3g}"
    return f"10^{exponent}" if leading == "1" else f"{leading}·10^{exponent}"


def in_percent(share: float) -> str:
    """Spell a share.

    >>> in_percent(0.95), in_percent(0.12345)
    ('95 %', '12.35 %')
    """
    return f"{100 * share:.4g} %"


def sentence(words: str) -> str:
    """Spell words as a sentence.

    >>> sentence("at ε = 1, all tables are usable")
    'At ε = 1, all tables are usable.'
    """
    return f"{words[0].upper()}{words[1:]}." if words else ""


def seconds(value: float) -> str:
    """Spell a duration.

    >>> seconds(0.0123), seconds(75.2)
    ('0.01 s', '75 s')
    """
    return f"{value:.2f} s" if value < 9.995 else f"{value:.0f} s"


def visible(text: str, *, lines: bool = False) -> str:
    r"""Replace control characters, which may come from a file, by what Python writes for them.

    Everything that is printed passes here: an escape sequence in the name of a column must not
    reach the terminal, nor a mark that turns the direction of the text.

    Parameters
    ----------
    text
        What is to be shown.
    lines
        Whether line breaks in it are wanted.

    Examples
    --------
    >>> visible("\x1b[2Jage\u202e")
    '\\x1b[2Jage\\u202e'
    """
    return escape_controls(
        text, lambda character: character.encode("unicode_escape").decode(), lines=lines
    )


def escape_controls(text: str, escape: Callable[[str], str], *, lines: bool = False) -> str:
    """Replace each control character by what ``escape`` makes of it."""
    return _CONTROL.sub(
        lambda control_match: (
            control_match[0] if lines and control_match[0] == "\n" else escape(control_match[0])
        ),
        text,
    )
