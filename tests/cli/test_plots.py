"""Plots are files of the right kind, the same for the same input, and never half-written."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from lrm.comparison import compare
from lrm.errors import FileFormatError, UsageError
from lrm.families import prefix
from lrm.planner import plan
from lrm.plots import plot_answers, plot_comparison, plot_query_errors
from lrm.releases import release

HALF = Fraction(1, 2)


@pytest.fixture(scope="module")
def made():
    return plan(prefix(12), "wavelet")


@pytest.fixture(scope="module")
def comparison():
    return compare(prefix(12), ["noise-on-data", "wavelet", "noise-on-results"])


def test_comparison_names_its_mechanisms(comparison):
    plot_comparison(comparison, HALF, "c.svg")
    text = Path("c.svg").read_text(encoding="utf-8")
    for name in ("noise-on-data", "wavelet", "noise-on-results", "0.5"):
        assert f"<!-- {name}" in text or name in text


@pytest.mark.parametrize("kind", [".svg", ".png"])
def test_the_same_plot_is_the_same_file(made, kind):
    plot_query_errors(made, HALF, f"a{kind}")
    plot_query_errors(made, HALF, f"b{kind}")
    assert Path(f"a{kind}").read_bytes() == Path(f"b{kind}").read_bytes()


def test_answers_with_and_without_truth(made):
    answered = release(made, np.arange(12), epsilon=1)
    plot_answers(answered, "a.png")
    plot_answers(answered, "b.png", truth=np.cumsum(np.arange(12)), limit=5)
    assert Path("a.png").stat().st_size > 5_000
    assert Path("b.png").stat().st_size > 5_000


def test_other_kinds_and_places_are_refused(made):
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        plot_query_errors(made, HALF, "a.pdf")
    with pytest.raises(FileFormatError):
        plot_query_errors(made, HALF, "none/a.svg")
    assert not list(Path().iterdir())
