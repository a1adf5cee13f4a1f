"""Rewrite what sessions on pages show by what they print now: ``refresh_pages.py PAGE…``.

What still compares equal is left as it is. Read the difference before you commit it.
"""

import contextlib
import doctest
import io
import re
import shlex
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import conftest  # noqa: F401 - first: the code of OpenBLAS that searches in tests end with
from pages import FENCE, compare, run_command


def refresh(page: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}

    def rewritten(match: re.Match[str]) -> str:
        language, text = match[1], match[2]
        if language == "console":
            text = _console(text)
        elif language == "pycon":
            text = _session(text, names)
        elif language == "python":
            exec(text, names)  # noqa: S102 - the project's own pages
        return f"```{language}\n{text}```"

    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        page.write_text(FENCE.sub(rewritten, text), encoding="utf-8")


def _console(text: str) -> str:
    before, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    return before + "".join("$ " + _command(part) for part in parts)


def _command(part: str) -> str:
    typed = re.match(r"((?:.*\\\n)*.*)\n", part)
    command, shown = re.sub(r"\\\n\s*", " ", typed[1]), part[typed.end() :]
    words = shlex.split(command)
    if words[0] == "cat" and len(words) == 2 and not Path(words[1]).exists():
        Path(words[1]).write_text(shown, encoding="utf-8")
        return part
    printed = [line.rstrip() for line in run_command(command).rstrip().splitlines()]
    with contextlib.suppress(AssertionError):
        compare(shown.splitlines(), printed, command)
        return part
    return f"{typed[1]}\n" + "".join(f"{line}\n" for line in printed)


def _session(text: str, names: dict[str, object]) -> str:
    result = []
    for example in doctest.DocTestParser().get_examples(text):
        first, *others = example.source.rstrip("\n").split("\n")
        result.append(f">>> {first}\n" + "".join(f"... {line}\n" for line in others))
        shown = io.StringIO()
        try:
            with contextlib.redirect_stdout(shown):
                exec(compile(example.source, "<session>", "single"), names)  # noqa: S102
            printed = shown.getvalue()
        except Exception as error:  # noqa: BLE001 - pages show errors too
            kind = type(error)
            home = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
            name = f"{home}{kind.__qualname__}"
            printed = f"Traceback (most recent call last):\n...\n{name}: {error}\n"
        kept = "..." in example.want and "Traceback" not in printed
        result.append(example.want if kept else printed)
    return "".join(result)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        refresh(Path(argument).resolve())
