"""What a test does in the page of the workbench: type, wait, look."""

import contextlib
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import axe_core_python
import pytest

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@contextlib.contextmanager
def workbench(folder, port="0"):
    """The command itself; yields its address and its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lrm", "workbench", ".", "--no-browser", "--json", "--port", port],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        lines = iter(process.stdout.readline, "")
        address = next(found[0] for line in lines if (found := re.search(r"http[^\"\s]*", line)))
        yield address, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


def unused_port():
    """A port that a server can have twice: none of those that systems give out in between."""
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return str(port)
    raise AssertionError("a hundred ports are in use")


def text(selector):
    return f"document.querySelector({selector!r}).textContent"


def there(selector):
    return f"!!document.querySelector({selector!r})"


def wait_saved(path, words, seconds=120):
    """Wait until a file holds some words: the page saves a little after they are typed."""
    end = time.monotonic() + seconds
    while not path.exists() or words not in path.read_text():
        assert time.monotonic() < end, path.exists() and path.read_text()
        time.sleep(0.05)


def set_text(tab, selector, value):
    """Put the caret in a field, select all, and type."""
    tab.click(selector)
    tab.press("a", modifiers=2)
    tab.type(value)


def editor(kind="batch"):
    """The text of an editor, as an expression of JavaScript."""
    view = f"document.querySelector('#{kind}-editor .cm-editor')"
    return (
        "import('/codemirror.js').then(({EditorView}) => "
        f"EditorView.findFromDOM({view}).state.doc.toString())"
    )


def append(tab, words):
    """Type at the end of the questions."""
    tab.evaluate("document.getElementById('batch-editor-text').focus()")
    tab.press("End", modifiers=2)
    tab.type(words)


def rated(tab, seconds=120):
    """Wait until every statement has its errors."""
    tab.wait(f"{there('#statements tbody tr')} && !{text('#statements')}.includes('…')", seconds)


def planned(tab, seconds=120):
    tab.wait(f"{text('#job-words')}.startsWith('Planned')", seconds)


def stop(tab):
    """End the search with the best so far, unless it has ended."""
    rated(tab)
    press = "(b => b.textContent.startsWith('Stop') && b.click())"
    tab.evaluate(f"{press}(document.getElementById('search'))")
    planned(tab)


def typical(tab):
    return tab.evaluate("document.querySelectorAll('#key dd')[1].firstChild.textContent")


def check_accessible(tab, state):
    """No serious or critical finding of axe, in this state of the page."""
    tab.evaluate(AXE + "; true")
    found = tab.evaluate(
        "axe.run(document, {iframes: false, resultTypes: ['violations']}).then(r => r.violations"
        ".filter(v => ['serious', 'critical'].includes(v.impact))"
        ".map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))]))"
    )
    assert found == [], (state, found)


def reload(tab):
    tab.reload("!document.getElementById('bench').hidden")


def focus(tab, wanted, steps=80):
    """Press Tab until an element has the focus: what cannot be reached so, is not reached."""
    for _ in range(steps):
        if tab.evaluate(f"document.activeElement.matches({wanted!r})"):
            return
        tab.press("Tab")
    pytest.fail(f"{wanted} cannot be reached by keyboard")
