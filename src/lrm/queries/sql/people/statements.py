"""Statements over the tables of a people: which SELECTs read which level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from lrm.domain.people import SOURCE, Level, Levels, People
from lrm.errors import DomainError, SqlError
from lrm.queries.sql.bind.scope import bare, folded
from lrm.queries.sql.people.direct import DirectSelect
from lrm.queries.sql.people.features import Features
from lrm.queries.sql.people.select import (
    Lowered,
    condition_of,
    is_person,
    numbered,
    table_of,
)
from lrm.queries.sql.people.sub_selects import PerPersonSelect
from lrm.queries.sql.refusals import refuse

Known = dict[str, exp.Expr]
"""The sub-selects that WITH names."""


class Lowering:
    """Rewrites the statements of one batch, and collects their features."""

    def __init__(self, people: People, level: Level | Levels | None = None) -> None:
        self.people = people
        levels = level.levels if isinstance(level, Levels) else [] if level is None else [level]
        self.features = Features(people, [f for one in levels for f in one.features])
        self._selects_made: list[Lowered] = []

    def statement(self, tree: exp.Expr) -> exp.Expr:
        """Rewrite one statement."""
        tree = tree.copy()
        selects = list(self._selects(tree, {}))
        for select, known in selects:
            clause = select.args.get("with_")
            lowered = self._lowered(select, known)
            self._selects_made.append(lowered)
            if select is tree:
                tree = lowered.tree
                if clause is not None and tree.args.get("with_") is None:
                    tree.set("with_", clause)
            elif lowered.tree is not select:
                select.replace(lowered.tree)
        for clause in list(tree.find_all(exp.With)):
            rest = [cte for cte in clause.expressions if not cte.meta.get("per_person")]
            clause.set("expressions", rest)
            if not rest:
                clause.pop()
        if not selects:
            raise refuse("clause", "SELECT without FROM", "name the table")
        return tree

    def _lowered(self, select: exp.Select, known: Known) -> Lowered:
        if select.args.get("from_") is None:
            raise refuse("clause", "SELECT without FROM", "name the table")
        source = select.args["from_"].this
        inner = source.this if isinstance(source, exp.Subquery) else None
        if isinstance(source, exp.Table) and folded(source.name) in known:
            inner = known[folded(source.name)].this
        if inner is None:
            return DirectSelect(self.features, select).lower(known)
        return PerPersonSelect(self.features, select).lower(bare(inner).copy())

    def _selects(self, tree: exp.Expr, known: Known) -> Iterator[tuple[exp.Select, Known]]:
        """The SELECTs that read private tables, with the sub-selects that WITH names for them."""
        if isinstance(tree, exp.Subquery):
            yield from self._selects(tree.this, known)
            return
        clause = tree.args.get("with_")
        known = dict(known)
        for cte in [] if clause is None else clause.expressions:
            if self._is_per_person(cte.this):
                cte.meta["per_person"] = True
            else:
                yield from self._selects(cte.this, known)
            known[folded(cte.alias)] = cte
        if isinstance(tree, exp.SetOperation):
            yield from self._selects(tree.this, known)
            yield from self._selects(tree.expression, known)
        elif isinstance(tree, exp.Select):
            source = tree.args.get("from_")
            inner = None if source is None else source.this
            if isinstance(inner, exp.Table) and folded(inner.name) in known:
                cte = known[folded(inner.name)]
                if cte.meta.get("per_person"):
                    yield tree, known
            elif isinstance(inner, exp.Subquery) and not self._is_per_person(inner.this):
                yield from self._selects(inner, known)
            else:
                yield tree, known
        else:
            raise refuse("not-select", tree.key.upper(), "a batch holds only SELECT statements")

    def _is_per_person(self, node: Any) -> bool:
        """Whether a sub-select has one row per person: grouped by, or the first row of each."""
        node = bare(node)
        if not isinstance(node, exp.Select):
            return False
        source = node.args.get("from_")
        table = None if source is None else table_of(self.people, source.this)
        if table is None:
            return False
        group = node.args.get("group")
        if group is not None and any(is_person(e, table, node) for e in group.expressions):
            return True
        return next(numbered(node), None) is not None

    def level(self) -> Level | Levels:
        """The level that the statements read; of several, each SELECT then reads its own."""
        for lowered in self._selects_made:
            self.features.note_use(lowered.tree)
        bases = list(dict.fromkeys(base for made in self._selects_made for base in made.bases))
        bases.sort(key=lambda base: base is not None)
        try:
            levels = [self._level(base) for base in bases]
            if len(levels) == 1:
                return levels[0]
            every = Levels(tuple(levels))
        except DomainError as error:
            raise SqlError(str(error), code="subquery") from None
        self._mark()
        return every

    def within(self, level: Level | Levels) -> Level | Levels:
        """Let the statements read a level that is given: that of a release."""
        for lowered in self._selects_made:
            self.features.note_use(lowered.tree)
        self.features.check_known()
        bases = {base for made in self._selects_made for base in made.bases}
        levels = level.levels if isinstance(level, Levels) else (level,)
        for base in bases - {one.base for one in levels}:
            about = "persons" if base is None else f"rows of {base!r}"
            raise SqlError(f"the release has no answers about {about}", code="unknown-table")
        if isinstance(level, Levels):
            self._mark()
        return level

    def _mark(self) -> None:
        """Let each SELECT read the rows of its own level."""
        for made in self._selects_made:
            if len(made.bases) == 1:  # one of two levels has a condition for each aggregate
                of_level = condition_of(made.bases[0])
                for select in made.tree.find_all(exp.Select):
                    source = select.args.get("from_")
                    if source is not None and source.this.name == self.people.name:
                        select.where(of_level.copy(), copy=False)

    def _level(self, base: str | None) -> Level:
        """The level of one table of events, or of persons."""
        people = self.people
        names = {
            folded(node.name)
            for made in self._selects_made
            if base in made.bases
            for node in made.tree.find_all(exp.Column)
            if node.name != SOURCE
        }
        owners = [table for table in people.tables if table.is_single or table.name == base]
        columns = list(
            dict.fromkeys(
                name
                for table in owners
                for attribute in table.attributes
                for name in (attribute.name, f"{table.name}.{attribute.name}")
                if folded(name) in names
            )
        )
        if base is None:
            columns += [f.name for f in people.features if folded(f.name) in names]
            features = self.features.made()
        else:
            features = self.features.every()
        used = [feature for feature in features if folded(feature.name) in names]
        if base is None:
            return people.persons(columns, used)
        singles = {single.name for single in people.singles}
        both = any(base in made.bases and len(made.bases) > 1 for made in self._selects_made)
        if both:  # of a ratio, persons have features that rows do not
            used = [f for f in used if f.value == "exists" and f.of in singles and not f.where]
        return people.events(base, columns, used)
