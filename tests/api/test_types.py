"""A script of a user passes the type checkers, and runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from api.user_script import used
from lrm.planning.strategies import MECHANISMS, MechanismName

SCRIPT = Path(__file__).with_name("user_script.py")


def test_type_checkers_know_the_names_of_all_mechanisms():
    assert get_args(MechanismName) == tuple(MECHANISMS)


def test_the_script_runs(tmp_path):
    assert used(tmp_path)[:2] == ["sex", "n"]


@pytest.mark.slow
def test_the_script_passes_mypy(tmp_path):
    source = SCRIPT.parents[2] / "src"
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\nmypy_path = {source}\nfollow_imports = silent\n"
        "[mypy-pandas.*,scipy.*,pyarrow.*,matplotlib.*]\nignore_missing_imports = true\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini")]
    command += ["--cache-dir", str(tmp_path / "cache"), str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_script_passes_pyright(tmp_path):
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "include": [str(SCRIPT)],
                "extraPaths": [str(SCRIPT.parents[2] / "src")],
                "typeCheckingMode": "standard",
            }
        ),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "basedpyright", "--project", str(tmp_path)]
    command += ["--pythonpath", sys.executable, "--level", "error"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 errors" in done.stdout
