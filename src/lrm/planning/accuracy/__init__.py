"""Accuracy: errors and intervals of a batch, and what no strategy can beat."""

from lrm.planning.accuracy.core import Accuracy, amount_for_error, privacy_of, round_up

__all__ = ["Accuracy", "amount_for_error", "privacy_of", "round_up"]
