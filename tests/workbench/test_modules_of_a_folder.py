"""The workbench ran Python files of the folder that it was opened for.

The processes that plan and release work in that folder, and Python looks for modules there first:
a file ``json.py`` among somebody's domains and batches was imported, with access to the ledger
and the table.
"""

import pytest

from lrm.workbench.commands import run
from lrm.workbench.folder import Folder, Text
from lrm.workbench.jobs import _launch

DOMAIN = """\
lrm-domain: 1
table: t
unit: row
attributes:
  - {name: a, kind: integers, low: 0, high: 1, null: drop, outside: drop}
"""
BATCH = "SELECT COUNT(*) AS n FROM t"


@pytest.fixture
def folder(tmp_path):
    for name in ("json", "lrm", "numpy", "signal"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")
    return tmp_path


def test_a_command_imports_no_module_of_its_folder(folder):
    assert run(["completion", "bash"], folder).error == ""
    assert not (folder / "ran").exists()


def test_neither_does_a_search(folder):
    texts = {"domain": vars(Text("d.yaml", DOMAIN)), "batch": vars(Text("b.sql", BATCH))}
    with _launch({**texts, "steps": []}, Folder(folder)) as process:
        assert process.wait() == 0
    assert not (folder / "ran").exists()
