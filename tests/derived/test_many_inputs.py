"""Quantiles with thousands of inputs: errors are read by ranges of queries."""

from __future__ import annotations

import numpy as np

from lrm.planning.derived.noise import Noisy


class _Accuracy:
    """Errors of 5,000 queries that counts how often it is asked."""

    calls = 0

    def errors_of(self, start: int, stop: int) -> np.ndarray:
        self.calls += 1
        return np.arange(start, stop, dtype=float)


def test_neighbouring_inputs_are_read_together():
    index = np.array([[*range(3000), 4000], [*range(1000, 4000), 4001]])
    accuracy = _Accuracy()
    found = Noisy(lambda start, stop: np.zeros(stop - start), accuracy).errors(
        index, np.full(3001, -2.0)
    )
    assert (found == 2.0 * index).all()
    assert accuracy.calls == 1
