"""Accuracy before data: errors and intervals of a plan, and what no strategy can beat."""

from lrm.accuracy.core import (
    amount_for_error,
    half_widths,
    noise_deviation,
    noise_scale,
    privacy_of,
)

__all__ = ["amount_for_error", "half_widths", "noise_deviation", "noise_scale", "privacy_of"]
