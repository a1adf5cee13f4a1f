"""Budgets, dry runs and releases: what is spent is confirmed first, and spent once.

A dry run issues a ticket for exactly what it showed. A ticket is used once: a double click, a
reload or a second tab that sends it again learns how the first one went. A ticket is void if the
budget, the plan, the domain or the questions have changed since.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lrm.errors import FileConflict, LedgerError, LrmError, UsageError
from lrm.files.locations import is_address, shown
from lrm.files.spelling import many
from lrm.ledger import Budget, Ledger
from lrm.planning.plan import Plan
from lrm.privacy.amounts import spell_amount
from lrm.releases import preview
from lrm.releases.file import load_release
from lrm.views.blocks import Facts
from lrm.views.budgets import budget_facts, preview_lines
from lrm.views.html import render
from lrm.views.release_page import write_release_page
from lrm.workbench.commands import Ran, run, typed
from lrm.workbench.folder import Folder
from lrm.workbench.fragments import ledger_html, remaining_html
from lrm.workbench.params import caught

HISTORY = 200
"""Entries of a ledger that are listed, the newest first."""


def budgets(ledger: str, table: str) -> dict[str, Any]:
    """What a ledger has left for a table, and what was ever spent."""
    if not is_address(ledger) and _is_missing(Path(ledger)):
        return {"tables": [], "budgets": [], "html": remaining_html([], table), "history": ""}
    book = Ledger.open(ledger)
    budget_list, entries = book.budgets(), book.history()
    return {
        "tables": [record.table for record in budget_list],
        "budgets": [budget_facts(record) for record in budget_list],
        "html": remaining_html(budget_list, table),
        "history": ledger_html(budget_list, entries[-HISTORY:], len(entries)),
    }


def _is_missing(ledger: Path) -> bool:
    """Whether there is no ledger; a file without a byte is one that is being created."""
    return not ledger.exists() or (ledger.is_file() and not ledger.stat().st_size)


@dataclass(eq=False)
class Ticket:
    """Permission to make one release."""

    id: str
    command: list[str]
    stem: str
    ledger: str
    budget: Budget
    files: Mapping[str, str]
    state: str = "ready"
    error: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def shown(self) -> dict[str, Any]:
        """How far it is, as values that JSON can hold."""
        return {
            "ticket": self.id,
            "state": self.state,
            "error": self.error,
            "warnings": list(self.warnings),
            "release": f"{self.stem}.lrm",
            "command": typed(self.command),
        }


@dataclass(frozen=True, eq=False)
class Wanted:
    """A release that is asked for: the command that makes it, and what the command is about.

    ``files`` are those that what is confirmed was read from: the plan, the domain, the questions.
    """

    command: list[str]
    files: Sequence[str]
    plan: Plan
    table: str
    amounts: Mapping[str, Any]
    ledger: str
    budget: str | None


class Cashier:
    """Issues tickets and makes the releases that they are for, one at a time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._tickets: dict[str, Ticket] = {}
        self._current: Ticket | None = None

    @property
    def shown(self) -> dict[str, Any] | None:
        """The latest release, where one was started."""
        with self._lock:
            return None if self._current is None else self._current.shown

    def dry_run(self, request: Wanted) -> dict[str, Any]:
        """Check all that a release checks, and issue a ticket for it."""
        with self._lock:
            self._check_idle()
        stem = self._folder.unused("answers")
        files = {name: self._digest(name) for name in request.files}
        full_command = [*request.command, "-o", f"{stem}.lrm", "--csv", f"{stem}.csv"]
        with caught() as warned:
            preview_result = preview(
                request.plan,
                request.table,
                **request.amounts,
                ledger=request.ledger,
                budget=request.budget,
            )
        after, unit = preview_result.budget, preview_result.unit
        if after is None:
            raise UsageError("name the ledger to charge")
        paid = after.cost(preview_result.cost, unit)
        before = replace(after, spent=after.spent - paid)
        ticket = Ticket(
            secrets.token_urlsafe(16), full_command, stem, request.ledger, before, files
        )
        name = after.accounting.value
        left, limit = (spell_amount(value, "down") for value in (after.remaining, after.limit))
        answers = many(len(request.plan.workload.shown), "answer", "answers")
        written = [f"{stem}{end}" for end in (".lrm", ".csv", ".html")]
        lines = (("table", shown(request.table)), ("answers", answers))
        with self._lock:
            self._tickets = {ticket.id: ticket} | {
                key: value for key, value in self._tickets.items() if value.state != "ready"
            }
        return {
            "ticket": ticket.id,
            "command": typed([*full_command, "--dry-run"]),
            "release_command": typed(full_command),
            "warnings": [*warned, *request.plan.warnings],
            "cost": f"{spell_amount(paid, 'up')} {name}",
            "budget": after.table,
            "left": f"{left} of {limit} {name}",
            "files": written,
            "html": render(Facts((*lines, *preview_lines(preview_result)))),
            "confirm_html": render(
                Facts(
                    (
                        *lines,
                        ("protects", unit.words),
                        *((("rows", unit.limit),) if unit.limit else ()),
                        ("guarantee", preview_result.privacy.symbols),
                        ("files", ", ".join(written)),
                    )
                )
            ),
        }

    def release(self, key: str) -> dict[str, Any]:
        """Make the release of a ticket, or say how it went if it was used before."""
        with self._lock:
            ticket = self._tickets.get(key)
            if ticket is None:
                raise UsageError(
                    "this confirmation is no longer valid; nothing was spent; make a new dry run"
                )
            if ticket.state != "ready":
                return ticket.shown
            self._check_idle()
            self._check_unchanged(ticket)
            ticket.state = "running"
            self._current = ticket
        threading.Thread(target=self._run, args=(ticket,), daemon=True).start()
        return ticket.shown

    def _check_idle(self) -> None:
        """Refuse while a release is made: what it leaves of the budget is not known yet."""
        if self._current is not None and self._current.state == "running":
            raise UsageError("another release is being made; wait until it is done")

    def _check_unchanged(self, ticket: Ticket) -> None:
        """Refuse a ticket if a file, the cost or the remainder is no longer what was confirmed."""
        for name, digest in ticket.files.items():
            if self._digest(name) != digest:
                ticket.state = "void"
                raise FileConflict(
                    f"{name} has changed since the dry run; nothing was spent, make a new dry run"
                )
        current = Ledger.open(ticket.ledger).budget(ticket.budget.table)
        if current != ticket.budget:
            ticket.state = "void"
            raise LedgerError(
                f"the budget of '{current.table}' has changed since the dry run: "
                f"{spell_amount(current.remaining, 'down')} {current.accounting.value} is left; "
                "nothing was spent, make a new dry run"
            )

    def _digest(self, name: str) -> str:
        """Differs if the file does; empty where there is none."""
        try:
            with (self._folder.root / name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return ""

    def _run(self, ticket: Ticket) -> None:
        try:
            ran = run(ticket.command, self._folder.root)
        except Exception as reason:  # noqa: BLE001 - its message may hold an address
            message = (
                f"the release was given up ({type(reason).__name__}); "
                "the ledger may have been charged"
            )
            ran = Ran(None, f"{message}: see its history")
        page = ""
        if ran.facts is not None:
            page = self._write_page(ticket.stem)
        with self._lock:
            release_warnings = () if ran.facts is None else ran.facts["warnings"]
            ticket.error, ticket.warnings = ran.error or page, (*ran.warnings, *release_warnings)
            ticket.state = "failed" if ran.facts is None else "done"

    def _write_page(self, stem: str) -> str:
        """Write the report next to the release; return why that failed, or nothing."""
        root = self._folder.root
        try:
            write_release_page(load_release(root / f"{stem}.lrm"), root / f"{stem}.html")
        except LrmError as reason:
            return f"the release is saved, but not its page: {reason}"
        return ""
