"""What is being done, as a line on the terminal."""

import time
from contextlib import AbstractContextManager

from lrm.views import progress

BEGAN = time.monotonic()
"""When the command was started."""


def waiting(label: str) -> AbstractContextManager[None]:
    """Show ``label`` while work goes on, once the command has taken a while."""
    return progress.waiting(label, BEGAN)
