"""Domains whose cells nobody could list: every fact about them is an exact integer."""

import pytest
from click.testing import CliRunner

from lrm.cli import main
from lrm.domain import Domain, Integers
from lrm.domain.file import domain_text, parse_domain, write_domain
from lrm.errors import DomainError
from lrm.files.spelling import how_many

LARGE = Domain([Integers(f"x{i}", 0, 9) for i in range(40)], "t")


def test_every_fact_is_exact():
    assert LARGE.size == 10**40
    row = {f"x{i}": i % 10 for i in range(40)}
    cell = LARGE.cell_of(row)
    assert cell == int("0123456789" * 4)
    assert LARGE.cell_labels(cell) == tuple("0123456789" * 4)
    assert parse_domain(domain_text(LARGE)).digest == LARGE.digest
    assert "10^40 cells" in repr(LARGE)
    assert LARGE._repr_html_()


def test_counts_of_all_cells_are_refused():
    with pytest.raises(DomainError, match=r"10\^40 cells, and rows are counted over at most"):
        LARGE.count([])


def test_too_many_attributes_are_refused():
    with pytest.raises(DomainError, match="at most 500 attributes, not 501"):
        Domain([Integers(f"x{i}", 0, 1) for i in range(501)])
    widest = Domain([Integers(f"x{i}", 0, 9_999_999) for i in range(500)])
    assert how_many(widest.size) == "10^3500"


def test_the_command_shows_it(tmp_path):
    write_domain(LARGE, tmp_path / "domain.yaml")
    shown = CliRunner().invoke(main, ["domain", "check", str(tmp_path / "domain.yaml")])
    assert shown.exit_code == 0, shown.output
    assert "10^40 in all" in shown.output
