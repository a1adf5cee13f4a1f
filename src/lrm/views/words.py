"""The fixed words of pages that readers see, in one table: a translation replaces them."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    # headings of a published page, and what stands below them
    "kind": "Statistics",
    "numbers": "The numbers",
    "about": "About these numbers",
    "intervals": (
        "Random noise was added to every number, so that nobody can learn from them whether a "
        "particular person is among those that were counted. After each number stands how far the "
        "noise may have moved it: the true number lies within ± that much with a probability of "
        "{percent}. Numbers are not rounded afterwards, and small ones may be negative."
    ),
    "caveats": "What the intervals do not cover",
    "guarantee": "What is guaranteed",
    "methods": "Methods",
    "data": "All numbers, as a file:",
    "write-to": "Contact",
    "band": "Bands and thin lines show {percent} intervals.",
    "largest": "The {most} largest of {count} lines are drawn.",
    "rehearsal": "REHEARSAL (SIMULATED): these numbers are about nobody.",
    "made-with": "made with {software} · plan {plan}",
    # whole texts; empty where lrm writes them from what the release states
    "guarantee-text": "",
    "caveats-text": "",
    "methods-text": "",
    # tables
    "total": "total",
    "each": "each",
    "answer": "answer",
    "value": "value",
    "unbounded": "unbounded",
    "interval": "{percent} interval",
    "processed": "processed",
    "lines": "{title}: lines from {first} to {last}",
    "sides": "{title}: {first} to the left, {last} to the right",
    # dates
    "months": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "month-format": "{month} {year}",
    "day-format": "{day} {month} {year}",
    # cells of undeclared values
    "null": "not stated",
    "other": "other",
    "below": "below these",
    "above": "above these",
    "invalid": "no valid value",
    "nan": "no number",
}
"""The words by their keys; ``{percent}`` and the like stand for what a page fills in."""

UNDECLARED = {f"({key})": key for key in ("null", "other", "below", "above", "invalid", "nan")}
"""Labels of the cells of undeclared values, and the keys of their words."""


def filled(text: str, **values: str) -> str:
    """Fixed words with what a page fills in.

    >>> filled(WORDS["interval"], percent="95 %")
    '95 % interval'
    """
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
