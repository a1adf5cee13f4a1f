"""How many cases the tests marked `long` try: ``LRM_LONG=10`` tries ten times as many.

The numbers in those tests are what two cores try in about four minutes, so that every change can be
tested by them.
"""

import os

__all__ = ["cases", "new_cases"]


def cases(number):
    """``number``, multiplied by what the environment asks for."""
    return max(1, round(number * float(os.environ.get("LRM_LONG", "1"))))


def new_cases():
    """Whether property tests draw new examples: a whole `make test-long` does."""
    return float(os.environ.get("LRM_LONG", "0")) >= 1
