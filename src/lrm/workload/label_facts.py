"""Parts of labels as values that JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from lrm.errors import WorkloadError
from lrm.maps.products.factors import LARGEST_SIZE
from lrm.workload.cross_tabs import CrossTabs
from lrm.workload.label_parts import Axis, Grouped, Named, Numbered
from lrm.workload.numbered_labels import NumberedLabels
from lrm.workload.taken_labels import Part

__all__ = ["label_facts", "parts_from_facts"]

_NUMBERED_KINDS: tuple[Literal["identity", "prefix", "all-ranges", "rows"], ...] = (
    "identity",
    "prefix",
    "all-ranges",
    "rows",
)

_MEMBERS = {"query", "groups", "orders", "line", "hidden"}

_MOST_PLACES = 1 << 20
"""Upper bound on attributes times order of cross-tabs: the numbers kept to find one label."""


def label_facts(part: Part, *, lines: bool) -> Iterator[dict[str, Any]]:
    """One part as facts; `parts_from_facts` reads them."""
    if isinstance(part, Numbered):
        yield {"numbered": part.count, "first": part.first}
    elif isinstance(part, Named):
        yield from ({"query": query} for query in part.queries)
    elif isinstance(part, CrossTabs):
        fact: dict[str, Any] = {
            "query": part.query,
            "orders": list(part.orders),
            "groups": [_axis_facts(axis) for axis in part.axes],
        }
        if lines and part.line is not None:
            fact["line"] = part.line
        yield fact
    else:
        fact = {"query": part.query}
        if part.axes:
            fact["groups"] = [_axis_facts(axis) for axis in part.axes]
        if lines and part.line is not None:
            fact["line"] = part.line
        if part.hidden:
            fact["hidden"] = True
        yield fact


def _axis_facts(axis: Axis) -> list[Any]:
    attribute, labels = axis
    if isinstance(labels, NumberedLabels):
        return [attribute, {labels.kind: labels.size}]
    return [attribute, list(labels)]


def parts_from_facts(facts: Any) -> list[Part]:
    """Read what `label_facts` gave of all parts; anything else is a WorkloadError."""
    if not isinstance(facts, list) or not facts:
        raise WorkloadError("labels must be a list of parts")
    parts: list[Part] = []
    for named, run in _runs(facts):
        if named:
            parts.append(Named(tuple(fact["query"] for fact in run)))
        else:
            parts += [_part(fact) for fact in run]
    return parts


def _runs(facts: list[Any]) -> Iterator[tuple[bool, list[Any]]]:
    """Split into runs of plain names, which are one part, and of everything else."""
    run: list[Any] = []
    before = False
    for fact in facts:
        plain = isinstance(fact, dict) and set(fact) == {"query"} and isinstance(fact["query"], str)
        if run and plain != before:
            yield before, run
            run = []
        before = plain
        run.append(fact)
    yield before, run


def _part(fact: Any) -> Part:
    if isinstance(fact, dict) and set(fact) == {"numbered", "first"}:
        count, first = fact["numbered"], fact["first"]
        if type(count) is int and type(first) is int and count > 0 and first > 0:
            return Numbered(count, first)
    elif isinstance(fact, dict) and {"query"} <= set(fact) <= _MEMBERS:
        query, line, hidden = fact["query"], fact.get("line"), fact.get("hidden", False)
        numbered = line is None or (type(line) is int and line >= 0)
        if isinstance(query, str) and numbered and type(hidden) is bool:
            axes = tuple(_axis(axis) for axis in _list(fact.get("groups", [])))
            if "orders" not in fact:
                return Grouped(query, axes, line, hidden)
            if not hidden:
                return CrossTabs(query, axes, _orders(fact["orders"], len(axes)), line)
    raise WorkloadError("a label must have a query, and may have groups, orders, line and hidden")


def _orders(orders: Any, attributes: int) -> tuple[int, ...]:
    order_list = _list(orders)
    if not order_list or not all(
        type(order) is int and 0 <= order <= attributes for order in order_list
    ):
        raise WorkloadError("the orders of cross-tabs must be numbers of attributes")
    if attributes * max(order_list) > _MOST_PLACES:
        raise WorkloadError(f"cross-tabs of {attributes:,} attributes are too many to be labelled")
    return tuple(order_list)


def _axis(axis: Any) -> Axis:
    pair = _list(axis)
    if len(pair) != 2 or not isinstance(pair[0], str):
        raise WorkloadError("a group must be an attribute with its labels")
    if isinstance(pair[1], dict):
        return pair[0], _numbered(pair[1])
    labels = _list(pair[1])
    if not labels or not all(isinstance(label, str) for label in labels):
        raise WorkloadError("the labels of a group must be text")
    return pair[0], tuple(labels)


def _numbered(facts: dict[Any, Any]) -> NumberedLabels:
    kinds = [kind for kind in _NUMBERED_KINDS if kind in facts]
    if len(facts) == 1 and kinds:
        size = facts[kinds[0]]
        if type(size) is int and 1 <= size <= LARGEST_SIZE:
            return NumberedLabels(kinds[0], size)
    raise WorkloadError("the labels of a numbered attribute must be a kind and a size")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise WorkloadError("the groups of a label must be lists")
    return value
