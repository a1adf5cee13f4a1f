"""A release as plain data: complete, exact, and nothing private in it."""

import csv
import json
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import lrm
from lrm.domain import Bins, Categories, Domain, PrivacyUnit
from lrm.domain.file import parse_domain
from lrm.queries.builders import marginals, total
from lrm.releases.postprocess import process
from lrm.views.releases import release_facts
from pages import numbers_in

DOMAIN = Domain(
    [
        Categories("state", ["NY", "New, Jersey", "a=b]"], outside="cell"),
        Bins("answer", [0, 1.5, 3]),
    ],
    table="visits",
    unit=PrivacyUnit("patient", 2),
)
SECRETS = [918273, 645341, 777123, 535353, 121417, 343536, 999331, 424241]


@pytest.fixture(scope="module")
def release():
    batch = lrm.families.stack(
        [total(DOMAIN, name="all"), marginals(DOMAIN, [("state",), ("state", "answer")])]
    )
    plan = lrm.plan(batch, "noise-on-data")
    return lrm.release(plan, SECRETS, epsilon="1/3")


def test_facts_survive_json(release, tmp_path):
    release.write(tmp_path / "facts.json", 0.9)
    read = json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))
    assert read == release_facts(release, 0.9)
    assert read["confidence"] == 0.9


def test_privacy_is_told_exactly(release):
    facts = release_facts(release)
    assert facts["privacy"]["parameters"] == {"guarantee": "pure", "epsilon": "1/3"}
    assert Fraction(facts["privacy"]["loss"]["exact"]) == release.loss <= Fraction(1, 3)
    assert facts["privacy"]["unit"]["max_rows"] == 2
    assert "'patient'" in facts["privacy"]["unit"]["words"]
    scale = facts["mechanism"]["noise"]["scale_on_integers"]
    assert Fraction(scale["exact"]) == Fraction(release.scale)
    assert float.fromhex(scale["hex"]) == release.scale
    assert facts["registry"]["privacy_loss"]["parameters"] == "ε = 1/3"
    assert facts["registry"]["implementation"]["timing_protection"] == "none"
    assert parse_domain(facts["domain"]).declared == DOMAIN


def test_answers_carry_their_groups(release):
    rows = release_facts(release)["answers"]
    assert rows[0]["query"] == "all"
    assert rows[0]["group"] == {}
    assert [row["group"]["state"] for row in rows[1:5]] == list(DOMAIN.labels("state"))
    both = [tuple(row["group"].values()) for row in rows[5:]]
    assert both == [DOMAIN.cell_labels(cell) for cell in range(DOMAIN.size)]
    assert [row["name"] for row in rows] == list(release.names)


def test_csv_has_one_row_an_answer(release, tmp_path):
    release.write(tmp_path / "answers.csv", 0.99)
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ["answer", "standard_error", "low", "high", "confidence"]
    assert list(rows[0]) == ["statement", "name", "query", "state", "answer_group", *numbers]
    assert [row["name"] for row in rows] == list(release.names)
    assert [row["query"] for row in rows] == ["all"] + ["count"] * 12
    assert np.array_equal([float(row["answer"]) for row in rows], release.answers)
    ends = [[float(row["low"]), float(row["high"])] for row in rows]
    assert np.array_equal(ends, release.intervals(0.99))
    assert rows[2]["state"] == "New, Jersey"
    assert rows[1]["answer_group"] == ""


def test_processed_answers_stand_beside_raw_ones(release, tmp_path):
    done = process(release, ["integer", "non-negative"])
    facts = release_facts(release, processed=done)
    assert [step["name"] for step in facts["post_processing"]["steps"]] == list(done.steps)
    assert "Biased" in facts["post_processing"]["steps"][0]["effect"]
    assert "raw answers" in facts["post_processing"]["intervals"]
    assert [row["processed"] for row in facts["answers"]] == done.answers.tolist()
    assert [row["answer"] for row in facts["answers"]] == release.answers.tolist()
    assert "consistent, integer" in facts["registry"]["accounting"]["post_processing"]
    release.write(tmp_path / "answers.csv", processed=done)
    header = (tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.endswith(",confidence,processed")
    assert release_facts(release)["post_processing"]["steps"] == []


@pytest.mark.parametrize("mechanism", ["best", "noise-on-data", "hierarchical", "wavelet"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_further_queries_follow_from_the_facts_alone(mechanism, noise):
    """Read nothing but the JSON, answer the batch again by least squares, with its errors."""
    queries = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
    plan = lrm.plan(queries, mechanism, noise=noise)
    amount = {"epsilon": 1} if noise == "laplace" else {"rho": "0.5"}
    release = lrm.release(plan, [30, 20, 10, 5], **amount)
    facts = json.loads(json.dumps(release_facts(release)))
    part = facts["measurements"]
    rows, merge = part["strategy"], part["merge"]
    strategy = sp.csr_array((rows["data"], rows["indices"], rows["indptr"]), shape=rows["shape"])
    merging = np.zeros((merge["merged_cells"], len(merge["index"])))
    merging[merge["index"], np.arange(len(merge["index"]))] = merge["factor"]
    matrix = strategy.toarray() @ merging / 2 ** part["bits"]
    y = np.array([int(text) for text in part["noisy_integers"]]) / 2 ** part["bits"]
    assert np.allclose(y, part["y"])
    rebuilt = queries @ np.linalg.pinv(matrix)
    assert np.allclose(rebuilt @ y, release.answers, atol=1e-5)
    deviation = facts["mechanism"]["noise"]["standard_deviation"]
    errors = np.linalg.norm(rebuilt, axis=1) * deviation
    assert np.allclose(errors, release.standard_errors, rtol=1e-5)


def test_zcdp_and_approximate_promises_are_told():
    plan = lrm.plan([[1, 1], [1, 0]], "noise-on-data", noise="gaussian")
    zcdp = release_facts(lrm.release(plan, [1, 2], rho="0.125"))
    assert zcdp["privacy"]["loss"]["parameter"] == "rho"
    assert "ρ = 0.125" in " ".join(zcdp["privacy"]["promise"])
    both = release_facts(lrm.release(plan, [1, 2], epsilon=1, delta="1e-9"))
    parameters = both["registry"]["privacy_loss"]
    assert parameters["parameters"] == "ε = 1, δ = 1e-09"
    assert parameters["exact_parameters"]["delta"] == "0.000000001"


def test_nothing_private_is_told(release):
    """The counts are large and odd; with noise added none of them can stand there by chance.

    As a number, that is: its six digits stand somewhere in 600 random ones once in 200 times.
    """
    far = lrm.release(release.plan, SECRETS, epsilon="0.000001")
    text = json.dumps(release_facts(far, processed=process(far, ["non-negative"])))
    assert not numbers_in(text) & {*SECRETS, sum(SECRETS)}


def test_facts_depend_on_the_release_alone(release, tmp_path):
    release.save(tmp_path / "answers.lrm")
    assert release_facts(lrm.load_release(tmp_path / "answers.lrm")) == release_facts(release)


def test_every_number_is_finite(release):
    def walk(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            return all(walk(part) for part in value)
        return not isinstance(value, float) or math.isfinite(value)

    assert walk(release_facts(release))


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "pure"])
def test_all_noises_warn_where_nothing_is_distinguishable_from_zero(noise):
    domain = lrm.Domain([lrm.Integers("x", 0, 5)], "t")
    text = "SELECT x, SUM(COUNT(*)) OVER (ORDER BY x) AS up_to FROM t GROUP BY x"
    plan = lrm.plan(lrm.sql(text, domain), noise=noise, effort="quick")
    assert (plan.noise == "shaped") == (noise == "pure")
    amount = {"rho": 1} if noise == "gaussian" else {"epsilon": 1}
    # Noise alone looks like an answer, or like the total, with probability 0.01 each.
    empty = [lrm.release(plan, np.zeros(6, dtype=int), **amount).warnings for _ in range(6)]
    assert any("distinguishable from zero" in str(one) for one in empty)
    assert lrm.release(plan, np.full(6, 10_000), **amount).warnings == ()
