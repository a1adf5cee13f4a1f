"""The look of a page: narrow and wide, light and dark, on screen and on paper."""

from __future__ import annotations

_LIGHT = """\
  --paper: #fbfcfd; --card: #ffffff; --ink: #1f2430; --soft: #566072; --line: #d5dbe3;
  --best: #0b6e4f; --other: #8fa3b8; --tint: #e8f3ef; --warn: #8a3b12; --warn-tint: #fdf0e7;
"""
_DARK = """\
  --paper: #14171d; --card: #1b1f27; --ink: #e7eaf0; --soft: #a5afbf; --line: #343b47;
  --best: #4cc79b; --other: #73869c; --tint: #17302a; --warn: #f3b48c; --warn-tint: #38241a;
"""
_PAGE = """\
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  overflow-wrap: break-word;
}
header, main, footer { max-width: 70rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2rem; }
main { padding-bottom: 1.5rem; }
footer { padding-bottom: 2.5rem; color: var(--soft); font-size: .875rem; }
.kind {
  margin: 0; color: var(--best); font-size: .8125rem; font-weight: 600;
  letter-spacing: .06em; text-transform: uppercase;
}
h1 { margin: .1rem 0 .4rem; font-size: clamp(1.5rem, 5vw, 2.1rem); line-height: 1.2; }
h2 { margin: 2.4rem 0 .6rem; font-size: 1.3rem; line-height: 1.3; }
"""
_ELEMENTS = """\
h3 { margin: 1.5rem 0 .4rem; font-size: 1rem; }
p { margin: .6rem 0; max-width: 42rem; }
ul, ol { margin: .6rem 0; padding-left: 1.2rem; max-width: 42rem; }
li { margin: .35rem 0; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9em;
  overflow-wrap: anywhere; }
.lead { color: var(--soft); }
details { margin: .9rem 0; padding: .1rem .9rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .5rem; }
summary { padding: .45rem 0; cursor: pointer; }
summary h3 { display: inline; margin: 0; overflow-wrap: anywhere; }
summary .note { display: inline-block; margin-left: .4rem; }
.search input { width: min(22rem, 100%); padding: .35rem .6rem; color: var(--ink);
  background: var(--card); border: 1px solid var(--soft); border-radius: .4rem; font: inherit; }
.search output { color: var(--soft); font-size: .875rem; }
.bar { display: block; width: 100%; min-width: 6rem; height: 1.4em; }
td:has(> .bar) { width: 60%; }
table:has(th:nth-child(5)) td:has(> .bar) { width: 35%; }
.bar rect { fill: var(--best); opacity: .45; print-color-adjust: exact; }
.bar path { fill: none; stroke: var(--ink); stroke-width: 1; vector-effect: non-scaling-stroke; }
.heat { display: block; padding: .1rem .4rem; border-radius: .25rem; print-color-adjust: exact;
  background: color-mix(in srgb, var(--best) calc(var(--v) * 45%), transparent); }
.heat .note { color: inherit; }
.key {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem;
  margin: 1.2rem 0 0; padding: 0;
}
.key > div {
  background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .7rem .9rem;
}
.key > div:only-child { max-width: 22rem; }
.key dt { color: var(--soft); font-size: .8125rem; }
.key dd { margin: .1rem 0 0; font-size: 1.25rem; font-weight: 600; line-height: 1.25;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.key dd.words { font-size: 1rem; }
a { color: var(--best); }
.note { display: block; color: var(--soft); font-size: .8125rem; font-weight: 400; }
.promise {
  margin: 1rem 0; padding: .5rem 1rem; background: var(--tint);
  border-left: .25rem solid var(--best); border-radius: 0 .4rem .4rem 0;
}
.warning {
  margin: 1rem 0; padding: .5rem 1rem; background: var(--warn-tint); color: var(--warn);
  border-left: .25rem solid var(--warn); border-radius: 0 .4rem .4rem 0; font-weight: 600;
}
.contents { columns: 18rem; margin: .8rem 0; font-size: .9375rem; }
.contents ol { margin: 0; padding-left: 2.2rem; }
.contents li { margin: 0 0 .35rem; break-inside: avoid; }
.contents .note { display: inline-block; }
.scroll { overflow: auto; margin: .8rem 0; border-radius: .4rem;
  background: var(--card); }
.tall { max-height: 90vh; border: 1px solid var(--line); padding: 0 .5rem; }
.again { opacity: .45; }
.scroll:focus-visible { outline: 2px solid var(--best); outline-offset: 2px; }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
caption { padding: .2rem 0 .5rem; color: var(--soft); font-size: .875rem; text-align: left; }
caption > span { position: sticky; left: 0; display: inline-block;
  max-width: calc(100vw - 2.2rem); }
section > .scroll caption, main > .scroll caption { color: var(--ink); font-weight: 600; }
th, td { padding: .38rem .6rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
thead th { position: sticky; top: 0; background: var(--card);
  border-bottom: 2px solid var(--line); color: var(--soft); font-size: .8125rem;
  font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 400; white-space: nowrap; }
.scroll th:first-child { position: sticky; left: 0; background: var(--card); }
.scroll thead th:first-child { z-index: 1; }
.long tbody th { min-width: 8rem; white-space: normal; overflow-wrap: anywhere; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
thead .number { white-space: normal; }
tr.ours th, tr.ours td { color: var(--best); font-weight: 600; }
dl.facts { display: grid; grid-template-columns: minmax(7rem, 11rem) 1fr; gap: 0 1rem;
  margin: .8rem 0; font-size: .9375rem; }
dl.facts dt { padding: .38rem 0; border-bottom: 1px solid var(--line); color: var(--soft); }
dl.facts dd { margin: 0; padding: .38rem 0; border-bottom: 1px solid var(--line); min-width: 0;
  overflow-wrap: anywhere; }
figure { margin: 1rem 0; padding: .8rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; }
figure .scroll { margin: 0; }
figure svg { display: block; width: 100%; min-width: 23rem; max-width: 40rem; height: auto;
  margin: 0 auto; }
.chart text { fill: var(--soft); font: .6875rem system-ui, sans-serif; }
.chart .axis { fill: var(--soft); font-size: .625rem; }
.chart .name { fill: var(--ink); font-weight: 600; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .band { fill: var(--best); opacity: .25; }
.chart .line { fill: none; stroke: var(--best); stroke-width: 1.8; }
.chart .bar-left { fill: var(--other); }
.chart .bar-right { fill: var(--best); opacity: .7; }
.chart .whisker { stroke: var(--ink); stroke-width: 1; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { margin-top: .5rem; color: var(--soft); font-size: .875rem; }
"""
_RESETS = """\
table { margin: 0; table-layout: auto; }
tbody tr, thead tr { background: none; text-align: left; }
th, td { border: 0; border-bottom: 1px solid var(--line); line-height: inherit; max-width: none; }
dt { float: none; width: auto; font-weight: 400; }
"""
"""What the style sheets of notebooks set for their own tables and lists."""

_MEDIA = """\
@media (max-width: 34rem) {
  table { font-size: .875rem; }
  th, td { padding: .35rem .4rem; }
  .bar { min-width: 4rem; }
  dl.facts { grid-template-columns: 1fr; }
  dl.facts dt { border-bottom: 0; padding-bottom: 0; font-size: .8125rem; }
  dl.facts dd { padding-top: 0; }
}
@media print {
  :root { color-scheme: light;
    --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --best: #0b6e4f;
    --other: #8fa3b8; --tint: #fff; --warn: #8a3b12; --warn-tint: #fff; }
  body { font-size: 10.5pt; }
  header, main, footer { max-width: none; padding-left: 0; padding-right: 0; }
  figure, .key > div, tr, .promise, .warning { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .scroll { overflow: visible; }
  .tall { max-height: none; border: 0; padding: 0; }
  .contents { columns: 2; }
  table { font-size: 8.5pt; }
  th, td { padding: .15rem .2rem; }
  .heat { padding: 0 .15rem; }
  td .note { display: inline; margin-left: .3em; font-size: 7pt; }
  .search { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  figure svg { min-width: 0; }
  thead { display: table-header-group; }
}
"""


def _colours(selector: str) -> str:
    return (
        f"{selector} {{\n  color-scheme: light dark;\n{_LIGHT}}}\n"
        f"@media (prefers-color-scheme: dark) {{ {selector} {{\n{_DARK}}} }}\n"
    )


HEATS = 20
"""Steps of the ground of a heat map: a page forbids styles in its elements."""

_STEPS = "".join(f".h{step} {{ --v: {step / HEATS:g}; }}\n" for step in range(HEATS + 1))

CSS = _colours(":root") + _PAGE + _ELEMENTS + _STEPS + _MEDIA
"""Of a whole page."""

SNIPPET_CSS = (
    _colours(".lrm")
    # Nested rules: they hold inside the snippet, and nowhere in the page around it. The name is
    # repeated so that they win over the rules of a notebook for all tables and lists.
    + ".lrm.lrm.lrm {\nbackground: var(--paper); color: var(--ink);\n"
    + "max-width: 60rem; padding: 0 .5rem;\n"
    + _RESETS
    + _ELEMENTS
    + _STEPS
    + "}\n"
)
"""For a part of a larger page, in an element of class ``lrm``."""
