"""Labels were parsed back from names.

The group label ``x, b=1`` of the attribute ``a`` became two labels in the released JSON and
CSV, because ``a=x`` and ``b=1`` were read from the name ``n[a=x, b=1]``. Two answers could
also have the same name. Labels are data from the compiler on, and names are made from them.
"""

import csv
import html
import itertools
import json
import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lrm
from lrm.domain import Categories, Domain
from lrm.errors import LrmError, WorkloadError
from lrm.queries import builders as batches
from lrm.queries.files import parse_batch
from lrm.queries.sql import sql
from lrm.queries.workload import Label, LabelBlock, Labels, NumberedLabels, Workload
from lrm.queries.workload.families import identity, stack, total
from lrm.views.plan_document import plan_page
from lrm.views.release_page import release_page

HOSTILE = ["x, b=1", "x", 'say "y"', "]", "n[a=x]", "a=x", "two\nlines", " padded ", "\\", ";", "é"]
DOMAIN = Domain([Categories("a", HOSTILE), Categories("b", ["1", "x, b=1"])], "t")
TEXT = """SELECT COUNT(*) AS n FROM t GROUP BY CUBE (a, b);
SELECT COUNT(*) AS "n[a=x]" FROM t;
SELECT COUNT(*) AS "a=, b[" FROM t GROUP BY b"""

EXPECTED = [
    *(("n", {"a": a, "b": b}, 1) for a in HOSTILE for b in ("1", "x, b=1")),
    *(("n", {"a": a}, 1) for a in HOSTILE),
    *(("n", {"b": b}, 1) for b in ("1", "x, b=1")),
    ("n", {}, 1),
    ("n[a=x]", {}, 2),
    *(("a=, b[", {"b": b}, 3) for b in ("1", "x, b=1")),
]


@pytest.fixture(scope="module")
def plan():
    return lrm.plan(sql(TEXT, DOMAIN), "noise-on-data")


@pytest.fixture(scope="module")
def release(plan):
    return lrm.release(plan, np.arange(DOMAIN.size), epsilon=1)


def told(labels):
    return [(label.query, dict(label.group), label.line) for label in labels]


def test_the_compiler_labels_every_answer(plan):
    assert told(plan.workload.labels) == EXPECTED
    assert len(set(plan.workload.names)) == len(EXPECTED)


def test_plan_and_release_files_keep_labels(plan, release, tmp_path):
    plan.save(tmp_path / "plan.lrm")
    release.save(tmp_path / "release.lrm")
    loaded = lrm.load_plan(tmp_path / "plan.lrm")
    assert told(loaded.workload.labels) == EXPECTED
    assert loaded.digest == plan.digest
    assert told(lrm.load_release(tmp_path / "release.lrm").plan.workload.labels) == EXPECTED


def test_json_and_csv_tell_each_label_as_it_is(release, tmp_path):
    release.write(tmp_path / "facts.json")
    rows = json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))["answers"]
    assert [(row["query"], row["group"]) for row in rows] == [label[:2] for label in EXPECTED]
    assert [row["name"] for row in rows] == list(release.names)
    release.write(tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for line, (query, group, _) in zip(lines, EXPECTED, strict=True):
        assert (line["query"], line["a"], line["b"]) == (
            query,
            group.get("a", ""),
            group.get("b", ""),
        )


def test_columns_of_groups_never_collide(tmp_path):
    names = ["name", "query", "answer", "answer_group", "query_group"]
    domain = Domain([Categories(name, ["u", "v"]) for name in names])
    made = lrm.release(lrm.plan(batches.marginals(domain, 1), "noise-on-data"), [0] * 32, epsilon=1)
    made.write(tmp_path / "answers.csv")
    header = (tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert len(set(header)) == len(header)


def test_pages_show_a_label_as_one(plan, release):
    planned = plan_page(plan, plan.privacy(1), 0.95, 500)
    names = {label.name for label in plan.workload.labels}
    assert {html.escape(name) for name in names} <= set(re.findall(r'"row">(.*?)</th>', planned))
    released = release_page(release)
    assert '<th scope="row">x, b=1</th>' in released
    assert '<th scope="col" class="number">x, b=1</th>' in released


def test_yaml_python_and_sql_label_alike():
    yaml = parse_batch(
        "lrm-batch: 1\nqueries:\n  - {kind: marginals, of: [[a, b]], name: n}", DOMAIN
    )
    python = batches.marginals(DOMAIN, [("a", "b")], name="n")
    written = sql("SELECT COUNT(*) AS n FROM t GROUP BY a, b", DOMAIN)
    groups = [[label.group for label in batch.labels] for batch in (yaml, python, written)]
    assert groups[0] == groups[1] == groups[2]
    assert python.digest == written.digest == yaml.digest  # lines are not part of a batch


def test_further_queries_keep_their_labels(release):
    from lrm.releases.further import answer_further

    asked = sql("SELECT COUNT(*) AS m FROM t GROUP BY a", DOMAIN)
    assert told(answer_further(release, asked).plan.workload.labels) == [
        ("m", {"a": a}, 1) for a in HOSTILE
    ]


texts = st.text(alphabet='ab =,[]"\\\n;x1', max_size=6)
labels_of_answers = st.builds(
    Label,
    texts,
    st.lists(st.tuples(texts, texts), max_size=2, unique_by=lambda pair: pair[0]).map(tuple),
)


@given(labels_of_answers, labels_of_answers)
def test_different_labels_have_different_names(one, two):
    assert (one.name == two.name) == ((one.query, one.group) == (two.query, two.group))


@given(st.lists(labels_of_answers, min_size=1, max_size=5))
def test_labels_survive_json_or_are_refused_as_duplicates(several):
    parts = [
        LabelBlock(label.query, tuple((a, (b,)) for a, b in label.group), 7) for label in several
    ]
    keys = {(label.query, frozenset(label.group)) for label in several}
    if len(keys) < len(several):
        with pytest.raises(WorkloadError, match="duplicate query name"):
            Labels(parts)
        return
    labels = Labels(parts)
    again = Labels.from_facts(json.loads(json.dumps(labels.facts())))
    assert list(again) == list(labels)
    assert again.digest == labels.digest


@given(st.data())
def test_products_that_share_an_answer_are_found(data):
    values = st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=4, unique=True).map(tuple)
    parts = [
        LabelBlock("n", (("a", data.draw(values)), ("b", data.draw(values)))) for _ in range(3)
    ]
    everything = [label.group for part in parts for label in part]
    if len(set(everything)) == len(everything):
        assert len(Labels(parts)) == len(everything)
    else:
        with pytest.raises(WorkloadError, match="duplicate query name"):
            Labels(parts)


def test_labels_are_made_on_demand():
    many = tuple(str(value) for value in range(2_500))
    labels = Labels(
        [
            LabelBlock("n", (("a", many), ("b", many))),
            LabelBlock(NumberedLabels("queries", 20_000_000)),
        ]
    )
    assert len(labels) == 26_250_000
    assert labels[2_501].group == (("a", "1"), ("b", "1"))
    assert labels.names[-1] == "q20000000"
    assert [label.name for label in itertools.islice(labels, 2)] == ["n[a=0, b=0]", "n[a=0, b=1]"]


def test_numbers_are_counted_through_and_names_kept():
    stacked = stack([identity(2), total(2), identity(2)])
    assert stacked.names == ("q1", "q2", "total", "q3", "q4")
    for clash in ("q1", "q4"):
        with pytest.raises(WorkloadError, match=f"duplicate query name: '{clash}'"):
            stack([stacked, Workload([[1, 1]], names=[clash])])


def test_a_frame_keeps_its_index():
    frame = pd.DataFrame([[1, 0], [1, 1]], index=["young", "old"])
    assert lrm.plan(frame, "noise-on-data").workload.names == ("young", "old")
    assert Workload(frame, names=["a", "b"]).names == ("a", "b")
    assert Workload(frame.reset_index(drop=True)).names == ("q1", "q2")
    levels = pd.MultiIndex.from_tuples([("x, b=1", 2), ("y", 3)], names=["a", None])
    assert [label.group for label in Workload(frame.set_index(levels)).labels] == [
        (("a", "x, b=1"), ("level 2", "2")),
        (("a", "y"), ("level 2", "3")),
    ]
    with pytest.raises(WorkloadError, match="queries 1 and 2 have the same name"):
        Workload(pd.DataFrame([[1], [1]], index=["z", "z"]))


BROKEN = [
    None,
    [],
    {},
    ["n"],
    [{"numbered": 0, "first": 1}],
    [{"numbered": 2, "first": True}],
    [{"numbered": 2.0, "first": 1}],
    [{"query": 1}],
    [{"query": "n", "line": "1"}],
    [{"query": "n", "groups": {"a": ["x"]}}],
    [{"query": "n", "groups": [["a", "x"]]}],
    [{"query": "n", "groups": [["a", []]]}],
    [{"query": "n", "groups": [["a", ["x", "x"]]]}],
    [{"query": "n", "groups": [["a", ["x"]], ["a", ["y"]]]}],
    [{"query": "n", "groups": [["a", ["x", None]]]}],
    [{"query": "n", "more": 1}],
    [{"query": "n"}, {"query": "n"}],
]


@pytest.mark.parametrize("facts", BROKEN, ids=str)
def test_labels_of_a_broken_file_are_refused(facts):
    with pytest.raises(LrmError):
        Labels.from_facts(facts)


def test_a_plan_has_as_many_labels_as_queries():
    with pytest.raises(WorkloadError, match="2 queries need 2 names, got 1"):
        Workload(np.eye(2), labels=Labels([LabelBlock("one")]))


@given(
    st.lists(st.sampled_from("uvw"), min_size=1, max_size=3, unique=True).map(tuple),
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 3)),
        max_size=3,
        unique_by=lambda one: one[0],
    ),
    st.none() | st.just((0, 1)),
)
def test_a_block_is_the_product_of_its_vocabularies(queries, sizes, orders):
    axes = tuple((name, tuple(map(str, range(size)))) for name, size in sizes)
    if orders is not None and not axes:
        return
    block = LabelBlock(queries, axes, 3, orders=orders)
    every = list(block)
    assert [block.label(place) for place in range(len(block))] == every
    assert [label.query for label in every] == [q for q in queries for _ in range(block.each)]
    assert [label for table in block.tables() for label in table] == every
    for place, query in enumerate(queries):
        assert list(block.of_query(place)) == [label for label in every if label.query == query]
    assert list(Labels.from_facts(Labels([block]).facts())) == every


def test_columns_of_files_have_the_types_of_their_values(tmp_path):
    domain = lrm.Domain(
        [
            lrm.Integers("age", 0, 2),
            lrm.Categories("sex", ["m", "f"]),
            lrm.Dates("day", "2024-01-01", "2024-01-02"),
        ]
    )
    text = (
        "SELECT sex, day, age, COUNT(*) AS n FROM t GROUP BY sex, day, age; SELECT COUNT(*) FROM t"
    )
    made = lrm.release(lrm.plan(sql(text, domain), "noise-on-data"), [1] * 12, epsilon=1)
    made.write(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    kinds = {name: str(table.schema.field(name).type) for name in ("age", "day", "sex", "query")}
    ordered = "dictionary<values=string, indices=int32, ordered="
    assert kinds == {
        "age": "int64",
        "day": "date32[day]",
        "sex": f"{ordered}1>",
        "query": f"{ordered}0>",
    }
    assert table.schema.names[1:4] == ["sex", "day", "age"]  # the order of SELECT
    assert table.column("age").to_pylist()[:5] == [0, 0, 0, 0, 1]
    assert table.column("age").null_count == 1
    assert table.column("query").to_pylist() == ["n"] * 12 + ["q2"]
    made.write(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith("statement,name,query,sex,day,age,answer,")
