"""Deadlines of a search over products, and of its parts."""

import math

import pytest

from lrm.errors import StopSolver
from lrm.solvers.products.watch import Watch


def test_a_part_without_a_deadline_ends():
    """A search without a time limit still has parts with one."""
    part = Watch().part(0.0)
    with pytest.raises(StopSolver):
        part(1.0)


def test_an_endless_part_of_an_endless_search_goes_on():
    part = Watch().part(math.inf)
    for value in range(100):
        part(float(value))
    assert not part.stopped


def test_a_part_ends_with_the_whole():
    whole = Watch(remaining=lambda: 0.0)
    with pytest.raises(StopSolver):
        whole.part(10.0)(1.0)
    caller = Watch()
    part = caller.part(10.0)
    part(1.0)
    caller.stopped = True
    with pytest.raises(StopSolver):
        part(1.0)


def test_the_end_of_a_part_is_not_the_end_of_the_whole():
    whole = Watch()
    with pytest.raises(StopSolver):
        whole.part(0.0)(1.0)
    whole(1.0)
