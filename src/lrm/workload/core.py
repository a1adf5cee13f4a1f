"""Workload: a batch of named linear queries over the cells of a domain."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lrm.domain import Domain
from lrm.errors import WorkloadError
from lrm.maps.linear import DenseMap, Floats, LinearMap, SparseMap, as_map

__all__ = ["EXPLICIT_QUERIES", "NumberedNames", "Workload", "as_workload", "weigh_rows"]

EXPLICIT_QUERIES = 1 << 22
"""Above this many queries (4 million), per-query lists are refused."""


@dataclass(frozen=True)
class NumberedNames(Sequence[str]):
    """The names q1, q2, … without holding them.

    >>> NumberedNames(3)[-1]
    'q3'
    """

    length: int

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self.length)))
        number = index + self.length if index < 0 else index
        if not 0 <= number < self.length:
            raise IndexError(index)
        return f"q{number + 1}"


@dataclass(frozen=True, eq=False)
class Workload:
    """Linear queries, their names, and how much the error of each matters.

    Parameters
    ----------
    queries
        The linear map: an array, a SciPy sparse matrix, or a structured map.
    names
        One name a query, all different; q1, q2, … by default.
    importance
        How much a query's squared error counts for when a strategy is chosen
        (1 each by default). It changes no answer and no promised error.
    domain
        The public domain whose cells the columns are, where there is one.

    >>> workload = Workload([[1, 1, 0], [0, 1, 1]], names=["young", "old"])
    >>> workload.shape, workload.names[1]
    ((2, 3), 'old')
    """

    queries: LinearMap
    names: Sequence[str]
    importance: Floats | None
    domain: Domain | None

    def __init__(
        self,
        queries: LinearMap | ArrayLike | sp.sparray,
        *,
        names: Sequence[str] | None = None,
        importance: ArrayLike | None = None,
        domain: Domain | None = None,
    ) -> None:
        checked = as_map(queries)
        m, n = checked.shape
        if domain is not None and domain.size != n:
            raise WorkloadError(
                f"workload covers {n} cells but the domain has {domain.size}; "
                "was it built for another domain?"
            )
        set_field = object.__setattr__
        set_field(self, "queries", checked)
        set_field(self, "names", _checked_names(names, m))
        set_field(self, "importance", _checked_importance(importance, m))
        set_field(self, "domain", domain)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and number of cells."""
        return self.queries.shape

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the queries, their names and importances."""
        seal = hashlib.sha256(self.queries.digest.encode())
        if not isinstance(self.names, NumberedNames):
            seal.update("\x00".join(self.names).encode())
        if self.importance is not None:
            seal.update(self.importance.tobytes())
        return seal.hexdigest()

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<Workload: {m:,} queries over {n:,} cells ({self.queries.kind})>"


def _checked_names(names: Sequence[str] | None, count: int) -> Sequence[str]:
    if names is None or isinstance(names, NumberedNames):
        return NumberedNames(count)
    given = tuple(str(name) for name in names)
    if len(given) != count:
        raise WorkloadError(f"{count} queries need {count} names, but {len(given)} came")
    if len(set(given)) != count:
        twice = next(name for name in given if given.count(name) > 1)
        raise WorkloadError(f"query names must differ, but {twice!r} stands there twice")
    return given


def _checked_importance(importance: ArrayLike | None, count: int) -> Floats | None:
    if importance is None:
        return None
    values = np.array(importance, dtype=np.float64)
    if values.shape != (count,):
        raise WorkloadError(
            f"importance needs one number a query ({count}), but its shape is {values.shape}"
        )
    if not np.all(np.isfinite(values) & (values > 0)):
        raise WorkloadError("importance needs finite numbers above 0; leave a query out instead")
    if np.all(values == 1.0):
        return None
    values.flags.writeable = False
    return values


def weigh_rows(queries: LinearMap, importance: Floats | None) -> LinearMap:
    """The map whose total squared error is the weighted one: row i times √importanceᵢ."""
    if importance is None:
        return queries
    weight = np.sqrt(importance)
    if isinstance(queries, SparseMap):
        return SparseMap(sp.csr_array(sp.diags_array(weight) @ queries.matrix))
    return DenseMap(queries.dense() * weight[:, None])


def as_workload(queries: Any) -> Workload:
    """Take a workload, or anything that a workload can be made of."""
    if isinstance(queries, str | PathLike):
        raise WorkloadError(
            "a workload is an array, a sparse matrix or a Workload, but a file name came; "
            "read the file with lrm.workload.file.read_workload"
        )
    return queries if isinstance(queries, Workload) else Workload(queries)
