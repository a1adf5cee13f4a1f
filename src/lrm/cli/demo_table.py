"""A synthetic table of patients and a batch of questions about it. Nobody in it exists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from lrm.batches import marginals
from lrm.domain import Categories, Domain, Integers
from lrm.maps.linear import Floats
from lrm.workload import Workload
from lrm.workload.families import stack

__all__ = ["PATIENTS", "STATES", "SyntheticPatients", "demo_domain", "demo_workload"]

PATIENTS = 200_000
STATES = ("NY", "NJ", "CA", "WA", "TX", "FL", "IL", "MA")
AGES = 100
DECADES = [(first, first + 9) for first in range(0, AGES, 10)]

EXAMPLES: dict[str, dict[str, int]] = {
    "1.q1 NY+NJ+CA+WA": {"NY": 1, "NJ": 1, "CA": 1, "WA": 1},
    "1.q2 NY+NJ": {"NY": 1, "NJ": 1},
    "1.q3 CA+WA": {"CA": 1, "WA": 1},
    "2.q1 2NJ+CA+WA": {"NJ": 2, "CA": 1, "WA": 1},
    "2.q2 NJ+2WA": {"NJ": 1, "WA": 2},
    "2.q3 NY+2CA+2WA": {"NY": 1, "CA": 2, "WA": 2},
}
"""The two introductory examples of the paper: weights of states, among HIV-positive patients."""


@dataclass(frozen=True, eq=False)
class SyntheticPatients:
    """Made-up patients, one entry each: indices into the domain's attributes.

    >>> table = SyntheticPatients.generate(seed=0, patients=1_000)
    >>> int(table.counts().sum())
    1000
    """

    state: NDArray[np.int64]
    age: NDArray[np.int64]
    sex: NDArray[np.int64]
    hiv: NDArray[np.int64]

    @classmethod
    def generate(cls, seed: int = 0, patients: int = PATIENTS) -> SyntheticPatients:
        """Draw patients: states by size, ages 0 to 99, HIV more often in middle age."""
        rng = np.random.default_rng(seed)
        sizes = np.array([19.6, 9.3, 39.0, 7.8, 30.0, 22.2, 12.6, 7.0])
        state = rng.choice(len(STATES), size=patients, p=sizes / sizes.sum())
        years = np.clip(rng.normal(47, 22, size=patients), 0, 99.9)
        sex = rng.integers(0, 2, size=patients)
        rate = 0.004 + 0.02 * np.exp(-(((years - 42) / 16) ** 2)) * (1 + 0.6 * (sex == 1))
        hiv = (rng.random(patients) < rate).astype(np.int64)
        return cls(state, np.floor(years).astype(np.int64), sex, hiv)

    def counts(self) -> NDArray[np.int64]:
        """How many patients fall in each cell of ``demo_domain``."""
        shape = demo_domain().shape
        cells = np.ravel_multi_index((self.state, self.age, self.sex, self.hiv), shape)
        return np.bincount(cells, minlength=int(np.prod(shape)))


def demo_domain() -> Domain:
    """State, age in years, sex, HIV status: 3,200 cells.

    >>> demo_domain().size
    3200
    """
    return Domain(
        [
            Categories("state", list(STATES)),
            Integers("age", 0, AGES - 1),
            Categories("sex", ["female", "male"]),
            Categories("hiv", ["negative", "positive"]),
        ],
        table="patients",
    )


def demo_workload() -> Workload:
    """Return over 200 questions: the paper's examples, age ranges and cross-tabs.

    >>> workload = demo_workload()
    >>> workload.shape[0] >= 200, workload.names[1]
    (True, '1.q2 NY+NJ')
    """
    domain = demo_domain()
    rows = {**_examples(), **_age_ranges(), **_ages_by_sex()}
    named = Workload(sp.csr_array(np.vstack(list(rows.values()))), names=list(rows), domain=domain)
    return stack([named, marginals(domain, [("state", "hiv")])])


def _examples() -> dict[str, Floats]:
    return {
        name: _positive(state=[weights.get(state, 0) for state in STATES])
        for name, weights in EXAMPLES.items()
    }


def _age_ranges() -> dict[str, Floats]:
    """HIV-positive patients in every range of decades: in all states, in the east, in the west."""
    groups = {"": STATES, "NY, NJ, ": ("NY", "NJ"), "CA, WA, ": ("CA", "WA")}
    return {
        f"HIV+ {name}age {first}–{last}": _positive(
            state=np.isin(STATES, group), age=_between(first, last)
        )
        for name, group in groups.items()
        for first, _ in DECADES
        for _, last in DECADES
        if first < last
    }


def _ages_by_sex() -> dict[str, Floats]:
    return {
        f"HIV+ {name}, age {first}–{last}": _positive(sex=weights, age=_between(first, last))
        for name, weights in {"female": [1, 0], "male": [0, 1]}.items()
        for first, last in DECADES
    }


def _between(first: int, last: int) -> NDArray[np.bool_]:
    years = np.arange(AGES)
    return (years >= first) & (years <= last)


def _positive(state: ArrayLike = 1, age: ArrayLike = 1, sex: ArrayLike = 1) -> Floats:
    """Weights over all cells: of state times age times sex, for HIV-positive patients only."""
    weights = np.zeros(demo_domain().shape)
    by_state = np.asarray(state, dtype=np.float64).reshape(-1, 1, 1)
    by_age = np.asarray(age, dtype=np.float64).reshape(1, -1, 1)
    weights[..., 1] = by_state * by_age * np.asarray(sex, dtype=np.float64).reshape(1, 1, -1)
    return weights.ravel()
