"""Releases over several levels of a people: one release per level, under one guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lrm.errors import BudgetError, UnsupportedQuery, UsageError
from lrm.planning.accuracy import Accuracy
from lrm.planning.accuracy.levels import LevelsAccuracy
from lrm.planning.design.levels import LevelsReconstruction
from lrm.planning.plan.levels import LevelsPlan
from lrm.privacy.budget import Privacy
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.workload import Workload
from lrm.queries.workload.levels import split_levels
from lrm.releases.core import Release

if TYPE_CHECKING:
    from lrm.releases.known import KnownTable
    from lrm.releases.synthetic import SyntheticRows


@dataclass(frozen=True, eq=False, repr=False)
class LevelsRelease(Release):
    """The answers of a plan over several levels.

    Parameters
    ----------
    parts
        The release of each level, with its share of the guarantee.
    """

    parts: tuple[Release, ...] = ()

    @classmethod
    def of(
        cls,
        plan: LevelsPlan,
        parts: Sequence[Release],
        privacy: Privacy,
        unit: PrivacyUnit,
        ledger_head: str | None = None,
    ) -> LevelsRelease:
        """The release whose levels were released with the shares of a guarantee."""
        return cls(
            plan=plan,
            noisy_measurements=np.concatenate([part.noisy_measurements for part in parts]),
            privacy=privacy,
            loss=sum((part.loss for part in parts), Fraction(0)),
            distribution=", ".join(dict.fromkeys(part.distribution for part in parts)),
            scale=1.0,
            unit=unit,
            simulated=any(part.simulated for part in parts),
            software=parts[0].software,
            ledger_head=ledger_head,
            parts=tuple(parts),
        )

    def _check_noise(self) -> None:
        """Refuse levels that have another share of the guarantee than the plan says.

        That the noise of each keeps its share, its own release has checked.
        """
        wanted = self.plan.releases(self.privacy)
        pairs = [(part.plan, part.privacy) for part in self.parts]
        same = [plan.digest for plan, _ in wanted] == [plan.digest for plan, _ in pairs]
        if not same or [privacy for _, privacy in wanted] != [privacy for _, privacy in pairs]:
            raise BudgetError("the levels do not have the shares of the guarantee")
        if any(part.simulated != self.simulated for part in self.parts):
            raise BudgetError("either all levels have simulated noise, or none has")
        if self.loss != sum(part.loss for part in self.parts):
            raise BudgetError("the stated privacy loss is not that of the noise")
        values = np.concatenate([part.noisy_measurements for part in self.parts])
        if not np.array_equal(values, self.noisy_measurements):
            raise BudgetError("the measurements are not those of the levels")

    @property
    def levels(self) -> tuple[Release, ...]:
        return self.parts

    @cached_property
    def accuracy(self) -> Accuracy:
        reconstruction = self.plan.reconstruction_map
        assert isinstance(reconstruction, LevelsReconstruction)  # noqa: S101 - of such a plan
        parts = [part.accuracy for part in self.parts]
        return LevelsAccuracy.of(parts, reconstruction, self.privacy, self.unit)

    def further(self, batch: Workload) -> Release:
        """Answers of other queries over the levels, each from the measurements of its own."""
        domain = self.plan.workload.domain
        if domain is None or batch.domain != domain:
            raise UnsupportedQuery("the queries must be over the levels of this release")
        split = split_levels(batch)
        parts = [
            self.parts[number].further(queries)
            for number, queries in zip(split.numbers, split.batches, strict=True)
        ]
        if len(parts) == 1 and not batch.derived:
            return parts[0]
        plan = self.plan
        assert isinstance(plan, LevelsPlan)  # noqa: S101 - by construction
        shares = [plan.shares[number] for number in split.numbers]
        made = LevelsPlan.of(batch, [part.plan for part in parts], shares, "total")
        return LevelsRelease.of(made, parts, self.privacy, self.unit, self.ledger_head)

    def synthesize(
        self,
        rows: int | None = None,
        seed: int | None = None,
        known: Sequence[KnownTable] = (),
        *,
        progress: bool = True,
    ) -> SyntheticRows:
        """Rows are of one level: an error that says how to make those."""
        del rows, seed, known, progress
        raise UsageError(
            "rows are made of the answers about persons, or about one table: synthesize from one "
            "of release.levels"
        )

    def _noise_facts(self) -> Any:
        return [
            {**part._noise_facts(), "loss": str(part.loss)}  # noqa: SLF001 - of its class
            for part in self.parts
        ]
