"""The guarantee and the intervals that the page shows, kept in a file of the folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lrm.errors import FileFormatError, UsageError
from lrm.files.json_text import parse_json
from lrm.files.writing import write_text

FILE = "workbench.json"

MOST_BYTES = 10_000
"""Bytes that are read of the file."""

LONGEST = 60
"""Characters of an amount."""

KINDS = ("pure", "rho", "gaussian")
LEVELS = (0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Settings:
    """What was chosen last."""

    # ``pure`` for a pure ε, ``rho`` for Gaussian noise with ρ, ``gaussian`` with ε and δ.
    noise: str = "pure"
    amount: str = "0.1"  # ε or ρ, as it was typed
    delta: str = "1e-9"  # δ, as it was typed
    confidence: float = 0.95

    def __post_init__(self) -> None:
        texts = (self.amount, self.delta)
        if self.noise not in KINDS:
            raise UsageError(f"noise must be one of {', '.join(KINDS)}")
        if not all(isinstance(text, str) and len(text) <= LONGEST for text in texts):
            raise UsageError(f"amount and delta must be texts of at most {LONGEST} characters")
        if self.confidence not in LEVELS:
            raise UsageError(f"confidence must be one of {', '.join(map(str, LEVELS))}")


def load_settings(folder: Path) -> tuple[Settings, str]:
    """Read the settings of a folder; the usual ones, and why, where they cannot be read."""
    path = folder / FILE
    try:
        if not path.is_file():
            return Settings(), ""
        with path.open("rb") as file:
            return Settings(**parse_json(file.read(MOST_BYTES))), ""
    except (OSError, FileFormatError, UsageError, ValueError, TypeError):
        return Settings(), f"{FILE} cannot be read; the usual noise and amount are shown"


def save_settings(folder: Path, settings: Settings) -> None:
    """Write the settings, unless they are those of the file."""
    known, problem = load_settings(folder)
    path = folder / FILE
    if problem or known != settings or not path.exists():
        write_text(path, json.dumps(asdict(settings), ensure_ascii=False, indent=1) + "\n")
