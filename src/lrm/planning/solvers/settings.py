"""Settings of the search: every number that was chosen by measurement and that changes plans.

Each says what it means; the title of its section names the benchmark that it was chosen on.
``python -m benchmarks settings`` sets each to half and to double (of a schedule: takes its first
and its second half) on the fastest batches that read it. Its first notable change is noted beside
the number: the error, or the time, as a multiple of what it is now. *Limit*: it changes neither
there, and bounds time or memory of larger batches; a limit that is used once stands where it is
used, as numerical tolerances do. Memory has one budget, in `lrm.planning.limits`. Stages of
descents belong together and are not varied.

This module is in `lrm.planning.solvers`, since solvers may not import strategies, which use it too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Effort = Literal["quick", "normal", "thorough"]
"""How long to search."""


@dataclass(frozen=True, slots=True)
class GroupEffort:
    """How much is tried for the weighted marginals of one group of terms."""

    starts: int  # random greedy covers in addition to the fixed starts
    climbs: int  # starts that are climbed from
    steps: int  # most moves of a climb
    kicks: int  # kicks without a gain before the search ends
    shares: tuple[int, ...]  # an attribute's own problem starts from n/share random rows
    rows: tuple[int, ...]  # rows of random bases that are tried, for the whole product
    exchanges: int  # exchanges of rows of a basis without a gain
    rounds: int  # of a joint descent


@dataclass(frozen=True)
class Budget:
    """What a search of some effort may do: every number that depends on the effort.

    Parameters
    ----------
    threshold, patience
        The race ends when another second of work is expected to lower the error by less than the
        threshold, which grows with the square of the work after that many seconds.
    seconds, grouped_seconds
        Counted work of the search over products, and of that for a batch of several groups, where
        three of the four reports had at most 0.1 % less squared error with 45 s at normal effort,
        and the web shop 7 % less.
    tolerance
        How far above the least possible error a convex program may end. Double at all efforts:
        error × 1.0013.
    listed_cells, gaussian_work
        Merged cells of a product, and rank² × merged cells for Gaussian noise, up to which a list
        of them is searched. More cells take seconds even at quick effort, and hundreds of MB; each
        round of the convex program takes that order of work: 1 to 5 CPU s in all at 3e8, measured
        on affine conditions over two attributes (140 queries of 5^5 cells, 174 of 10^4).
    descent_seconds
        Counted seconds that a descent from a start over a list of cells may take at most, where
        there are several statements: the rounds of all its stages are shortened alike.
    fused, fused_shares
        Most values of a fused axis whose queries are written out, and the rows of its basis, which
        start as n/share random ones. 16 alone: error × 1.0028.
    long_fused, long_fused_seconds, long_fused_descent
        Most values of a fused axis in any case, of attributes that need a basis, its seconds, and
        the tolerance, rounds and number of its descents.
    free_points, free_rounds, free_directions, free_seconds
        Free points of a hull per dimension (half: error × 1.0292); rounds of the search for them,
        fewest directions for each, and seconds at most. Four times the seconds had 1 % less error
        over 16 prefix sums (``python -m benchmarks shaped``).
    group
        How much is tried for each group of terms over products.
    """

    threshold: float
    patience: float
    seconds: float
    grouped_seconds: float
    tolerance: float
    listed_cells: int
    gaussian_work: float
    descent_seconds: float
    fused: int
    fused_shares: tuple[int, ...]
    long_fused: int
    long_fused_seconds: float
    long_fused_descent: tuple[float, int, int]
    free_points: int
    free_rounds: int
    free_directions: int
    free_seconds: float
    group: GroupEffort


BUDGETS: dict[str, Budget] = {
    "quick": Budget(
        threshold=0.03,
        patience=0.5,
        seconds=3.6,
        grouped_seconds=0.0,
        tolerance=1e-2,
        listed_cells=2000,
        gaussian_work=4e8,
        descent_seconds=math.inf,
        fused=512,
        fused_shares=(16,),
        long_fused=0,
        long_fused_seconds=0.0,
        long_fused_descent=(1e-4, 0, 0),
        free_points=2,
        free_rounds=40,
        free_directions=128,
        free_seconds=0.3,
        group=GroupEffort(6, 1, 12, 0, (8,), (3,), 0, 60),
    ),
    "normal": Budget(
        threshold=1e-4,
        patience=1.0,
        seconds=45.0,
        grouped_seconds=7.5,
        tolerance=1e-3,
        listed_cells=5000,
        gaussian_work=1e9,
        descent_seconds=6.0,
        fused=640,
        fused_shares=(16, 12),
        long_fused=6000,
        long_fused_seconds=25.0,
        long_fused_descent=(1e-4, 150, 2),
        free_points=4,
        free_rounds=60,
        free_directions=256,
        free_seconds=1.2,
        group=GroupEffort(24, 5, 200, 60, (8, 16, 12, 24, 8, 16, 12, 6), (2, 4, 8, 4, 12), 16, 200),
    ),
    "thorough": Budget(
        threshold=1e-5,
        patience=30.0,
        seconds=1200.0,
        grouped_seconds=1200.0,
        tolerance=1e-5,
        listed_cells=5000,
        gaussian_work=8e9,
        descent_seconds=math.inf,
        fused=1200,
        fused_shares=(16, 12, 24, 8, 16, 12),
        long_fused=6000,
        long_fused_seconds=300.0,
        long_fused_descent=(1e-5, 300, 6),
        free_points=4,
        free_rounds=200,
        free_directions=512,
        free_seconds=8.0,
        group=GroupEffort(
            100, 20, 400, 400, (8, 16, 12, 24, 6) * 6, (2, 4, 8, 4, 12, 16, 6, 3), 80, 500
        ),
    ),
}
"""By effort; most searches over products end long before their seconds."""


# --- Lists of cells: the race of solvers; chosen on `python -m benchmarks golden`.

EXTRA_ROW_SHARES = (16, 12, 16, 24, 16, 8)  # the first alone: 1.0239
"""Rows p = n/share next to the identity, in turn. No winner on the panel kept more than n/14."""

MOST_EXTRA_ROWS = 96  # limit
"""Largest number of extra rows n/share. Over 2,880 cells of four attributes 180 of them ended 0.5 %
above 96, in 1.4 times the time."""

ROW_SPACE_WIDTHS = (1.0, 1.25, 1.5, 2.0)  # the first alone: 1.17 (see below)
"""Rows of a strategy in the row space of W, as multiples of its rank: a family for each, since
which one wins depends on the batch. Random matrices of 256×4096 cells need the rank itself;
one-way tables of 10×8×5×2×2 values have 432 with those, and 368 with twice as many."""

POLISH = ((1e-2, 100), (1e-4, 100))
"""The schedule of a strategy that is good already."""

GENERAL_ROUNDS = (60, 100, 60, 40, 20, 12)
"""Rounds that the stages of a descent in the general form are expected to take."""

EXTRA_ROWS_SMOOTHING = (0.1, 0.03, 0.01)  # second half: time × 1.22
"""Widths of the rounded kink of |θ|, from wide to narrow."""

GENERAL_SCHEDULE = ((1e-1, 60), (1e-1, 200), (1e-2, 300), (1e-3, 200), (1e-4, 100), (1e-5, 100))
"""How much of a residual each stage forgives, relative to the mean squared row of L; its rounds.

A loose first stage lets rows move to where they belong: on 80 queries over 3,200 cells the error is
2,609 after a first stage of 1e-2, and 3,073 after one of 1.8e-3."""

ROW_SPACE_STAGES = ((20.0, 3e-2), (80.0, 1e-2), (300.0, 3e-3), (1_000.0, 1e-3), (4_000.0, 3e-4))
"""Pairs (power that stands in for the maximum, width of the rounded kink times r)."""

EXTREME_RANK = 10  # half: 1.0400
"""Rank up to which, over at most 64 cells, columns inside the hull of others are looked for."""

OWN_CELLS = 512  # limit
"""Values of a subset of attributes up to which it may have a Gram of its own."""

OWN_GAIN = 0.99  # half: 1.0528
"""A subset has a Gram of its own where that has less than this share of its error."""

CERTIFICATE_SECONDS = 20.0  # limit
"""Seconds of one core that a bound may take, whatever the caller allows and however fast the
mechanism is."""

# --- Thousands of cells, chosen on the batches of `python -m benchmarks long` that it marks.

LONG_CELLS = 2048  # double: 1.1213
"""Ranges of more cells are searched through WᵀW as an operator."""

LOCAL_CELLS = 8192  # double: minutes for 8,208 prefix sums
"""Prefix sums and all ranges over more cells have a basis for each block below the rows."""

MOST_SPARSE_ROWS = 512  # double: time × 0.84
"""Rows in addition to the cells: more take too long at tens of thousands of cells."""

TREE_FANOUTS = range(2, 33)  # first half: time × 1.31
"""Fan-outs that are tried as they are; a tree of fan-out 2 may skip levels besides."""

DENSE_SHARE = 0.15  # half: time × 0.85
"""Rows with a larger share of entries are moved as arrays."""

FIRST_SUM = 8.0  # half: 1.0386
"""Largest sum of a cell's entries in the random rows that the first descent starts from.

At 4,096 prefix sums: 4 and 8 were alike, 2, 16 and 128 ended 1 to 8 % higher after 300 rounds."""

LOCAL_BASIS_ROWS = 3  # half: 1.0235
"""Rows of the basis in addition to the cells, from which the search for it starts."""

LOCAL_TOTAL_WEIGHT = 2.0  # half: 1.0227
"""Weight of the total of a block relative to its prefix sums, when its basis is chosen."""

# --- Products of attributes, chosen on `python -m benchmarks products`, `report` and `golden`.

FIRST_SECONDS = 4.4  # limit
"""Seconds at most of the quick search that every other begins with: at 3.4 the hospital report had
15 % more error (``python -m benchmarks statements``)."""

MANY_ITEMS = 40
"""More terms that ask different things are grouped by the attributes that they ask for, or by
statements: in place of no groups, half the error on the shop report, and 11 % less on that of the
staff (``python -m benchmarks statements``)."""

MANY_STATEMENTS = 40
"""More statements are not searched for any longer than quickly at normal effort: 60 of them had 1 %
less error by it, in half as much time again."""

STATEMENT_SECONDS = 0.05
"""Seconds of the search for each of several statements, beside those of the effort."""

FEW_VALUES = 64  # half: 1.0114
"""Attributes with so few values are tried with more rows too, which takes milliseconds."""

FEW_ATTRIBUTES = 8  # half: 1.0529
"""Over so few attributes, of which a fold counts for two, more folded sets are tried, for a second:
3 % less error of all one-way tables of six binary attributes, with each of five seeds."""

MOST_SETS = 800  # limit
"""Larger families are not moved."""

COVER_POWERS = (0.8, 1.0, 1.15, 1.3)  # second half: 1.0302
"""Exponents of the cost in greedy covers: small ones make few large sets."""

MANY_SUBSETS = 3000  # limit
"""Above this number of subsets a cover looks them up in a dense tensor, and is not moved."""

LONG_ROWS = 3  # not varied: thousands of values
"""Rows of the basis of an axis of thousands of values, fused or not: this multiple of the root of
them."""

# --- Shaped noise, chosen on `python -m benchmarks shaped`; half and double at quick effort.

SHAPED_UNREDUCED = 400  # limit
"""Queries or merged cells of a batch whose rank no other search has looked at."""

SHAPED_RANK = 200  # limit
"""Rank of a batch for which a body is looked for."""

TABLE_CELLS = 500  # limit
"""Cells of all tables for which a body is looked for: seconds for their covariances. Tables of 40
attributes with 380 values, and a cell each for dropped rows, have 34 % less error in 9 s."""

MIXED_VALUES = (2, 4, 8)
"""Values up to which attributes have their one-way tables in a group with a body of its own, beside
groups with Laplace noise: a few flags, or small tables too."""

HULL_CELLS = {
    2: 20_000,
    3: 20_000,
    4: 10_000,
    5: 3000,
    6: 1000,
    7: 100,
    8: 48,
    9: 16,
    10: 12,
}  # half: 0.9836
"""Merged cells for each rank up to which the facets of their hull are listed: a few seconds."""

FREE_LISTED = {8: 20, 9: 9, 10: 6}  # half: 1.0174
"""Free points where facets are listed: their number grows by half with each point."""

FREE_WORTH = 0.985  # half: 1.0310
"""Free points of hulls by parts must lower the error by more than 1.5 %: they slow down draws."""

MOST_SPLIT = 25  # half: 1.2744
"""Ranks of hulls that are sampled by rejection, from 7 on."""

SPLIT_WORTH = 0.97  # half: 0.9836
"""Such hulls must be better than all else by 3 %: their draws take longer."""

LEAF_POINTS = ((48, 7), (100, 6), (300, 5), (1 << 12, 4))
"""Points of a hull and dimensions of its leaves: at most some thousand facets each."""
