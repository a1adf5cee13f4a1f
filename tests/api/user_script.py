"""What a user may write: every call has a type, and mypy accepts it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import lrm


def released(folder: Path) -> lrm.Release:
    """A batch from SQL to a release."""
    domain = lrm.Domain([lrm.Categories("sex", ["f", "m"]), lrm.Integers("age", 0, 9)], "people")
    batch = lrm.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", domain)
    plan: lrm.Plan = lrm.plan(
        batch, "best", noise="pure", objective="total", effort="quick", seed=1
    )
    plan.save(folder / "plan.lrm")
    release = lrm.release(plan, np.full(20, 5), epsilon="0.5")
    release.save(folder / "answers.lrm")
    return lrm.load_release(folder / "answers.lrm")


def misspelt(batch: lrm.Workload) -> None:
    """Names that do not exist: mypy reports them, and a comment that nothing needs."""
    lrm.plan(batch, "bst")  # type: ignore[arg-type]
    lrm.plan(batch, noise="gauss")  # type: ignore[arg-type]
    lrm.plan(batch, objective="least")  # type: ignore[arg-type]
    lrm.plan(batch, effort="fast")  # type: ignore[arg-type]


def used(folder: Path) -> list[str]:
    """Everything that is done with a release."""
    release = released(folder)
    frame = release.frame("n", 0.9, processed=release.consistent())
    frame.to_pandas().columns.tolist()
    columns: list[str] = frame.to_polars().columns
    release["n"].plot().save(folder / "answers.svg")
    release.write(folder / "answers.csv", statement="n")
    release.report(folder / "answers.html")
    total: float = float(np.asarray(release).sum())
    sentences: list[str] = [caveat.sentence for caveat in frame.caveats]
    try:
        release.frame("other")
    except lrm.LrmError as error:
        sentences.append(f"{error.plain} {error.line} {error.charged}")
    names: list[str] = list(release)
    return [*columns, *sentences, *names, str(total), str(len(release)), str("n" in release)]
