"""Which labels a batch has so far, by part, to find one that another part repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lrm.errors import WorkloadError
from lrm.maps.products.batch import MOST_QUERIES
from lrm.workload.cross_tabs import CrossTabs
from lrm.workload.label_parts import Grouped, Label, Named, Numbered
from lrm.workload.numbered_labels import NumberedLabels

__all__ = ["Part", "TakenLabels"]

Part = Numbered | Named | Grouped | CrossTabs
"""What the labels of a batch are made of."""

_Key = tuple[str, frozenset[str]]
"""A query's name and the attributes that it is grouped by."""


@dataclass
class TakenLabels:
    """Labels seen so far, by part, to find out whether another part repeats one of them."""

    _numbered: list[Numbered] = field(default_factory=list)
    _single: dict[_Key, dict[frozenset[tuple[str, str]], Label]] = field(default_factory=dict)
    _products: dict[_Key, list[Grouped]] = field(default_factory=dict)
    _tabs: dict[str, list[CrossTabs]] = field(default_factory=dict)
    _distinct: dict[int, Sequence[str]] = field(default_factory=dict)

    def add(self, part: Part) -> Label | None:
        """Take a part's labels; return the earlier label that one of them repeats, if any."""
        if isinstance(part, Numbered):
            return self._add_numbered(part)
        if isinstance(part, Named):
            clashes = (self._add_single(label) for label in part)
            return next((clash for clash in clashes if clash is not None), None)
        self._check_axes(part)
        if isinstance(part, CrossTabs):
            return self._add_tabs(part)
        if len(part) == 1:
            return self._add_single(part.label(0))
        return self._in_tabs(part) or self._add_product(part)

    def _add_numbered(self, part: Numbered) -> Label | None:
        for other in self._numbered:
            if max(part.first, other.first) < min(part.first + len(part), other.first + len(other)):
                return Label(f"q{max(part.first, other.first)}")
        self._numbered.append(part)
        totals = (tabs.query for several in self._tabs.values() for tabs in several if _total(tabs))
        singles = (query for query, attributes in self._single if not attributes)
        return next((Label(query) for query in (*singles, *totals) if part.clash(query)), None)

    def _add_single(self, label: Label) -> Label | None:
        if not label.group and any(part.clash(label.query) for part in self._numbered):
            return label
        clash = self._in_tabs(_alone(label))
        if clash is not None:
            return clash
        key = label.query, frozenset(attribute for attribute, _ in label.group)
        earlier = self._single.setdefault(key, {}).setdefault(frozenset(label.group), label)
        if earlier is not label:
            return earlier
        for other in self._products.get(key, ()):
            axes = dict(other.axes)
            if all(value in axes[attribute] for attribute, value in label.group):
                return replace(label, line=other.line)
        return None

    def _in_tabs(self, part: Grouped) -> Label | None:
        for tabs in self._tabs.get(part.query, ()):
            clash = tabs.repeats(part)
            if clash is not None:
                return replace(clash, line=tabs.line)
        return None

    def _add_product(self, part: Grouped) -> Label | None:
        key = part.query, frozenset(part.attributes)
        bucket = self._products.setdefault(key, [])
        singles = self._single.get(key, {})
        if bucket or singles:
            axes = {attribute: set(labels) for attribute, labels in part.axes}
            for label in singles.values():
                if all(value in axes[attribute] for attribute, value in label.group):
                    return label
            for other in bucket:
                # A batch may have hundreds of parts of one query, and each is compared with each.
                if any(axes[attribute].isdisjoint(labels) for attribute, labels in other.axes):
                    continue
                group = tuple(
                    (attribute, next(value for value in labels if value in axes[attribute]))
                    for attribute, labels in other.axes
                )
                return Label(part.query, group, other.line)
        bucket.append(part)
        return None

    def _add_tabs(self, part: CrossTabs) -> Label | None:
        if _total(part) and any(other.clash(part.query) for other in self._numbered):
            return Label(part.query)
        several = self._tabs.setdefault(part.query, [])
        products = [
            other
            for (query, _), earlier in self._products.items()
            if query == part.query
            for other in earlier
        ]
        singles = [
            _alone(label)
            for (query, _), earlier in self._single.items()
            if query == part.query
            for label in earlier.values()
        ]
        taken_parts: list[Grouped | CrossTabs] = [*several, *products, *singles]
        clashes = (part.repeats(other) for other in taken_parts)
        clash = next((earlier for earlier in clashes if earlier is not None), None)
        several.append(part)
        return clash

    def _check_axes(self, part: Grouped | CrossTabs) -> None:
        names = [attribute for attribute, _ in part.axes]
        if len(set(names)) != len(names):
            raise WorkloadError(f"query {part.query!r} is grouped by an attribute twice")
        if isinstance(part, CrossTabs) and len(set(part.orders)) != len(part.orders):
            raise WorkloadError(f"query {part.query!r} has all tables of an order twice")
        for attribute, labels in part.axes:
            if id(labels) in self._distinct or isinstance(labels, NumberedLabels):
                continue
            if not labels or len(set(labels)) != len(labels):
                raise WorkloadError(
                    f"the labels of {attribute!r} must differ, and there must be at least one"
                )
            self._distinct[id(labels)] = labels  # kept: an id is unique only while it lives
        if part.count > MOST_QUERIES:
            raise WorkloadError(
                f"query {part.query!r} has more than 2^53 answers; group it by fewer attributes"
            )


def _total(tabs: CrossTabs) -> bool:
    return 0 in tabs.orders


def _alone(label: Label) -> Grouped:
    """The part that one label is."""
    axes = tuple((attribute, (value,)) for attribute, value in label.group)
    return Grouped(label.query, axes, label.line)
