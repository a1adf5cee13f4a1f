"""The three data sets: look-alikes that are made here, or real files by path.

The paper's data are not ours to hand out. The look-alikes have the paper's number of entries;
their totals, sparsity and tails are plausible for what each is said to count, no more. No
claim rests on them: with exact strategies the error does not depend on the data at all, and
only the relaxed program's bias does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrm.errors import CountsError, FileFormatError, UsageError
from study.grid import DATASETS

__all__ = ["Dataset", "look_alike", "merge_counts", "open_datasets", "read_dataset"]

Counts = NDArray[np.int64]

LENGTHS = {"search_log": 65_536, "net_trace": 32_768, "social_network": 11_342}
"""Entries of each data set, as the paper gives them."""

LARGEST_FILE = 1 << 27
"""Bytes of a file of counts that are read (134 MB); ten million lines are fewer."""


LARGEST_TOTAL = 1 << 53
"""Sums of counts up to this are exact in float64."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Counts in order, and where they come from."""

    name: str
    counts: Counts
    source: str

    def __post_init__(self) -> None:
        self.counts.flags.writeable = False

    def merged(self, cells: int) -> Counts:
        """The counts over ``cells`` cells."""
        return merge_counts(self.counts, cells)


def merge_counts(counts: Counts, cells: int) -> Counts:
    """Merge consecutive counts in order, into runs whose lengths differ by at most one.

    >>> merge_counts(np.array([1, 2, 3, 4, 5]), 2)
    array([ 3, 12])
    """
    if not 1 <= cells <= len(counts):
        raise CountsError(
            f"{len(counts):,} counts can be merged to between 1 and {len(counts):,} cells, "
            f"but {cells:,} were asked for"
        )
    starts = np.arange(cells) * len(counts) // cells
    return np.asarray(np.add.reduceat(counts, starts))


def look_alike(name: str) -> Dataset:
    """Make one of the three look-alikes: the same numbers every time."""
    maker, length = _MAKERS[name], LENGTHS[name]
    rng = np.random.default_rng([2012, DATASETS.index(name)])
    return Dataset(name, maker(length, rng), "look-alike")


def _search_log(length: int, rng: np.random.Generator) -> Counts:
    """Searches for one keyword over six years: little interest, growth, bursts of news.

    About 336,000 searches; 42 of 100 of the 65,536 intervals are empty.
    """
    time = np.linspace(0.0, 1.0, length)
    rate = 0.05 + 6.0 * time**3
    for centre in np.sort(rng.random(40)):
        rate += rng.pareto(1.5) * 8.0 * np.exp(-np.abs(time - centre) / 0.002) * centre
    rate *= rng.gamma(0.6, 1 / 0.6, length)  # restless from one interval to the next
    return np.asarray(rng.poisson(rate * 336_000 / rate.sum()), dtype=np.int64)


def _net_trace(length: int, rng: np.random.Generator) -> Counts:
    """Connections per address of a campus network: nearly all silent, a few very loud.

    About 26,000 in total; 97 of 100 of the 32,768 addresses have none; a Pareto tail.
    """
    counts = np.zeros(length, dtype=np.int64)
    # Active addresses come in blocks, as networks are handed out.
    blocks = rng.choice(length // 64, size=length // 640, replace=False)
    active = np.unique((blocks[:, None] * 64 + rng.integers(0, 64, (len(blocks), 24))).ravel())
    weight = rng.pareto(1.1, len(active)) + 0.2
    counts[active] = 1 + rng.multinomial(26_000 - len(active), weight / weight.sum())
    return counts


def _social_network(length: int, rng: np.random.Generator) -> Counts:
    """A degree histogram: how many of 11,342 users have 0, 1, 2, … friends.

    Entry d counts users of degree d; log-normal, with a median near 30 and a tail that
    leaves nearly all of the 11,342 possible degrees empty.
    """
    degrees = np.minimum(rng.lognormal(3.4, 1.1, length), length - 1).astype(np.int64)
    return np.bincount(degrees, minlength=length)


_MAKERS: Mapping[str, Callable[[int, np.random.Generator], Counts]] = {
    "search_log": _search_log,
    "net_trace": _net_trace,
    "social_network": _social_network,
}


def read_dataset(name: str, path: str) -> Dataset:
    """Read a real data set: one whole number per line.

    Parameters
    ----------
    name
        Which of the three it is. ``social_network`` holds one degree per line, one line per node,
        and becomes the histogram of degrees 0 … nodes−1; the others hold the counts.
    path
        The file. Rows carry its name and digest, never the folder it lies in.
    """
    if name not in DATASETS:
        raise UsageError(f"no data set is called {name!r}; there are {', '.join(DATASETS)}")
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST_FILE:
            raise FileFormatError(f"{path} is larger than the {LARGEST_FILE:,} bytes that are read")
        raw = place.read_bytes()
    except OSError as reason:
        raise FileFormatError(f"cannot read {path}: {reason.strerror}") from reason
    numbers = [_whole_number(path, *line) for line in enumerate(raw.splitlines(), 1)]
    if not numbers or sum(numbers) > LARGEST_TOTAL:
        came = "a larger one" if numbers else "no line at all"
        raise FileFormatError(
            f"{path} must hold one whole number per line, with a total of at most "
            f"{LARGEST_TOTAL:,}; it holds {came}"
        )
    values = np.array(numbers, dtype=np.int64)
    if name == "social_network":
        if values.max() >= len(values):
            raise FileFormatError(
                f"{path} must hold the degree of each node, below the number of nodes: "
                f"it has {len(values):,} lines and a degree of {values.max():,}"
            )
        values = np.bincount(values, minlength=len(values))
    return Dataset(name, values, f"{place.name} ({hashlib.sha256(raw).hexdigest()[:12]})")


def _whole_number(path: str, line: int, text: bytes) -> int:
    if not text.strip().isdigit():
        raise FileFormatError(
            f"{path}, line {line}: expected one whole number of at least 0, "
            f"not {text[:40].decode('utf-8', 'replace')!r}"
        )
    return int(text)


def open_datasets(
    paths: Mapping[str, str], names: Sequence[str] = DATASETS, *, cells: int = 1
) -> dict[str, Dataset]:
    """The data sets: real where a path is given, look-alikes elsewhere.

    Refuses a file of fewer lines than the ``cells`` that its counts will be merged to.
    """
    opened = {
        name: read_dataset(name, paths[name]) if name in paths else look_alike(name)
        for name in names
    }
    for name, dataset in opened.items():
        if len(dataset.counts) < cells:
            raise FileFormatError(
                f"{paths.get(name, name)} has {len(dataset.counts):,} lines, but the study merges "
                f"them to up to {cells:,} cells; give a file of at least as many, or choose "
                "figures and a scale of fewer"
            )
    return opened
