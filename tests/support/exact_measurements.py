"""Measurements of products without noise."""

from lrm.planning.design.products.folding import fold, unfold
from lrm.queries.maps.kron import along


def measure_exactly(group, table):
    """The measurements of a small table (over the group's axes) without noise."""
    measured = []
    for inside in group.marginals.members:
        y = table
        for i, member in reversed(list(enumerate(inside))):
            y = along(y, i, group.marginals.bases[i].times) if member else y.sum(axis=i)
        measured.append(y)
    by_subset = group.marginals.information()
    for b, sign in enumerate(group.marginals.folds.tolist()):
        if sign:
            axes = by_subset.mirrored(b)
            measured[b] = unfold(fold(measured[b], axes, sign), axes, sign)
    return measured
