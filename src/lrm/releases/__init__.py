"""Releases: private answers, what they guarantee, what follows from them, and their files."""

from lrm.releases.core import Release
from lrm.releases.making import Preview, preview, release
from lrm.releases.sources import domain_of

__all__ = ["Preview", "Release", "domain_of", "preview", "release"]
