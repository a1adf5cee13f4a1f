"""What can be done with answers of a relative error."""

from __future__ import annotations

USABLE, ROUGH = 0.10, 0.50
"""Half an interval, relative to the answer, up to which a table is usable or rough.

Within ±10 % an answer may be quoted; beyond ±50 % not even its size is known.
"""

WITHIN = f"within ±{100 * USABLE:.0f} %"
"""Of what a usable table is."""


def verdict(relative: float) -> str:
    """What can be done with answers of this relative error: usable, rough or noise.

    >>> verdict(0.02), verdict(0.3), verdict(2.0)
    ('usable', 'rough', 'noise')
    """
    return "usable" if relative <= USABLE else "rough" if relative <= ROUGH else "noise"


def percent(share: float) -> str:
    """A relative error as text.

    >>> percent(0.0312), percent(3.0)
    ('±3.1 %', 'over 100 %')
    """
    return f"±{100 * share:.2g} %" if share < 1 else "over 100 %"
