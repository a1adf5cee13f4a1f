"""Which values a derived answer can have for any table: ends of a range, from declared values.

An average lies between the least and the largest number that a row can add, a rate between 0
and 1, a variance between 0 and what two values at the ends of the range have. These ends follow
from the weights of the queries alone. Answers and intervals that are cut to them stay right: what
is cut off cannot be true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lrm.queries.maps.linear import Floats, Integers, LinearMap
from lrm.queries.maps.record_weights import record_weights
from lrm.queries.workload import Formula
from lrm.queries.workload.formulas import Step, apply_tail

Ends = tuple[float, float]


def possible_ends(
    formula: Formula, queries: LinearMap, rows: Integers, scales: Floats
) -> tuple[Floats, Floats]:
    """The least and the largest value of a formula in each group, infinite where there is none.

    Parameters
    ----------
    formula
        The formula.
    queries
        The linear queries of the batch.
    rows, scales
        The query of each input (groups × inputs), and what each input is multiplied by.
    """
    ends = np.empty((2, len(rows)))
    known: dict[int, Ends] = {}
    held = []  # so that no two arrays have one id
    for group, kinds in enumerate(record_weights(queries, rows)):
        if kinds is None:
            ends[:, group] = -math.inf, math.inf
            continue
        if id(kinds) not in known:
            held.append(kinds)
            known[id(kinds)] = formula_ends(formula, kinds * scales[:, None])
        ends[:, group] = known[id(kinds)]
    return ends[0], ends[1]


def formula_ends(formula: Formula, kinds: Floats) -> Ends:
    """The ends of a formula of inputs to which each record adds one of the columns.

    >>> formula_ends(Formula((0, 1, "/", 100.0, "*")), np.array([[0.0, 1.0], [1.0, 1.0]]))
    (0.0, 100.0)
    """
    steps, place = formula.steps, 0
    stack: list[_Operand] = []
    while place < len(steps):
        spread = _spread_ends(steps[place:], kinds)
        if spread is not None:
            stack.append(_Operand(spread[0]))
            place += spread[1]
            continue
        step = steps[place]
        place += 1
        if isinstance(step, int):
            stack.append(_sum(kinds[step]))
        elif isinstance(step, float):
            stack.append(_Operand((step, step), constant=step))
        elif step in _RISING:
            low, high = stack.pop().ends
            stack.append(_Operand((_RISING[step](low), _RISING[step](high))))
        elif step == "abs":
            low, high = stack.pop().ends
            least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
            stack.append(_Operand((least, max(abs(low), abs(high)))))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(_combined(step, left, right))
    low, high = stack[0].ends
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


@dataclass(frozen=True, eq=False)
class _Operand:
    """Ends of a value; the weights of a record in it where it is a sum; its value if constant."""

    ends: Ends
    weights: Floats | None = None
    constant: float | None = None


def _sum(weights: Floats) -> _Operand:
    """A sum over any number of rows."""
    low = 0.0 if weights.min(initial=0.0) >= 0 else -math.inf
    return _Operand((low, 0.0 if weights.max(initial=0.0) <= 0 else math.inf), weights)


def _combined(step: str, left: _Operand, right: _Operand) -> _Operand:
    weights = _sum_weights(step, left, right)
    if weights is not None:
        return _sum(weights)
    if step == "round":
        low, high = apply_tail(np.array(left.ends), step, right.constant or 0.0).tolist()
        return _Operand((low, high))
    if step == "/":
        return _Operand(_quotient(left, right))
    (a, b), (c, d) = left.ends, right.ends
    if step == "*":
        return _Operand(_product(a, b, c, d))
    return _Operand({"+": (a + c, b + d), "-": (a - d, b - c)}.get(step, (min(a, c), max(b, d))))


def _sum_weights(step: str, left: _Operand, right: _Operand) -> Floats | None:
    """The weights of a record where the result is a sum again."""
    a, b = left.weights, right.weights
    if step in {"+", "-"} and a is not None and b is not None:
        return a + b if step == "+" else a - b
    if step in {"*", "/"} and a is not None and right.constant:
        return a * right.constant if step == "*" else a / right.constant
    return b * left.constant if step == "*" and b is not None and left.constant else None


def _quotient(left: _Operand, right: _Operand) -> Ends:
    if left.weights is not None and right.weights is not None:
        return _ratio_ends(left.weights, right.weights)
    (a, b), (c, d) = left.ends, right.ends
    if c <= 0 <= d:
        return (0.0 if a >= 0 and c == 0 else -math.inf), math.inf
    return _product(a, b, 1.0 / d, 1.0 / c)


def _product(a: float, b: float, c: float, d: float) -> Ends:
    corners = [0.0 if 0.0 in {x, y} else x * y for x in (a, b) for y in (c, d)]
    return min(corners), max(corners)


def _ratio_ends(top: Floats, bottom: Floats) -> Ends:
    """A ratio of sums lies between the ratios of what single records add."""
    if bottom.max(initial=0.0) <= 0:
        top, bottom = -top, -bottom
    counted = bottom > 0
    if bottom.min(initial=0.0) < 0 or np.any(top[~counted]) or not counted.any():
        is_positive = top.min(initial=0.0) >= 0 and bottom.min(initial=0.0) >= 0
        return (0.0 if is_positive else -math.inf), math.inf
    ratios = top[counted] / bottom[counted]
    return float(ratios.min()), float(ratios.max())


def _spread_ends(steps: tuple[Step, ...], kinds: Floats) -> tuple[Ends, int] | None:
    """The ends of a variance ``(Σx² − (Σx)²/n)/n``, or by n − 1, and its number of steps."""
    numbers = [step for step in (*steps[:2], *steps[4:5]) if isinstance(step, int)]
    if len(numbers) < 3:
        return None
    squares, total, count = numbers
    by_rows = (squares, total, total, "*", count, "/", "-", count)
    forms = {(*by_rows, "/"): 1.0, (*by_rows, 1.0, "-", "/"): 2.0}  # n/(n − 1) of two rows
    form = next((form for form in forms if steps[: len(form)] == form), None)
    counted = kinds[count] > 0
    if form is None or not counted.any() or np.any(kinds[:, ~counted][[squares, total]]):
        return None
    second, first = (kinds[i, counted] / kinds[count, counted] for i in (squares, total))
    within = second - first**2  # of numbers that are divided between knots
    # Relative rounding errors of weights.
    if np.any(within < -1e-9 * (1.0 + second)):
        return None
    width = float(first.max() - first.min())
    return (0.0, forms[form] * (width**2 / 4.0 + max(float(within.max()), 0.0))), len(form)


def _exponential(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _logarithm(value: float) -> float:
    return -math.inf if value <= 0 else math.log(value)


_RISING: dict[str, Callable[[float], float]] = {
    "sqrt": lambda value: math.sqrt(max(value, 0.0)),
    "ln": _logarithm,
    "exp": _exponential,
}
