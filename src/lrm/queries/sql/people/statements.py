"""Statements over the tables of a people: which SELECTs read which level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp

from lrm.domain.people import Level, People
from lrm.errors import DomainError, SqlError
from lrm.queries.sql.bind.scope import bare, folded
from lrm.queries.sql.people.direct import DirectSelect
from lrm.queries.sql.people.features import Features
from lrm.queries.sql.people.select import Lowered, is_person, numbered, table_of
from lrm.queries.sql.people.sub_selects import PerPersonSelect
from lrm.queries.sql.refusals import refuse

Known = dict[str, exp.Expr]
"""The sub-selects that WITH names."""


class Lowering:
    """Rewrites the statements of one batch, and collects their features."""

    def __init__(self, people: People) -> None:
        self.people = people
        self.features = Features(people)

    def statement(self, tree: exp.Expr) -> tuple[exp.Expr, str | None]:
        """Rewrite one statement; with the table of its events, or None for persons."""
        tree = tree.copy()
        bases: set[str | None] = set()
        for select, known in list(self._selects(tree, {})):
            clause = select.args.get("with_")
            lowered = self._lowered(select, known)
            bases.add(lowered.base)
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
        if not bases:
            raise refuse("clause", "SELECT without FROM", "name the table")
        if len(bases) > 1:
            raise levels_differ()
        return tree, bases.pop()

    def _lowered(self, select: exp.Select, known: Known) -> Lowered:
        source = select.args["from_"].this
        inner = source.this if isinstance(source, exp.Subquery) else None
        if isinstance(source, exp.Table) and folded(source.name) in known:
            inner = known[folded(source.name)].this
        if inner is None:
            return DirectSelect(self.features, select).lower()
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

    def level(self, trees: Sequence[exp.Expr], bases: Sequence[str | None]) -> Level:
        """The one level that the statements read."""
        if len(set(bases)) > 1:
            raise levels_differ()
        base = bases[0]
        names = {folded(node.name) for tree in trees for node in tree.find_all(exp.Column)}
        for tree in trees:
            self.features.note_use(tree)
        people = self.people
        owners = [table for table in people.tables if table.is_single or table.name == base]
        columns = list(
            dict.fromkeys(
                attribute.name
                for table in owners
                for attribute in table.attributes
                if folded(attribute.name) in names
            )
        )
        if base is None:
            columns += [f.name for f in people.features if folded(f.name) in names]
        try:
            if base is None:
                return people.persons(columns, self.features.made())
            return people.events(base, columns, self.features.every())
        except DomainError as error:
            raise SqlError(str(error), code="subquery") from None


def levels_differ() -> SqlError:
    """The error for a batch whose statements read several levels."""
    sentence = (
        "some statements are about persons and others about rows of a table; plan each kind as a "
        "batch of its own (all of them are charged to the one budget of these people)"
    )
    return SqlError(sentence, code="aggregate")
