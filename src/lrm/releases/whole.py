"""The whole guarantee of a release whose domain has values that were discovered.

What such a release and the discoveries reveal adds up, in ρ and in δ, for the persons that both are
about: those of the same edition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from lrm.domain import Categories
from lrm.domain.discovery import Discovery
from lrm.errors import BudgetError
from lrm.privacy.amounts import equation
from lrm.privacy.budget import ZCDP, ApproxZCDP, PureDP, rho_of_pure
from lrm.privacy.periods import parse_editions

if TYPE_CHECKING:
    from lrm.releases.core import Release


@dataclass(frozen=True)
class Whole:
    """What a release and the discoveries before it guarantee together.

    Parameters
    ----------
    discoveries
        The names of attributes, each with a discovery about persons of the release.
    others
        Those of other editions, which do not add up with it.
    guarantee
        The guarantee of the release and of ``discoveries`` together; None where there are none.
    """

    discoveries: tuple[tuple[str, Discovery], ...]
    others: tuple[tuple[str, Discovery], ...]
    guarantee: ApproxZCDP | None

    @property
    def sentence(self) -> str:
        """The whole guarantee in words; empty where no value was discovered."""
        parts = [
            f"values of {name!r} were discovered before ({entry.guarantee.symbols})"
            for name, entry in self.discoveries
        ]
        if self.guarantee is not None:
            parts.append(f"together with this release that is {self.guarantee.described}")
        parts += [
            f"values of {name!r} were discovered in {entry.edition} "
            f"({entry.guarantee.symbols} there)"
            for name, entry in self.others
        ]
        return "; ".join(parts)


def whole_of(release: Release) -> Whole:
    """The whole guarantee of a release.

    >>> import lrm
    >>> from lrm.domain.discovery import Discovery
    >>> found = Discovery(1, "0.01", "1e-8", most=1, least=40, scale=7.1, length=40)
    >>> tag = lrm.Categories("tag", ["red", "blue"], discovered=[found])
    >>> plan = lrm.plan("SELECT tag, COUNT(*) FROM t GROUP BY tag", domain=lrm.Domain([tag], "t"))
    >>> whole_of(lrm.release(plan, [10, 20], epsilon="0.2")).guarantee
    ApproxZCDP(rho=0.03, delta=1e-08)
    """
    same: list[tuple[str, Discovery]] = []
    others: list[tuple[str, Discovery]] = []
    for name, entry in _discoveries([release]):
        (same if _is_about(release, entry) else others).append((name, entry))
    guarantee = None
    if same:
        rho = sum((entry.guarantee.rho for _, entry in same), _rho(release))
        delta = sum((entry.guarantee.delta for _, entry in same), Fraction(0))
        guarantee = ApproxZCDP(rho, min(delta, Fraction(1, 2)))
    return Whole(tuple(same), tuple(others), guarantee)


def added_up(releases: Sequence[Release]) -> str:
    """What releases and the discoveries before them reveal about one person, in symbols.

    A discovery that several of the releases use was made once, and counts once.
    """
    amounts = [release.privacy for release in releases]
    found = list(_discoveries(releases))
    if not found and all(isinstance(privacy, PureDP) for privacy in amounts):
        pure = (entry.epsilon for entry in amounts if isinstance(entry, PureDP))
        return equation("ε", sum(pure, Fraction(0)))
    guarantees = [entry.guarantee for _, entry in found]
    rho = sum(map(_rho, releases), sum((entry.rho for entry in guarantees), Fraction(0)))
    delta = sum((entry.delta for entry in guarantees), Fraction(0))
    return equation("ρ", rho) + (f" with {equation('δ', delta)}" if found else "")


def _discoveries(releases: Sequence[Release]) -> Iterator[tuple[str, Discovery]]:
    """The discoveries before some releases, each with its attribute.

    Statements name values of all tables of a level, also where they are no attributes of it: yes/no
    features per value. One that several levels or releases use was made once; equal records of one
    attribute are discoveries of their own.
    """
    found: Counter[tuple[str, str, Discovery]] = Counter()
    for level in (level for release in releases for level in release.levels):
        domain = level.plan.workload.domain
        if domain is None:
            continue
        tables = {"": domain.attributes}
        if domain.level is not None:
            tables = {table.name: table.attributes for table in domain.level.tables}
        for table, attributes in tables.items():
            found |= Counter(
                (table, attribute.name, entry)
                for attribute in attributes
                if isinstance(attribute, Categories)
                for entry in attribute.discovered or ()
            )
    yield from ((name, entry) for _, name, entry in found.elements())


def _rho(release: Release) -> Fraction:
    """What a release counts where losses are added up as ρ."""
    if isinstance(release.privacy, PureDP):
        return rho_of_pure(release.privacy).rho
    return release.privacy.rho if isinstance(release.privacy, ZCDP) else release.loss


def _is_about(release: Release, entry: Discovery) -> bool:
    """Whether a discovery read an edition that the release reads; where unknown, it did."""
    domain = release.plan.workload.domain
    editions = None if domain is None else domain.editions
    if editions is None or entry.edition is None:
        return True
    try:
        read = {edition.name for edition in parse_editions(editions.by, entry.edition)}
    except BudgetError:
        return True
    return not read.isdisjoint(editions.names)
