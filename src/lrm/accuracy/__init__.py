"""Accuracy: errors and intervals of a batch, and what no strategy can beat."""

from lrm.accuracy.core import Accuracy, amount_for_error, privacy_of

__all__ = ["Accuracy", "amount_for_error", "privacy_of"]
