"""The commands that do the same as the page."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrm.files.locations import is_address, shown

LONGEST = 24 * 3600
"""Seconds after which a release is given up."""

_FROM_INPUT = """\
import json, sys
sys.argv = ["lrm", *json.loads(sys.stdin.readline())]
from lrm.__main__ import main
main()
"""
"""Takes the command from standard input: every user of the machine can list the arguments of a
process, and the address of a database may hold a password."""


def typed(command: Sequence[str]) -> str:
    r"""Spell a command as one would type it; of the address of a database the scheme alone.

    >>> typed(["query", "answers.lrm", "SELECT 'x'"])
    'lrm query answers.lrm "SELECT \'x\'"'
    """
    return " ".join(["lrm", *map(_quoted, command)])


def _quoted(word: str) -> str:
    """Quote a word for the shell, in double quotes where it has single ones and nothing special."""
    if is_address(word):
        return shlex.quote(shown(word))
    plain = "'" in word and not set('"$`\\!').intersection(word)
    return f'"{word}"' if plain else shlex.quote(word)


CONFIDENCE = 0.95
"""Of intervals and tolerances, unless another one is chosen."""


def plan_command(
    batch: str, domain: str, noise: str, file: str, meet: float | None = None
) -> list[str]:
    """``lrm plan`` for a batch, or for the tolerances of its statements."""
    extra = ["--noise", "gaussian"] if noise == "gaussian" else []
    extra += [] if meet is None else ["--meet", *confidence_options(meet)]
    return ["plan", batch, "--domain", domain, *extra, "-o", file]


def confidence_options(confidence: float) -> list[str]:
    """The option of a confidence that is not the usual one."""
    return [] if confidence == CONFIDENCE else ["--confidence", f"{confidence:g}"]


def amount_options(amounts: Mapping[str, str]) -> list[str]:
    """The options of a guarantee."""
    return [word for name, value in amounts.items() for word in (f"--{name}", value)]


def release_command(
    plan: str, table: str, amounts: Mapping[str, str], ledger: str, budget: str
) -> list[str]:
    """``lrm release`` without the places for its results."""
    paid = ["--ledger", ledger, *(["--budget", budget] if budget else [])]
    return ["release", plan, "--table", table, *amount_options(amounts), *paid]


@dataclass(frozen=True)
class Ran:
    """How a command ended: what it printed as JSON, or the sentence that says why it failed."""

    facts: dict[str, Any] | None
    error: str
    warnings: tuple[str, ...] = ()


def run(command: Sequence[str], folder: Path) -> Ran:
    """Run a command in a process of its own, which goes on if the server is ended."""
    done = subprocess.run(  # noqa: S603 - this interpreter, on our own command
        [sys.executable, "-P", "-c", _FROM_INPUT],  # -P: no module of the folder is imported
        cwd=folder,
        input=json.dumps([*command, "--json"]) + "\n",
        env={**os.environ, "LRM_MESSAGES": "json"},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        start_new_session=True,
        check=False,
    )
    warned = tuple(_objects(done.stderr, "warning"))
    facts = next(iter(_documents([done.stdout])), {})
    if done.returncode == 0:
        return Ran(facts, "", warned)
    error = facts.get("error", {})
    return Ran(None, error.get("message", "the command ended without a result"), warned)


def _documents(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The texts that are objects of JSON."""
    for text in texts:
        with suppress(ValueError):
            facts = json.loads(text)
            if isinstance(facts, dict):
                yield facts


def _objects(text: str, name: str) -> Iterator[str]:
    """A field of the lines that are objects of JSON and have it."""
    for facts in _documents(text.splitlines()):
        if name in facts:
            yield str(facts[name])
