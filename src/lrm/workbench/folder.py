"""The folder whose files are the state of the workbench."""

from __future__ import annotations

import hashlib
import math
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from lrm.errors import FileConflict, FileFormatError, UsageError
from lrm.files.archive import archive_format
from lrm.files.writing import write_text

MOST_TEXT = 1 << 22
"""Bytes of a domain or a batch in the page."""

PLANS = "plans"
"""Where plans that were made in the background are kept."""

MOST_PLANS = 30
"""How many of them: the oldest make room."""

_OWN_PLAN = re.compile(r"(pure|gaussian)-[0-9a-f]{16}(-[0-9.]{1,8})?(-quick)?\.lrm")
"""Names of plans: noise, batch, the confidence of its tolerances where it has some."""
_WRITTEN = (".sql", ".yaml", ".yml")
_YAML = re.compile(r"^[\"']?lrm-(domain|batch)\b", re.MULTILINE)
_TABLES = (".csv", ".csv.gz", ".parquet", ".duckdb")
_LEDGERS = (".sqlite", ".db")


@dataclass(frozen=True)
class Text:
    """The contents of a file, and a seal by which a change is noticed."""

    name: str
    text: str

    @property
    def seal(self) -> str:
        """Differs if the text does."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class Folder:
    """Files by kind; texts that are read and saved; nothing else is remembered."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, int, int], str] = {}

    def files(self) -> dict[str, list[str]]:
        """The names of the files of each kind: domains, questions, plans, …; releases by age."""
        by_kind: dict[str, list[str]] = {
            kind: [] for kind in ("domain", "batch", "plan", "release", "table", "ledger")
        }
        names = [path.name for path in self.root.iterdir() if path.is_file()]
        for name in sorted(name for name in names if not name.startswith(".")):
            kind = self._kind(name)
            if kind in by_kind:
                by_kind[kind].append(name)
        by_kind["release"].sort(key=self._age, reverse=True)
        # What a release has written beside itself is no table to release.
        answers = {Path(name).with_suffix(".csv").name for name in by_kind["release"]}
        by_kind["table"] = [name for name in by_kind["table"] if name not in answers]
        return by_kind

    def _age(self, name: str) -> float:
        """Seconds since a file was written, up to a constant; the newest where it is gone."""
        try:
            return -(self.root / name).stat().st_mtime
        except OSError:
            return -math.inf

    def _kind(self, name: str) -> str:
        lower = name.lower()
        if lower.endswith(".sql"):
            return "batch"
        for kind, endings in (("table", _TABLES), ("ledger", _LEDGERS)):
            if lower.endswith(endings):
                return kind
        if not lower.endswith((".yaml", ".yml", ".lrm")):
            return ""
        try:
            facts = (self.root / name).stat()
            key = (name, facts.st_mtime_ns, facts.st_size)
            if key not in self._kinds:
                self._kinds[key] = self._look(name)
        except OSError:  # removed in this moment
            return ""
        return self._kinds[key]

    def _look(self, name: str) -> str:
        path = self.root / name
        if path.suffix == ".lrm":
            return (archive_format(path) or "").removeprefix("lrm-")
        with path.open("rb") as file:
            match = _YAML.search(file.read(4096).decode("utf-8", "replace"))
        return match[1] if match else ""

    def read(self, name: str) -> Text:
        """Read a domain or a batch; one that does not exist is empty."""
        path = self.written(name)
        try:
            if not path.exists():
                return Text(name, "")
            if not path.is_file():  # a pipe would keep the page waiting
                raise FileFormatError(f"cannot read {name}: it is not a regular file")
            with path.open("rb") as file:
                data = file.read(MOST_TEXT + 1)
        except OSError as reason:
            raise FileFormatError(f"cannot read {name}: {reason.strerror}") from None
        if len(data) > MOST_TEXT:
            raise FileFormatError(
                f"{name} has more than {MOST_TEXT >> 20} MiB; use it on the command line"
            )
        try:
            return Text(name, data.decode())
        except UnicodeDecodeError:  # what cannot be shown would be lost when the text is saved
            raise FileFormatError(f"{name} is not UTF-8 text; convert it first") from None

    def save(self, name: str, text: str, base: str) -> Text:
        """Write a text in place of the one with the seal ``base``; refuse if it has changed."""
        with self._lock:
            current = self.read(name)
            if current.seal != base and current.text != text:
                raise FileConflict(f"{name} was changed elsewhere since this page has read it")
            if current.text != text or not self.written(name).exists():
                write_text(self.written(name), text)
        return Text(name, text)

    def written(self, name: str) -> Path:
        """The path of a text; anything but a plain name of SQL or YAML is refused."""
        return self._path(name, _WRITTEN)

    def made(self, name: str) -> Path:
        """The path of a plan or a release in this folder."""
        if name.startswith(f"{PLANS}/") and _OWN_PLAN.fullmatch(name.removeprefix(f"{PLANS}/")):
            return self.root / name
        return self._path(name, (".lrm",))

    def _path(self, name: str, endings: tuple[str, ...]) -> Path:
        plain = Path(name).name == name and not name.startswith(".") and name.isprintable()
        if not plain or not name.lower().endswith(endings):
            raise UsageError(
                f"expected the name of a {' or '.join(endings)} file in the folder, got {name!r}"
            )
        return self.root / name

    def plan_name(self, noise: str, key: str, *, quick: bool = False) -> str:
        """Where the plan of a batch is kept."""
        return f"{PLANS}/{noise}-{key}{'-quick' if quick else ''}.lrm"

    def find_plan(self, noise: str, key: str) -> str | None:
        """The plan of a batch, or a quick one until there is a better one."""
        names = [self.plan_name(noise, key, quick=quick) for quick in (False, True)]
        return next((name for name in names if (self.root / name).exists()), None)

    def successor(self, name: str) -> str:
        """The name of a plan, or of the quick or better one that has taken its place."""
        if self.made(name).exists() or not name.startswith(f"{PLANS}/"):
            return name
        stem = name.removesuffix(".lrm")
        other = stem.removesuffix("-quick") if stem.endswith("-quick") else f"{stem}-quick"
        return f"{other}.lrm" if self.made(f"{other}.lrm").exists() else name

    def set_back(self, noise: str, key: str) -> None:
        """Call the plan of a batch a quick one, so that a better one is searched for."""
        full_plan, quick = (
            self.root / self.plan_name(noise, key, quick=is_quick) for is_quick in (False, True)
        )
        if full_plan.exists():
            full_plan.replace(quick)

    def make_room(self) -> None:
        """Remove the oldest of the plans that were made in the background."""
        place = self.root / PLANS
        plan_paths = [path for path in place.glob("*.lrm") if _OWN_PLAN.fullmatch(path.name)]
        for path in sorted(plan_paths, key=lambda plan_path: plan_path.stat().st_mtime)[
            :-MOST_PLANS
        ]:
            path.unlink(missing_ok=True)

    def unused(self, stem: str) -> str:
        """A name for a new release that no file has, in any of its forms."""
        for number in range(1, 10_000):
            name = stem if number == 1 else f"{stem}-{number}"
            if not any((self.root / f"{name}{end}").exists() for end in (".lrm", ".csv", ".html")):
                return name
        raise UsageError(f"there are 10,000 releases called {stem}; move some of them")
