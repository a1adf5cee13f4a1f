"""The demo is honest: synthetic, complete, and within its time."""

import numpy as np
import pytest

from lrm.cli.demo_table import PATIENTS, STATES, SyntheticPatients, demo_domain, demo_workload
from lrm.cli.options import MECHANISMS


def test_the_table_has_the_promised_size_and_only_valid_cells():
    counts = SyntheticPatients.generate(seed=1).counts()
    assert counts.sum() == PATIENTS == 200_000
    assert len(counts) == demo_domain().size


def test_the_seed_makes_the_table():
    first, again, other = (SyntheticPatients.generate(seed).counts() for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_the_counts_are_those_of_the_domain():
    """numpy's way of counting agrees with the reference, patient by patient."""
    table = SyntheticPatients.generate(seed=2, patients=500)
    rows = [
        {
            "state": STATES[s],
            "age": int(a),
            "sex": ["female", "male"][x],
            "hiv": ["negative", "positive"][h],
        }
        for s, a, x, h in zip(table.state, table.age, table.sex, table.hiv, strict=True)
    ]
    np.testing.assert_array_equal(table.counts(), demo_domain().count(rows))


def test_the_batch_holds_the_papers_examples():
    workload = demo_workload()
    assert workload.shape[0] >= 200
    shape = demo_domain().shape
    by_state = workload.queries.rows(0, 6).reshape(6, *shape)[:, :, 40, 0, 1]
    np.testing.assert_array_equal(
        by_state[:, :4],
        [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]],
    )
    assert not workload.queries.rows(0, 6).reshape(6, *shape)[..., 0].any()


@pytest.mark.slow
def test_the_demo_tells_its_facts(run, run_json):
    facts = run_json("demo")
    assert facts["synthetic"] is True
    assert facts["comparison"]["best"] == "best"
    assert [row["mechanism"] for row in facts["comparison"]["mechanisms"]] == list(MECHANISMS)
    assert facts["release"]["privacy"] == {"guarantee": "pure", "epsilon": "0.1"}
    # Answers share measurements, so coverage varies more than a binomial; half never happens.
    assert facts["intervals_that_hold_the_truth"] > 0.5 * len(facts["release"]["answers"])


def test_the_demo_for_people(run, monkeypatch):
    monkeypatch.setattr("lrm.cli.options.MECHANISMS", ("best", "noise-on-data"))
    result = run("demo", "--effort", "quick", "--epsilon", "1")
    assert result.exit_code == 0, result.output
    assert "SYNTHETIC" in result.stdout
    assert "1.q1 NY+NJ+CA+WA" in result.stdout
    assert "2.q3 NY+2CA+2WA" in result.stdout
    assert all(len(line.rstrip()) <= 80 for line in result.stdout.splitlines())
