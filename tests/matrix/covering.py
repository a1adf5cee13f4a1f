"""Few cases that contain every possible pair of levels, and random ones.

A new case begins with the first pair that no case has yet. Then each further factor takes the level
with the most pairs that are new, among those that leave every other factor some level; of equal
ones one that an earlier case has together with all levels so far, but for its source, so that both
share a plan, else the first, which is the cheapest. A pair that takes long is not repeated without
need. This is the greedy method of AETG (Cohen, Dalal, Fredman, Patton, 1997) without its random
repetitions: the same factors always give the same cases.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from matrix.factors import ALL_PAIRS, FACTORS, LARGE_SIZES, LEFT_OUT, SLOW, Case, Level, is_possible

NAMES = tuple(FACTORS)


def covering_cases() -> list[Case]:
    """Cases that contain every pair that is not impossible, in a fixed order."""
    missing = sorted(ALL_PAIRS - LEFT_OUT, key=_place)
    cases: list[Case] = []
    planned: dict[frozenset[Level], int] = {}  # levels but for the source, and the seed
    while missing:
        levels = dict(missing[0])
        open_pairs = set(missing)
        while len(levels) < len(NAMES):
            levels = _extended(levels, open_pairs, planned)
        seed = planned.setdefault(_without_source(levels), len(planned))
        cases.append(Case(**levels, seed=seed))
        missing = [pair for pair in missing if pair not in cases[-1].pairs]
    return sorted(cases, key=lambda case: case.seed)


def random_cases(count: int, seed: int) -> list[Case]:
    """Cases of random levels, as many of each factor as chance gives; some batches are large."""
    draw = np.random.default_rng(seed)
    factors = FACTORS | {"size": (*FACTORS["size"], *LARGE_SIZES)}
    cases: list[Case] = []
    while len(cases) < count:
        levels = {name: choices[draw.integers(len(choices))] for name, choices in factors.items()}
        case = Case(**levels, seed=int(draw.integers(1 << 31)))
        if is_possible(case):
            cases.append(case)
    return cases


def _place(pair):
    """The position of a pair: those of factors with many levels come first."""
    return [(NAMES.index(name), FACTORS[name].index(level)) for name, level in pair]


def _without_source(levels):
    return frozenset(level for level in levels.items() if level[0] != "source")


def _extended(levels, open_pairs, planned):
    """The levels of one factor more: that whose best level has the most pairs that are new."""
    choices = []
    for name in NAMES:
        if name in levels:
            continue
        for place, level in enumerate(FACTORS[name]):
            longer = {**levels, name: level}
            if _can_be_completed(longer):
                pairs = [_pair(longer, name, other) for other in levels]
                gain = sum(1 if pair in open_pairs else -SLOW.get(pair, 0) for pair in pairs)
                shared = _without_source(longer)
                is_new = not any(shared <= plan for plan in planned)
                choices.append((-gain, is_new, NAMES.index(name), place, longer))
    return min(choices, key=lambda choice: choice[:4])[-1]


def _can_be_completed(levels) -> bool:
    """Whether some case has these levels."""
    if any(_pair(levels, one, two) in LEFT_OUT for one in levels for two in levels if one != two):
        return False
    left = [name for name in NAMES if name not in levels]
    free = [
        [
            level
            for level in FACTORS[name]
            if not any(_pair({**levels, name: level}, name, other) in LEFT_OUT for other in levels)
        ]
        for name in left
    ]
    return any(
        all(
            _pair(dict(zip(left, choice, strict=True)), one, two) not in LEFT_OUT
            for one in left
            for two in left
            if one != two
        )
        for choice in product(*free)
    )


def _pair(levels, one, two):
    first, second = sorted((one, two), key=NAMES.index)
    return (first, levels[first]), (second, levels[second])
