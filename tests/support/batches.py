"""Workloads of all shapes for property tests."""

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

__all__ = ["few_slow_examples", "integer_matrices", "matrices", "real_matrices"]


@st.composite
def integer_matrices(draw, most=7):
    """Small whole numbers: the counting batches of real life, with zeros and repeats."""
    m, n = draw(st.integers(1, most)), draw(st.integers(1, most))
    entries = draw(st.lists(st.integers(-3, 3), min_size=m * n, max_size=m * n))
    matrix = np.array(entries, dtype=float).reshape(m, n)
    return _with_repeats(draw, matrix)


@st.composite
def real_matrices(draw, most=7):
    """Real weights of any rank up to the smaller side, rows from 1e-6 to 1e6."""
    m, n = draw(st.integers(1, most)), draw(st.integers(1, most))
    rank = draw(st.integers(1, min(m, n)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrix = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    if draw(st.booleans()):
        matrix *= 10.0 ** rng.integers(-6, 7, size=(m, 1))
    return _with_repeats(draw, matrix)


def _with_repeats(draw, matrix):
    kind = draw(st.sampled_from(["plain", "duplicate rows", "duplicate columns", "zero column"]))
    if kind == "duplicate rows":
        return np.vstack([matrix, matrix[:1]])
    if kind == "duplicate columns":
        return np.hstack([matrix, -matrix[:, :1], matrix[:, :1] / 2])
    if kind == "zero column":
        return np.hstack([matrix, np.zeros((len(matrix), 1))])
    return matrix


matrices = st.one_of(integer_matrices(), real_matrices())

few_slow_examples = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking searches takes minutes
    deadline=None,
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow],
)
"""For properties of whole plans, each of which takes a search."""
