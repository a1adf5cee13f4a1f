"""Formulas of derived answers: short programs over the answers of linear queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lrm.errors import WorkloadError
from lrm.queries.maps.linear import Floats

Step = int | float | str
"""The number of an input (int), a constant (float), or an operation (str)."""

LONGEST = 200
"""Steps of one formula."""

_BINARY = ("+", "-", "*", "/", "round", "else")
_RISING = ("sqrt", "ln", "exp")
_UNARY = (*_RISING, "abs")
_LEAST_DIGITS, _MOST_DIGITS = -12, 12

Dual = tuple[Floats, Floats]
"""Values of groups, and their gradients by input (inputs × groups)."""


@dataclass(frozen=True)
class Formula:
    """A function of some inputs, in postfix notation: ``(0, 1, "/")`` is the first by the second.

    Operations are ``+ - * /``, ``sqrt`` (of a negative number 0), ``ln`` (of 0 and less −∞),
    ``exp``, ``abs``, ``else`` (a constant where there is no value: 0 of ``COALESCE(x, 0)``) and
    ``round`` (to a constant number of digits, half away from zero), which only operations with
    constants follow.

    >>> percent = Formula((0, 1, "/", 100.0, "*"))
    >>> percent.value(np.array([[3.0], [4.0]])).tolist(), percent.text(["late", "all"])
    ([75.0], '100 * (late / all)')
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        if not 0 < len(self.steps) <= LONGEST:
            raise WorkloadError(f"a formula must have between 1 and {LONGEST} steps")
        self._check_stack()
        if "round" in self.core.steps:
            raise WorkloadError("round may only come last in a formula")
        for step, constant in self.tail:
            is_integer = constant == round(constant) and _LEAST_DIGITS <= constant <= _MOST_DIGITS
            if step == "round" and not is_integer:
                raise WorkloadError("a formula rounds to between -12 and 12 digits")
            if step == "/" and constant == 0.0:
                raise WorkloadError("a formula must not divide by 0")

    def _check_stack(self) -> None:
        depth, used = 0, set()
        for step in self.steps:
            if isinstance(step, str):
                needed = 2 if step in _BINARY else 1 if step in _UNARY else 0
                if not needed or depth < needed:
                    raise WorkloadError(f"a formula has the operation {step!r} where none can be")
                depth -= needed - 1
                continue
            if isinstance(step, int):
                if isinstance(step, bool) or not 0 <= step < LONGEST:
                    raise WorkloadError("an input of a formula must be a small whole number")
                used.add(step)
            elif not math.isfinite(step):
                raise WorkloadError("a constant of a formula must be finite")
            depth += 1
        if depth != 1 or used != set(range(len(used))) or not used:
            raise WorkloadError("a formula must give one value, from inputs numbered from 0 on")

    @cached_property
    def inputs(self) -> int:
        """Number of inputs."""
        return len({step for step in self.steps if isinstance(step, int)})

    @cached_property
    def tail(self) -> tuple[tuple[str, float], ...]:
        """The last operations that have one operand and a constant, in the order of application."""
        tail_steps: list[tuple[str, float]] = []
        steps = list(self.steps)
        while steps:
            if steps[-1] in _RISING:
                tail_steps.append((str(steps[-1]), 0.0))
                del steps[-1]
            elif len(steps) > 2 and steps[-1] in _BINARY and isinstance(steps[-2], float):
                tail_steps.append((str(steps[-1]), steps[-2]))
                del steps[-2:]
            else:
                break
        return tuple(reversed(tail_steps))

    @cached_property
    def core(self) -> Formula:
        """The formula without its tail."""
        length = sum(1 if step in _RISING else 2 for step, _ in self.tail)
        return self if not length else Formula(self.steps[: len(self.steps) - length])

    def finish(self, values: Floats) -> Floats:
        """Apply the tail, whose operations are all monotone."""
        for step, constant in self.tail:
            values = apply_tail(values, step, constant)
        return values

    @property
    def slope(self) -> float:
        """1 where the tail rises, −1 where it falls."""
        signs = (math.copysign(1.0, c) for step, c in self.tail if step in "*/")
        return math.prod(signs)

    def value(self, inputs: Floats) -> Floats:
        """Values for inputs × groups; nan where there is none."""
        core = self.core.dual(inputs)[0][0]
        values = self.finish(np.where(np.isfinite(core), core, np.nan))
        return np.where(np.isfinite(values), values, np.nan)

    def dual(self, inputs: Floats) -> tuple[Dual, list[Dual]]:
        """Value and gradient of a core, and those of its divisors and of the arguments of ln."""
        stack: list[Dual] = []
        divisors: list[Dual] = []
        zero = np.zeros_like(inputs)
        for step in self.steps:
            if isinstance(step, int):
                gradient = zero.copy()
                gradient[step] = 1.0
                stack.append((inputs[step], gradient))
            elif isinstance(step, float):
                stack.append((np.full(inputs.shape[1], step), zero))
            elif step in _UNARY:
                operand = stack.pop()
                stack.append(_UNARY_DUALS[step](operand))
                if step == "ln":
                    divisors.append(operand)
            else:
                two, operand = stack.pop(), stack.pop()
                stack.append(_combined(step, operand, two))
                if step == "/":
                    divisors.append(two)
        return stack[0], divisors

    def steepness(self, values: Floats) -> Floats:
        """How much the tail stretches small changes of the core's values."""
        slope = np.ones_like(values)
        for step, constant in self.tail:
            if step in "*/":
                slope = slope * (abs(constant) if step == "*" else 1.0 / abs(constant))
            elif step in _RISING:
                with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                    slope = slope * _UNARY_DUALS[step]((values, np.ones_like(values)))[1]
            values = apply_tail(values, step, constant)
        return slope

    @property
    def is_ratio(self) -> bool:
        """Whether the core divides the first input by the second."""
        return self.core.steps == (0, 1, "/")

    def text(self, names: Sequence[str]) -> str:
        """The formula as people write it."""
        stack: list[tuple[str, bool]] = []  # texts, and whether others put them in parentheses

        def inside(operand: tuple[str, bool]) -> str:
            return f"({operand[0]})" if operand[1] else operand[0]

        for place, step in enumerate(self.steps):
            if isinstance(step, int):
                stack.append((names[step], False))
            elif isinstance(step, float):
                stack.append((f"{step:g}", False))
            elif step in _UNARY:
                stack.append((f"{step}({stack.pop()[0]})", False))
            else:
                right, left = stack.pop(), stack.pop()
                if step in {"round", "else"}:
                    name = "round" if step == "round" else "coalesce"
                    stack.append((f"{name}({left[0]}, {right[0]})", False))
                    continue
                if step == "*" and isinstance(self.steps[place - 1], float):
                    left, right = right, left
                stack.append((f"{inside(left)} {step} {inside(right)}", True))
        return stack[0][0]

    def to_facts(self) -> list[Step]:
        """The steps, as a file holds them."""
        return list(self.steps)

    @classmethod
    def from_facts(cls, facts: Any) -> Formula:
        """Read the list of steps that a file holds."""
        steps: list[Any] = facts if isinstance(facts, list) else [None]
        if not all(isinstance(step, int | float | str) for step in steps):
            raise WorkloadError("a formula must be a list of inputs, constants and operations")
        return cls(tuple(steps))


def _combined(step: str, left: Dual, two: Dual) -> Dual:
    (a, da), (b, db) = left, two
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if step == "+":
            return a + b, da + db
        if step == "-":
            return a - b, da - db
        if step == "*":
            return a * b, da * b + a * db
        if step == "else":
            there = np.isfinite(a)
            return np.where(there, a, b), np.where(there, da, 0.0)
        quotient = np.where(b == 0.0, np.nan, a / b)
        return quotient, (da - quotient * db) / b


def _root(operand: Dual) -> Dual:
    value, gradient = operand
    root = np.sqrt(np.maximum(value, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return root, np.where(root > 0, 0.5 * gradient / root, 0.0)


def _logarithm(operand: Dual) -> Dual:
    value, gradient = operand
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.where(value <= 0, -np.inf, np.log(value))
        return logarithm, np.where(value > 0, gradient / value, np.nan)


def _power(operand: Dual) -> Dual:
    value, gradient = operand
    with np.errstate(over="ignore", invalid="ignore"):
        power = np.exp(value)
        return power, power * gradient


def _size(operand: Dual) -> Dual:
    value, gradient = operand
    return np.abs(value), np.sign(value) * gradient


_UNARY_DUALS: dict[str, Callable[[Dual], Dual]] = {
    "sqrt": _root,
    "ln": _logarithm,
    "exp": _power,
    "abs": _size,
}


def apply_tail(values: Floats, step: str, constant: float) -> Floats:
    """One operation of a tail."""
    with np.errstate(invalid="ignore", over="ignore"):
        if step in _RISING:
            return _UNARY_DUALS[step]((values, values))[0]
        if step == "round":
            scaled = np.abs(values) * 10.0**constant
            rounded = np.copysign(np.floor(scaled + 0.5), values) / 10.0**constant
            return np.where(np.isfinite(scaled) & (scaled < 2.0**52), rounded, values)
        if step == "else":  # an unbounded end stays one
            return np.where(np.isnan(values), constant, values)
        if step in "+-":
            return values + (constant if step == "+" else -constant)
        return values * constant if step == "*" else values / constant
