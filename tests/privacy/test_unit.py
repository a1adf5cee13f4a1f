"""Laws of the privacy unit: its factor, its text, and which unit follows from which."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrm.errors import BudgetError
from lrm.privacy.unit import PrivacyUnit

units = st.builds(
    PrivacyUnit,
    st.sampled_from([None, "pid", "household"]),
    st.integers(1, 12),
    st.sampled_from(["add-remove", "substitute"]),
)


@settings(deadline=None)
@given(st.integers(1, 10**9))
def test_a_replaced_unit_counts_twice(rows):
    assert PrivacyUnit(None, rows).factor == rows
    assert PrivacyUnit("pid", rows, "substitute").factor == 2 * rows


@settings(deadline=None)
@given(units)
def test_text_and_facts_read_back(unit):
    assert PrivacyUnit.from_facts(json.loads(unit.text)) == unit
    assert PrivacyUnit.from_facts(unit.facts) == unit


FAULTS = [
    (lambda: PrivacyUnit("who", 0), "max_rows must be between 1 and 1,000,000,000, not 0"),
    (lambda: PrivacyUnit("who", 10**9 + 1), "max_rows must be between 1 and"),
    (lambda: PrivacyUnit("who", 1.0), "max_rows must be an integer, not 1.0"),
    (lambda: PrivacyUnit("who", max_rows=True), "max_rows must be an integer, not True"),
    (lambda: PrivacyUnit("who", "2"), "max_rows must be an integer, not '2'"),
    (lambda: PrivacyUnit(" ", 1), "column must be the name of a column, not ' '"),
    (lambda: PrivacyUnit("who", 1, "swap"), "must be 'add-remove' or 'substitute', not 'swap'"),
    (
        lambda: PrivacyUnit.from_facts({"column": None}),
        "exactly the fields column, max_rows, neighbours",
    ),
    (lambda: PrivacyUnit.from_facts("row"), "exactly the fields column, max_rows, neighbours"),
]


@pytest.mark.parametrize(("make", "sentence"), FAULTS)
def test_a_malformed_unit_is_refused(make, sentence):
    with pytest.raises(BudgetError) as caught:
        make()
    assert sentence in str(caught.value)


@settings(deadline=None)
@given(units)
def test_a_unit_follows_from_itself_in_one_step(unit):
    assert unit.steps_of(unit) == 1


@settings(deadline=None)
@given(units, units, units)
def test_steps_multiply_along_a_path(one, two, three):
    """Going through a third unit is allowed, and never takes fewer steps than going straight."""
    first, second, straight = one.steps_of(two), two.steps_of(three), one.steps_of(three)
    if first is not None and second is not None:
        assert straight is not None
        assert straight <= first * second


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.booleans(), st.booleans())
def test_the_steps_are_those_of_a_walk_over_numbers_of_rows(rows, others, replaced, by_replacing):
    """Walk from one neighbour to the other in steps of the other unit, and count them.

    Without a column a table is a bag of rows. Only how many rows still have to go and to come
    matters: a step of add/remove takes either at most so many out or brings so many in, one of
    substitution does both at once with the same number.
    """
    kinds = "add-remove", "substitute"
    unit = PrivacyUnit(None, rows, kinds[replaced])
    other = PrivacyUnit(None, others, kinds[by_replacing])
    out, into, walked = (rows, rows, 0) if replaced else (0, rows, 0)
    while out or into:
        if by_replacing and not (out and into):
            walked = None  # a replacement cannot only add
            break
        if by_replacing:
            out, into = max(0, out - others), max(0, into - others)
        elif out:
            out = max(0, out - others)
        else:
            into = max(0, into - others)
        walked += 1
    assert unit.steps_of(other) == walked
