r"""Plans over several levels of a people: one plan per level, with stated shares of one guarantee.

The batch of each level is planned by itself, with noise of its own. A release measures all of them
under one guarantee, of which level ℓ has the share ω_ℓ, with Σ ω_ℓ = 1. A person moves the
measurements of a level by its sensitivity Δ_ℓ times the most rows c_ℓ that are counted of a person,
so that noise of scale ``c_ℓ·Δ_ℓ/(ω_ℓ·ε)`` keeps ω_ℓ·ε for the level, and ε for all: a person who is
added or removed is so in every level, and what levels keep adds up, whatever they have in common.
With Gaussian noise it is ρ that adds up.

In units of the noise, a person moves level ℓ by ω_ℓ in L1, and by √ω_ℓ in L2. These are the
sensitivities ``Δ₁ = Σ_ℓ Δ₁,ℓ`` and ``Δ₂² = Σ_ℓ Δ₂,ℓ²`` of all measurements as one design.

The expected error of a level is in proportion to ``1/ω_ℓ²`` (``1/ω_ℓ`` with Gaussian noise), so
that with errors e_ℓ at the whole guarantee the sum is least for ``ω_ℓ ∝ e_ℓ^⅓`` (``e_ℓ^½``).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from lrm.domain.people import Levels
from lrm.errors import WorkloadError
from lrm.planning.accuracy import Accuracy
from lrm.planning.accuracy.levels import LevelsAccuracy
from lrm.planning.design.levels import LevelsMeasured, LevelsReconstruction
from lrm.planning.plan.concerns import larger_errors, plan_concerns
from lrm.planning.plan.core import Plan
from lrm.planning.plan.goals import Objective
from lrm.privacy.budget import ZCDP, ApproxDP, Privacy, PureDP, rho_for
from lrm.privacy.norms import norm_of
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Statement, Workload
from lrm.queries.workload.levels import Places, split_levels

PARTS_OF_ONE = 10_000
"""Shares are multiples of one part in this number."""


@dataclass(frozen=True, eq=False, repr=False)
class LevelsPlan(Plan):
    """A plan for statements about persons and about rows, or about rows of several tables.

    Parameters
    ----------
    parts
        The plan of each level.
    shares
        The share of the guarantee that each level has.
    places
        Which level each query of the batch is of.
    """

    parts: tuple[Plan, ...] = ()
    shares: tuple[Fraction, ...] = ()
    places: Places = field(default=Places(()))

    def __post_init__(self) -> None:
        """Refuse shares that add up to more than the guarantee, and plans of other queries."""
        _check_shares(self.parts, self.shares)
        split = split_levels(self.workload)
        wanted = [(batch.unweighted_digest, batch.domain) for batch in split.batches]
        stated = [(part.workload.unweighted_digest, part.workload.domain) for part in self.parts]
        if wanted != stated or split.places != self.places:
            raise WorkloadError("the plans of the levels are not those of the batch's queries")
        if len({part.measured.norm.guarantee for part in self.parts}) > 1:
            raise WorkloadError("all levels need noise of one guarantee")

    def _at(self, workload: Workload, edition: str) -> LevelsPlan:
        parts = tuple(part.at(edition) for part in self.parts)
        return replace(self, workload=workload, parts=parts)

    def for_batch(self, batch: Workload) -> LevelsPlan | None:
        batch = batch.over_all_rows()
        if not isinstance(getattr(batch.domain, "level", None), Levels):
            return None
        split = split_levels(batch)
        if split.places != self.places:
            return None
        parts = [part.for_batch(own) for part, own in zip(self.parts, split.batches, strict=True)]
        every = tuple(part for part in parts if part is not None)
        if len(every) < len(parts):
            return None
        weighted = replace(batch, importance=self.workload.importance)
        return replace(self, workload=weighted, parts=every)

    @classmethod
    def of(
        cls,
        workload: Workload,
        parts: Sequence[Plan],
        shares: Sequence[Fraction],
        objective: Objective,
    ) -> LevelsPlan:
        """The plan whose levels have some plans and shares."""
        _check_shares(parts, shares)
        places = split_levels(workload).places
        norm = norm_of(parts[0].noise)
        units = [
            part.sensitivity * part.unit.factor / float(share) ** (norm.power / 2)
            for part, share in zip(parts, shares, strict=True)
        ]
        reconstruction = LevelsReconstruction(
            tuple(part.reconstruction_map for part in parts),
            tuple(2.0**-part.bits for part in parts),
            tuple(unit**2 for unit in units),
            places,
        )
        digest = json.dumps([[part.measured.digest for part in parts], list(map(str, shares))])
        measured: Any = LevelsMeasured(
            measurement_count=sum(part.measurement_count for part in parts),
            cell_count=sum(part.measured.cell_count for part in parts),
            merged_cell_count=sum(part.measured.merged_cell_count for part in parts),
            max_records=min(part.max_records for part in parts),
            digest=hashlib.sha256(digest.encode()).hexdigest(),
            norm=norm,
        )
        seconds: list[Any] = [part.details.get("seconds") for part in parts]
        return cls(
            workload=workload,
            mechanism=parts[0].mechanism,
            measured=measured,
            reconstruction_map=reconstruction,
            least_error=0.0,
            spectrum=None,
            exact=all(part.exact for part in parts),
            objective=objective,
            details={
                "seconds": None if None in seconds else sum(seconds),
                "software": parts[0].details.get("software"),
                "interrupted": any(part.details.get("interrupted") for part in parts),
            },
            parts=tuple(parts),
            shares=tuple(shares),
            places=places,
        )

    def releases(self, privacy: Privacy) -> list[tuple[Plan, Privacy]]:
        guarantees: list[Privacy] = []
        for share in self.shares:
            if isinstance(privacy, PureDP):
                guarantees.append(PureDP(privacy.epsilon * share))
                continue
            # (ε, δ) does not add up: the ρ that implies it does.
            whole = privacy.rho if isinstance(privacy, ZCDP) else rho_of(privacy)
            guarantees.append(ZCDP(whole * share))
        return list(zip(self.parts, guarantees, strict=True))

    def accuracy(self, privacy: Privacy, unit: PrivacyUnit | None = None) -> Accuracy:
        assert isinstance(self.reconstruction_map, LevelsReconstruction)  # noqa: S101 - by `of`
        parts = [part.accuracy(guarantee) for part, guarantee in self.releases(privacy)]
        return LevelsAccuracy.of(parts, self.reconstruction_map, privacy, unit or self.unit)

    @cached_property
    def statement_ratios(self) -> Floats | None:
        if self.objective == "total":
            return None
        squares: dict[str, float] = {}
        for part, ratio in zip(self.parts, self._ratios, strict=True):
            for statement, value in zip(part.workload.statements, ratio.tolist(), strict=True):
                squares[statement.name] = max(value, squares.get(statement.name, 0.0))
        ratios = [squares.get(statement.name, 0.0) for statement in self.workload.statements]
        return np.array(ratios)

    @cached_property
    def _ratios(self) -> list[Floats]:
        """The errors of each level's statements relative to an even split over all levels."""
        squares = [statement_squares(part) for part in self.parts]
        count = sum(len(own) for own in squares)
        ratios = []
        for own, share in zip(squares, map(float, self.shares), strict=True):
            power = self.measured.norm.power / 2
            ratios.append(np.sqrt(own) * (len(own) / (count * share)) ** power)
        return ratios

    @property
    def strategy(self) -> Floats | sp.csr_array:
        raise WorkloadError("levels are measured one by one; each of plan.parts has a strategy")

    @property
    def sensitivity(self) -> float:
        """How far a person moves the measurements in units of their noise: at most 1."""
        return 1.0

    @property
    def record_bits(self) -> int:
        return 0

    @property
    def clipping(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(words for part in self.parts for words in part.clipping))

    @property
    def at_most_above_best(self) -> float:
        return math.inf

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        dropping = [words for part in self.parts for words in dropped_words(part)]
        return (*dict.fromkeys(dropping), *larger_errors(self))

    @property
    def levels(self) -> tuple[Plan, ...]:
        return self.parts

    def levels_of(self, statement: Statement) -> tuple[Plan, ...]:
        return tuple(
            part
            for part in self.parts
            if any(own.name == statement.name for own in part.workload.statements)
        )


def _check_shares(parts: Sequence[Plan], shares: Sequence[Fraction]) -> None:
    if len(shares) != len(parts) or min(shares) <= 0 or sum(shares) > 1:
        raise WorkloadError("the shares of levels must be positive and add up to at most 1")


def dropped_words(part: Plan) -> list[str]:
    """What a level's plan says of attributes that drop rows."""
    larger = set(larger_errors(part))
    return [words for words in plan_concerns(part) if words not in larger and "drop" in words]


def statement_squares(part: Plan) -> Floats:
    """The squared errors of a level's statements over those of an even split; 1 of a single one.

    A level with one statement is planned for that alone.
    """
    ratios = part.statement_ratios
    return np.ones(max(len(part.workload.statements), 1)) if ratios is None else ratios**2


def rho_of(privacy: ApproxDP) -> Fraction:
    """The ρ of zCDP that implies (ε, δ)."""
    return rho_for(privacy.epsilon, privacy.delta)


def best_shares(parts: Sequence[Plan], objective: Objective) -> list[Fraction]:
    """The shares with the least error by an objective, as whole parts of one.

    >>> weights_as_shares([1.0, 3.0])
    [Fraction(1, 4), Fraction(3, 4)]
    """
    power = norm_of(parts[0].noise).power
    if objective == "total":
        errors = [part.weighted_strategy_error * part.unit.factor**2 for part in parts]
    else:
        summed = {"worst": np.max}.get(objective, np.sum)
        squares = [statement_squares(part) for part in parts]
        errors = [float(summed(own)) * len(own) ** power for own in squares]
    # The sum of e/ω^power is least so; the largest, where all are the same.
    exponent = 1 / power if objective == "worst" else 1 / (power + 1)
    return weights_as_shares([error**exponent for error in errors])


def weights_as_shares(weights: Sequence[float]) -> list[Fraction]:
    """Whole parts of one, in about the proportion of some weights, each at least one percent."""
    total = sum(weights) or 1.0
    # Parts that every level has at least.
    wanted = [max(weight / total, 100 / PARTS_OF_ONE) for weight in weights]
    parts = [max(1, int(PARTS_OF_ONE * part / sum(wanted))) for part in wanted]
    parts[int(np.argmax(parts))] += PARTS_OF_ONE - sum(parts)
    return [Fraction(part, PARTS_OF_ONE) for part in parts]
