"""One of many processes that spend from a ledger until it is empty.

Arguments: location, file for its reports, file whose appearance starts the race, and
optionally a moment at which the process kills itself, or ``victim`` for one that others kill: it
goes on trying when the ledger is empty. Where the budget has accounts, ``RACED`` lists the editions
that are charged in turn.
"""

import os
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

import lrm.ledger.core
import lrm.ledger.sqlite
from lrm.errors import BudgetExceeded, LedgerError
from lrm.ledger import Ledger
from lrm.privacy.budget import PureDP
from lrm.privacy.unit import PrivacyUnit

EDITIONS = os.environ.get("RACED", "").split()
ROW = PrivacyUnit(period="month" if EDITIONS else None)

STEPS = [Fraction(1, 200), Fraction(1, 350), Fraction(1, 150)]


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(moment: str) -> None:
    """Arrange for ``kill -9`` at a chosen moment of the next spend."""
    if moment == "locked":
        lrm.ledger.core.check_history = die
    elif moment == "reported":
        lrm.ledger.core.read_entry = die
    elif moment in {"insert", "commit"}:
        connect = lrm.ledger.sqlite.SqliteStore._connect

        def connect_and_watch(store, mode):
            db = connect(store, mode)
            # The callback runs before the statement does.
            db.set_trace_callback(lambda sql: sql.upper().startswith(moment.upper()) and die())
            return db

        lrm.ledger.sqlite.SqliteStore._connect = connect_and_watch


def main() -> None:
    location, report, start, *moment = sys.argv[1:]
    ledger = Ledger.open(location, timeout=60)
    victim = moment == ["victim"]
    if moment and not victim:
        die_at(moment[0])
    with Path(report).open("a", buffering=1) as reports:
        reports.write("ready\n")
        while not Path(start).exists():
            time.sleep(0.01)
        turn, full = os.getpid(), set()
        while True:
            turn += 1
            # All pairs of a step and an edition come in turn: 3 and 2 have no common divisor.
            charged = EDITIONS[turn % 2 :][:1]
            try:
                entry = ledger.spend(
                    "people",
                    PureDP(STEPS[turn % 3]),
                    unit=ROW,
                    purpose=f"by {os.getpid()}",
                    editions=charged,
                )
            except BudgetExceeded:
                if turn % 3 == 1:  # the smallest step no longer fits
                    full.update(charged)
                if turn % 3 == 1 and len(full) == len(EDITIONS) and not victim:
                    return
            except LedgerError as error:
                reports.write(f"refused: {error}\n")
                return
            else:
                reports.write(" ".join([entry.digest, *charged]) + "\n")


if __name__ == "__main__":
    main()
