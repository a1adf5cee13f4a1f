"""The sizes that a run of the study can have."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SCALES", "Scale"]


@dataclass(frozen=True)
class Scale:
    """The sizes of a run.

    Parameters
    ----------
    name
        As the command line spells it.
    cells, queries
        The values of n and m that are tried.
    default_cells, default_queries
        What they are while something else varies.
    repetitions
        Noisy releases that the measured error is the mean of.
    effort
        How long ``best`` looks for its strategy.
    time_limit
        Seconds of CPU for one plan, where the caller names none.
    search_limit
        The same for a search that can end with the best so far at any time.
    time_budget
        Seconds after which a run begins no further plan, where the caller names none.
    note
        What a reader of its results should know.
    """

    name: str
    cells: tuple[int, ...]
    default_cells: int
    queries: tuple[int, ...]
    default_queries: int
    repetitions: int
    effort: str
    time_limit: float | None = None
    search_limit: float | None = None
    time_budget: float | None = None
    note: str = ""


SCALES = {
    "paper": Scale(
        "paper",
        (128, 256, 512, 1024, 2048, 4096, 8192),
        1024,
        (64, 128, 256, 512, 1024),
        256,
        20,
        "normal",
        240.0,
        60.0,
        9000.0,  # three hours with what was begun by then, and the convergence
    ),
    # Every side an eighth of the paper's: n against m and rank against n stay, n against k² not.
    "quick": Scale(
        "quick",
        (16, 32, 64, 128, 256, 512, 1024),
        128,
        (8, 16, 32, 64, 128),
        32,
        20,
        "normal",
        20.0,
        6.0,
        note="Sides are an eighth of the paper's, so n/k² is eight times as large: a low rank "
        "helps sooner here. γ is the paper's own and a larger part of a smaller ‖W‖, so biases "
        "of the relaxed program weigh more.",
    ),
    # What the tests run: every kind of cell, in seconds.
    "tiny": Scale("tiny", (8, 16, 32), 16, (4, 8), 8, 20, "quick"),
}
"""``paper`` is Table 1 exactly."""
