"""Releases: private answers, what they promise, what follows from them, and their files."""

from lrm.releases.core import (
    Intent,
    Release,
    domain_of,
    intend,
    release,
    release_table,
)

__all__ = ["Intent", "Release", "domain_of", "intend", "release", "release_table"]
