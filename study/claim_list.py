"""The paper's claims of Sections 6.1 to 6.4, as data: sentence, place, test, explanation.

The verdict comes from the rows alone. The explanation is shown where a claim does not wholly
hold: what is true instead, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from study import claims_baselines as riv
from study import claims_lowrank as low
from study.evidence import Finding, Results

__all__ = ["CLAIMS", "Claim"]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, its place in the paper, and how it is tested."""

    section: str
    sentence: str
    figures: tuple[int, ...]
    test: Callable[[Results], Finding]
    explanation: str
    about: str = "error_expected"  # what ``best`` is compared by


_RELATED = (
    "For random columns a strategy of r ≈ k measurements costs about k³ where noise on data costs "
    "k·n on the same scale, so a low rank helps only once n is well above k². "
    "Table 1 holds k at half of min(m, n): k² is 16,384 at the paper's default, where n is 1024."
)
_TWO_ORDERS = (
    "For random columns LRM costs about k²/n of noise on data, so two orders of magnitude need n "
    "of about 100·k². "
)

CLAIMS = (
    Claim(
        "6.1",
        "LRM's error hardly depends on γ between 10⁻⁴ and 10, on all three workloads.",
        (2,),
        low.insensitive_to_gamma,
        "A residual is a bias ‖(W−BL)x‖² that depends on the data and not on ε, so a large γ shows "
        "where the noise is small. Made exact, γ only says when to stop, and errors differ by the "
        "local optimum that was reached.",
    ),
    Claim(
        "6.1",
        "LRM is much faster with a larger γ.",
        (2,),
        low.faster_with_gamma,
        "The residual falls by orders of magnitude within the last rounds, so a larger γ saves few "
        "of them. The exact variant also goes on until its sensitivity is within 2 % of 1.",
        "cpu_seconds",
    ),
    Claim(
        "6.1",
        "The average error is quadratic in 1/ε.",
        (2, 3),
        low.quadratic_in_epsilon,
        "The noise's part is exactly 2‖B‖²Δ²/ε², but the relaxed program adds a bias ‖(W−BL)x‖² "
        "that does not change with ε. Where that bias leads, the error hardly falls as ε grows.",
    ),
    Claim(
        "6.1",
        "Curves at different ε have nearly the same shape, at different scales.",
        (2, 3),
        low.same_shape_at_every_epsilon,
        "The strategies are the same at every ε, so errors of exact ones differ by a constant. The "
        "relaxed program's bias shows at ε = 1 and hides below the noise at 0.01, most of all with "
        "a large γ or r below the rank.",
    ),
    Claim(
        "6.1",
        "With r below rank(W) the error is far worse, by up to two orders of magnitude.",
        (3,),
        low.worse_below_the_rank,
        "W = BL is then impossible, and what is lost is a bias that grows with the squared counts "
        "and not with 1/ε². How bad it looks depends on the data and on ε: the smaller ε, the more "
        "of it the noise hides.",
    ),
    Claim(
        "6.1",
        "The error is stable once r exceeds 1.2·rank(W).",
        (3,),
        low.stable_above,
        "The program has no optimal r near the rank: more rows let the polytope of B's columns fit "
        "W better wherever W has structure. r = n with noise on data as one feasible point is "
        "often far below r = 1.2·rank.",
    ),
    Claim(
        "6.1",
        "Computation time grows exponentially with r.",
        (3,),
        low.exponential_time,
        "Each gradient costs r²n + krn and the number of rounds is set by the schedule of β, so "
        "time is a power of r, of at most 2. Nothing in the algorithm is exponential.",
        "cpu_seconds",
    ),
    Claim(
        "6.1",
        "A good r lies between rank(W) and 1.2·rank(W).",
        (3,),
        low.good_ranks,
        "Larger r has a lower error on structured workloads, since the paper's local search then "
        "has more corners to place. It costs time, which is what the paper's advice is about.",
    ),
    Claim(
        "6.2",
        "ε has little influence on how mechanisms compare.",
        (3,),
        riv.relative_standing_and_epsilon,
        "Errors of exact strategies are proportional to 1/ε², so their ratios cannot change. The "
        "relaxed program's can: its bias is a constant that ε does not touch.",
    ),
    Claim(
        "6.2",
        "AMM is much worse than all others in all experiments, sometimes by an order of magnitude.",
        (4, 5, 6),
        riv.matrix_mechanism_is_worst,
        "The L2 program ignores that Laplace noise is scaled by L1 norms, which are up to √n "
        "larger, but it does see the workload. Trees that were built for ranges do worse on "
        "workloads that are not ranges.",
    ),
    Claim(
        "6.2",
        "On WDiscrete noise on data (LM) has the least error while the domain is small.",
        (4,),
        riv.laplace_best_on_small_domains,
        "Nearly all weights of WDiscrete are −1: one measured total answers most of every query, "
        "and whoever finds that is below noise on data at every n. The paper's own search finds it "
        "on some sizes.",
    ),
    Claim(
        "6.2",
        "On WDiscrete the errors of LM, WM and HM are linear in n.",
        (4,),
        riv.others_linear_in_cells,
        "Noise on data costs ‖W‖² = m·n exactly. The trees add a factor that grows with the "
        "number of their levels.",
    ),
    Claim(
        "6.2",
        "On WDiscrete LRM's error stops growing beyond n = 512.",
        (4,),
        riv.lowrank_flat_in_cells,
        "The rank is at most m, but new columns of W are new directions that must fit into the "
        "same hull, so the error goes on growing, more slowly than n. It would be flat only if new "
        "columns lay inside the hull of the old ones.",
    ),
    Claim(
        "6.2",
        "On WDiscrete LRM is excellent on large domains: below LM, WM and HM.",
        (4,),
        riv.lowrank_best_on_large_domains,
        "The paper's search ends in a local optimum, which on some sizes is above noise on data. "
        "Starting from the baselines' own strategies avoids that.",
    ),
    Claim(
        "6.2",
        "On WRange WM and HM have a smaller error than LM from n = 512 on.",
        (5,),
        riv.trees_beat_laplace_on_ranges,
        "A random range holds a third of the domain, so LM costs m·n/3 while trees cost about "
        "log³ n a query: where the lines cross depends on the constants alone. Made consistent by "
        "least squares, the two trees cross LM at different n.",
    ),
    Claim(
        "6.2",
        "On WRange LM is still ahead of WM and HM for n below 512 (implied).",
        (5,),
        riv.laplace_beats_trees_on_small_ranges,
        "Trees pay the cube of their depth before they gain anything. Where that ends depends on "
        "how their answers are made consistent.",
    ),
    Claim(
        "6.2",
        "On WRange LRM is significantly better than LM, WM and HM on large domains.",
        (5,),
        riv.lowrank_best_on_ranges,
        "256 ranges tell at most 513 cells apart, so merging equal columns first gives every "
        "mechanism that sees the workload the same advantage. The paper's search alone does not "
        "always use it.",
    ),
    Claim(
        "6.2",
        "On WRelated LRM is the best of all mechanisms at every n.",
        (6,),
        riv.lowrank_best_on_related,
        _RELATED,
    ),
    Claim(
        "6.2",
        "On WRelated the gap to the others is over two orders of magnitude at n = 8192.",
        (6,),
        riv.two_orders_at_the_largest_domain,
        _TWO_ORDERS + "The largest n is half of k² at the paper's sizes, and four times k² at the "
        "quick ones.",
    ),
    Claim(
        "6.3",
        "On WRange LRM is the best while m is much smaller than n.",
        (7,),
        riv.lowrank_best_for_few_queries,
        "Few ranges leave few distinct cells, and a factorisation of a small problem is easy to "
        "find. How early LM or WM overtakes it depends on how good the local optimum is.",
    ),
    Claim(
        "6.3",
        "On WRange all mechanisms converge as m grows.",
        (7,),
        riv.mechanisms_converge,
        "Errors of LM, WM and HM are proportional to m, so their ratios to each other never "
        "change. Only LRM, which sees the workload, moves against them.",
    ),
    Claim(
        "6.3",
        "On WRange with m = 1024 WM is the best of all.",
        (7,),
        riv.wavelet_best_for_many_queries,
        "A workload-aware strategy can always start from the wavelet and only improve on it. What "
        "the paper saw is the limit of its search, not of the program.",
    ),
    Claim(
        "6.3",
        "With too many ranges LRM loses its advantage for lack of a low rank.",
        (7,),
        riv.ranges_lose_their_low_rank,
        "The rank of random ranges grows with m until it nears n, and with it what a "
        "factorisation of r ≈ rank costs. Other strategies of more rows keep an advantage.",
    ),
    Claim(
        "6.3",
        "On WRelated LRM is dramatically better than the others at every m.",
        (8,),
        riv.lowrank_best_for_any_queries,
        _RELATED,
    ),
    Claim(
        "6.3",
        "On WRelated the rank stays low whatever m is.",
        (8,),
        riv.rank_stays_low,
        "s is half of min(m, n) in the paper's own table, so the rank is half of the most that it "
        "can be, and grows with m. It is s that decides, but s is not held.",
    ),
    Claim(
        "6.3",
        "LRM's error is linear in the rank of the workload.",
        (9,),
        low.linear_in_rank,
        "‖W‖² of C·A is itself proportional to s, which is the whole growth of noise on data. The "
        "factorisation adds up to two further powers: r ≈ k measurements cost k³, where noise on "
        "data costs k·n.",
    ),
    Claim(
        "6.4",
        "s is exactly the rank of W = C·A.",
        (9,),
        riv.rank_is_s,
        "Gaussian C and A have full rank almost surely. Anything else would be a rounding of the "
        "rank test.",
    ),
    Claim(
        "6.4",
        "At low rank LRM is over two orders of magnitude below the others.",
        (9,),
        riv.two_orders_at_low_rank,
        _TWO_ORDERS + "At the least s of Table 1 k is 26, and n = 1024 is 1.5·k².",
    ),
    Claim(
        "6.4",
        "The errors of LM, WM and HM are stable as s grows.",
        (9,),
        riv.others_stable_in_s,
        "The entries of C·A have variance s, so noise on data costs m·n·s and grows tenfold from "
        "s = 0.1 to 1.0 times min(m, n). They would be stable only for queries scaled to equal "
        "length.",
    ),
    Claim(
        "6.4",
        "LRM's error grows rapidly with the rank.",
        (9,),
        riv.lowrank_grows_with_s,
        "It grows with a higher power of s than the others. At full rank it is "
        "above noise on data.",
    ),
    Claim(
        "6.4",
        "LRM's advantage is due to low rank: it shrinks as s grows.",
        (9,),
        riv.advantage_shrinks_with_rank,
        "The ratio of LRM to noise on data is about k²/n while n is large. Near full rank it is "
        "governed by the search alone.",
    ),
)
