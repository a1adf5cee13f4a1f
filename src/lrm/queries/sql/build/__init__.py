"""Statements of sqlglot → plans, in the dialect that they are written in.

Names are resolved here: a column of the declared table is its attribute, a column of a lookup its
key and column, a column of a sub-select a `Column` that `rewrite` replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp
from sqlglot.expressions import FUNCTION_BY_NAME

from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql import plan as rel
from lrm.queries.sql.bind import COMPARED, KINDS, Binder
from lrm.queries.sql.bind.scope import bare, flat, folded, only, place, refuse_node, row_count
from lrm.queries.sql.build import lookups
from lrm.queries.sql.build.clauses import Clauses
from lrm.queries.sql.build.constants import Constants, constants_of, names_of
from lrm.queries.sql.build.joins import From, Known
from lrm.queries.sql.build.lookups import View, view_of
from lrm.queries.sql.build.pivots import pivot_statement
from lrm.queries.sql.plan import items_of
from lrm.queries.sql.readings import differing, with_operators
from lrm.queries.sql.refusals import refuse
from lrm.queries.sql.source import DUCKDB, OTHERS, Chunk, parsed

if TYPE_CHECKING:
    from lrm.domain import Domain
    from lrm.queries.sql.expr import Expr

_DEFAULT = frozenset({"main", "public", "default", "dbo"})
"""Schemas of DuckDB, PostgreSQL, Spark and SQL Server where none is written."""

_LONGEST_PLACE = 9  # digits of a position
_ENDINGS = ("order", "limit", "offset")
_AFTER = ("where", *_ENDINGS)  # what may stand around a union

_SPELLING = frozenset({"syntax", "function", "clause", "aggregate", "unknown-column", "window"})
"""Codes of errors that another dialect may not have."""


@dataclass(frozen=True, eq=False)
class Built:
    """One statement: its plan, the name of the table that it reads, and where it was read."""

    plan: rel.UnionAll
    table: str
    chunk: Chunk


def build(chunk: Chunk, domain: Domain) -> Built:
    """Parse one statement, and build its plan.

    Where no dialect is declared, a statement that DuckDB does not have is read in the others, and
    taken where those that have it mean the same.
    """
    try:
        return _build(chunk, domain)
    except SqlError as error:
        error = _as_written(error, chunk)
        if chunk.dialect is not None or error.code not in _SPELLING:
            raise error from None
        readings = _guessed(chunk, domain)
        if not readings:
            raise error from None
        if any(reading.plan != readings[0].plan for reading in readings[1:]):
            names = ", ".join(reading.chunk.dialect or "" for reading in readings)
            advice = (
                f"{names} have it, and mean different things; declare the dialect before the first "
                "statement, such as -- dialect: " + (readings[0].chunk.dialect or "")
            )
            what = error.found or "this statement"
            raise refuse("dialect", f"{what} in DuckDB's SQL", advice, at=error.at) from None
        return readings[0]


def _as_written(error: SqlError, chunk: Chunk) -> SqlError:
    """The same error, with the name that a function has in the text rather than sqlglot's."""
    found = error.found or ""
    if not found.endswith("()") or error.code not in {"function", "aggregate"}:
        return error
    pairs = list(pairwise(chunk.tokens))
    called = [word for word, after in pairs if after.text == "(" and word.text.isidentifier()]
    if found[:-2] in {word.text.upper() for word in called}:
        return error
    unknown = [
        word
        for word in called
        if word.token_type is TokenType.VAR and FUNCTION_BY_NAME.get(word.text.upper()) not in KINDS
    ]
    near = [word for word in unknown if error.at is None or word.start <= error.at][-1:]
    near = near or unknown[:1]
    if not near:
        written = [word.text for word in chunk.tokens if word.start >= (error.at or 0)][:3]
        what = f"what stands at {' '.join(written)!r}"
        return refuse(error.code, what, error.advice or "", at=error.at)
    return refuse(error.code, f"{near[0].text.upper()}()", error.advice or "", at=error.at)


def _build(chunk: Chunk, domain: Domain, *, guessed: bool = False) -> Built:
    builder = Builder(domain, chunk.dialect or DUCKDB, guessed)
    plan = builder.statement(parsed(chunk))
    if not builder.tables:
        raise refuse("clause", "SELECT without FROM", "name the table")
    return Built(plan, builder.tables[0], chunk)


def _guessed(chunk: Chunk, domain: Domain) -> list[Built]:
    """The statement in each of the other dialects that has it."""
    readings = []
    for dialect in OTHERS:
        try:
            readings.append(_build(chunk.read_as(dialect), domain, guessed=True))
        except (SqlError, RecursionError):
            continue
    return readings


def other_readings(built: Built, domain: Domain) -> list[tuple[rel.UnionAll, list[str]]]:
    """Other plans of a statement that declares no dialect, each with the dialects that read it so.

    They differ by the operators of `lrm.queries.sql.readings` alone.
    """
    if built.chunk.dialect is not None or next(differing(built.plan), None) is None:
        return []
    readings: list[tuple[rel.UnionAll, list[str]]] = []
    for other in _guessed(built.chunk, domain):
        plan = with_operators(built.plan, other.plan)
        known = next((names for candidate, names in readings if candidate == plan), None)
        if known is None and plan != built.plan:
            readings.append((plan, known := []))
        if known is not None:
            known.append(other.chunk.dialect or DUCKDB)
    return readings


def same_table(first_name: str, two: str) -> bool:
    """Whether two names mean one table: the last part decides where one has fewer parts."""
    names = [[part for part in _parts(name) if part not in _DEFAULT] for name in (first_name, two)]
    shared = min(map(len, names))
    return shared > 0 and names[0][-shared:] == names[1][-shared:]


def _parts(name: str) -> list[str]:
    return folded(name).split(".")


@dataclass(eq=False)
class Builder:
    """Builds one statement."""

    domain: Domain
    dialect: str
    guessed: bool = False
    tables: list[str] = field(default_factory=list)
    # What WITH names: sub-selects of lookups, and tables of constants.
    views: dict[str, View] = field(default_factory=dict)
    written: dict[str, Constants] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.attributes: dict[str, Expr] = {
            folded(declaration.name): ir.Attribute(axis, declaration.name)
            for axis, declaration in enumerate(self.domain.attributes)
        }
        self.lookups = {
            folded(declaration.name): declaration for declaration in self.domain.lookups
        }

    def statement(self, tree: exp.Expr) -> rel.UnionAll:
        """Build a statement: SELECTs that UNION ALL joins."""
        keys: list[rel.EndKey] = []
        count, offset, at = None, 0, None
        having: list[tuple[str, str, float]] = []
        tree = _flattened(tree)
        if type(tree) is exp.Union:
            order = tree.args.get("order")
            if order is not None:
                keys = [self._end_key(sql_node) for sql_node in order.expressions]
            count = None if tree.args.get("limit") is None else row_count(tree.args["limit"])
            offset = 0 if tree.args.get("offset") is None else row_count(tree.args["offset"])
            having = self._end_conditions(tree.args.get("where"))
            clauses = [tree.args.get(part) for part in _AFTER]
            at = next((place(sql_node) for sql_node in clauses if sql_node is not None), None)
        parts: list[rel.Plan] = []
        places: list[int | None] = []
        names: list[str | None] = []
        selects = self._selects(tree, {}, top=True)
        for node, known in selects:
            plan = self.query(node, known, names)
            if not parts:
                names = self._part_names(plan, [select for select, _ in selects[1:]])
            places.append(place(node) if parts else None)
            parts.append(plan)
        ending = (tuple(keys), count, offset, at, tuple(having))
        return rel.UnionAll(tuple(parts), tuple(places), *ending)

    def _selects(
        self, tree: exp.Expr, known: Known, *, top: bool = False
    ) -> list[tuple[exp.Expr, Known]]:
        """The SELECTs that UNION ALL joins: each is answered for itself."""
        tree = _flattened(tree)
        selects: list[tuple[exp.Expr, Known]] = []
        waiting: list[tuple[exp.Expr, Known, bool]] = [(tree, known, top)]
        while waiting:
            node, names, ending = waiting.pop()
            if type(node) is exp.Union:
                if node.args.get("distinct"):
                    raise refuse_node(node, "", "clause")
                ends = _AFTER if ending else ()
                only(node, "this", "expression", "with_", *ends)
                names = self.with_names(node, names)
                waiting += [(node.expression, names, False), (node.this, names, False)]
            elif type(node) is exp.Subquery:
                names = self.with_names(node, names)
                waiting.append((_unwrapped(node), names, False))
            else:
                selects.append((node, names))
        return selects

    def _part_names(self, plan: rel.Plan, others: list[exp.Expr]) -> list[str | None]:
        """The names that later parts of UNION ALL take, where texts distinguish the parts."""
        items = items_of(plan)
        texts = any(isinstance(item.expr, ir.Text | ir.Number) for item in items)
        texts = texts or any(
            type(column.unalias()) is exp.Literal for node in others for column in node.expressions
        )
        return [item.name or None for item in items] if texts else []

    @staticmethod
    def _end_conditions(where: exp.Expr | None) -> list[tuple[str, str, float]]:
        """``WHERE n > 100`` around UNION ALL: comparisons of an answer with a number."""
        conditions = []
        for part in [] if where is None else flat(where.this):
            operation = COMPARED.get(type(part), "")
            sides = (part.this, part.expression) if operation else (None, None)
            if type(sides[0]) is not exp.Column or type(sides[1]) is not exp.Literal:
                feature = f"WHERE {part.sql(dialect='duckdb')} after UNION ALL"
                raise refuse("display", feature, "compare an answer with a number", at=place(part))
            conditions.append((sides[0].name, operation, float(sides[1].name)))
        return conditions

    def _end_key(self, node: exp.Expr) -> rel.EndKey:
        only(node, "this", "desc", "nulls_first")
        this = node.this
        this = bare(this)
        number = type(this) is exp.Literal and not this.is_string and this.name.isdigit()
        flags = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        position = int(this.name[:_LONGEST_PLACE]) if number else None
        return rel.EndKey(this.name, position, *flags, place(node))

    def with_names(self, node: exp.Expr, known: Known) -> Known:
        """The sub-selects that are known inside of a node."""
        clause = node.args.get("with_")
        if clause is None:
            return known
        only(clause, "expressions")
        sub_selects = dict(known)
        for table in clause.expressions:
            only(table, "this", "alias")
            name, names = folded(table.alias), names_of(table)
            written = self.constants(table.this)
            view = None if written is not None else self.view(table.this, names)
            if written is not None:
                self.written[name] = written.renamed(names)
            elif view is not None:
                self.views[name] = view
            else:
                sub_selects[name] = rel.renamed(self.query(table.this, sub_selects), names)
        return sub_selects

    def view(self, node: exp.Expr, names: Sequence[str]) -> View | None:
        """A sub-select of a lookup, if it is one, its columns called by other names."""
        view = view_of(node, self.lookups)
        return None if view is None else view.renamed(names)

    def constants(self, node: exp.Expr) -> Constants | None:
        """A table that the statement writes out, or that follows from lookups, if it is one."""
        scope = From(self, {})
        written = constants_of(node, Binder(scope).expr)
        return written or lookups.constants_of(scope, node, self.lookups)

    def query(self, node: exp.Expr, known: Known, names: Sequence[str | None] = ()) -> rel.Plan:
        """Build one SELECT."""
        while type(node) is exp.Subquery and node.args.get("alias") is None:
            known = self.with_names(node, known)
            node = _unwrapped(node)
        if type(node) is exp.Pivot:
            node = pivot_statement(node, self.domain)
        if type(node) is not exp.Select:
            raise refuse_node(node, "a batch holds only SELECT statements", "not-select")
        return Clauses(self, node, self.with_names(node, known), names).plan()

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


def _flattened(node: exp.Expr) -> exp.Expr:
    """``SELECT * FROM (a UNION ALL b)`` as the union itself, with ORDER BY and LIMIT after it.

    The union may stand in WITH. ``SELECT SUM(n) FROM (…)`` of one row each is their sum.
    """
    source = node.args.get("from_") if type(node) is exp.Select else None
    inner = None if source is None else source.this
    union, rest = _union_of(node, inner)
    if inner is None or union is None or any(union.args.get(part) for part in _ENDINGS):
        return node
    selects = _parts_of(union)
    names = [column.alias_or_name for column in selects[0].expressions]
    plain = all(
        value is None or value in ([], False) or part in {"expressions", "from_", "with_", *_AFTER}
        for part, value in node.args.items()
    )
    if plain and _adds_up(node, selects, names):
        return _added(node, selects, rest)
    alias = folded(inner.alias_or_name)
    own = [column for column in node.find_all(exp.Column) if folded(column.table) == alias]
    if not plain or not _is_whole(node, names, alias):
        return node
    flat: exp.Expr = union.copy()
    if rest:
        flat.set("with_", exp.With(expressions=[table.copy() for table in rest]))
    for part in _AFTER:
        if node.args.get(part) is not None:
            ending = node.args[part].copy()
            for column in ending.find_all(exp.Column) if own else ():
                column.set("table", None)
            flat.set(part, ending)
    return flat


def _union_of(node: exp.Expr, inner: exp.Expr | None) -> tuple[exp.Expr | None, list[exp.Expr]]:
    """The union that FROM reads, in parentheses or by its name, and the other tables of WITH."""
    clause = node.args.get("with_")
    tables = [] if clause is None else list(clause.expressions)
    found = inner.this if type(inner) is exp.Subquery else None
    if type(inner) is exp.Table:
        named = [table for table in tables if folded(table.alias) == folded(inner.name)]
        found, tables = (named[0].this if named else None), [t for t in tables if t not in named]
        reads = (table for other in tables for table in other.find_all(exp.Table))
        if any(folded(table.name) == folded(inner.name) for table in reads):
            found = None
    return (found if type(found) is exp.Union else None), tables


def _parts_of(union: exp.Expr) -> list[exp.Expr]:
    """The SELECTs of a union, from the first to the last."""
    if type(union) is exp.Subquery:
        return _parts_of(union.this)
    if type(union) is not exp.Union:
        return [union]
    return [*_parts_of(union.this), *_parts_of(union.expression)]


def _is_whole(node: exp.Expr, names: list[str], alias: str) -> bool:
    """Whether a SELECT takes all columns of its FROM as they are."""
    first = node.expressions[0]
    star = first.this if type(first) is exp.Column else first
    if type(star) is exp.Star and len(node.expressions) == 1:
        return True
    columns = [column for column in node.expressions if type(column) is exp.Column]
    own = all(folded(column.table) in {"", alias} for column in columns)
    return own and [column.name for column in columns] == names == [
        column.alias_or_name for column in node.expressions
    ]


def _adds_up(node: exp.Expr, selects: list[exp.Expr], names: list[str]) -> bool:
    """Whether a SELECT is the sum of the one column of SELECTs of one row each."""
    total = node.expressions[0].unalias()
    column = total.this if type(total) is exp.Sum else None
    if len(node.expressions) != 1 or type(column) is not exp.Column:
        return False
    single = all(
        type(part) is exp.Select and len(part.expressions) == 1 and not part.args.get("group")
        for part in selects
    )
    ends = any(node.args.get(part) is not None for part in _AFTER)
    return single and not ends and [column.name] == names


def _added(node: exp.Expr, selects: list[exp.Expr], rest: list[exp.Expr]) -> exp.Expr:
    """The sum of SELECTs of one row each, as an expression of sub-selects."""
    parts: list[exp.Expr] = [exp.Subquery(this=part.copy()) for part in selects]
    total = parts[0]
    for part in parts[1:]:
        total = exp.Add(this=total, expression=part)
    item = node.expressions[0]
    named = exp.alias_(total, item.alias) if item.alias else total
    made: exp.Expr = exp.Select(expressions=[named])
    if rest:
        made.set("with_", exp.With(expressions=[table.copy() for table in rest]))
    return made


def _unwrapped(node: exp.Expr) -> exp.Expr:
    """A SELECT in parentheses; with ORDER BY or LIMIT after them, ``SELECT * FROM (…)``."""
    only(node, "this", "with_", "order", "limit", "offset")
    ending = {part: node.args[part] for part in ("order", "limit", "offset") if node.args.get(part)}
    if not ending:
        inner_node: exp.Expr = node.this
        return inner_node
    source = exp.From(this=exp.Subquery(this=node.this))
    return exp.Select(expressions=[exp.Star()], from_=source, **ending)
