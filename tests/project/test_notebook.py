"""The notebook of the tutorial runs, and shows what it shows."""

from importlib.util import find_spec

from engines import missing
from notebooks import load, meaning, run
from pages import ROOT


def test_the_cells_show_what_the_notebook_holds(tmp_path):
    if find_spec("causaldata") is None:
        missing("the table is not installed; `pip install '.[tutorial]'` brings it")
    for cell, outputs in run(load(ROOT / "docs" / "tutorial.ipynb"), tmp_path):
        assert meaning(outputs) == meaning(cell["outputs"]), "".join(cell["source"])
    assert (tmp_path / "smokers.html").exists()
