"""Facts of derived answers that were edited ended in tracebacks, or took all memory.

A quantile with fewer lower than upper ends, a list where a number should be and a bound of 400
digits stopped the reader with errors of NumPy and Python; a formula that divides by 0 the table of
answers. A file of 9 KB with a thousand million groups that share one input took 8 GB to be shown,
and an average of many inputs over a large product 3^inputs evaluations.
"""

import numpy as np
import pytest

import lrm
from forging import resealed
from lrm.errors import FileFormatError, WorkloadError
from lrm.planning.derived import computed
from lrm.queries.workload import Formula

DOMAIN = lrm.Domain([lrm.Categories("s", ["x", "y"]), lrm.Integers("age", 0, 3)], "t")
BATCH = """
SELECT s, COUNT(*) AS n FROM t GROUP BY s HAVING n > 2 ORDER BY n;
SELECT MEDIAN(age) AS middle FROM t;
SELECT s, AVG(age) AS mean FROM t GROUP BY s;
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    plan = lrm.plan(BATCH, "noise-on-data", domain=DOMAIN)
    path = tmp_path_factory.mktemp("files") / "plan.lrm"
    plan.save(path)
    assert lrm.load_plan(path).digest == plan.digest
    return path


def _quantile(**facts):
    return lambda plan: plan["derived"][0].update(facts)


def _many_groups(plan):
    mean = plan["derived"][1]
    mean["label"]["groups"] = [[name, [str(i) for i in range(1000)]] for name in "abc"]
    mean["inputs"] = [[start, [0, 0, 0], scale] for start, _, scale in mean["inputs"]]


CHANGES = {
    "lower ends are missing": (_quantile(lows=[0.0]), "both ends"),
    "no ends": (_quantile(lows=[], highs=[]), "both ends"),
    "ends are lists": (_quantile(lows=[[0.0]] * 4), "wrong type"),
    "level is a list": (_quantile(level=[]), "wrong type"),
    "level is an object": (_quantile(level={}), "wrong type"),
    "division by 0": (
        lambda plan: plan["derived"][1].update(formula=[0, 1, "/", 0.0, "/"]),
        "must not divide by 0",
    ),
    "a bound of 400 digits": (
        lambda plan: plan["display"][0].update(having=[[["n", ">", 10**400]]]),
        "wrong type",
    ),
    "an unknown kind of measurements": (
        lambda plan: plan["measured"].update(kind="Cells"),
        "must be 'cells'",
    ),
    "a thousand million groups": (_many_groups, "at most 4,194,304"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_it_is_refused_with_a_sentence(name, saved, tmp_path):
    change, words = CHANGES[name]
    path = resealed(saved, lambda facts, arrays: change(facts), tmp_path / "edited.lrm")
    with pytest.raises(FileFormatError, match=words):
        lrm.load_plan(path)


def test_a_formula_does_not_divide_by_a_constant_zero():
    with pytest.raises(WorkloadError, match="divide by 0"):
        Formula((0, -0.0, "/"))


def test_many_inputs_over_a_box_have_no_ends():
    steps = [0, *(step for i in range(1, 30) for step in (i, "+"))]
    inputs = np.ones((30, 2))
    low, high = computed._boxed(Formula(tuple(steps)), inputs, inputs)
    assert low.tolist() == [-np.inf, -np.inf]
    assert high.tolist() == [np.inf, np.inf]
