"""Answers that are computed from noisy linear ones: values, errors and intervals."""

from lrm.planning.derived.computed import computed_numbers, computed_values
from lrm.planning.derived.expected import ExpectedError, expected_error, slopes
from lrm.planning.derived.noise import JointNoise, Noisy
from lrm.planning.derived.quantiles import quantile_numbers, quantile_values
from lrm.queries.maps.linear import Floats
from lrm.queries.workload import Computed, Derived

__all__ = [
    "ExpectedError",
    "JointNoise",
    "Noisy",
    "derived_numbers",
    "derived_values",
    "expected_error",
    "slopes",
]


def derived_values(answer: Derived, start: int, stop: int, noisy: Noisy) -> Floats:
    """Values of the groups ``start:stop``."""
    if isinstance(answer, Computed):
        return computed_values(answer, start, stop, noisy)
    return quantile_values(answer, start, stop, noisy)


def derived_numbers(
    answer: Derived, start: int, stop: int, noisy: Noisy, confidence: float
) -> dict[str, Floats]:
    """Answer, standard error and interval of the groups ``start:stop``, as columns."""
    if isinstance(answer, Computed):
        return computed_numbers(answer, start, stop, noisy, confidence)
    return quantile_numbers(answer, start, stop, noisy, confidence)
