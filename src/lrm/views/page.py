"""One HTML page that needs nothing but itself: no network, no font, and it reads without script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from string import Template

from lrm.views.elements import Markup, paragraph, text
from lrm.views.search import SEARCH
from lrm.views.style import CSS

__all__ = ["page"]

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="$generator">
<link rel="icon" href="data:,">
<title>$title</title>
<style>$css</style>
</head>
<body>
<header>
<p class="kind">$kind</p>
<h1>$title</h1>
$lead
</header>
<main>
$body
</main>
<footer>$foot</footer>
$script</body>
</html>
""")

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Forbids whatever the page does not have, should a label ever slip through."""


def page(  # noqa: PLR0913 - the parts of a page
    kind: str,
    title: str,
    lead: str,
    sections: Sequence[Markup],
    foot: str = "",
    *,
    search: bool = False,
) -> str:
    """Put sections together.

    Parameters
    ----------
    kind
        What the page is about: a plan, a comparison, a release.
    title
        The one heading of the first level.
    lead
        One sentence below it.
    sections
        The parts, top to bottom; empty ones are left out.
    foot
        Where it comes from.
    search
        Whether the page has a box that searches among its answers; no other script may run.
    """
    made = f"lrm {version('lrm')}"
    script = f"({SEARCH})(document);" if search else ""
    return _PAGE.substitute(
        policy=POLICY + (f"; script-src 'sha256-{_seal(script)}'" if script else ""),
        generator=text(made),
        kind=text(kind),
        title=text(title),
        lead=paragraph(lead, "lead"),
        css=CSS,
        body="\n".join(part for part in sections if part),
        script=f"<script>{script}</script>\n" if script else "",
        foot=paragraph(" · ".join(part for part in (foot, f"page made by {made}") if part)),
    )


def _seal(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
