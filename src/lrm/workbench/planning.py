"""The process that plans in the background: ``python -m lrm.workbench.planning``.

It reads one job from standard input and writes one line of JSON for each thing that happens. An
interrupt ends the search with the best so far, as Ctrl-C does for ``lrm plan``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

PAUSE = 0.2
"""Seconds between two reports of a search."""


def main() -> None:
    """Make the plans of one job."""
    job = json.loads(sys.stdin.readline())
    with contextlib.suppress(OSError):
        os.nice(5)  # typing goes before searching
    try:
        _run(job)
    except KeyboardInterrupt:
        _keep_quick(job)
    except Exception as reason:  # noqa: BLE001 - the server shows it
        from lrm.errors import LrmError  # noqa: PLC0415 - imported by now, or broken

        ours = isinstance(reason, LrmError)
        _tell(error=str(reason) if ours else f"an error in lrm itself ({type(reason).__name__})")


def _keep_quick(job: dict[str, Any]) -> None:
    """Stopped between two searches: what the quick one has found is the plan."""
    for step in job["steps"]:
        if step["before"] and Path(step["before"]).exists():
            Path(step["before"]).replace(step["file"])
            _tell(plan=step["file"])
        elif step["before"] and not Path(step["file"]).exists():
            _tell(error="it was stopped before it had found a plan")


def _tell(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def _run(job: dict[str, Any]) -> None:
    from dataclasses import replace  # noqa: PLC0415 - an interrupt may come while these load

    from lrm.domain.file import parse_domain  # noqa: PLC0415
    from lrm.workbench.compiling import compile_whole  # noqa: PLC0415
    from lrm.workbench.folder import Text  # noqa: PLC0415

    domain = parse_domain(job["domain"]["text"], job["domain"]["name"])
    batch = compile_whole(Text(**job["batch"]), domain)
    equal = replace(batch, importance=None)
    stopped: set[str] = set()
    for step in job["steps"]:
        if step["effort"] != "quick" and step["noise"] in stopped:
            # What the quick search had when it was stopped is the plan.
            Path(step["before"]).replace(step["file"])
            _tell(plan=step["file"])
        elif _plan(equal if step["equal"] else batch, step):
            stopped.add(step["noise"])


def _plan(batch: Any, step: dict[str, Any]) -> bool:
    """Make one plan, to which a quick one gives way; return whether it was stopped."""
    from lrm.errors import LrmError, StopSolver  # noqa: PLC0415
    from lrm.planning.plan.concerns import larger_errors  # noqa: PLC0415
    from lrm.planning.plan.file import load_plan  # noqa: PLC0415
    from lrm.planning.plan.planner import PlanInterrupted, plan  # noqa: PLC0415

    noise, file, parent = step["noise"], Path(step["file"]), os.getppid()
    last = 0.0
    factor = 1 if batch.domain is None else batch.domain.unit.factor

    def on_step(progress: Any) -> None:
        nonlocal last
        if os.getppid() != parent:
            raise StopSolver  # nobody waits for it any more
        if time.monotonic() - last > PAUSE:
            last = time.monotonic()
            error = progress.error * factor**2 if progress.error < float("inf") else None
            _tell(best=error, noise=noise)

    _tell(best=None, noise=noise)
    try:
        made = plan(batch, noise=noise, effort=step["effort"], on_step=on_step, meet=step["meet"])
    except PlanInterrupted as interruption:  # as `lrm plan` keeps the best so far
        made = interruption.plan
    before = Path(step["before"]) if step["before"] else None
    if before is not None and before.exists() and made.objective == "total":
        with contextlib.suppress(LrmError):  # a file that somebody has edited gives way
            made = min(
                made, load_plan(before), key=lambda candidate: candidate.weighted_strategy_error
            )
    file.parent.mkdir(exist_ok=True)
    made.save(str(file))
    if before is not None:
        before.unlink(missing_ok=True)
    _tell(plan=step["file"], warnings=larger_errors(made))
    return bool(made.details.get("interrupted"))


if __name__ == "__main__":
    main()
