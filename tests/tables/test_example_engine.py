"""The example of an engine in a package of its own, found as an installed package is."""

import sys
import tomllib
from pathlib import Path

import pytest

from lrm import testing
from lrm.errors import TableError
from lrm.tables import open_table

EXAMPLE = Path(__file__).parents[2] / "docs/examples/lrm-sqlite"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """What installing the package leaves on the path of modules: its name and entry points."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "site" / "lrm_sqlite-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
        for group, each in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))
    for folder in (info.parent, EXAMPLE, EXAMPLE / "tests"):
        monkeypatch.syspath_prepend(str(folder))
    yield
    for name in ("lrm_sqlite", "test_lrm_sqlite"):
        sys.modules.pop(name, None)


def test_the_example_passes_the_suite_of_every_engine(installed, tmp_path):
    import test_lrm_sqlite as suite

    stored = {len(rows): suite.store(rows, tmp_path) for rows in ([], testing.rows(400, 0))}
    counted = [
        case.run(lambda rows: stored[len(rows)], columns=suite.TYPES) for case in testing.cases(4)
    ]
    assert sum(counted) > len(counted) / 3
    suite.test_tables_without_types_are_refused(tmp_path)


def test_a_wrong_engine_does_not_pass(installed, tmp_path, monkeypatch):
    import lrm_sqlite
    import test_lrm_sqlite as suite

    # Fractions would be taken for whole numbers.
    monkeypatch.setattr(lrm_sqlite.SqliteSql, "is_whole_float", lambda self, x: "TRUE")
    case = next(case for case in testing.cases() if case.name == "many whole floats")
    with pytest.raises(AssertionError):
        case.run(lambda rows: suite.store(rows, tmp_path), columns=suite.TYPES)


def test_schemes_of_engines_that_are_not_installed(tmp_path):
    with pytest.raises(TableError, match="no installed package has an engine for sqlite:"):
        open_table(f"sqlite:{tmp_path}/x.db::t")
