"""The features that the statements of a batch use, declared ones and new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from lrm.domain import Integers
from lrm.domain.features import Feature, flag, like, restricted, summed, undeclared
from lrm.domain.people import People
from lrm.domain.private_tables import PrivateTable
from lrm.errors import SqlError
from lrm.queries.sql.bind.scope import bare, folded, place
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.source import DUCKDB

LARGEST_CONSTANT = 10_000
"""Constants up to which a number that is not declared may be compared."""

_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


@dataclass(eq=False)
class _Wanted:
    """A feature that statements use: what it is, its name, and what it is compared with."""

    name: str
    of: PrivateTable
    value: Any
    column: str | None = None
    where: str | None = None
    order: str | None = None
    declared: Feature | None = None
    constants: set[int] = field(default_factory=set)
    added_up: bool = False

    def feature(self, declared: Sequence[Feature]) -> Feature | None:
        """The feature, where the domain does not declare it; ``declared`` are those that it does.

        A count or sum with a condition has the range of the one without.
        """
        if self.declared is not None:
            return None
        source = None if self.column is None else self.of.attribute(self.column)
        clip = None
        if self.value == "exists":
            attribute: Any = flag(self.name)
        elif self.value in {"min", "max", "first", "last"} and source is not None:
            attribute = like(source, self.name)
        else:
            whole = (self.of.name, self.value, self.column, None, self.order)
            for feature in declared:
                part = restricted(feature, self.name, self.where)
                if feature.meaning == whole and part is not None and not self.is_compared:
                    return part
            known = None
            if self.value == "sum" and source is not None:
                known = summed(source, self.name, self.constants)
            if self.added_up or (self.value == "sum" and known is None):
                raise SqlError(self._undeclared(), code="subquery")
            attribute, clip = known or (undeclared(self.name, self.constants), None)
        return Feature(
            attribute, self.of.name, self.value, self.column, self.where, clip, self.order
        )

    @property
    def is_compared(self) -> bool:
        """Whether it is compared with constants, and not used otherwise."""
        return bool(self.constants) and not self.added_up

    def _undeclared(self) -> str:
        rules = [f"of: {self.of.name}", f"value: {self.value}"]
        rules += [f"column: {self.column}"] if self.column else []
        rules += [f'where: "{self.where}"'] if self.where else []
        rules += ["clip: [0, 100]"] if self.value == "sum" else []
        line = ", ".join([f"name: {self.name}", *rules, "kind: integers, low: 0, high: 20"])
        what = "rows" if self.value == "count" else f"{self.value} of {self.column}"
        return (
            f"the {what} per person in {self.of.name!r} is grouped by or added up, but has no "
            f"range; declare it from public knowledge, under features: {{{line}}}"
        )


class Features:
    """The features of one batch: each once, however often statements write it.

    Parameters
    ----------
    people
        The people, which may declare some.
    known
        Further ones that a release has.
    """

    def __init__(self, people: People, known: Sequence[Feature] = ()) -> None:
        self.people = people
        self._declared = [*people.features, *known]
        self._wanted: dict[tuple[object, ...], _Wanted] = {}

    def want(
        self,
        of: PrivateTable,
        value: str,
        column: str | None = None,
        where: exp.Expr | None = None,
        order: str | None = None,
    ) -> exp.Column:
        """The column of a feature: a declared one that means the same, or a new one."""
        text = None if where is None else where.sql(dialect=DUCKDB, comments=False)
        for part in () if where is None else where.find_all(exp.Column):
            if of.attribute(part.name) is None:
                raise refuse(
                    "subquery",
                    f"{part.sql(dialect=DUCKDB)!r} in a condition on rows of {of.name!r}",
                    f"conditions inside of EXISTS, of sub-selects per person and of COUNT(DISTINCT "
                    f"person) are on columns of {of.name!r} alone",
                    at=place(part),
                )
        key = (of.name, value, column, text, order)
        wanted = self._wanted.get(key)
        if wanted is None:
            declared = next((f for f in self._declared if f.meaning == key), None)
            name = declared.name if declared else self._free(f"{of.name}_{value}")
            wanted = _Wanted(name, of, value, column, text, order, declared)
            self._wanted[key] = wanted
        return exp.column(wanted.name, quoted=True)

    def _free(self, name: str) -> str:
        taken = {folded(wanted.name) for wanted in self._wanted.values()}
        taken |= {folded(feature.name) for feature in self._declared}
        taken |= {folded(a.name) for table in self.people.tables for a in table.attributes}
        number, candidate = 1, name
        while folded(candidate) in taken:
            number += 1
            candidate = f"{name}_{number}"
        return candidate

    @property
    def names(self) -> set[str]:
        """What they are called."""
        return {wanted.name for wanted in self._wanted.values()}

    def made(self) -> list[Feature]:
        """Those that the domain does not declare."""
        every = (wanted.feature(self.people.features) for wanted in self._wanted.values())
        return [feature for feature in every if feature is not None]

    def every(self) -> list[Feature]:
        """All that statements use, declared ones too."""
        declared = (wanted.declared for wanted in self._wanted.values())
        return [*(feature for feature in declared if feature is not None), *self.made()]

    def check_known(self) -> None:
        """Refuse what does not follow from the known features: others, and larger constants."""
        undeclared_names = {f.name for f in self._declared} - {f.name for f in self.people.features}
        for wanted in self._wanted.values():
            feature = wanted.declared
            short = feature is not None and wanted.name in undeclared_names
            # A number that no domain declares ends at the constants of the release's statements.
            attribute = None if feature is None else feature.attribute
            most = attribute.high - 1 if isinstance(attribute, Integers) else 0
            beyond = short and bool(wanted.added_up or max(wanted.constants, default=0) > most)
            if feature is None or (beyond and wanted.value in {"count", "sum", "distinct"}):
                raise SqlError(
                    f"the release has no {wanted.value} per person in {wanted.of.name!r} with this "
                    "condition; plan a new release that includes it",
                    code="subquery",
                )

    def note_use(self, tree: exp.Expr) -> None:
        """Note which constants features are compared with, and which are used otherwise."""
        by_name = {wanted.name: wanted for wanted in self._wanted.values()}
        for node in tree.find_all(exp.Column):
            wanted = by_name.get(node.name)
            if wanted is None or wanted.value not in {"count", "sum", "distinct"}:
                continue
            constants = _constants(node)
            if constants is None:
                wanted.added_up = True
            else:
                wanted.constants |= constants


def _constants(node: exp.Expr) -> set[int] | None:
    """The whole numbers that a feature is compared with; None where it is used otherwise."""
    inner, parent = node, node.parent
    while isinstance(parent, exp.Paren):
        inner, parent = parent, parent.parent
    if isinstance(parent, _COMPARED):
        others: list[Any] = [parent.expression if parent.this is inner else parent.this]
    elif isinstance(parent, exp.Between) and parent.this is inner:
        others = [parent.args["low"], parent.args["high"]]
    elif isinstance(parent, exp.In) and parent.this is inner:
        others = parent.expressions
    else:
        return None
    values = set()
    for other in map(bare, others):
        if not isinstance(other, exp.Literal) or other.is_string or not other.name.isdigit():
            return None
        values.add(int(other.name))
    return values if values and max(values) < 10_000 else None


def conjunction(parts: Sequence[exp.Expr]) -> exp.Expr | None:
    """AND of conditions; None of none."""
    return exp.and_(*(part.copy() for part in parts), copy=False) if parts else None


def unqualified(node: exp.Expr) -> exp.Expr:
    """A copy of a condition whose columns have no table before them."""
    node = node.copy()
    for column in node.find_all(exp.Column):
        column.set("table", None)
    return node


def inside(node: exp.Expr, alias: str) -> exp.Expr:
    """A condition of a sub-select on one table; an error where it names another table."""
    for column in node.find_all(exp.Column):
        if column.table and folded(column.table) != alias:
            raise refuse(
                "subquery",
                f"{column.sql(dialect=DUCKDB)!r} in a sub-select",
                "conditions inside are on its own table; put others outside",
                at=place(column),
            )
    return unqualified(node)
