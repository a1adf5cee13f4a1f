"""Pages of Markdown as programs: their sessions are run, and what they show is compared.

Blocks of one page run in order, in one folder:

``console``
    Lines after ``$`` are commands; what follows is their output. A file that ``cat`` shows
    and that does not exist yet is one that the reader makes: it is written as shown. A line
    ``...`` stands for any lines.
``pycon``
    A Python session, compared as a doctest; ``...`` stands for any text.
``python``
    A script, which must run.

Text is compared exactly except for blanks at the ends of lines and widths of columns. Numbers may
differ by 5 %, except whole ones below 100: another BLAS or processor rounds differently, and a
search then ends elsewhere. These may differ as they like: seconds, digests, heads of ledgers,
how many measurements a strategy has and how many records it allows, and answers with their
intervals, which carry fresh noise.
"""

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from click.testing import CliRunner

from lrm.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])[-±]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_CHANGING = [
    (re.compile(r"(?:\b[\d,]+ +)?\b\d[\d,.]* s\b"), "# s"),  # and before it, measurements
    (re.compile(r"\b[\d,]+ measurements\b"), "# measurements"),
    (re.compile(r"± ([\d,]+) each"), r"± \1.0 each"),  # near, not the same: a search ends by time
    (re.compile(r"\b\d+ of \d+ tables are within\b"), "# tables are within"),
    (re.compile(r"^measurements +[\d,]+"), "measurements #"),
    (re.compile(r"\bat most [\d,]+ in a table\b"), "at most # in a table"),
    (re.compile(r"\b[0-9a-f]{16}\b|\b[0-9a-f]{64}\b"), "digest"),
    (re.compile(r"\b\d+:[0-9a-f]{16,64}\b"), "head of a ledger"),
    (re.compile(r"\blrm \d+\.\d[\w.+]*"), "lrm version"),
    (re.compile(r"(\S+)\s+(\S+)\s+(\S+) … (\S+)"), r"# \2 # … #"),
]
_BESIDE_ERROR = re.compile(r"-?\d[\d,]*(?:\.\d+)?\s+(?=± )")
_IN_COLUMN = re.compile(r"(?<=  )-?\d[\d,]*(?:\.\d+)?(?=  |$)")
_ERROR_ABOVE = re.compile(r", ± \S+( each|$| ·)|\(± ")
TOLERANCE = 0.05
EXACT_BELOW = 100


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page where it begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 2)
        for match in FENCE.finditer(text)
    ]


def run_page(page: Path, folder: Path, *, as_processes: bool = False) -> None:
    """Run every session of a page in ``folder``, and compare."""
    names: dict[str, object] = {"__name__": "__main__"}
    run = _process if as_processes else run_command
    with contextlib.chdir(folder):
        for block in blocks(page):
            where = f"{page.relative_to(ROOT)}, line {block.line}"
            if block.language == "console":
                _run_console(block, where, run)
            elif block.language == "pycon":
                _run_doctest(block, where, names)
            elif block.language == "python":
                code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
                exec(code, names)  # noqa: S102 - the project's own pages


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a session with the lines that it prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        whole = re.sub(r"\\\n\s*", " ", part)  # continued lines
        command, _, shown = whole.partition("\n")
        yield command, shown.splitlines()


def _run_console(block: Block, where: str, run: Callable[[str], str]) -> None:
    for command, shown in commands(block.text):
        words = shlex.split(command)
        if words[0] == "cat" and len(words) == 2 and not Path(words[1]).exists():
            Path(words[1]).write_text("\n".join(shown) + "\n", encoding="utf-8")
            continue
        compare(shown, run(command).splitlines(), f"{where}: $ {command}")


def run_command(command: str) -> str:
    """Run ``lrm`` in this process, which is fast, and anything else in a shell."""
    if not command.startswith("lrm "):
        return _process(command)
    result = CliRunner().invoke(main, shlex.split(command)[1:], env={"COLUMNS": "80"})
    return result.output


def _process(command: str) -> str:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.stdout


def compare(shown: list[str], printed: list[str], where: str) -> None:
    expected, got = _meaning(shown), _meaning(printed)
    while "..." in expected:
        gap = expected.index("...")
        tail = expected[gap + 1 :]
        _compare_lines(expected[:gap], got[:gap], where, printed)
        if "..." not in tail:
            expected, got = tail, got[len(got) - len(tail) :] if tail else []
        else:  # the lines after the gap begin at the first line that fits
            start = next((i for i in range(gap, len(got)) if _same(tail[0], got[i])), len(got))
            expected, got = tail, got[start:]
    _compare_lines(expected, got, where, printed)


def _compare_lines(expected: list[str], got: list[str], where: str, printed: list[str]) -> None:
    for left, right in zip_longest(expected, got, fillvalue=""):
        message = f"{where}\nthe page shows: {left}\nit prints:      {right}\nall of it:\n"
        assert _same(left, right), message + "\n".join(printed)


def _meaning(lines: list[str]) -> list[str]:
    """Lines without what may change: blanks, rules of tables, seconds, noise."""
    kept, noisy = [], False
    for line in lines:
        text = re.sub(r"[─━]+", "", line)
        text = _BESIDE_ERROR.sub("# ", text)
        if noisy:  # rows of a table whose title or heading has the error of all of them
            text = _IN_COLUMN.sub("#", text)
        noisy = bool(line.strip()) and (noisy or _ERROR_ABOVE.search(line) is not None)
        for pattern, name in _CHANGING:
            text = pattern.sub(name, text)
        text = " ".join(text.split())
        if text:
            kept.append(text)
    return kept


def _same(left: str, right: str) -> bool:
    if _NUMBER.sub("#", left) != _NUMBER.sub("#", right):
        return False
    pairs = zip(_NUMBER.findall(left), _NUMBER.findall(right), strict=True)
    return all(_near(a, b) for a, b in pairs)


def _near(left: str, right: str) -> bool:
    one, other = (float(text.lstrip("±").replace(",", "")) for text in (left, right))
    if max(abs(one), abs(other)) < EXACT_BELOW and f"{left}{right}".lstrip("-").isdecimal():
        return one == other
    return abs(one - other) <= TOLERANCE * max(abs(one), abs(other))


def numbers_in(text: str) -> set[float]:
    """The numbers that stand in a text, without their signs."""
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)}


class _Checker(doctest.OutputChecker):
    """Compares what a Python session prints as it does what a command prints."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        lines = list(zip_longest(_meaning(want.splitlines()), _meaning(got.splitlines())))
        return all(left and right and _same(left, right) for left, right in lines)


def _run_doctest(block: Block, where: str, names: dict[str, object]) -> None:
    parser, report = doctest.DocTestParser(), []
    test = parser.get_doctest(block.text, names, where, None, block.line - 1)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(_Checker(), optionflags=flags)
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(report)
