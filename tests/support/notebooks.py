"""Notebooks as programs: their code cells are run in order, and what they show is compared.

Run as a script, ``notebooks.py NOTEBOOK…``, it rewrites outputs that no longer compare equal; read
the difference before you commit it. No kernel is needed: the last expression of a cell is shown as
a notebook would show it, by ``repr`` and ``_repr_html_``.
"""

import ast
import contextlib
import io
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

_RULE = re.compile("─+")
_NUMBER = re.compile(r"(?<![A-Za-z])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_DIGEST = re.compile(r"\b[0-9a-f]{12,64}\b")


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def run(notebook: dict[str, Any], folder: Path) -> list[tuple[dict[str, Any], list[Any]]]:
    """Run the code cells in ``folder``; return each with its outputs."""
    names: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        return [
            (cell, _outputs("".join(cell["source"]), names))
            for cell in notebook["cells"]
            if cell["cell_type"] == "code"
        ]


def _outputs(source: str, names: dict[str, object]) -> list[Any]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - the project's own notebooks
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    outputs: list[Any] = []
    if printed.getvalue():
        outputs.append(
            {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
        )
    if shown is not None:
        data = {"text/plain": _lines(repr(shown))}
        if hasattr(shown, "_repr_html_"):
            data["text/html"] = _lines(shown._repr_html_())
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def meaning(outputs: list[Any]) -> list[Any]:
    """What is shown without what may change: noise, digests, seconds, drawings."""
    kept = []
    for output in outputs:
        data = output.get("data", {})
        text = "".join(data.get("text/plain", output.get("text", [])))
        html = "".join(data.get("text/html", []))
        numberless = _NUMBER.sub("#", _DIGEST.sub("digest", text))
        words = " ".join(_RULE.sub("─", numberless).split())  # as wide as the numbers below it
        kept.append((output["output_type"], words, "<svg" in html, "<table" in html, bool(html)))
    return kept


def refresh(path: Path) -> None:
    notebook = load(path)
    with tempfile.TemporaryDirectory() as folder:
        for number, (cell, outputs) in enumerate(run(notebook, Path(folder)), start=1):
            if meaning(outputs) != meaning(cell["outputs"]):
                cell["outputs"] = outputs
            cell["execution_count"] = number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        refresh(Path(argument).resolve())
