"""Answers that are computed from noisy linear ones: values, errors and intervals."""

from lrm.derived.answers import derived_numbers, derived_values
from lrm.derived.noise import JointNoise, Noisy

__all__ = ["JointNoise", "Noisy", "derived_numbers", "derived_values"]
