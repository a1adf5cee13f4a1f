"""Statements of sqlglot → plans: the last module that knows sqlglot's nodes.

Names are resolved here: a column of the declared table is its attribute, a column of a lookup its
key and column, a column of a sub-select a `Column` that `rewrite` replaces.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from lrm.batches.sql import expr as ir
from lrm.batches.sql import plan as rel
from lrm.batches.sql.bind import Binder, Scope, Source, folded, only, place, refuse_node
from lrm.batches.sql.dialect import Spoken
from lrm.batches.sql.memory import any_true
from lrm.batches.sql.refusals import TOO_DEEP, refuse
from lrm.batches.sql.words import AGGREGATES, ONE_TABLE
from lrm.errors import SqlError

if TYPE_CHECKING:
    from lrm.batches.sql.expr import Expr
    from lrm.batches.sql.source import Chunk
    from lrm.domain import Domain, Lookup

__all__ = ["Built", "build"]

_PARTS = (
    *("expressions", "from_", "where", "group", "having", "order", "limit", "offset"),
    *("with_", "joins"),
)
_DEFAULT = frozenset({"main", "public", "default", "dbo"})
"""Schemas of DuckDB, PostgreSQL, Spark and SQL Server where none is written."""

_MISSING = re.compile(r"Required keyword: .* missing for <class .*>")
_TOKEN = re.compile(r"Expected (.*) but got <Token .*", re.DOTALL)
_MOST_DIGITS = 18  # of LIMIT, a BIGINT
_LONGEST_PLACE = 9  # digits of a position
_MAX_CUBE = 12  # 4,096 sets: more is surely a mistake
_MAX_SETS = 1 << 14
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_COMPUTED = "a sub-select may filter, rename and compute columns"


@dataclass(frozen=True, eq=False)
class Built:
    """One statement: its plan, and the name of the table that it reads."""

    plan: rel.UnionAll
    table: str


def build(chunk: Chunk, domain: Domain) -> Built:
    """Parse one statement, and build its plan."""
    tree = _parsed(chunk)
    builder = _Builder(domain)
    plan = builder.statement(tree)
    if not builder.tables:
        raise refuse("clause", "SELECT without FROM", "name the table")
    return Built(plan, builder.tables[0])


def same_table(one: str, two: str) -> bool:
    """Whether two names mean one table: the last part decides where one has fewer parts."""
    names = [[part for part in _parts(name) if part not in _DEFAULT] for name in (one, two)]
    shared = min(map(len, names))
    return shared > 0 and names[0][-shared:] == names[1][-shared:]


def _parts(name: str) -> list[str]:
    return folded(name).split(".")


def _parsed(chunk: Chunk) -> exp.Expr:
    tokens = chunk.tokens
    kinds = {token.token_type for token in tokens}
    if tokens[0].token_type is TokenType.FROM and TokenType.SELECT not in kinds:
        # DuckDB reads a bare FROM as SELECT *, and the tree has no line for what nobody wrote.
        raise refuse("clause", "FROM without SELECT", AGGREGATES)
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        top = one.token_type is TokenType.SELECT and two.text.upper() == "TOP"
        if top and three.token_type is TokenType.NUMBER:
            advice = f"write LIMIT {three.text} at the end"
            raise refuse("clause", f"TOP {three.text}", advice, at=two.start)
    try:
        (tree,) = sqlglot.Dialect.get_or_raise(Spoken).parser().parse(tokens, chunk.whole)
    except ParseError as error:
        raise _syntax(error, chunk) from None
    except RecursionError:
        raise SqlError(TOO_DEEP, code="size") from None
    except (SqlglotError, ValueError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SqlError(f"cannot parse the SQL: {first}", code="syntax") from None
    if tree is None:
        raise SqlError("expected a SELECT statement", code="syntax")
    return tree


def _syntax(error: ParseError, chunk: Chunk) -> SqlError:
    detail = error.errors[0] if error.errors else {}
    what = str(detail.get("description") or "not understood").rstrip(".")
    what = _TOKEN.sub(r"expected \1", _MISSING.sub("something is missing", what))
    near = str(detail.get("highlight") or "")
    found = f" near {near!r}" if near else ""
    hint = '; write names in double quotes: "name"' if near == "[" else ""
    line, column = detail.get("line") or chunk.line, detail.get("col")
    sentence = f"cannot parse the SQL: {what}{found}{hint}"
    return SqlError(sentence, code="syntax", line=int(line), column=column, found=near)


def _count(node: exp.Expr) -> int:
    word = "OFFSET" if type(node) is exp.Offset else "LIMIT"
    value = node.args.get("expression") or node.args.get("count")
    options = node.args.get("limit_options")
    ties = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
    text = str(value.this) if type(value) is exp.Literal and not value.is_string else ""
    if ties or not text.isdigit() or len(text) > _MOST_DIGITS:
        sentence = f"{word} must be a whole number, such as {word} 10"
        raise SqlError(sentence, code="display", at=place(node))
    return int(text)


Known = Mapping[str, rel.Plan]
"""Sub-selects that WITH names."""


@dataclass(eq=False)
class _Builder:
    """Builds one statement."""

    domain: Domain
    tables: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.attributes = {
            folded(one.name): ir.Attribute(axis, one.name)
            for axis, one in enumerate(self.domain.attributes)
        }
        self.lookups = {folded(one.name): one for one in self.domain.lookups}

    def statement(self, tree: exp.Expr) -> rel.UnionAll:
        """Build a statement: SELECTs that UNION ALL joins."""
        keys: list[rel.EndKey] = []
        count, offset, at = None, 0, None
        if type(tree) is exp.Union:
            order = tree.args.get("order")
            if order is not None:
                keys = [self._end_key(one) for one in order.expressions]
            count = None if tree.args.get("limit") is None else _count(tree.args["limit"])
            offset = 0 if tree.args.get("offset") is None else _count(tree.args["offset"])
            clauses = [tree.args.get(part) for part in ("order", "limit", "offset")]
            at = next((place(one) for one in clauses if one is not None), None)
        parts: list[rel.Plan] = []
        places: list[int | None] = []
        names: list[str | None] = []
        for node, known in self._selects(tree, {}, top=True):
            plan = self.query(node, known, names)
            if not parts:
                names = self._part_names(plan)
            places.append(place(node) if parts else None)
            parts.append(plan)
        return rel.UnionAll(tuple(parts), tuple(places), tuple(keys), count, offset, at)

    def _selects(
        self, tree: exp.Expr, known: Known, *, top: bool = False
    ) -> list[tuple[exp.Expr, Known]]:
        """The SELECTs that UNION ALL joins: each is answered for itself."""
        found: list[tuple[exp.Expr, Known]] = []
        waiting: list[tuple[exp.Expr, Known, bool]] = [(tree, known, top)]
        while waiting:
            node, names, ending = waiting.pop()
            if type(node) is exp.Union:
                if node.args.get("distinct"):
                    raise refuse_node(node, "", "clause")
                ends = ("order", "limit", "offset") if ending else ()
                only(node, "this", "expression", "with_", *ends)
                names = self._with(node, names)
                waiting += [(node.expression, names, False), (node.this, names, False)]
            elif type(node) is exp.Subquery:
                names = self._with(node, names)
                waiting.append((_unwrapped(node), names, False))
            else:
                found.append((node, names))
        return found

    def _part_names(self, plan: rel.Plan) -> list[str | None]:
        """The aliases that later parts of UNION ALL take, where texts distinguish the parts."""
        items = items_of(plan)
        texts = any(isinstance(one.expr, ir.Text | ir.Number) for one in items)
        return [one.alias for one in items] if texts else []

    def _end_key(self, node: exp.Expr) -> rel.EndKey:
        only(node, "this", "desc", "nulls_first")
        this = node.this
        while type(this) is exp.Paren:
            this = this.this
        number = type(this) is exp.Literal and not this.is_string and this.name.isdigit()
        flags = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        position = int(this.name[:_LONGEST_PLACE]) if number else None
        return rel.EndKey(this.name, position, *flags, place(node))

    def _with(self, node: exp.Expr, known: Known) -> Known:
        clause = node.args.get("with_")
        if clause is None:
            return known
        only(clause, "expressions")
        found = dict(known)
        for table in clause.expressions:
            only(table, "this", "alias")
            only(table.args["alias"], "this")
            found[folded(table.alias)] = self.query(table.this, found)
        return found

    def query(self, node: exp.Expr, known: Known, names: Sequence[str | None] = ()) -> rel.Plan:
        """Build one SELECT."""
        while type(node) is exp.Subquery and node.args.get("alias") is None:
            known = self._with(node, known)
            node = _unwrapped(node)
        if type(node) is not exp.Select:
            raise refuse_node(node, "a batch holds only SELECT statements", "not-select")
        only(node, *_PARTS)
        return _Select(self, node, self._with(node, known), names).plan()

    def read(self, name: str, node: exp.Expr) -> None:
        """Note that a table is read, and check that it is the declared one."""
        declared = self.domain.table
        expected = declared or (self.tables[0] if self.tables else name)
        if not same_table(name, expected):
            raise unknown_table(name, expected, declared=declared is not None, at=place(node))
        self.tables.append(expected)


def unknown_table(name: str, expected: str, *, declared: bool, at: int | None = None) -> SqlError:
    """The error for a table that is not the declared one."""
    where = "the domain declares" if declared else "the batch's first statement reads"
    sentence = f"table {name!r} is unknown; {where} {expected!r}"
    return SqlError(sentence, code="unknown-table", found=name, at=at)


def items_of(plan: rel.Plan) -> tuple[rel.Item, ...]:
    """The columns of a SELECT."""
    while not isinstance(plan, rel.Project | rel.Aggregate):
        plan = plan.input  # type: ignore[attr-defined] # Choose, Sort and Limit have one
    return plan.items


def has_answers(plan: rel.Plan) -> bool:
    """Whether a plan has aggregates."""
    while not isinstance(plan, rel.Aggregate):
        if isinstance(plan, rel.Scan):
            return False
        plan = plan.input  # type: ignore[attr-defined] # all others have one
    return True


class _Select:
    """Builds one SELECT: FROM, WHERE, GROUP BY, the columns, HAVING, ORDER BY and LIMIT."""

    def __init__(
        self, builder: _Builder, node: exp.Expr, known: Known, names: Sequence[str | None]
    ) -> None:
        self.builder, self.node, self.known, self.names = builder, node, known, names
        self.domain = builder.domain
        self.sources: list[Source] = []
        self.taken: set[int] = set()  # conditions of WHERE that join a lookup
        self.scope = Scope(self.sources, self._elsewhere, self._unknown, self._scalar, self._among)
        self.bind = Binder(self.scope)

    def plan(self) -> rel.Plan:
        """Build it."""
        node = self.node
        source = node.args.get("from_")
        if source is None:
            only(node, "expressions", "with_")
            items = [self._item(one, place_) for place_, one in enumerate(node.expressions)]
            if not all(one.expr.has(ir.Scalar) for one in items):
                raise refuse("clause", "SELECT without FROM", "name the table", at=place(node))
            return rel.Aggregate(rel.Scan(), ((),), tuple(items), grouped=False)
        plan = self._from(source, node.args.get("joins") or [])
        items = list(
            chain.from_iterable(
                self._items(one, number) for number, one in enumerate(node.expressions)
            )
        )
        where = node.args.get("where")
        if where is not None:
            only(where, "this")
            parts = [one for one in _flat(where.this) if id(one) not in self.taken]
            for one in parts:
                plan = rel.Filter(plan, self.bind.expr(one))
        group = node.args.get("group")
        sets = ((),) if group is None else self._sets(group, items)
        having, order = node.args.get("having"), node.args.get("order")
        condition = None
        if having is not None:
            only(having, "this")
            condition = self.bind.expr(having.this)
        keys = () if order is None else self._order(order, items)
        every = [*(one.expr for one in items), *keys, *(() if condition is None else [condition])]
        adds = group is not None or any(one.has(ir.Aggregate) for one in every)
        if adds:
            plan = rel.Aggregate(plan, sets, tuple(items), grouped=group is not None)
        else:
            plan = rel.Project(plan, tuple(items))
        for part in ir.conjuncts(condition):
            plan = rel.Choose(plan, part)
        if keys:
            plan = rel.Sort(plan, keys)
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if limit is not None or offset is not None:
            count = None if limit is None else _count(limit)
            start = 0 if offset is None else _count(offset)
            plan = rel.Limit(plan, count, start, place(limit or offset))
        return plan

    # FROM

    def _from(self, clause: exp.Expr, joins: list[exp.Expr]) -> rel.Plan:
        only(clause, "this")
        first = clause.this
        swapped = None
        if joins and self._lookup(first) is not None and self._lookup(joins[0].this) is None:
            side = joins[0].args.get("side") or ""
            if side == "LEFT":
                advice = f"begin with the table: FROM {joins[0].this.name} JOIN {first.name}"
                found = f"LEFT JOIN from {first.name!r}"
                raise refuse("join", found, advice, at=place(joins[0]))
            first, swapped = joins[0].this, first
        plan = self._first(first)
        for number, join in enumerate(joins):
            other = swapped if swapped is not None and number == 0 else join.this
            turned = swapped is not None and number == 0
            plan = self._join(plan, join, other, turned=turned)
        return plan

    def _lookup(self, node: exp.Expr) -> Lookup | None:
        if type(node) is not exp.Table or folded(node.name) in self.known:
            return None
        return self.builder.lookups.get(folded(node.name))

    def _first(self, node: exp.Expr) -> rel.Plan:
        if type(node) is exp.Subquery:
            only(node, "this", "alias", "with_")
            known = self.builder._with(node, self.known)  # noqa: SLF001 - one module
            return self._named(self.builder.query(node.this, known), _alias(node))
        if type(node) is not exp.Table:
            raise refuse_node(node, ONE_TABLE)
        name, alias = _table(node)
        inner = self.known.get(folded(name))
        if inner is not None:
            return self._named(inner, alias or name)
        self.builder.read(name, node)
        self.sources.append(
            Source(folded(alias or name.rpartition(".")[2]), self.builder.attributes, "whole")
        )
        return rel.Scan()

    def _named(self, plan: rel.Plan, alias: str) -> rel.Plan:
        columns = self._columns(plan, alias)
        self.sources.append(Source(folded(alias), columns, "sub-select"))
        return rel.Named(plan, alias)

    def _columns(self, plan: rel.Plan, alias: str) -> dict[str, Expr]:
        found: dict[str, Expr] = {}
        seen: dict[str, Expr] = {}
        for item in items_of(plan):
            key = folded(item.name)
            if not key:
                continue
            if key in seen and seen[key] != item.expr:
                found_ = f"two columns called {item.name!r}"
                raise refuse("name", found_, _COMPUTED, item.expr)
            seen[key] = item.expr
            found[key] = ir.Column(alias, item.name)
        return found

    def _join(self, plan: rel.Plan, join: exp.Expr, other: exp.Expr, *, turned: bool) -> rel.Plan:
        inner = None
        if type(other) is exp.Subquery:
            inner = self.builder.query(other.this, self.builder._with(other, self.known))  # noqa: SLF001 - one module
        elif type(other) is exp.Table:
            inner = self.known.get(folded(other.name))
        if inner is not None and has_answers(inner):
            return self._beside(plan, join, inner)
        lookup = self._lookup(other)
        if lookup is None:
            names = ", ".join(one.name for one in self.domain.lookups)
            may = f"only lookups of the domain are joined: {names}" if names else ONE_TABLE
            raise refuse("join", "JOIN", may, at=place(join))
        if join.args.get("method"):
            advice = f"write JOIN {lookup.name} USING ({lookup.key_column})"
            raise refuse("join", f"{join.args['method']} JOIN", advice, at=place(join))
        only(join, "this", "on", "using", "side", "kind")
        only(other, "this", "alias")
        side, kind = join.args.get("side") or "", join.args.get("kind") or ""
        side = {"RIGHT": "LEFT"}.get(side, side) if turned else side
        if side not in {"", "LEFT"} or kind not in {"", "INNER", "OUTER", "CROSS"}:
            advice = "write JOIN or LEFT JOIN"
            raise refuse("join", f"{side or kind} JOIN", advice, at=place(join))
        alias = folded(other.alias or lookup.name)
        if any(one.alias == alias for one in self.sources):
            found = f"two tables called {alias!r}"
            raise refuse("join", found, "give one an alias", at=place(join))
        key = self._key(join, lookup, alias)
        self.sources.append(lookup_source(lookup, alias, key, left=side == "LEFT"))
        return rel.LookupJoin(plan, lookup.name, key, side == "LEFT", place(join))

    def _key(self, join: exp.Expr, lookup: Lookup, alias: str) -> Expr:
        """The column that a lookup is joined by, with the lookup's key."""
        advice = f"join it by its key: {lookup.key} = {alias}.{lookup.key_column}"
        key = folded(lookup.key_column)
        using, on = join.args.get("using") or [], join.args.get("on")
        if on is None and [folded(one.name) for one in using] == [key]:
            return self.scope.column(exp.column(using[0].copy()))
        on = on if on is not None or using else self._condition(alias, key)
        while type(on) is exp.Paren:
            on = on.this
        if type(on) is not exp.EQ or not type(on.this) is type(on.expression) is exp.Column:
            raise refuse("join", "this JOIN", advice, at=place(join))
        both = [on.this, on.expression]
        theirs = [one for one in both if folded(one.table) == alias]
        theirs = theirs or [one for one in both if not one.table and folded(one.name) == key]
        if len(theirs) != 1 or folded(theirs[0].name) != key:
            found = f"JOIN ON {on.sql(dialect='duckdb')}"
            raise refuse("join", found, advice, at=place(join))
        (other,) = (one for one in both if one is not theirs[0])
        return self.scope.column(other)

    def _condition(self, alias: str, key: str) -> exp.Expr | None:
        """The equality in WHERE that joins a lookup without ON."""
        where = self.node.args.get("where")
        for part in [] if where is None else _flat(where.this):
            sides = [part.this, part.expression] if type(part) is exp.EQ else []
            columns = [one for one in sides if type(one) is exp.Column]
            named = [(folded(one.table), folded(one.name)) for one in columns]
            if len(columns) == 2 and (alias, key) in named:
                self.taken.add(id(part))
                found: exp.Expr = part
                return found
        return None

    def _beside(self, plan: rel.Plan, join: exp.Expr, inner: rel.Plan) -> rel.Plan:
        """Answers of a sub-select beside FROM: of one row, or with the same groups."""
        alias = join.this.alias_or_name
        if not alias or any(one.alias == folded(alias) for one in self.sources):
            found = "JOIN of a sub-select without its own name"
            raise refuse("join", found, "give it an alias", at=place(join))
        using, on = join.args.get("using") or [], join.args.get("on")
        columns = self._columns(inner, alias)
        here = Source(folded(alias), columns, "sub-select")
        if not using and on is None:
            only(join, "this", "kind")
            self.sources.append(here)
            return rel.CrossAnswers(plan, inner, alias, place(join))
        only(join, "this", "on", "using", "side", "kind")
        if not has_answers(plan) or join.args.get("side") not in {None, "", "LEFT"}:
            advice = "join answers with the same groups"
            raise refuse("join", "JOIN of answers", advice, at=place(join))
        pairs = []
        for one in using:
            own = self.scope.column(exp.column(one.copy()))
            pairs.append((own, columns.get(folded(one.name), ir.Null())))
        advice = "compare the columns of groups"
        for part in [] if on is None else _flat(on):
            sides = [part.this, part.expression] if type(part) is exp.EQ else []
            named = {folded(one.table): one for one in sides if type(one) is exp.Column}
            theirs = named.pop(folded(alias), None)
            if theirs is None or len(named) != 1 or folded(theirs.name) not in columns:
                found = f"JOIN ON {part.sql(dialect='duckdb')}"
                raise refuse("join", found, advice, at=place(join))
            ((_, mine),) = named.items()
            pairs.append((self.scope.column(mine), columns[folded(theirs.name)]))
        self.sources.append(here)
        left = join.args.get("side") == "LEFT"
        return rel.JoinAnswers(plan, inner, alias, tuple(pairs), left, place(join))

    # names

    def _elsewhere(self, table: str, name: str) -> Expr | None:
        """A column of a lookup that is not joined, by the key in the first table of FROM."""
        if not self.sources or any(one.kind == "lookup" for one in self.sources):
            return None
        first = self.sources[0].columns
        found = []
        for lookup in self.domain.lookups:
            if table not in {"", folded(lookup.name)} or folded(lookup.key) not in first:
                continue
            key = first[folded(lookup.key)]
            named = {folded(one): one for one in lookup.columns}
            if name in named:
                found.append(ir.LookedUp(key, lookup.name, named[name]))
        if len(found) > 1:
            names = " and ".join(f"{one.lookup}.{one.column}" for one in found)
            sentence = f"{name!r} is a column of several lookups; write {names}"
            raise SqlError(sentence, code="unknown-column")
        return found[0] if found else None

    def _unknown(self, node: exp.Expr) -> SqlError:
        name, table, at = node.name, folded(node.text("table")), place(node)
        source = next((one for one in self.sources if one.alias == table), None)
        code, quote = "unknown-column", ""
        if node.this.args.get("quoted"):
            quote = "; use single quotes for text"
        if table and source is None:
            reads = self.sources[0].alias if self.sources else "no table"
            return refuse(
                code, f"table {node.text('table')!r}", f"the statement reads {reads!r}", at=at
            )
        source = source or (self.sources[0] if self.sources else Source("", {}))
        if source.kind == "lookup":
            lookup = next(one for one in self.sources if one is source)
            names = ", ".join(lookup.columns)
            sentence = f"lookup {source.alias!r} has no column {name!r}; its columns are {names}"
        elif source.kind == "sub-select":
            names = ", ".join(source.columns)
            sentence = f"the sub-select has no column {name!r}; its columns are {names}"
        else:
            near = difflib.get_close_matches(name, self.domain.names, 1, 0.7)
            hint = f"did you mean {near[0]!r}? " if near else ""
            names = ", ".join(self.domain.names)
            sentence = f"no attribute is called {name!r}; {hint}the attributes are {names}"
        return SqlError(sentence + quote, code=code, found=name, at=at)

    # sub-selects in expressions

    def _scalar(self, node: exp.Expr) -> Expr:
        plan = self.builder.query(node.this, self.known)
        return ir.Scalar(plan, at=place(node))

    def _among(self, this: Expr, query: exp.Expr) -> Expr:
        """``key IN (SELECT key FROM lookup WHERE …)`` as a condition on the key."""
        advice = "list the constants, or select the key of a lookup"
        refused = refuse("subquery", "a subquery", advice, this)
        select = query.this
        source = select.args.get("from_") if type(select) is exp.Select else None
        lookup = None if source is None else self._lookup(source.this)
        if lookup is None or source is None or not isinstance(this, ir.Attribute | ir.Column):
            raise refused
        only(select, "expressions", "from_", "where")
        alias = folded(source.this.alias_or_name)
        own = lookup_source(lookup, alias, this, left=False)
        inner = _Select(self.builder, select, {}, ())
        inner.sources.append(own)
        items = [one for one in select.expressions if type(one) is exp.Column]
        asked = [inner.scope.column(one) for one in items]
        if asked != [this] or len(select.expressions) != 1:
            raise refused
        condition: Expr = ir.LookedUp(this, lookup.name, "", at=this.at)
        where = select.args.get("where")
        if where is not None:
            kept = inner.bind.expr(where.this)
            if not self._has_row(lookup, this, kept):
                return ir.Boolean(value=False, at=this.at)  # for NULL too
            condition = ir.And((condition, *ir.conjuncts(kept)), at=this.at)
        known = ir.Call("COALESCE", (condition, ir.Boolean(value=False)), at=this.at)
        return ir.Case((ir.IsNull(this, at=this.at),), (ir.Null(),), known, at=this.at)

    def _has_row(self, lookup: Lookup, key: Expr, condition: Expr) -> bool:
        """Whether some row of a lookup, of a declared key or not, meets a condition on it."""
        places = {name: f"c{number + 1}" for number, name in enumerate(lookup.columns)}

        def named(node: Expr) -> str | None:
            if node == key:
                return "c0"
            return places[node.column] if isinstance(node, ir.LookedUp) else None

        keys = lookup.keys(self.domain.attribute(lookup.key))
        others = [[row[number] for row in lookup.rows] for number in range(1, len(places) + 1)]
        return any_true(ir.shown(condition), ir.render(condition, named), [keys, *others])

    # the columns of SELECT

    def _items(self, node: exp.Expr, number: int) -> list[rel.Item]:
        star = node.this if type(node) is exp.Column else node
        if type(star) is not exp.Star:
            return [self._item(node, number)]
        only(star)
        table = folded(node.table) if type(node) is exp.Column else ""
        found = []
        for source in self.sources:
            if table not in {"", source.alias}:
                continue
            columns = source.columns
            if source.kind == "lookup":
                columns = {key: one for key, one in columns.items() if _is_own(one)}
            found += [rel.Item(one, None, name_of(one)) for one in columns.values()]
        if not found:
            raise self._unknown(node)
        return found

    def _item(self, node: exp.Expr, number: int) -> rel.Item:
        alias, inner = None, node
        if type(node) is exp.Alias:
            only(node, "this", "alias")
            alias, inner = node.alias, node.this
        elif number < len(self.names):
            alias = self.names[number]
        found = self.bind.expr(inner)
        while type(inner) is exp.Paren:
            inner = inner.this
        name = alias or (name_of(found) if type(inner) is exp.Column else "")
        if type(inner) is exp.Column and not name:
            name = inner.name
        if alias is not None:
            self.scope.aliases.setdefault(folded(alias), found)
        return rel.Item(found, alias, name)

    # GROUP BY and ORDER BY

    def _sets(self, group: exp.Expr, items: list[rel.Item]) -> tuple[tuple[Expr, ...], ...]:
        """The grouping sets of a statement.

        Several elements multiply, as the standard says: ``GROUP BY a, ROLLUP (b)`` is
        ``GROUPING SETS ((a, b), (a))``.
        """
        if group.args.get("all"):
            only(group, "all")
            return (tuple(one.expr for one in items if not _is_answer(one.expr)),)
        elements = list(group.expressions)
        for part, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
            given = group.args.get(part) or []
            if [type(one) for one in given] == [kind] and not given[0].expressions and elements:
                elements = [kind(expressions=elements)]  # WITH ROLLUP
            elif given:
                only(group, "expressions")
        only(group, "expressions", "rollup", "cube")
        factors = [self._element(node, items) for node in elements]
        count = math.prod(map(len, factors))
        if count > _MAX_SETS:
            sentence = f"{count:,} grouping sets are more than the {_MAX_SETS:,} supported"
            raise SqlError(sentence, code="size", at=place(group))
        return tuple(
            tuple(dict.fromkeys(chain.from_iterable(parts))) for parts in product(*factors)
        )

    def _element(self, node: exp.Expr, items: list[rel.Item]) -> list[tuple[Expr, ...]]:
        kind = type(node)
        if kind is exp.Rollup:
            units = self._units(node, items)
            return [tuple(chain(*units[:length])) for length in range(len(units), -1, -1)]
        if kind is exp.Cube:
            units = self._units(node, items)
            if len(units) > _MAX_CUBE:
                sentence = (
                    f"CUBE of {len(units)} attributes has 2^{len(units)} sets; "
                    f"at most {_MAX_CUBE} are supported"
                )
                raise SqlError(sentence, code="size", at=place(node))
            sizes = range(len(units), -1, -1)
            chosen = chain.from_iterable(combinations(units, size) for size in sizes)
            return [tuple(chain(*parts)) for parts in chosen]
        if kind is exp.GroupingSets:
            only(node, "expressions")
            return [one for item in node.expressions for one in self._element(item, items)]
        return [self._unit(node, items)]

    def _units(self, node: exp.Expr, items: list[rel.Item]) -> list[tuple[Expr, ...]]:
        only(node, "expressions")
        advice = "group by attributes, ROLLUP, CUBE or GROUPING SETS of them"
        if not node.expressions:
            found = f"{node.key.upper()} without attributes"
            raise refuse("clause", found, advice, at=place(node))
        return [self._unit(item, items) for item in node.expressions]

    def _unit(self, node: exp.Expr, items: list[rel.Item]) -> tuple[Expr, ...]:
        while type(node) is exp.Paren:
            node = node.this
        if type(node) is exp.Tuple:
            only(node, "expressions")
            return tuple(chain.from_iterable(self._unit(one, items) for one in node.expressions))
        if type(node) in _SETS:
            advice = "group by attributes, ROLLUP, CUBE or GROUPING SETS of them"
            raise refuse_node(node, advice, "clause")
        found = self._position(node, items, "GROUP BY")
        return (self.bind.expr(node) if found is None else found,)

    def _position(self, node: exp.Expr, items: list[rel.Item], clause: str) -> Expr | None:
        if type(node) is not exp.Literal or node.is_string or not str(node.this).isdigit():
            return None
        text = str(node.this)
        number = int(text[:_LONGEST_PLACE])
        if not 1 <= number <= len(items):
            short = text if len(text) <= _LONGEST_PLACE else f"{text[:_LONGEST_PLACE]}…"
            sentence = f"{clause} {short}: the SELECT list has {len(items)} items"
            raise SqlError(sentence, code="display", at=place(node))
        return items[number - 1].expr

    def _order(self, order: exp.Expr, items: list[rel.Item]) -> tuple[ir.SortKey, ...]:
        only(order, "expressions")
        found: list[ir.SortKey] = []
        for node in order.expressions:
            only(node, "this", "desc", "nulls_first")
            flags = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
            inner = node.this
            while type(inner) is exp.Paren:
                inner = inner.this
            position = self._position(inner, items, "ORDER BY")
            if (
                type(inner) is exp.Var
                and folded(inner.name) == "all"
                and not any("all" in one.columns for one in self.sources)
            ):
                found += [ir.SortKey(one.expr, *flags) for one in items]
            elif position is not None:
                found.append(ir.SortKey(position, *flags, at=position.at))
            else:
                found.append(self.bind.sort_key(node, alias_first=True))
        return tuple(found)


def lookup_source(lookup: Lookup, alias: str, key: Expr, *, left: bool) -> Source:
    """The columns of a lookup in FROM; rows without a match stay where ``left``."""
    columns: dict[str, Expr] = {
        folded(one): ir.LookedUp(key, lookup.name, one) for one in lookup.columns
    }
    own: Expr = key
    if left:
        own = ir.Case((ir.LookedUp(key, lookup.name, ""),), (key,))
    return Source(alias, {folded(lookup.key_column): own, **columns}, "lookup")


def name_of(node: Expr) -> str:
    """The name of a column by itself."""
    if isinstance(node, ir.Attribute | ir.Column):
        return node.name
    return node.column if isinstance(node, ir.LookedUp) else ""


def _is_own(node: Expr) -> bool:
    return isinstance(node, ir.LookedUp)


def _is_answer(node: Expr) -> bool:
    return node.has(ir.Aggregate, ir.Window) or ir.is_constant(node)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    """A SELECT in parentheses; with ORDER BY or LIMIT after them, ``SELECT * FROM (…)``."""
    only(node, "this", "with_", "order", "limit", "offset")
    ending = {part: node.args[part] for part in ("order", "limit", "offset") if node.args.get(part)}
    if not ending:
        found: exp.Expr = node.this
        return found
    source = exp.From(this=exp.Subquery(this=node.this))
    return exp.Select(expressions=[exp.Star()], from_=source, **ending)


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins."""
    parts: list[exp.Expr] = []
    while type(node) is exp.And:
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]


def _table(table: exp.Expr) -> tuple[str, str]:
    """The name of a table, and its alias or nothing."""
    if type(table.this) is not exp.Identifier:
        raise refuse("join", "a table function", ONE_TABLE, at=place(table))
    only(table, "this", "db", "catalog", "alias")
    alias = _alias(table)
    parts = [table.args.get(key) for key in ("catalog", "db", "this")]
    if any(part is not None and type(part) is not exp.Identifier for part in parts):
        raise SqlError("the table's name must be plain", code="syntax", at=place(table))
    return ".".join(part.name for part in parts if part is not None), alias


def _alias(node: exp.Expr) -> str:
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "this")
    return str(node.alias)
