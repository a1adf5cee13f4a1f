"""What released numbers say about the table is a warning of its own category."""

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.errors import ReleaseWarning

DOMAIN = lrm.Domain([lrm.Integers("x", 0, 3)], "t")


def plan():
    batch = lrm.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", DOMAIN)
    return lrm.plan(batch, "noise-on-data")


def test_a_release_of_nothing_warns_and_one_of_many_rows_does_not():
    with pytest.warns(ReleaseWarning, match="distinguishable from zero") as caught:
        empty = lrm.release(plan(), np.zeros(4, dtype=np.int64), epsilon="0.01")
    assert [str(entry.message) for entry in caught] == list(empty.warnings)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lrm.release(plan(), np.full(4, 10**6), epsilon=1).warnings == ()


def test_a_release_that_is_charged_is_returned_where_warnings_are_errors(tmp_path):
    ledger = lrm.Ledger.open(str(tmp_path / "budget.sqlite"))
    ledger.create("t", limit=1)
    rows = pd.DataFrame({"x": np.empty(0, dtype=np.int64)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = lrm.release(plan(), rows, epsilon="0.01", ledger=ledger)
    assert made.warnings
    assert float(ledger.budget("t").spent) == 0.01


def test_programs_read_warnings_of_commands_as_json(tmp_path):
    (tmp_path / "w.csv").write_text("".join(f"{k},{k % 7},{k % 3}.5\n" for k in range(40)))
    command = [sys.executable, "-m", "lrm", "plan", "w.csv", "-m", "noise-on-data"]
    done = {
        form: subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "LRM_MESSAGES": form},
            capture_output=True,
            text=True,
            check=False,
        ).stderr.splitlines()
        for form in ("text", "json")
    }
    assert done["text"][0].startswith("lrm: warning: ")
    assert json.loads(done["json"][0]) == {
        "warning": done["text"][0].removeprefix("lrm: warning: ")
    }
