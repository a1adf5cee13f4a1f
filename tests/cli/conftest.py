"""Small plans and counts, and a way to run commands as a user would."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from lrm.cli import main
from lrm.domain.file import parse_domain
from lrm.ledger import Ledger
from lrm.planning.plan.planner import plan
from lrm.queries.sql import sql
from visits import DOMAIN, QUERIES, RELEASE, UNIT, write_files

WORKLOAD = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
COUNTS = [8213, 7411, 9127, 6521]
"""Numbers that no message may hold."""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LRM_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def run() -> Callable[..., Result]:
    def invoke(*args: str) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args])

    return invoke


@pytest.fixture
def run_json(run: Callable[..., Result]) -> Callable[..., Any]:
    def invoke(*args: str) -> Any:
        result = run(*args, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.fixture(scope="session")
def plan_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("plan") / "plan.lrm"
    plan(np.array(WORKLOAD), "noise-on-data").save(str(path))
    return path.read_bytes()


@pytest.fixture
def plan_file(in_folder: Path, plan_bytes: bytes) -> Path:
    path = in_folder / "plan.lrm"
    path.write_bytes(plan_bytes)
    return path


@pytest.fixture
def counts_file(in_folder: Path) -> Path:
    path = in_folder / "counts.csv"
    path.write_text("".join(f"{count}\n" for count in COUNTS))
    return path


@pytest.fixture
def release_file(run: Callable[..., Result], plan_file: Path, counts_file: Path) -> Path:
    args = ("release", plan_file, "--counts", counts_file, "--epsilon", "0.5")
    result = run(*args, "-o", "answers.lrm", "--no-ledger")
    assert result.exit_code == 0, result.output
    return plan_file.parent / "answers.lrm"


@pytest.fixture
def visits_files(in_folder: Path) -> Path:
    write_files()
    return in_folder


@pytest.fixture(scope="session")
def visits_plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Plans for both noises, made once."""
    folder = tmp_path_factory.mktemp("plans")
    batch = sql(QUERIES, parse_domain(DOMAIN))
    plan(batch, effort="quick").save(str(folder / "plan.lrm"))
    plan(batch, effort="quick", noise="gaussian").save(str(folder / "gauss.lrm"))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def planned(visits_plans: dict[str, bytes], visits_files: Path) -> None:
    for name, content in visits_plans.items():
        (visits_files / name).write_bytes(content)


@pytest.fixture
def ledger(visits_files: Path) -> Ledger:
    book = Ledger.open("l.sqlite")
    book.create("visits", "1", "epsilon", unit=UNIT)
    book.create("shared", "1", "rho", unit=UNIT)
    return book


@pytest.fixture
def released(run: Callable[..., Result], planned: None, ledger: Ledger) -> Result:
    result = run(*RELEASE, "--epsilon", "0.5", "-o", "out.lrm")
    assert result.exit_code == 0, result.output
    return result
