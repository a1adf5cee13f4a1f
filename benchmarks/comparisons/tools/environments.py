"""A virtual environment per tool, and a driver run inside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DRIVERS = Path(__file__).parent / "drivers"
HOURS_PER_DRIVER = 2
ONE_THREAD = {
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
JAX = {"JAX_ENABLE_X64": "1", "JAX_ENABLE_COMPILATION_CACHE": "0"}
"""What mbi asks for: float64, and no cache."""


class UnavailableError(Exception):
    """A tool that could not be installed or could not run; the message says why."""


@dataclass(frozen=True)
class Environment:
    """Packages to install together, the driver that uses them, and where they live."""

    name: str
    packages: tuple[str, ...]
    driver: str
    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.folder / "bin" / "python"

    def make(self) -> str:
        """Install what is missing, and return the version of the first package."""
        try:
            return self._version()
        except (OSError, subprocess.CalledProcessError):
            pass  # not installed yet
        steps = (
            [sys.executable, "-m", "venv", str(self.folder)],
            [str(self.python), "-m", "pip", "install", "--quiet", *self.packages],
        )
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                raise UnavailableError(f"could not be installed: {_reason(done.stderr)}")
        return self._version()

    def run(self, job: Mapping[str, Any], answers: Path, *, reuse: bool = False) -> str:
        """Run the driver on ``job`` and return the text that it wrote to ``answers``.

        With ``reuse``, answers that an earlier run of the same job has left are taken.
        """
        asked = answers.with_suffix(".job.json")
        text = json.dumps(job)
        if reuse and answers.exists() and asked.read_text(encoding="utf-8") == text:
            return answers.read_text(encoding="utf-8")
        answers.unlink(missing_ok=True)
        asked.write_text(text, encoding="utf-8")
        command = [str(self.python), "-W", "ignore", str(DRIVERS / self.driver)]
        # One thread: errors do not depend on it, and a busy machine stays usable.
        environ = {**os.environ, **ONE_THREAD, **JAX}
        try:
            done = subprocess.run(
                [*command, str(asked), str(answers)],
                capture_output=True,
                text=True,
                check=False,
                env=environ,
                timeout=HOURS_PER_DRIVER * 3600,
            )
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"did not end within {HOURS_PER_DRIVER} hours") from None
        if done.returncode:
            raise UnavailableError(f"is installed, but failed: {_reason(done.stderr)}")
        return answers.read_text(encoding="utf-8")

    def _version(self) -> str:
        package = re.split(r"[\[<>=]", self.packages[0])[0]
        code = f"from importlib.metadata import version; print(version({package!r}))"
        done = subprocess.run(
            [str(self.python), "-c", code], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()


def _reason(stderr: str) -> str:
    """The last line that names an error, else the last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    named = [line for line in lines if "error" in line.lower()]
    return (named or lines or ["no reason was given"])[-1]
