"""An attribute declared twice passed ``lrm domain check``.

Names were compared by identity, and Python keeps a single object for each text of one letter.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner

from lrm.cli import main
from lrm.domain import Categories, Domain, Integers
from lrm.errors import DomainError

FILE = """
lrm-domain: 1
unit: row
attributes:
  - {name: "%s", kind: categories, values: [x, y], null: drop, outside: drop}
  - {name: "%s", kind: integers, low: 0, high: 9, null: drop, outside: drop}
"""

PAIRS = [
    ("a", "a"),
    ("age", "age"),
    ("Age", "aGE"),
    ("stra\u00dfe", "STRASSE"),
    ("caf\u00e9", "cafe\u0301"),  # one letter, or a letter and an accent
    ("\u00c5", "\u212b"),  # Å and the sign of the ångström
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_one_name_for_two_attributes_is_refused(one, other, tmp_path):
    with pytest.raises(DomainError, match="declared twice"):
        Domain([Categories(one, ["x"]), Integers(other, 0, 9)])
    file = Path(tmp_path / "domain.yaml")
    file.write_text(FILE % (one, other), encoding="utf-8")
    result = CliRunner().invoke(main, ["domain", "check", str(file)])
    assert result.exit_code == 2
    assert "domain.yaml line 5, field 'attributes': attribute" in result.stderr
    assert "declared twice" in result.stderr


def test_different_names_pass():
    assert Domain([Categories("a", ["x"]), Integers("b", 0, 9)]).size == 10
