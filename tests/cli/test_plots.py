"""Plots are files of the right kind, the same for the same input, and never half-written."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from lrm.errors import FileFormatError, UsageError
from lrm.planning.plan.comparison import Comparison, Outcome, compare
from lrm.planning.plan.planner import plan
from lrm.privacy.budget import ZCDP, ApproxDP, PureDP
from lrm.queries.workload.families import prefix
from lrm.releases import release
from lrm.views.comparisons import comparison_facts, side_by_side_facts
from lrm.views.figures import (
    answers_drawing,
    comparison_drawing,
    errors_drawing,
    side_by_side_drawing,
)

HALF = PureDP(Fraction(1, 2))
GAUSSIAN = {
    "ρ = 0.125 (zero-concentrated DP)": ZCDP(Fraction(1, 8)),
    "ε = 1, δ = 1e-09 (approximate DP)": ApproxDP(Fraction(1), Fraction(1, 10**9)),
}


def words(path):
    """The texts of an SVG, which draws letters as shapes and keeps the text beside them."""
    drawn = Path(path).read_text(encoding="utf-8")
    assert drawn.rstrip().endswith("</svg>")
    return "\n".join(re.findall(r"<!-- (.*?) -->", drawn, re.DOTALL))


def is_png(path):
    return Path(path).read_bytes().startswith(b"\x89PNG") and Path(path).stat().st_size > 5_000


def draw_errors(plan, privacy, path):
    errors_drawing(plan, plan.accuracy(privacy)).save(path)


def draw_both(laplace, gaussian, privacy, path):
    facts = side_by_side_facts((laplace, gaussian), HALF, privacy)
    side_by_side_drawing(facts).save(path)


@pytest.fixture(scope="module")
def made():
    return plan(prefix(12), "wavelet")


@pytest.fixture(scope="module")
def comparison():
    return compare(prefix(12), ["noise-on-data", "wavelet", "noise-on-results"])


def test_comparison_names_its_mechanisms(comparison):
    comparison_drawing(comparison_facts(comparison, HALF)).save("c.svg")
    for name in ("noise-on-data", "wavelet", "noise-on-results", "at ε = 0.5 (pure DP)"):
        assert name in words("c.svg")


@pytest.mark.parametrize(("guarantee", "privacy"), GAUSSIAN.items())
def test_plots_of_gaussian_noise_name_their_guarantee(guarantee, privacy):
    batch, mechanisms = prefix(12), ["noise-on-data", "wavelet"]
    draw_errors(plan(batch, "wavelet", noise="gaussian"), privacy, "errors.svg")
    assert f"at {guarantee}" in words("errors.svg")
    result = compare(batch, mechanisms, noise="gaussian")
    comparison_drawing(comparison_facts(result, privacy)).save("bars.svg")
    assert f"total squared error at {guarantee}" in words("bars.svg")
    draw_both(compare(batch, mechanisms), result, privacy, "both.svg")
    promises = ("Laplace noise at ε = 0.5 (pure DP)", f"Gaussian noise at {guarantee}")
    for said in (*mechanisms, *promises):
        assert said in words("both.svg")


def test_a_mechanism_without_a_plan_has_no_bar(comparison):
    none = Comparison((Outcome("matrix", None, "too large"),))
    partly = Comparison((*none.outcomes, comparison.outcomes[0]))
    gaussian = compare(prefix(12), ["noise-on-data"], noise="gaussian")
    other, privacy = Comparison((*none.outcomes, *gaussian.outcomes)), ZCDP(Fraction(1, 8))
    draw_both(partly, other, privacy, "both.png")
    assert is_png("both.png")
    with pytest.raises(UsageError, match="nothing to draw"):
        draw_both(none, none, privacy, "none.svg")
    assert not Path("none.svg").exists()


@pytest.mark.parametrize("kind", [".svg", ".png"])
def test_the_same_plot_is_the_same_file(made, kind):
    draw_errors(made, HALF, f"a{kind}")
    draw_errors(made, HALF, f"b{kind}")
    assert Path(f"a{kind}").read_bytes() == Path(f"b{kind}").read_bytes()


def test_answers(made):
    answered = release(made, np.arange(12), epsilon=1)
    answers_drawing(answered).save("a.png")
    answers_drawing(answered, limit=5).save("b.png")
    assert is_png("a.png")
    assert is_png("b.png")


def test_other_kinds_and_places_are_refused(made):
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        draw_errors(made, HALF, "a.pdf")
    with pytest.raises(FileFormatError):
        draw_errors(made, HALF, "none/a.svg")
    assert not list(Path().iterdir())
