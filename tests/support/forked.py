"""Scripts in processes of their own, forked from one that has loaded what commands load.

A process that starts from nothing imports modules for a second; where its start is not the
subject of a test, one that is forked is the same in all other ways.
"""

import atexit
import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SECONDS = 120

SERVER = """
import json, os, sys
import duckdb, numpy, opendp.prelude, pandas, psycopg, pyarrow.parquet, rich.console, sqlglot
import lrm.__main__, lrm.cli, lrm.cli.budget, lrm.cli.release, lrm.ledger.postgres
import lrm.cli.terminal, lrm.ledger.sqlite, lrm.releases.making, lrm.tables.duckdb_table
import lrm.views.releases

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
os.chdir(job["folder"])
for number, name in enumerate([os.devnull, *job["streams"]]):
    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
sys.argv = ["-c", *job["words"]]
exec(job["script"], {"__name__": "__main__"})
"""


@dataclass(frozen=True)
class Done:
    """How a process ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


@lru_cache(maxsize=1)
def _server() -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def end() -> None:
        started.stdin.close()
        started.wait()
        started.stdout.close()

    atexit.register(end)
    return started


def run_forked(script: str, words: list[str], streams: Path) -> Done:
    """Run a script with these arguments here, and keep what it writes in a folder ``streams``."""
    server = _server()
    streams.mkdir(exist_ok=True)
    names = [streams / "stdout", streams / "stderr"]
    for name in names:
        name.unlink(missing_ok=True)
    job = {"folder": os.getcwd(), "streams": [*map(str, names)]}  # noqa: PTH109 - as text
    server.stdin.write(json.dumps(job | {"words": words, "script": script}) + "\n")
    server.stdin.flush()
    ready, _, _ = select.select([server.stdout], [], [], SECONDS)
    assert ready, f"{words} has not ended"
    code = int(server.stdout.readline())
    return Done(code, *(name.read_text(encoding="utf-8") for name in names))
