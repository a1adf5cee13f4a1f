"""Answers that are computed from noisy linear ones: values, errors and intervals."""

from lrm.derived.answers import derived_numbers, derived_values
from lrm.derived.expected import ExpectedError, expected_error, slopes
from lrm.derived.noise import JointNoise, Noisy

__all__ = [
    "ExpectedError",
    "JointNoise",
    "Noisy",
    "derived_numbers",
    "derived_values",
    "expected_error",
    "slopes",
]
