"""What results are stamped with: versions, the code's digest, the machine's kind."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import lrm

__all__ = ["code_digest", "machine_kind", "versions"]

_NOT_PLANNING = {
    *("cli", "ledger", "tables", "batches", "releases", "report"),
    *("counts_file.py", "demo.py", "plots.py"),
}
"""Parts that no plan depends on: a change there leaves cached plans valid."""


@cache
def code_digest() -> str:
    """A digest of the code that plans are made by."""
    home = Path(lrm.__file__).parent
    seal = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        parts = path.relative_to(home).parts
        if parts[0] not in _NOT_PLANNING:
            seal.update("/".join(parts).encode() + b"\n" + path.read_bytes())
    return seal.hexdigest()[:12]


def versions() -> str:
    """Versions of lrm, Python and what computes."""
    parts = [f"{name} {version(name)}" for name in ("lrm", "numpy", "scipy", "pyarrow")]
    return ", ".join([parts[0], f"python {platform.python_version()}", *parts[1:]])


def machine_kind() -> str:
    """Model of the CPU and number of cores; no name of a host."""
    return f"{_cpu_model()}, {os.cpu_count()} cores"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
