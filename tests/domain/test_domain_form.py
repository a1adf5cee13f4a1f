"""The form of a domain file changes the text of one field, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm.domain.draft import KINDS, draft
from lrm.domain.file import parse_domain
from lrm.domain.form import DomainForm
from lrm.errors import DomainError

DRAFT = draft(
    [("state", "VARCHAR"), ("age", "BIGINT"), ("stay", "DOUBLE"), ("day", "DATE")], "visits"
)
FLOW = """\
lrm-domain: 1
table: visits  # as SQL has it
unit: {column: person, max_rows: 3}
attributes:
  # two of them
  - {name: "a: b", kind: categories, values: [f, "m, n", 007], null: drop,
     outside: drop}
  - {name: age, kind: integers, low: 0, high: 59, null: drop, outside: drop}
lookups: []
"""


def filled(text):
    """A draft with all that is to be done."""
    form = DomainForm.of(text)
    text = form.with_unit("person", "patient", "3")
    for place, name, value in (
        (0, "values", "NY, N'J, [x"),
        (1, "low", "0"),
        (1, "high", "99"),
        (2, "edges", "0, 10, 20.5"),
        (3, "start", "2024-01-01"),
        (3, "end", "2024-12-31"),
        (3, "by", "month"),
    ):
        text = DomainForm.of(text).with_field(place, name, value)
    return text


def test_a_draft_is_completed_by_its_form():
    with pytest.raises(DomainError, match="is a draft") as caught:
        parse_domain(DRAFT)
    assert len(caught.value.each) == 8  # each is a mark of its own
    assert len({error.line for error in caught.value.each}) == 8
    text = filled(DRAFT)
    domain = parse_domain(text)
    assert domain.unit.column == "patient"
    assert domain.unit.max_rows == 3
    assert domain.attributes[0].values == ("NY", "N'J", "[x")
    assert [attribute.size for attribute in domain.attributes] == [3, 100, 2, 12]
    old, new = DRAFT.splitlines(), text.splitlines()
    assert [line.partition("#")[2] for line in old] == [line.partition("#")[2] for line in new]
    assert parse_domain(DomainForm.of(text).with_unit("row")).unit.column is None


@pytest.mark.parametrize("text", [FLOW, filled(DRAFT)])
def test_a_field_that_is_set_to_what_it_is_stays_as_it_is(text):
    form = DomainForm.of(text)
    for place, entry in enumerate(form.attributes):
        for field in entry.fields:
            if field.text:
                assert form.with_field(place, field.name, field.text) == text
        assert form.with_field(place, "name", entry.name) == text
    assert form.with_table("visits") == text
    assert form.with_unit(form.unit.kind, *(field.text for field in form.unit.fields)) == text


@given(st.text(st.characters(codec="utf-8"), max_size=12), st.sampled_from([FLOW, DRAFT]))
def test_whatever_is_typed_is_one_value_of_that_field(typed, text):
    changed = DomainForm.of(text).with_field(0, "name", typed)
    form = DomainForm.of(changed)
    assert form.attributes[0].name == (typed.strip() or "TODO")
    assert form.attributes[1:] == DomainForm.of(text).attributes[1:]
    values = DomainForm.of(DomainForm.of(text).with_field(0, "values", typed))
    assert values.attributes[1:] == form.attributes[1:]


@pytest.mark.parametrize("kind", KINDS)
def test_attributes_are_added_and_removed_and_change_their_kind(kind):
    for text in (FLOW, DRAFT):
        form = DomainForm.of(text)
        more = DomainForm.of(form.with_attribute("new", kind))
        assert [entry.name for entry in more.attributes][-1] == "new"
        assert more.attributes[:-1] == form.attributes
        assert more.without(len(form.attributes)) == text
        other = DomainForm.of(form.with_field(1, "kind", kind))
        assert [entry.name for entry in other.attributes] == [e.name for e in form.attributes]
        assert other.attributes[0] == form.attributes[0]


def test_files_without_a_form_say_why():
    for text in ("lrm-domain: 1\nattributes: [{name: a}]\n", "lrm-domain: 2\npeople: p\n"):
        with pytest.raises(DomainError, match="no list of attributes"):
            DomainForm.of(text)
    with pytest.raises(DomainError, match="one of the fields"):
        DomainForm.of(FLOW).with_field(0, "low", "1")
    with pytest.raises(DomainError, match="has 2 attributes"):
        DomainForm.of(FLOW).without(7)
