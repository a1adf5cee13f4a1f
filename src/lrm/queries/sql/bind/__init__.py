"""Expressions of sqlglot → expressions of `expr`: names resolved, everything else by allow-list.

A node that no table takes is refused, and so is every argument that an entry does not name. The
tables of functions are in `functions`, those of aggregates and windows in `aggregates`.
"""

# ruff: noqa: SLF001 - the table of what builds each node stands after its class

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from lrm.errors import SqlError
from lrm.queries.sql import expr as ir
from lrm.queries.sql.bind import aggregates, functions
from lrm.queries.sql.bind.scope import bare, folded, only, place, refuse_node
from lrm.queries.sql.expr import Expr
from lrm.queries.sql.forms import is_part
from lrm.queries.sql.refusals import EXPRESSIONS, PREDICATES, refuse
from lrm.queries.sql.source import DUCKDB

if TYPE_CHECKING:
    from lrm.queries.sql.build.joins import From

MOST_WRITTEN = 100_000
"""Nodes of an expression, with what its columns stand for."""

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_LONGEST = 300  # digits: more has no meaning for 64-bit columns, and int() is quadratic
COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
"""Comparisons, as they are written."""
_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.SimilarTo: "SIMILAR TO",
    exp.Glob: "GLOB",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.EqualNull: "IS NOT DISTINCT FROM",
}
_ESCAPED: dict[type[exp.Expr], str] = {exp.Like: "LIKE_ESCAPE", exp.ILike: "ILIKE_ESCAPE"}
_BACKSLASHES = frozenset({"bigquery", "mysql", "postgres", "redshift", "spark"})
"""Dialects in which a backslash in LIKE stands before a sign that means itself."""


class Binder:
    """Builds the expressions of one SELECT."""

    def __init__(self, scope: From) -> None:
        self.scope = scope

    def expr(self, node: exp.Expr) -> Expr:
        """Build an expression."""
        build = KINDS.get(type(node))
        if build is None:
            raise refuse_node(node, EXPRESSIONS)
        built = build(self, node)
        if built.size > MOST_WRITTEN:
            raise refuse("size", "so long an expression", "its columns stand for too much", built)
        return built

    def at(self, node: exp.Expr, *children: Expr) -> int | None:
        """Where an expression begins: where its first word is."""
        node_start = node.meta.get("start")
        known = [child.at for child in children if child.at is not None]
        return min([*known, node_start]) if node_start is not None else min(known, default=None)

    # literals and names

    def _literal(self, node: exp.Expr) -> Expr:
        text, at = str(node.this), node.meta.get("start")
        if node.is_string:
            return ir.Text(text, at=at)
        if len(text) > _LONGEST or _NUMBER.fullmatch(text) is None:
            raise SqlError(
                f"expected a number such as 12 or 0.5, got {text[:40]}", code="constant", at=at
            )
        return ir.Number(text, at=at)

    def _paren(self, node: exp.Expr) -> Expr:
        only(node, "this")
        return self.expr(node.this)

    # operations

    def _negative(self, node: exp.Expr) -> Expr:
        only(node, "this")
        this = self.expr(node.this)
        if isinstance(this, ir.Number):
            text = this.text[1:] if this.text.startswith("-") else f"-{this.text}"
            return ir.Number(text, at=this.at)
        return ir.Negative(this, at=this.at)

    def _binary(self, node: exp.Expr) -> Expr:
        only(node, "this", "expression", "typed", "safe", "negate")
        if type(node) in {exp.Like, exp.ILike} and type(node.expression) in {exp.Any, exp.All}:
            return self._like_some(node)
        left, right = self.expr(node.this), self.expr(node.expression)
        if (
            type(node) is exp.Add
            and self.scope.dialect == "tsql"
            and (_is_text(left) or _is_text(right))
        ):
            return ir.Binary("||", left, right, at=self.at(node, left, right))
        # Of whole numbers, some dialects drop the fraction: `rewrite` knows which are whole.
        step = "div" if node.args.get("typed") else _BINARY[type(node)]
        if step == "div" and self.scope.dialect == "tsql":  # its parts of dates are integers
            left, right = (
                ir.Cast(side, "INT", at=side.at) if is_part(side) else side
                for side in (left, right)
            )
        comparison: Expr = ir.Binary(step, left, right, at=self.at(node, left, right))
        escaped = isinstance(right, ir.Text) and "\\" in right.value
        if escaped and type(node) in _ESCAPED and self.scope.dialect in _BACKSLASHES:
            args = (left, right, ir.Text("\\"))
            comparison = ir.Call(_ESCAPED[type(node)], args, at=comparison.at)
        return (
            ir.Not(comparison, at=comparison.at) if node.args.get("negate") else comparison
        )  # NOT LIKE

    def _like_some(self, node: exp.Expr) -> Expr:
        """``a LIKE ANY ('x%', 'y%')``; NOT before LIKE is of each pattern, but in Snowflake."""
        patterns, negate = bare(node.expression.this), bool(node.args.get("negate"))
        if type(patterns) not in {exp.Array, exp.Tuple}:
            raise refuse_node(node.expression, PREDICATES)
        if negate and self.scope.dialect == DUCKDB:
            advice = "dialects differ about it; write NOT (a LIKE ANY (…)), or declare the dialect"
            raise refuse("dialect", "NOT LIKE ANY", advice, at=place(node))
        this, step = self.expr(node.this), _BINARY[type(node)]
        items: list[Expr] = []
        for pattern in patterns.expressions:
            comparison = ir.Binary(step, this, self.expr(pattern), at=this.at)
            items.append(ir.Not(comparison, at=this.at) if negate else comparison)
        made = ir.Or if type(node.expression) is exp.Any else ir.And
        return made(tuple(items), at=this.at) if len(items) > 1 else items[0]

    def _escape(self, node: exp.Expr) -> Expr:
        """``a LIKE b ESCAPE c`` as a function."""
        if type(node.this) not in _ESCAPED:
            raise refuse_node(node, PREDICATES)
        args = tuple(map(self.expr, (node.this.this, node.this.expression, node.expression)))
        like_call = ir.Call(_ESCAPED[type(node.this)], args, at=args[0].at)
        return ir.Not(like_call, at=like_call.at) if node.this.args.get("negate") else like_call

    def _compared(self, node: exp.Expr) -> Expr:
        """A comparison; ``1 < a < 3`` would compare a truth with 3, which DuckDB does not do."""
        only(node, "this", "expression")
        listed = self._listed(node)
        if listed is not None:
            return listed
        if type(node) is exp.EQ and self.scope.chooses_rows(node.expression):
            return self.scope.among(self.expr(node.this), node.expression)  # of one row
        if any(type(operand) in COMPARED for operand in (node.this, node.expression)):
            text = node.sql(dialect="duckdb")
            advice = "join two comparisons by AND, or write parentheses"
            raise refuse("syntax", f"the chain {text}", advice, at=place(node))
        left, right = self.expr(node.this), self.expr(node.expression)
        return ir.Binary(COMPARED[type(node)], left, right, at=self.at(node, left, right))

    def _listed(self, node: exp.Expr) -> Expr | None:
        """``a = ANY (ARRAY['x', 'y'])`` as IN, and ``a <> ALL (ARRAY[…])`` as NOT IN."""
        items = node.expression
        if type(node) is exp.EQ and type(items) is exp.Any:
            items = items.this
        elif (
            type(node) is exp.NEQ
            and type(items) is exp.Anonymous
            and folded(items.name) == "all"
            and len(items.expressions) == 1
        ):
            items = items.expressions[0]
        else:
            return None
        items = bare(items)
        if type(items) is not exp.Array:
            return None
        this = self.expr(node.this)
        membership = ir.In(this, tuple(map(self.expr, items.expressions)), at=this.at)
        return membership if type(node) is exp.EQ else ir.Not(membership, at=this.at)

    def _chain(self, node: exp.Expr) -> Expr:
        """``((a AND b) AND c) …`` as one node, without recursion: batches hold long chains."""
        kind, inner = type(node), node
        parts: list[exp.Expr] = []
        while type(inner) is kind:
            only(inner, "this", "expression")
            parts.append(inner.expression)
            inner = inner.this
        made = ir.And if kind is exp.And else ir.Or
        items: list[Expr] = []
        for operand in (inner, *reversed(parts)):
            built = self.expr(operand)
            items += built.items if isinstance(built, made) else [built]
        return made(tuple(items), at=items[0].at)

    def _not(self, node: exp.Expr) -> Expr:
        only(node, "this")
        this = self.expr(node.this)
        return ir.Not(this, at=this.at)

    def _is(self, node: exp.Expr) -> Expr:
        only(node, "this", "expression", "negate")
        this, other = self.expr(node.this), node.expression
        if type(other) not in {exp.Null, exp.Boolean}:
            raise refuse_node(node, PREDICATES)
        predicate: Expr = ir.IsNull(this, at=this.at)
        if type(other) is exp.Boolean:
            predicate = ir.Binary("IS", this, self.expr(other), at=this.at)
        return ir.Not(predicate, at=predicate.at) if node.args.get("negate") else predicate

    def _in(self, node: exp.Expr) -> Expr:
        this = self.expr(node.this)
        if node.args.get("query") is not None:
            only(node, "this", "query")
            return self.scope.among(this, node.args["query"])
        only(node, "this", "expressions")
        if not node.expressions:
            raise refuse("syntax", "IN without constants", "list the constants", this)
        return ir.In(this, tuple(map(self.expr, node.expressions)), at=this.at)

    def _between(self, node: exp.Expr) -> Expr:
        only(node, "this", "low", "high", "symmetric")
        this, low, high = (self.expr(node.args[key]) for key in ("this", "low", "high"))
        if node.args.get("symmetric"):
            if not isinstance(low, ir.Number) or not isinstance(high, ir.Number):
                advice = "write the smaller constant first"
                raise refuse("clause", "BETWEEN SYMMETRIC", advice, this)
            low, high = sorted([low, high], key=lambda endpoint: Decimal(endpoint.text))
        return ir.Between(this, low, high, at=this.at)

    def _tuple(self, node: exp.Expr) -> Expr:
        only(node, "expressions")
        items = tuple(map(self.expr, node.expressions))
        return ir.Row(items, at=self.at(node, *items))

    def _case(self, node: exp.Expr) -> Expr:
        only(node, "this", "ifs", "default")
        operand = None if node.this is None else self.expr(node.this)
        conditions, results = [], []
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
            condition = self.expr(branch.this)
            if operand is not None:
                condition = ir.Binary("=", operand, condition, at=condition.at)
            conditions.append(condition)
            results.append(self.expr(branch.args["true"]))
        default = node.args.get("default")
        other = None if default is None else self.expr(default)
        at = self.at(node, *conditions)
        return ir.Case(tuple(conditions), tuple(results), other, at=at)

    def _if(self, node: exp.Expr) -> Expr:
        only(node, "this", "true", "false")
        condition, then = self.expr(node.this), self.expr(node.args["true"])
        default = node.args.get("false")
        other = None if default is None else self.expr(default)
        if isinstance(condition, ir.IsNull) and condition.this == other:  # ZEROIFNULL
            return ir.Call("COALESCE", (other, then), at=self.at(node, condition))
        return ir.Case((condition,), (then,), other, at=self.at(node, condition))

    def _either(self, node: exp.Expr) -> Expr:
        """``NVL2(a, b, c)`` as CASE."""
        only(node, "this", "true", "false")
        this, then, other = (self.expr(node.args[key]) for key in ("this", "true", "false"))
        return ir.Case((ir.Not(ir.IsNull(this)),), (then,), other, at=this.at)

    def _exists(self, node: exp.Expr) -> Expr:
        only(node, "this")
        return self.scope.among(None, node)


def _is_text(node: Expr) -> bool:
    """Whether an expression is a text, as far as its form tells."""
    if isinstance(node, ir.Cast):
        return node.to.partition("(")[0] in {"TEXT", "VARCHAR", "CHAR", "NVARCHAR", "NCHAR"}
    return isinstance(node, ir.Text) or (isinstance(node, ir.Binary) and node.op == "||")


KINDS: dict[type[exp.Expr], Callable[..., Expr]] = {
    **functions.FUNCTIONS,
    **aggregates.FUNCTIONS,
    exp.Column: lambda bind, node: bind.scope.column(node),
    exp.Literal: Binder._literal,
    **dict.fromkeys(
        (exp.National, exp.RawString),
        lambda _, node: ir.Text(str(node.this), at=node.meta.get("start")),
    ),
    exp.Boolean: lambda _, node: ir.Boolean(bool(node.this), at=node.meta.get("start")),
    exp.Null: lambda _, node: ir.Null(at=node.meta.get("start")),
    exp.Paren: Binder._paren,
    exp.Neg: Binder._negative,
    **dict.fromkeys(_BINARY, Binder._binary),
    **dict.fromkeys(COMPARED, Binder._compared),
    exp.Escape: Binder._escape,
    exp.And: Binder._chain,
    exp.Or: Binder._chain,
    exp.Not: Binder._not,
    exp.Is: Binder._is,
    exp.In: Binder._in,
    exp.Exists: Binder._exists,
    exp.Between: Binder._between,
    exp.Tuple: Binder._tuple,
    exp.Case: Binder._case,
    exp.If: Binder._if,
    exp.Nvl2: Binder._either,
    exp.Subquery: lambda bind, node: bind.scope.scalar(node),
}
"""What each kind of node is built by."""
