"""Settings of the search: every number that was chosen by measurement, and where.

Each says what it means; the title of its section names the benchmark that it was chosen on.
``python -m benchmarks settings`` sets each to half and to double (of a schedule: takes its first
and its second half) on the fastest batches that read it. Its first notable change is noted beside
the number: the error, or the time, as a multiple of what it is now. *Limit*: it changes neither
there, and bounds time or memory of larger batches. Numerical tolerances, limits of memory and
formats are not among them: they are where they are used. Nor are the stages of descents, which are
records. Schedules of stages belong together and are not varied.

This module is in `lrm.planning.solvers`, since solvers may not import strategies, which use it too.
"""

from __future__ import annotations

from typing import Literal

Effort = Literal["quick", "normal", "thorough"]
"""How long to search."""

# --- Lists of cells: the race of solvers; chosen on `python -m benchmarks golden`.

RACE_OVERHEAD = 0.02  # double: time × 1.12
"""Seconds that a stage takes at least."""

RACE_LONGEST = 25  # limit
"""What takes more than this multiple of the patience (`THRESHOLDS`) is not begun. With 100, tables
over 900 cells took 14 s in place of 2, for nothing (``python -m benchmarks products unseen``)."""

EXTRA_ROW_SHARES = (16, 12, 16, 24, 16, 8)  # the first alone: 1.0239
"""Rows p = n/share next to the identity, in turn. No winner on the panel kept more than n/14."""

MOST_EXTRA_ROWS = 96  # limit
"""Largest number of extra rows n/share. Over 2,880 cells of four attributes 180 of them ended 0.5 %
above 96, in 1.4 times the time."""

ROW_SPACE_WIDTHS = (1.0, 1.25, 1.5, 2.0)  # the first alone: 1.17 (see below)
"""Rows of a strategy in the row space of W, as multiples of its rank: a family for each, since
which one wins depends on the batch. Random matrices of 256×4096 cells need the rank itself;
one-way tables of 10×8×5×2×2 values have 432 with those, and 368 with twice as many."""

FEW_CELLS = 16  # limit
"""Merged cells up to which such strategies are tried at full rank as well, in milliseconds: 2 %
less error of 29 rectangles over 4 merged cells (``python -m benchmarks golden``)."""

POLISH = ((1e-2, 100), (1e-4, 100))
"""The schedule of a strategy that is good already."""

FROM_START = ((60, 1.0), (100, 1.0), (60, 1.07), (40, 1.01), (20, 1.001), (12, 1.0))
"""Rounds of the stages of a descent in the general form, and by which factor each changes its
relaxed error."""

FROM_RANDOM = ((60, 1.0), (100, 0.15), (60, 1.03), (40, 1.01), (20, 1.001), (12, 1.0))
"""Rounds and factors of stages that start from random combinations of the queries."""

GENERAL_RANK = 0.45  # limit (see below)
"""Such starts are tried up to this rank, as a share of the cells: on 65 counts of overlapping age
groups (``python -m benchmarks tables``) the error is 497 with them and 572 without."""

EXTRA_ROWS_SMOOTHING = (0.1, 0.03, 0.01)  # second half: time × 1.22
"""Widths of the rounded kink of |θ|, from wide to narrow."""

GENERAL_SCHEDULE = ((1e-1, 60), (1e-1, 200), (1e-2, 300), (1e-3, 200), (1e-4, 100), (1e-5, 100))
"""How much of a residual each stage forgives, relative to the mean squared row of L; its rounds.

A loose first stage lets rows move to where they belong: on 80 queries over 3,200 cells the error is
2,609 after a first stage of 1e-2, and 3,073 after one of 1.8e-3."""

ROW_SPACE_STAGES = ((20.0, 3e-2), (80.0, 1e-2), (300.0, 3e-3), (1_000.0, 1e-3), (4_000.0, 3e-4))
"""Pairs (power that stands in for the maximum, width of the rounded kink times r)."""

THRESHOLDS = {"quick": (0.03, 0.5), "normal": (1e-4, 1.0), "thorough": (1e-5, 30.0)}
"""The search ends when another second of work is expected to lower the error by less than the
first number, which grows with the square of the work after the second number of seconds."""

EXTREME_RANK = 10  # half: 1.0400
"""Rank up to which, over at most 64 cells, columns inside the hull of others are looked for."""

GAUSSIAN_WORK = {"quick": 4e8, "normal": 1e9, "thorough": 8e9}  # limit
PRODUCT_WORK = 8e6  # limit
"""Rank² × merged cells of a product up to which a list of them is searched for Gaussian noise; at
quick effort up to the second number where every query is a product, which rarely gains.

Each round of the convex program takes that order of work: 1 to 5 CPU s in all at 3e8, measured on
affine conditions over two attributes (140 queries of 5^5 cells, 174 of 10^4)."""

OWN_CELLS = 512  # limit
OWN_WORK = 4e9  # limit
"""Values of a subset of attributes up to which it may have a Gram of its own, and the sum of their
cubes up to which subsets are looked at: about 20 CPU s (`python -m benchmarks products affine`)."""

OWN_GAIN = 0.99  # half: 1.0528
"""A subset has a Gram of its own where that has less than this share of its error."""

OWN_TOLERANCE = 2e-3  # double: 1.0016
"""How far above the least possible error of a subset its own Gram may be."""

OWN_NULL = 64  # half: 1.0011
"""Largest entry of the null vectors of such subsets; finer ones gain nothing, and leave
fewer bits for the rows."""

REFINED_WORK = 1e7  # limit
"""Measurements² × merged cells up to which a descent goes on from a strategy: a tenth of a second
(`python -m benchmarks statements meet`)."""

FLAT_CELLS = {"quick": 2000, "normal": 5000, "thorough": 5000}  # limit
"""Merged cells of a product up to which a list of them is searched for Laplace noise; more take
seconds even at quick effort, and hundreds of MB."""

FLAT_ENTRIES = 2e7  # limit
"""Queries × merged cells of a product up to which its queries are written out over cells."""

BOUND_SECONDS = 1.0  # limit
"""Seconds of one core that a bound for the merged cells of a product may take."""

GAUSSIAN_TOLERANCES = {"quick": 1e-2, "normal": 1e-3, "thorough": 1e-5}  # double: 1.0013
"""How far above the least possible error the result may be, by effort."""

CHAIN_CELLS = 4096  # limit
"""Prefix sums and all ranges over at most as many cells are solved, not measured by trees.

The solver takes seconds; the n × n integers of the plan and their inverse take the rest."""

CERTIFICATE_SECONDS = 20.0  # limit
"""Seconds of one core that a bound may take, whatever the caller allows and however fast the
mechanism is."""

# --- Thousands of cells, chosen on the batches of `python -m benchmarks long` that it marks.

LONG_CELLS = 2048  # double: 1.1213
"""Ranges of more cells are searched through WᵀW as an operator."""

LOCAL_CELLS = 8192  # double: minutes for 8,208 prefix sums
"""Prefix sums and all ranges over more cells have a basis for each block below the rows."""

LEAST_REACHES = 4  # half: 1.0064
"""How many times the longest range goes into the cells, where rows repeat along them, and into the
ring that these rows are chosen on."""

SPARSE_REACHES = 12  # not varied: one batch of `long`
"""Where it goes into the cells more often than this, no rows but those that repeat are tried:
beside them, sparse rows had 2.4 % less error at 8 (4,096 cells), and 5 to 10 % more at 16, at quick
effort (``python -m benchmarks long``)."""

MOST_SPARSE_ROWS = 512  # double: time × 0.84
"""Rows in addition to the cells: more take too long at tens of thousands of cells."""

TREE_FANOUTS = range(2, 33)  # first half: time × 1.31
"""Fan-outs that are tried as they are; a tree of fan-out 2 may skip levels besides."""

DENSE_SHARE = 0.15  # half: time × 0.85
"""Rows with a larger share of entries are moved as arrays."""

FEWER = 4  # half: 1.0050
"""How many times fewer blocks there are at each coarser resolution."""

FIRST_SUM = 8.0  # half: 1.0386
"""Largest sum of a cell's entries in the random rows that the first descent starts from.

At 4,096 prefix sums: 4 and 8 were alike, 2, 16 and 128 ended 1 to 8 % higher after 300 rounds."""

LOCAL_BASIS_ROWS = 3  # half: 1.0235
"""Rows of the basis in addition to the cells, from which the search for it starts."""

LOCAL_TOTAL_WEIGHT = 2.0  # half: 1.0227
"""Weight of the total of a block relative to its prefix sums, when its basis is chosen."""

LOCAL_TRIES = 3  # half: 1.0066
"""Random starts of the basis: milliseconds each."""

OWN_ROWS_POWERS = (20.0, 100.0, 500.0)  # not varied: 10⁵ cells
"""Powers of the norms that stand in for the largest column, one after the other."""

RING_SHARE = 12  # half: 1.0058
"""Rows of such a ring: one for this number of cells."""

# --- Products of attributes, chosen on `python -m benchmarks products`, `report` and `golden`.

EFFORT_SECONDS = {"quick": 3.6, "normal": 45.0, "thorough": 1200.0}  # limit
"""Seconds of counted work that the search for marginals may take; most batches end earlier."""

STATEMENTS_SECONDS = 6.0  # limit
"""Seconds at normal effort for batches of several statements, whose plan is promised in 10 CPU s.
Of four reports, one had 0.2 % less error without this limit, the others none."""

FOLDED_ORDER = 3  # limit
"""Thousands of tables of at most 3 attributes of two values are folded: 16 to 40 % less error than
whole tables over 40 to 200 attributes. Of four attributes folded ones have 10 to 20 % more."""

GROUPS_SECONDS = {"normal": 7.5, "thorough": 1200.0}  # half: time × 0.48
"""Seconds for a batch of several groups, by effort (quick: `FIRST_SECONDS`). With 45 at normal
effort three of the four reports had at most 0.1 % less squared error, and the web shop 7 % less."""

FIRST_SECONDS = 4.4  # limit
"""Seconds at most of the quick search that every other begins with: at 3.4 the hospital report had
15 % more error (``python -m benchmarks statements``)."""

MANY_ITEMS = 40
"""More terms that ask different things are grouped by the attributes that they ask for, or by
statements: in place of no groups, half the error on the shop report, and 11 % less on that of the
staff (``python -m benchmarks statements``)."""

LIKELY_GROUPS = 8
"""Groups among which a term is put where it adds least: those that ask for the most alike."""

MANY_STATEMENTS = 40
"""More statements are not searched for any longer than quickly at normal effort: 60 of them had 1 %
less error by it, in half as much time again."""

STATEMENT_SECONDS = 0.05
"""Seconds of the search for each of several statements, beside those of the effort."""

LOOKS_SECONDS, SOLVED_SECONDS = 0.03, 0.06
"""Counted seconds of looks for each term that is put into a group, and of the search for each
group, where `FIRST_SECONDS` are fewer than these together."""

MOVES = 2  # not varied: many terms
"""Rounds in which attributes or statements are moved between groups: 16 % less error on the shop
report, 2 to 3 % less on two others."""

MOST_MAXIMAL = 200  # limit
"""More maximal sets of a group are not weighed."""

MOST_BASIS_ROWS = 16  # half: 1.0027
"""Most rows that an attribute's basis starts with, whatever its number of values."""

FEW_VALUES = 64  # half: 1.0114
"""Attributes with so few values are tried with more rows too, which takes milliseconds."""

FEW_ATTRIBUTES = 8  # half: 1.0529
"""Over so few attributes, of which a fold counts for two, more folded sets are tried, for a second:
3 % less error of all one-way tables of six binary attributes, with each of five seeds."""

ALL_SETS = 11  # limit
"""Up to this many attributes every set is a candidate to add."""

MOST_MOVES = 30_000  # limit
"""Neighbours that are scored in one scan, at most; more are sampled."""

MOST_SETS = 800  # limit
"""Larger families are not moved."""

COVER_POWERS = (0.8, 1.0, 1.15, 1.3)  # second half: 1.0302
"""Exponents of the cost in greedy covers: small ones make few large sets."""

MANY_SUBSETS = 3000  # limit
"""Above this number of subsets, a cover looks them up in a dense tensor."""

LONG_ROWS = 3  # not varied: thousands of values
"""Rows of the basis of an axis of thousands of values, fused or not: this multiple of the root of
them."""

BRIEF_ROWS = 64  # limit
"""Rows of a long basis at quick effort, which has a second or two for it."""

JOINT_LONG_SECONDS = 3.0  # limit
"""Seconds of counted work for the rows of a long basis: a plan takes at most 10 s."""

FUSED = {"quick": 512, "normal": 640, "thorough": 1200}  # limit
"""Most values of a fused axis whose queries are written out, by effort."""

LONG_FUSED = {"quick": 0, "normal": 6000, "thorough": 6000}  # limit
"""Most values of a fused axis in any case, of attributes that need a basis; 0: none."""

FUSED_SHARES = {  # 16 alone: 1.0028
    "quick": (16,),
    "normal": (16, 12),
    "thorough": (16, 12, 24, 8, 16, 12),
}
"""Rows of a fused basis start as n/share random ones."""

LONG_FUSED_SECONDS = {"quick": 0.0, "normal": 25.0, "thorough": 300.0}  # limit
"""Seconds that a long one may take, by effort."""

ASKED_TOGETHER = 0.5  # limit
"""Share of a group's queries that must be about several of the attributes of a long one."""

BOUND_ROUNDS = 20  # bounds alone
"""Rounds of the ascent for a factor by itself, which is within 1 % after fewer."""

SCHUR_SHARE = 0.9  # bounds alone
"""s as a share of the Schur complement; from 0.8 to 1 the bounds differ by 1 %."""

BOUND_FEW_ATTRIBUTES = 3  # bounds alone
"""Up to this number of attributes with other factors than tables and totals are separated."""

# --- Shaped noise, chosen on `python -m benchmarks shaped`; half and double at quick effort.

SHAPED_UNREDUCED = 400  # limit
"""Queries or merged cells of a batch whose rank no other search has looked at."""

SHAPED_RANK = 200  # limit
"""Rank of a batch for which a body is looked for."""

PATTERNS = 0.985  # at ε = 1 alone
"""Errors of yes/no patterns count for this share: at ε = 1 their lattice saves 5 % for two counts
and 2 % for five, free points up to 1.1 %."""

TABLE_CELLS = 400  # limit
"""Cells of all tables for which a body is looked for: a second for their covariances."""

TABLE_MOVES = 200  # limit
"""Other groups of one table that are tried: without any, 15 % more error for one-way tables of
5×3×3×5×6 values with four 2-way ones."""

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

FREE_WORK = {"quick": (60, 512, 0.8), "normal": (120, 1024, 5.0), "thorough": (300, 2048, 20.0)}
"""Rounds of the search for free points, directions for each, and seconds at most; half: 1.0088."""

FREE_COLUMNS = 16  # limit
"""Merged cells per dimension above which free points do not lower the error."""

FREE_POINTS = {"quick": 2, "normal": 4, "thorough": 4}  # half: 1.0292
"""Free points per dimension."""

FREE_LISTED = {8: 20, 9: 9, 10: 6}  # half: 1.0174
"""Free points where facets are listed: their number grows by half with each point."""

FREE_STEP, FREE_MOMENTUM, FREE_SQUARES = 0.08, 0.9, 0.98  # half of the first: 1.0119
"""The first step of free points relative to their size, and how much of the mean gradient and of
its mean square is kept."""

FREE_AVERAGED, FREE_APART = 0.3, 0.8  # double of the first: 1.0023; half of the second: 1.0057
"""Share of the last rounds whose points are averaged; cosine, where the body is about round, below
which two short directions to begin with are different."""

FREE_WORTH = 0.985  # half: 1.0310
"""Free points of hulls by parts must lower the error by more than 1.5 %: they slow down draws."""

LEAST_SPLIT, MOST_SPLIT = 7, 25  # half of the second: 1.2744
"""Ranks of hulls that are sampled by rejection."""

SPLIT_CELLS, SPLIT_WORK = 2048, 530_000  # limit
"""Their merged cells, and cells times squared ranks."""

SPLIT_WORTH = 0.97  # half: 0.9836
"""Such hulls must be better than all else by 3 %: their draws take longer."""

SPLIT_SAMPLE = 200.0  # double: 1.0035
"""Points that a sample of such a hull must be worth, so that its error is believed."""

DRAW_SECONDS, FREE_DRAW_SECONDS = 3.0, 0.3  # limit
"""Seconds that a draw may take in the mean, without and with free points: a fortieth of what ends
it with an error."""

LEAF_POINTS = ((48, 7), (100, 6), (300, 5), (1 << 12, 4))
"""Points of a hull and dimensions of its leaves: at most some thousand facets each."""
