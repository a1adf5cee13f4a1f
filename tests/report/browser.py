"""A real browser, spoken to over its DevTools pipe with the standard library alone."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engines import missing

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 120

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--remote-debugging-pipe",
)


PLACE = """async (selector) => {
  const element = document.querySelector(selector);
  if (!element || element.disabled || !element.checkVisibility()) return null;
  element.scrollIntoView({block: 'center', behavior: 'instant'});
  const middle = () => {
    const box = element.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const before = middle();
  await new Promise((done) => setTimeout(done, 20));
  const place = middle(), top = document.elementFromPoint(...place);
  const settled = place[0] === before[0] && place[1] === before[1] && element.contains(top);
  return settled ? place : null;
}"""
"""Where an element can be clicked; null while it is hidden, disabled, covered or moving."""


def find_browser() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def need_browser() -> None:
    if find_browser() is None:
        missing("no Chromium is installed; `apt-get install chromium` brings one")


class BrowserError(AssertionError):
    """The browser could not do what it was asked for, such as in a page that it is leaving."""


class Browser:
    """One tab. ``console`` and ``requests`` collect what the page says and asks for."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._write, self._read = to_browser, from_browser
        self._buffer, self._number, self._session = b"", 0, None
        self.console: list[str] = []
        self.requests: list[str] = []
        self.new_tab()

    def new_tab(self) -> str | None:
        """Open a tab and turn to it; return the one before, for `turn_to`."""
        before, self._session = self._session, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")
        return before

    def turn_to(self, tab: str | None) -> str | None:
        """Turn to another tab; return the one before."""
        before, self._session = self._session, tab
        self.call("Page.bringToFront")
        return before

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(answer)
                return answer["result"]
            self._note(answer)

    def open(self, page: Path, *, width: int = 1000, scheme: str = "light") -> None:
        self.console.clear()
        self.requests.clear()
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media="", features=[feature])
        self.call("Page.navigate", url=page.as_uri())
        while self.evaluate("document.readyState + location.protocol") != "completefile:":
            time.sleep(0.02)

    def go(self, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        """Open a page of a server."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.call("Emulation.setEmulatedMedia", media="", features=features)
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.protocol === 'http:'")

    def evaluate(self, expression: str) -> Any:
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, (expression[:200], result["exceptionDetails"])
        return result["result"].get("value")

    def reload(self, ready: str) -> None:
        """Load the page again, and wait until an expression is true of the new one."""
        self.evaluate("window.before = true")
        self.call("Page.reload")  # which answers while the page before is still there
        self.wait(f"!window.before && document.readyState === 'complete' && {ready}")

    def wait(self, expression: str, seconds: float = 120) -> Any:
        """Wait until an expression is true, and return its value."""
        end, value = time.monotonic() + seconds, None
        while not value:
            assert time.monotonic() < end, f"still not: {expression}"
            with contextlib.suppress(BrowserError):  # one page gives way to another
                value = self.evaluate(expression)
            if not value:
                time.sleep(0.05)
        return value

    def click(self, selector: str, times: int = 1) -> None:
        """Click the middle of an element, as a hand does, once it is there and does not move."""
        place = self.wait(f"({PLACE})({selector!r})")
        at = {"x": place[0], "y": place[1], "button": "left"}
        for number in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, clickCount=number, **at)

    def press(self, key: str, modifiers: int = 0, text: str = "") -> None:
        """Press a key (modifiers: 2 is Ctrl, 8 is Shift)."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowUp": 38, "ArrowDown": 40}
        codes |= {"ArrowLeft": 37, "ArrowRight": 39, "End": 35, "Home": 36, "Backspace": 8}
        code = codes.get(key, ord(key[0].upper()))
        facts = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        written = text or ("\r" if key == "Enter" else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", text=written, **facts)
        self.call("Input.dispatchKeyEvent", type="keyUp", **facts)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def screenshot(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            part = os.read(self._read, 1 << 20) if ready else b""
            assert part, "the browser did not answer"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled":
            self.console.append(str(params["args"]))
        elif event.get("method") == "Runtime.exceptionThrown":
            self.console.append(str(params["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded":
            entry = params["entry"]
            self.console.append(f"{entry['text']} {entry.get('url', '')}".strip())
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    program = find_browser()
    assert program, "no browser is installed"
    ours_in, theirs_out = os.pipe()
    theirs_in, ours_out = os.pipe()
    # The browser reads descriptor 3 and writes 4; both ends start far from those numbers.
    far = [fcntl.fcntl(fd, fcntl.F_DUPFD, 50) for fd in (theirs_in, theirs_out)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = f'exec "$@" 3<&{far[0]} 4>&{far[1]}'
        process = subprocess.Popen(
            ["bash", "-c", command, "-", program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=far,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (theirs_in, theirs_out, *far):
            os.close(fd)
        try:
            tab = Browser(ours_out, ours_in)
            yield tab
            tab._session = None
            with contextlib.suppress(AssertionError):
                tab.call("Browser.close")
            process.wait(SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(ours_in)
            os.close(ours_out)
