"""The columns of groups of a statement's table: in the order of SELECT, with their kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.batches.compiler.expressions import CellLabel, shown
from lrm.domain.lookups import label_text
from lrm.workload import Column
from lrm.workload.statements import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lrm.batches.compiler.evaluation import Values
    from lrm.batches.compiler.grouping import Grouping
    from lrm.batches.compiler.predicates import Scope
    from lrm.workload import Kind

__all__ = ["TableColumns"]

_PARTS: dict[str, Kind] = {"year": "year", "month": "month_of_year"}


class TableColumns:
    """Collects the columns of groups of one SELECT from its grouping sets."""

    def __init__(self, select: exp.Expr, scope: Scope, renamed: Mapping[int, str]) -> None:
        self._select, self._scope, self._renamed = select, scope, renamed
        self._found: dict[str, Column] = {}

    def add(self, grouping: Grouping, values: Values | None) -> None:
        """Note the attributes and expressions of some grouping sets, with their values."""
        for axis in {axis for axes in grouping.sets for axis in axes}:
            attribute = self._scope.domain.attributes[axis]
            column = Column.of(attribute, self._renamed.get(axis))
            self._found.setdefault(column.name, column)
        for place, (name, node) in enumerate(grouping.keys.values()):
            if type(node) is CellLabel:
                attribute = self._scope.domain.attributes[self._scope.axis(node.this)]
                self._found.setdefault(name, Column.of(attribute, name))
            elif values is not None:
                different = {row[place] for row in values.distinct}
                self._found.setdefault(name, _computed(name, node, different))

    def ordered(self) -> tuple[Column, ...]:
        """The columns in the order of SELECT; those that it does not list come last."""
        order: dict[str, None] = {}
        for item in self._select.expressions:
            node = item.unalias()
            name = item.alias or node.name or shown(node)
            if type(node) is exp.Column and not item.alias:
                axis = self._scope.axis(node)
                name = self._renamed.get(axis, self._scope.domain.names[axis])
            if type(node) is exp.Literal and item.alias:
                self._found.setdefault(name, Column(name, labels=(str(node.this),)))
            if name in self._found:
                order.setdefault(name)
        order |= dict.fromkeys(self._found)
        return tuple(self._found[name] for name in order)


def _computed(name: str, node: exp.Expr, values: set[object]) -> Column:
    kind = kind_of(values)
    if kind == "integer":
        part = node.name if type(node) is exp.Extract else type(node).__name__
        kind = _PARTS.get(part.lower(), kind)
    known = sorted(value for value in values if value is not None)  # type: ignore[type-var]
    labels = [*map(label_text, known), *(["(null)"] if None in values else [])]
    return Column(name, kind, tuple(labels))
