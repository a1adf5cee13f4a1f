"""What the compiler says about a domain and a batch while they are typed.

A batch of 500 statements takes a second to compile, and a person changes one of them at a time:
the compiler remembers the others. A plan is made of the whole text.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from itertools import groupby
from typing import Any

from lrm.domain import Domain
from lrm.domain.file import parse_domain
from lrm.domain.form import DomainForm
from lrm.errors import LrmError, UsageError
from lrm.files.spelling import how_many
from lrm.queries.files import parse_batch
from lrm.queries.maps.products.combine import is_count
from lrm.queries.sql import sql
from lrm.queries.sql.answers import Answer
from lrm.queries.sql.compile import Made, Memory, outcomes
from lrm.queries.sql.refusals import taken_name
from lrm.queries.sql.source import Chunk, split
from lrm.queries.workload import Labels, TakenLabels, Workload
from lrm.views.batches import domain_blocks
from lrm.views.html import render
from lrm.views.statement_errors import named_parts, statement_parts
from lrm.workbench.commands import CONFIDENCE
from lrm.workbench.folder import Text
from lrm.workbench.params import caught

LISTED = 2000
"""Statements, and values of an attribute, that are listed."""

SLICE = 0.1
"""Seconds of work in one go: a changed domain means that every statement is compiled again."""


@dataclass(frozen=True)
class Problem:
    """An error or a warning, and the line that it is about."""

    line: int
    message: str


@dataclass(frozen=True)
class Asked:
    """A statement of a batch."""

    line: int  # where it begins in the text
    title: str
    importance: float  # importance, expected: from the comments before it
    expected: float | None
    # Titles and numbers of answers of its counts and of its other answers.
    parts: tuple[tuple[str, int], ...]

    @property
    def count(self) -> int:
        """Number of answers."""
        return sum(count for _, count in self.parts)

    @property
    def facts(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        return {
            "line": self.line,
            "title": self.title,
            "count": self.count,
            "importance": self.importance,
            "expected": self.expected,
        }


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is known about a domain and a batch as they stand."""

    domain: Domain | None  # None where its file has an error
    domain_problems: tuple[Problem, ...]
    problems: tuple[Problem, ...]  # of the domain and of the batch
    warnings: tuple[Problem, ...]
    statements: tuple[Asked, ...]  # those that could be compiled
    key: str | None  # the same for texts that mean the same batch; None where there are errors
    equal_key: str | None  # that of the batch with equal importances
    # Statements that are left for the next time, which comes as soon as it is asked for.
    pending: int = 0
    meet: float | None = None  # the confidence of tolerances, where some statement has one

    def at(self, confidence: float) -> Outcome:
        """Return this outcome at another confidence: a plan for tolerances is for one of them."""
        if self.meet is None or self.key is None:
            return self
        return replace(self, meet=confidence, key=f"{self.key}-{100 * confidence:g}")

    @property
    def facts(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        return {
            "domain": {
                "problems": list(map(asdict, self.domain_problems)),
                **({} if self.domain is None else domain_facts(self.domain)),
            },
            "batch": {
                "problems": list(map(asdict, self.problems)),
                "warnings": list(map(asdict, self.warnings)),
                "answers": sum(entry.count for entry in self.statements),
                "statement_count": len(self.statements),
                "statements": [entry.facts for entry in self.statements[:LISTED]],
            },
            "key": self.key,
            "pending": self.pending,
        }


def domain_facts(domain: Domain) -> dict[str, Any]:
    """The declared attributes, and whom the guarantee protects."""
    return {
        "table": domain.table,
        "protects": domain.unit.words,
        "limit": domain.unit.limit,
        "cells": how_many(domain.size),
        "attributes": [
            {
                "name": attribute.name,
                "kind": attribute.kind,
                "values": list(attribute.labels[:LISTED]),
            }
            for attribute in domain.attributes
        ],
        "html": "\n".join(map(render, domain_blocks(domain))),
    }


LONGEST_FORM = 100_000
"""Characters of a domain up to which it is shown as a form."""


@lru_cache(maxsize=8)
def form_facts(text: str) -> dict[str, Any] | None:
    """The form of a domain; None where it has none."""
    if len(text) > LONGEST_FORM:
        return None
    try:
        form = DomainForm.of(text)
    except LrmError:
        return None
    unit, attributes = asdict(form.unit), list(map(asdict, form.attributes))
    return {"table": form.table, "unit": unit, "attributes": attributes}


def edited(text: str, entry: str, field: str, value: str) -> str:
    """The text of a domain after one change: of its table, its unit, or an attribute by number."""
    form = DomainForm.of(text)
    if field == "add":
        return form.with_attribute(entry, value)
    if entry == "table":
        return form.with_table(value)
    if entry == "unit":
        unit = {"kind": form.unit.kind, **{part.name: part.text for part in form.unit.fields}}
        return form.with_unit(**{**unit, field: value}) if field in unit else text
    if not entry.isdecimal() or not entry.isascii() or len(entry) > 6:
        raise UsageError("an attribute is named by its number")
    if field == "remove":
        return form.without(int(entry))
    return form.with_field(int(entry), field, value)


def compile_whole(text: Text, domain: Domain) -> Workload:
    """Compile a batch in one piece, as ``lrm plan`` does; warnings are not shown again."""
    with caught():
        if text.name.lower().endswith(".sql"):
            return sql(text.text, domain)
        return parse_batch(text.text, domain, text.name)


class Compiler:
    """Compiles what changed, and remembers the rest."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._last: tuple[Text, Text, Outcome] | None = None
        self._cut: tuple[str, list[Chunk]] | None = None
        self._lock = threading.Lock()

    def compile(self, domain: Text, batch: Text, seconds: float = math.inf) -> Outcome:
        """Compile a domain and a batch; what takes longer is left for the next time."""
        with self._lock:
            if self._last is not None and self._last[:2] == (domain, batch):
                return self._last[2]
            outcome = self._compile(domain, batch, seconds)
            self._last = None if outcome.pending else (domain, batch, outcome)
            return outcome

    def _compile(self, domain: Text, batch: Text, seconds: float) -> Outcome:
        try:
            declared = parse_domain(domain.text, domain.name)
        except LrmError as reason:
            problems = tuple(map(_problem, reason.each))
            return Outcome(None, problems, (), (), (), None, None)
        if not batch.name.lower().endswith(".sql"):
            return _compile_yaml(declared, batch)
        try:
            if self._cut is None or self._cut[0] != batch.text:
                self._cut = batch.text, split(batch.text)
        except Exception:  # noqa: BLE001 - whatever the tokenizer raises, the compiler explains it
            return _compile_at_once(declared, batch)
        if not self._cut[1]:
            empty = Problem(1, "the batch is empty; write at least one SELECT COUNT(*) FROM …")
            return Outcome(declared, (), (empty,), (), (), None, None)
        return self._compile_statements(declared, self._cut[1], seconds)

    def _compile_statements(self, domain: Domain, cut: list[Chunk], seconds: float) -> Outcome:
        problems: list[Problem] = []
        warned: list[Problem] = []
        statements: list[Asked] = []
        limits: list[Limits] = []
        taken, pending = TakenLabels(), 0
        for outcome in outcomes(cut, domain, self._memory, seconds):
            chunk = outcome.chunk
            if outcome.made is None and outcome.error is None:
                pending += 1
                continue
            weight, problem = _weight(chunk)
            problems += [problem] if problem else []
            if outcome.made is None:
                problems += [_problem(outcome.error)] if outcome.error is not None else []
                continue
            warned += [_problem(warning) for warning in outcome.made.warnings]
            labels = Labels(outcome.made.labels(domain))
            clash = next(filter(None, map(taken.add, labels.blocks)), None)
            if clash is not None:
                problems.append(Problem(chunk.line, taken_name(clash).sentence))
            table = outcome.made.selects[0].table
            parts = _parts(outcome.made, table.title, domain)
            statements.append(Asked(chunk.line, table.title, weight, table.expected, parts))
            limits.append(table.within)
        weights = [statement.importance for statement in statements]
        words = [chunk.words for chunk in cut]
        weighted_key = equal = None
        if not (problems or pending):
            weighted_key, equal = _keys(domain, words, weights, limits)
        told_all = tuple(problems), tuple(warned), tuple(statements)
        meet = CONFIDENCE if any(limits) else None
        return Outcome(domain, (), *told_all, weighted_key, equal, pending, meet)


def _compile_at_once(domain: Domain, batch: Text) -> Outcome:
    """Have the compiler say what is wrong with a text that cannot be cut into statements."""
    try:
        sql(batch.text, domain)
    except LrmError as reason:
        return Outcome(domain, (), tuple(map(_problem, reason.each)), (), (), None, None)
    raise UsageError("the statements of this text cannot be separated; begin each on a new line")


def _compile_yaml(domain: Domain, batch: Text) -> Outcome:
    with caught() as warned:
        try:
            compiled = parse_batch(batch.text, domain, batch.name)
        except LrmError as reason:
            return Outcome(domain, (), tuple(map(_problem, reason.each)), (), (), None, None)
    problems = tuple(Problem(1, message) for message in warned)
    limits = [statement.within for statement in compiled.statements if statement.within]
    parts = [version("lrm"), domain.digest, compiled.digest, *map(repr, limits)]
    key = hashlib.sha256(" ".join(parts).encode())
    short = key.hexdigest()[:16]
    meet, asked = CONFIDENCE if limits else None, asked_statements(compiled)
    return Outcome(domain, (), (), problems, asked, short, short, meet=meet)


def asked_statements(batch: Workload) -> tuple[Asked, ...]:
    """The statements of a compiled batch."""
    statements = []
    for statement, group in groupby(statement_parts(batch), key=lambda part: part.statement):
        parts = list(group)
        start = parts[0].rows[0].start
        weight = 1.0 if batch.importance is None else float(batch.importance[start])
        named = tuple((part.title, part.count) for part in parts)
        statements.append(
            Asked(statement.line or 1, statement.title, weight, statement.expected, named)
        )
    return tuple(statements)


def _parts(made: Made, title: str, domain: Domain) -> tuple[tuple[str, int], ...]:
    """The counts of a statement, and its other answers by name."""
    counts, sums, computed = 0, dict[str, int](), dict[str, int]()
    for answer in made.answers:
        size = sum(label.count for label in answer.labels(domain))
        linear = isinstance(answer, Answer)
        if isinstance(answer, Answer) and is_count(answer.products):
            counts += size
        else:
            others = sums if linear else computed
            others[answer.query] = others.get(answer.query, 0) + size
    return tuple(named_parts(title, counts, {**sums, **computed}))


Limits = tuple[tuple[str, float], ...]
"""Tolerances of a statement by the names of its answers."""


def _keys(
    domain: Domain,
    words: list[tuple[str, ...]],
    weights: list[float],
    limits: list[Limits],
) -> tuple[str, str]:
    parts = [version("lrm"), domain.digest, words]
    both = (parts, [*parts, weights, *([limits] if any(limits) else [])])
    equal, weighted_key = (
        hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16] for content in both
    )
    plain = all(weight == 1 for weight in weights) and not any(limits)
    return (equal if plain else weighted_key), equal


def _problem(reason: LrmError) -> Problem:
    """What is wrong, for the line where it is shown."""
    return Problem(reason.line or 1, reason.plain)


def _weight(chunk: Chunk) -> tuple[float, Problem | None]:
    try:
        return chunk.importance, None
    except LrmError as reason:
        return 1.0, _problem(reason)
