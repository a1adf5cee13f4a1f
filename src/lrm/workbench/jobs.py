"""Planning in the background: one process at a time, and the newest question wins."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lrm.workbench.folder import Folder, Text

NOISES = ("pure", "gaussian")


@dataclass(eq=False)
class Job:
    """One search: what it is for, how far it is, and how it ended."""

    key: str
    noise: str
    process: subprocess.Popen[str] | None = None
    state: str = "running"
    facts: dict[str, Any] = field(default_factory=dict)
    plans: int = 0

    @property
    def shown(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        return {"key": self.key, "state": self.state, "plans": self.plans, **self.facts}


class Planner:
    """Starts, follows and ends the search."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._warnings: dict[str, list[str]] = {}  # of plans: their files do not hold even splits
        self._closed = False

    @property
    def shown(self) -> dict[str, Any] | None:
        """The job, where there is one."""
        with self._lock:
            return None if self._job is None else self._job.shown

    def start(  # noqa: PLR0913 - what is planned, and how
        self,
        domain: Text,
        batch: Text,
        key: str,
        equal_key: str,
        noise: str,
        *,
        again: bool = False,
        effort: str = "normal",
        meet: float | None = None,
    ) -> None:
        """Plan a batch unless that is done or under way; any other search is ended."""
        steps = self._steps(key, equal_key, noise, effort, meet)
        with self._lock:
            if self._closed:  # a page that was not closed goes on asking
                return
            job = self._job
            if job is not None and job.state == "running":
                if (job.key, job.noise) == (key, noise) and not again:
                    return
                _end(job)
            if again:  # what there is stays until there is a better one
                self._folder.set_back(noise, key)
            missing = [s for s in steps if not (self._folder.root / s["file"]).exists()]
            if not missing:
                self._job = Job(key, noise, state="done")
                return
            self._job = started = Job(key, noise)
            request = {"domain": vars(domain), "batch": vars(batch), "steps": missing}
            started.process = _launch(request, self._folder)
            threading.Thread(target=self._follow, args=(started,), daemon=True).start()

    def _steps(
        self, key: str, equal_key: str, noise: str, effort: str, meet: float | None
    ) -> list[dict[str, Any]]:
        """A quick plan, a good one, and quick ones to compare with."""
        name = self._folder.plan_name
        quick = name(noise, key, quick=True)
        other = next(candidate for candidate in NOISES if candidate != noise)
        steps: list[dict[str, Any]] = [
            {"noise": noise, "effort": effort, "file": name(noise, key), "before": quick},
        ]
        if effort != "quick" and self._folder.find_plan(noise, key) is None:
            first = {"noise": noise, "effort": "quick", "file": quick, "before": None}
            steps.insert(0, first)
        if self._folder.find_plan(other, key) is None:
            file = name(other, key, quick=True)
            steps.append({"noise": other, "effort": "quick", "file": file, "before": None})
        steps = [{**step, "equal": False, "meet": meet} for step in steps]
        if equal_key != key and self._folder.find_plan(noise, equal_key) is None:
            file = name(noise, equal_key, quick=True)
            plain = {"noise": noise, "effort": "quick", "file": file, "before": None}
            steps.append({**plain, "equal": True, "meet": None})
        return steps

    def _follow(self, job: Job) -> None:
        process = job.process
        if process is None or process.stdout is None:
            return
        with process:
            for line in process.stdout:
                with self._lock:
                    self._take(job, json.loads(line))
        code = process.returncode
        self._folder.make_room()
        with self._lock:
            if job.state == "running":
                job.state = "done" if code == 0 and "error" not in job.facts else "failed"
                if job.state == "failed":
                    job.facts.setdefault("error", "the search ended early; plan again")

    def warnings_of(self, plan: str) -> list[str]:
        """The warnings about a plan when it was made, if that was since the server started."""
        with self._lock:
            return self._warnings.get(Path(plan).name, [])

    def _take(self, job: Job, facts: dict[str, Any]) -> None:
        if "plan" in facts:
            job.plans += 1
            if "warnings" in facts:
                self._warnings[Path(facts["plan"]).name] = facts["warnings"]
        elif "error" in facts:
            job.facts["error"] = facts["error"]
        else:
            job.facts |= {"noise": facts["noise"], "found": facts["best"]}

    def stop(self) -> None:
        """End the search with the best so far."""
        with self._lock:
            job = self._job
            if job is not None and job.process is not None and job.state == "running":
                job.facts["stopping"] = True
                job.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End the search without a result, wait until it has ended, and begin no other."""
        with self._lock:
            self._closed, job = True, self._job
            if job is not None and job.state == "running":
                _end(job)
        if job is not None and job.process is not None:
            job.process.wait()


def _launch(request: dict[str, Any], folder: Folder) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "lrm.workbench.planning"],  # -P: no module of the folder
        cwd=folder.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C at the terminal is the server's
    )
    if process.stdin is not None:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.close()
    return process


def _end(job: Job) -> None:
    job.state = "replaced"
    if job.process is not None:
        job.process.kill()
