"""The batch of a case: SQL, YAML, builders or a matrix, and the answers that DuckDB has for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import yaml

import lrm
from matrix.questions import MIDDLES, SUM_OF_MIDDLES, Question, questions_of
from matrix.visits import GRADES, KNOTS, cell_counts, domain_of, reference

SELECTS = {"few attributes", "one attribute", "product", "yaml"}
"""Batches that consist of statements."""


@dataclass(frozen=True)
class Batch:
    """A batch with what its answers must be.

    Parameters
    ----------
    queries
        What is given to ``lrm.plan``.
    domain
        The domain of the table, also where the batch has none.
    questions
        Its statements; none for builders and matrices.
    exact
        The answer of each query by its name, for builders and matrices.
    """

    queries: object
    domain: lrm.Domain
    questions: tuple[Question, ...] = ()
    exact: dict[str, float] | None = None


def batch_of(case, folder) -> Batch:
    """The batch of a case."""
    domain = domain_of(case)
    if case.batch in SELECTS:
        questions = tuple(questions_of(case, domain))
        if case.batch == "yaml":
            return Batch(_from_yaml(questions, domain, folder), domain, questions)
        text = ";\n".join(question.text for question in questions)
        return Batch(lrm.sql(text, domain), domain, questions)
    draw = np.random.default_rng(case.seed)
    if case.batch == "builders":
        parts = [_built(number, draw, case, domain) for number in range(case.size)]
        exact = {name: value for _, answers in parts for name, value in answers.items()}
        return Batch(lrm.stack([part for part, _ in parts]), domain, exact=exact)
    weights = _weights(draw, case, domain)
    importance = 1.0 + np.arange(case.size) % 4 if case.answers == "importance" else None
    names = [f"w{number}" for number in range(case.size)]
    declared = domain if case.batch == "matrix of a domain" else None
    batch = lrm.Workload(weights, names=names, importance=importance, domain=declared)
    answers = weights @ cell_counts(domain)
    return Batch(batch, domain, exact=dict(zip(names, answers.tolist(), strict=True)))


def _from_yaml(questions, domain, folder):
    """The statements as entries of a YAML file, with their comments as keys."""
    entries = []
    for question in questions:
        entry = {"kind": "sql", "text": question.text.rpartition("\n")[2]}
        for comment in question.comments:
            key, _, value = comment.removeprefix("-- ").partition(": ")
            entry[key] = value if "%" in value else int(value)
        entries.append(entry)
    path = folder / "batch.yaml"
    path.write_text(yaml.safe_dump({"lrm-batch": 1, "queries": entries}))
    return lrm.read_batch(path, domain)


def _weights(draw, case, domain):
    """Rows of weights over cells: ranges of them, or small whole numbers for sums."""
    if case.answers == "sums by bins":
        return draw.integers(-3, 4, (case.size, domain.size)).astype(float)
    ends = np.sort(draw.integers(0, domain.size + 1, (case.size, 2)), axis=1)
    cells = np.arange(domain.size)
    rows = (cells >= ends[:, :1]) & (cells <= ends[:, 1:])
    return rows.astype(float)


def _built(number, draw, case, domain):
    """What a builder returns, and the answers that DuckDB has for it by name."""
    name = f"b{number}"
    low = int(draw.integers(0, GRADES - 2))
    condition = f"grade >= {low}"
    special = number % 3 == 0
    if special and case.answers == "sums by bins":
        part = lrm.products(domain, [{"delay": MIDDLES}], names=[name])
        return part, {name: _one(SUM_OF_MIDDLES)}
    if special and case.answers == "sums by knots":
        part = lrm.products(domain, [{"cost": list(KNOTS)}], names=[name])
        return part, {name: _one("SUM(cost)")}
    if special and case.answers == "rollup":
        part = lrm.marginals(domain, [(), ("region",), ("region", "sex")], name=name)
        return part, {name: _one("COUNT(*)"), **_by("region", name), **_by("region, sex", name)}
    kinds = [
        lambda: (lrm.total(domain, name=name), {name: _one("COUNT(*)")}),
        lambda: (lrm.marginals(domain, [("region",)], name=name), _by("region", name)),
        lambda: (
            lrm.ranges(domain, "grade", [(low, low + 2)], name=name),
            {
                f"{name}[grade={low}..{low + 2}]": _one(
                    "COUNT(*)", f"grade BETWEEN {low} AND {low + 2}"
                )
            },
        ),
        lambda: (
            lrm.where(lrm.total(domain, name=name), condition),
            {name: _one("COUNT(*)", condition)},
        ),
    ]
    part, answers = kinds[int(draw.integers(len(kinds)))]()
    if case.answers == "importance":
        part = lrm.with_importance(part, 1 + number % 4)
    return part, answers


def _one(answer, condition="TRUE"):
    return float(
        reference().execute(f"SELECT {answer} FROM visits WHERE {condition}").fetchone()[0]
    )


def _by(groups, name):
    found = reference().execute(f"SELECT {groups}, COUNT(*) FROM visits GROUP BY {groups}")
    names = groups.split(", ")
    return {
        f"{name}[{', '.join(f'{n}={v}' for n, v in zip(names, labels, strict=True))}]": float(count)
        for *labels, count in found.fetchall()
    }
