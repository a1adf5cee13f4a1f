"""Which answers of a release are displayed, and in which order: ORDER BY, LIMIT and HAVING."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lrm.releases import Release
from lrm.releases.shown import shown_values
from lrm.spelling import many
from lrm.workload import EXPLICIT_QUERIES, Group
from lrm.workload.display import Display

__all__ = ["Shown", "display_facts", "displayed", "shown_positions"]


@dataclass(frozen=True)
class Shown:
    """What one display shows: positions of answers by query, of so many groups."""

    display: Display
    positions: dict[str, list[int]]
    groups: int

    @property
    def note(self) -> str:
        """What is displayed, in one sentence."""
        count = len(next(iter(self.positions.values())))
        names = ", ".join(self.display.queries)
        noisy = " by the noisy answers" if self.display.having or self.display.order else ""
        return (
            f"{names}: {self.display} displays {count:,} of "
            f"{many(self.groups, 'group', 'groups')}{noisy}; the release has all"
        )


def displayed(release: Release) -> list[Shown]:
    """Apply each display of a batch to the noisy answers; none where they cannot be listed."""
    workload = release.plan.workload
    if not workload.display or workload.shape[0] > EXPLICIT_QUERIES:
        return []
    asked = {name for one in workload.display for name in (*one.queries, *one.hidden)}
    places: dict[str, dict[Group, int]] = {name: {} for name in asked}
    for place, label in enumerate(workload.shown):
        if label.query in asked:
            places[label.query][label.group] = place
    answers = shown_values(release, release.answers)
    values = {
        name: {group: float(answers[place]) for group, place in own.items()}
        for name, own in places.items()
    }
    found = []
    for display in workload.display:
        groups = list(places[display.queries[0]])
        kept = display.shown(groups, values)
        positions = {
            name: [places[name][group] for group in kept if group in places[name]]
            for name in display.queries
        }
        found.append(Shown(display, positions, len(groups)))
    return found


def shown_positions(release: Release, shown: list[Shown]) -> list[int]:
    """The positions of all answers that are displayed, statements in the order of the batch."""
    labels = release.plan.workload.shown
    of = {name: one for one in shown for name in (*one.display.queries, *one.display.hidden)}
    done: set[int] = set()
    found: list[int] = []
    for place, label in enumerate(labels):
        one = of.get(label.query)
        if one is None:
            found.append(place)
        elif id(one) not in done:
            done.add(id(one))
            found += [place for own in one.positions.values() for place in own]
    return found


def display_facts(release: Release) -> list[dict[str, Any]]:
    """Each display with the positions of the answers that it shows, as JSON can hold them."""
    return [{**one.display.facts, "shown": one.positions} for one in displayed(release)]
