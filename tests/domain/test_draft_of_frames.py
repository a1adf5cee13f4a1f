"""Drafts of a domain from frames: names and types of columns alone."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lrm.domain import Domain
from lrm.errors import DomainError

ROWS = {"sex": ["secret", "m"], "age": [41, 7], "paid": [1.5, 2.0], "new": [True, False]}
KINDS = ["categories", "integers", "bins", "categories"]


@pytest.mark.parametrize("number", range(4))
def test_every_kind_of_frame_gives_the_same_draft(number):
    frame = [pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.table(ROWS)]
    relation = duckdb.from_arrow(frame[2])
    text = Domain.draft([*frame, relation][number], table="visits")
    kinds = [line.split()[1] for line in text.splitlines() if line.startswith("    kind:")]
    assert kinds == KINDS
    assert "secret" not in text
    assert 'table: "visits"' in text


def test_kinds_may_be_declared_and_other_things_are_refused():
    assert "kind: dates" in Domain.draft(pd.DataFrame(ROWS), kinds={"sex": "dates"})
    with pytest.raises(DomainError, match="expected a frame"):
        Domain.draft([1, 2])
