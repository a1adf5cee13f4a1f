"""Edited release files were accepted.

ε 10 → 0.001, a loss above ε, a scale of 1e-9, errors of zero, zCDP stated for Laplace noise: the
answers were compared with the measurements, and all else was believed. Now whatever follows from
the plan, the promise and the measurements is computed again, and must agree.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import lrm
from forging import resealed
from lrm.errors import BudgetError, FileFormatError, UsageError

BATCH = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]


@pytest.fixture(scope="module")
def release():
    return lrm.release(lrm.plan(BATCH, "noise-on-data"), [120, 80, 45], epsilon="0.5")


@pytest.fixture
def saved(release, tmp_path):
    release.save(tmp_path / "answers.lrm")
    return tmp_path / "answers.lrm"


def _privacy(**words):
    return lambda facts, arrays: facts.update(privacy=words)


def _noise(**words):
    return lambda facts, arrays: facts["noise"].update(words)


def _array(name, change):
    return lambda facts, arrays: arrays.update({name: change(arrays[name])})


CHANGES = {
    "epsilon smaller": _privacy(guarantee="pure", epsilon="0.001"),
    "epsilon larger": _privacy(guarantee="pure", epsilon="10"),
    "epsilon a little smaller": _privacy(guarantee="pure", epsilon="0.499999"),
    "zCDP on Laplace noise": _privacy(guarantee="zCDP", rho="0.125"),
    "approximate on Laplace noise": _privacy(guarantee="approximate", epsilon="1", delta="1e-9"),
    "an unknown guarantee": _privacy(guarantee="perfect", epsilon="0.5"),
    "loss above epsilon": lambda facts, arrays: facts.update(loss="3"),
    "loss below the noise's": lambda facts, arrays: facts.update(loss="1/1000"),
    "a tiny scale": _noise(scale=(1e-9).hex()),
    "twice the scale": lambda facts, arrays: facts["noise"].update(
        scale=(2 * float.fromhex(facts["noise"]["scale"])).hex()
    ),
    "an infinite scale": _noise(scale="inf"),
    "another distribution": _noise(distribution="discrete Gaussian"),
    "another unit": lambda facts, arrays: facts["unit"].update(max_rows=5),
    "other neighbours": lambda facts, arrays: facts["unit"].update(neighbours="substitute"),
    "errors of zero": _array("standard-errors", np.zeros_like),
    "smaller errors": _array("standard-errors", lambda errors: errors * 0.99),
    "other answers": _array("answers", lambda answers: answers + np.array([0, 1])),
    "answers of NaN": _array("answers", lambda answers: answers * np.nan),
    "fewer answers": _array("answers", lambda answers: answers[:1]),
    "other measurements": _array("noisy-measurements", lambda values: values + 2**31),
    "fewer measurements": _array("noisy-measurements", lambda values: values[:-1]),
    "measurements as floats": _array("noisy-measurements", lambda values: values.astype(float)),
    "simulated as a word": lambda facts, arrays: facts.update(simulated="no"),
    "a ledger's head of another form": lambda facts, arrays: facts.update(ledger_head="1:x"),
    "a fact more": lambda facts, arrays: facts.update(audited=True),
    "a fact less": lambda facts, arrays: facts.pop("loss"),
    "an array more": lambda facts, arrays: arrays.update(extra=np.zeros(3)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_an_edited_release_is_refused(saved, change):
    with pytest.raises(FileFormatError) as caught:
        lrm.load_release(resealed(saved, change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("noise", "promise"),
    [
        ("laplace", {"epsilon": "1/3"}),
        ("laplace", {"epsilon": 1e-4}),
        ("gaussian", {"rho": "0.02"}),
        ("gaussian", {"epsilon": 1, "delta": "1e-9"}),
    ],
)
@pytest.mark.parametrize("unit", [{}, {"neighbours": "substitute", "max_rows": 7}])
@pytest.mark.parametrize("mechanism", ["hierarchical", "noise-on-results"])
def test_a_genuine_release_is_read_back(noise, promise, unit, mechanism, tmp_path):
    plan = lrm.plan(BATCH, mechanism, noise=noise)
    release = lrm.release(plan, [120, 80, 45], **promise, **unit)
    release.save(tmp_path / "answers.lrm")
    again = lrm.load_release(tmp_path / "answers.lrm")
    for name in ("privacy", "loss", "distribution", "scale", "unit", "simulated", "software"):
        assert getattr(again, name) == getattr(release, name)
    np.testing.assert_array_equal(again.noisy_measurements, release.noisy_measurements)
    np.testing.assert_array_equal(again.answers, release.answers)


def test_a_release_cannot_be_made_with_other_noise(release):
    """The record checks itself, whoever makes it."""
    for change in (
        {"scale": release.scale / 2},
        {"scale": release.scale * 2},
        {"scale": float("nan")},
        {"loss": release.loss * 2},
        {"loss": release.loss / 2},
        {"loss": Fraction(0)},
        {"distribution": "discrete Gaussian"},
        {"simulated": True, "scale": release.scale / 2},
    ):
        with pytest.raises(BudgetError):
            replace(release, **change)
    with pytest.raises(UsageError, match="64-bit integers"):
        replace(release, noisy_measurements=np.zeros(2, dtype=np.int64))


@pytest.fixture(scope="module")
def shaped_plan():
    """Overlapping yes/no counts, for which shaped noise is chosen."""
    columns = [[cell >> bit & 1 for cell in range(16)] for bit in range(4)]
    plan = lrm.plan(np.array(columns, dtype=float), noise="pure", effort="quick")
    assert plan.measured.body is not None
    return plan


@pytest.mark.parametrize("unit", [{}, {"max_rows": 3}, {"neighbours": "substitute"}])
def test_a_release_with_shaped_noise_is_read_back_and_its_scale_checked(
    shaped_plan, unit, tmp_path
):
    release = lrm.release(shaped_plan, [5] * 16, epsilon="0.5", **unit)
    release.save(tmp_path / "answers.lrm")
    again = lrm.load_release(tmp_path / "answers.lrm")
    assert (again.scale, again.loss, again.unit) == (release.scale, release.loss, release.unit)
    for factor in (1 / 3, 1 / 2, 2):
        with pytest.raises(BudgetError):
            replace(release, scale=release.scale * factor)


def test_shaped_noise_has_no_other_guarantee_than_pure(shaped_plan):
    for promise in ({"rho": "0.1"}, {"epsilon": 1, "delta": "1e-6"}):
        with pytest.raises(BudgetError, match="pure"):
            lrm.release(shaped_plan, [5] * 16, **promise)
