"""Every file format under random damage: clear errors or kept promises, and nothing else.

Bytes are flipped, members swapped between files, facts, headers and arrays changed and sealed
again, with sensitivity and digest restated as a careful forger would. Each batch of cases runs in
a process of its own, so that a crash, an endless loop or memory beyond the stated limit is seen.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.seeds import make_seeds
from long_runs import cases

TESTS = Path(__file__).parents[1]
FEW, MANY = 250, cases(10_000)
BATCH = 1000


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "seeds").mkdir()
    make_seeds(folder / "seeds")
    return folder


def run(folder, seed, first, last):
    """Run cases in a fresh process, and return which files it accepted."""
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.worker", folder, str(seed), str(first), str(last)],
        capture_output=True,
        check=False,
        text=True,
        env={
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": f"{TESTS / 'support'}{os.pathsep}{TESTS}",
        },
    )
    case = (folder / "case").read_text() if (folder / "case").exists() else "no case"
    assert done.returncode == 0, f"{case}: {done.stderr[-3000:]}"
    return json.loads(done.stdout)


def test_a_few_hundred_damaged_files(seeds):
    outcome = run(seeds, seed=1, first=0, last=FEW)
    assert sum(outcome["accepted"].values()) > FEW / 20, outcome  # else nothing was put to the test


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, MANY, BATCH))
def test_ten_thousand_damaged_files(seeds, first):
    print(run(seeds, seed=2, first=first, last=first + BATCH))
