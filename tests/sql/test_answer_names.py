"""Two statements of a file may use one name for an answer."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain import Categories, Domain, Integers
from lrm.errors import WorkloadError
from lrm.queries.sql import sql

DOMAIN = Domain([Categories("g", ["a", "b"]), Integers("x", 0, 3)], "t")
TEXT = """SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY n;
SELECT g, COUNT(*) AS n, AVG(x) AS mean FROM t WHERE x > 1 GROUP BY g"""


def test_a_name_of_several_statements_is_that_of_each_with_its_statement():
    batch = sql(TEXT, DOMAIN)
    names = {label.query for label in batch.shown}
    assert names == {"q1.n", "q2.n", "mean"}
    assert batch.display[0].queries == ("q1.n",)


def test_looking_up_an_ambiguous_name_lists_the_alternatives():
    release = lrm.release(
        lrm.plan(sql(TEXT, DOMAIN), "noise-on-data"), np.full(DOMAIN.size, 9), epsilon=1
    )
    table = release.table()
    with pytest.raises(WorkloadError, match=r"several statements.* 'n'.*'q1.n', 'q2.n'"):
        table.of("n")
    assert len(table.of("q2.n")) == 2
    assert {"q1.n", "q2.n"} <= set(table.to_arrow()["query"].to_pylist())


def test_parts_of_derived_answers_with_one_name_do_not_clash():
    batch = sql(
        "SELECT AVG(x) AS pct FROM t;"
        "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM t GROUP BY g",
        DOMAIN,
    )
    assert [one.label.query for one in batch.derived] == ["pct", "pct"]  # one of them by g
    lrm.plan(batch, "noise-on-data")


OTHER_GROUPS = """SELECT COUNT(*) AS n FROM t;
SELECT g, COUNT(*) AS n, AVG(x) AS mean FROM t GROUP BY g;
SELECT x, COUNT(*) AS k FROM t GROUP BY x"""


@pytest.fixture(scope="module")
def released():
    plan = lrm.plan(sql(OTHER_GROUPS, DOMAIN), "noise-on-data")
    return lrm.release(plan, np.full(DOMAIN.size, 9), epsilon=1)


def test_a_name_of_several_statements_is_refused_whatever_their_groups(released):
    for find in (released.__getitem__, released.table().of, released.plan.errors(epsilon=1).of):
        with pytest.raises(WorkloadError, match=r"several statements.* 'n'.*'q1.n', 'q2.n'"):
            find("n")


def test_tables_of_all_answers_know_the_names_that_a_release_knows(released):
    table = released.table()
    for name in ("q1.n", "q2.n", "q2.mean", "mean", "n_by_g"):
        assert table.of(name).to_pandas().equals(released[name].to_pandas())
        assert len(released.plan.errors(epsilon=1).of(name)) == len(table.of(name))


def test_a_name_with_its_statement_is_always_understood(released):
    table = released.to_pandas()
    for name, groups in {"q1.n": [None], "q2.n": ["a", "b"], "q2.mean": ["a", "b"]}.items():
        found = released[name].to_pandas()
        own = found["g"].tolist() if "g" in found else [None]
        assert own == groups
        alias = name.partition(".")[2]
        chosen = table[(table["query"] == alias) & (table["g"].notna() == (groups != [None]))]
        assert found["answer"].tolist() == chosen["answer"].tolist()
    assert len(released["q3.k"]) == len(released["k"]) == 4
    assert released["n_by_g"].to_pandas()["query"].tolist() == ["n", "n", "mean", "mean"]
    with pytest.raises(WorkloadError, match=r"no query is called 'q3.n'"):
        released["q3.n"]


def test_the_command_line_knows_the_same_names(released, tmp_path):
    released.save(tmp_path / "answers.lrm")
    show = partial(CliRunner().invoke, main)
    refused = show(["show", str(tmp_path / "answers.lrm"), "n"])
    assert refused.exit_code == 2
    assert "'q1.n', 'q2.n'" in refused.stderr
    second = show(["show", str(tmp_path / "answers.lrm"), "q2.n"])
    assert second.exit_code == 0
    assert "mean" in second.output
    assert (
        show(["show", str(tmp_path / "answers.lrm"), "--csv", str(tmp_path / "f")]).exit_code == 0
    )
    found = {path.name for path in (tmp_path / "f").iterdir()}
    assert found == {"n_1.csv", "n_by_g.csv", "k.csv", "answers.csv"}


def test_a_release_finds_each_statement_that_it_lists(released):
    """The first statement was listed as n, which is ambiguous where others have an answer n."""
    for name, statement in zip(released, released.plan.workload.tables, strict=True):
        assert released.frame(name).name == name
        assert len(released[name]) == statement.count + sum(
            answer.label.count
            for answer in released.plan.workload.derived[slice(*statement.derived)]
        )
