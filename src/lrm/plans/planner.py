"""From a workload and a mechanism to a plan."""

from __future__ import annotations

import time
from typing import Any, get_args

from threadpoolctl import threadpool_limits

from lrm.accuracy.bounds import Spectrum
from lrm.accuracy.certificate import least_error, spectrum_of
from lrm.batches import as_batch
from lrm.domain import Domain
from lrm.errors import StopSolver, UsageError
from lrm.plans.core import Plan
from lrm.privacy.budget import Noise
from lrm.quantise import quantise, unit_strategy
from lrm.reconstruction import Reconstruction
from lrm.solvers.progress import OnStep, Step, ignore_step
from lrm.strategies import Problem, Search, Strategy, build_strategy

__all__ = ["plan", "plan_of"]


def plan(  # noqa: PLR0913 - each is a choice of the caller
    workload: Any,
    mechanism: str = "best",
    *,
    domain: Domain | None = None,
    noise: Noise = "laplace",
    seed: int = 0,
    on_step: OnStep | None = None,
    time_limit: float | None = None,
    max_records: int | None = None,
    threads: int = 1,
    **options: Any,
) -> Plan:
    """Choose a strategy for ``workload``. Sees no data and costs no privacy.

    Parameters
    ----------
    workload
        A ``Workload``, as ``lrm.sql``, ``lrm.read_batch`` and every builder return it; an array,
        a sparse matrix or a frame with one row per query; or SQL, which needs ``domain``.
    mechanism
        ``"best"`` (default), ``"lowrank"`` (the paper's), or a rival: ``"noise-on-data"``,
        ``"noise-on-results"``, ``"wavelet"``, ``"hierarchical"``, ``"matrix"``.
    domain
        The public domain of the table, for SQL and matrices; a ``Workload`` may have its own.
    noise
        ``"laplace"`` for pure ε-differential privacy, ``"gaussian"`` for ρ-zCDP and (ε, δ).
    seed
        For the random starts of solvers. It has nothing to do with the noise of a release.
    on_step
        Called with each ``Step`` of a solver; may raise ``StopSolver`` to end with the best
        so far. Ctrl-C does the same.
    time_limit
        Seconds after which a solver is asked to stop, and the best so far is taken.
    max_records
        The most records a table may have that the plan will be used on.
    threads
        How many threads matrix products may use.
    options
        Options of the mechanism, for example ``rank=…`` for ``"lowrank"``.

    Examples
    --------
    >>> import lrm
    >>> both = lrm.plan([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], "noise-on-data")
    >>> round(both.expected_squared_error(epsilon=1), 6)
    16.0
    """
    problem = Problem(as_batch(workload, domain))
    report = on_step or ignore_step
    if noise not in get_args(Noise):
        raise UsageError(f"noise must be 'laplace' or 'gaussian', but {noise!r} came")
    search = Search(seed, report if time_limit is None else _until(time_limit, report), noise)
    with threadpool_limits(threads):
        began = time.perf_counter()
        strategy = build_strategy(mechanism, problem, search, options)
        seconds = time.perf_counter() - began
        return plan_of(problem, strategy, noise=noise, seconds=seconds, max_records=max_records)


def _until(seconds: float, on_step: OnStep) -> OnStep:
    """Pass steps on, and ask the solver to stop when the time is up."""
    if not seconds > 0:
        raise UsageError(f"a time limit must be above 0 seconds, but {seconds} came")
    end = time.monotonic() + seconds

    def report(step: Step) -> None:
        on_step(step)
        if time.monotonic() > end:
            raise StopSolver

    return report


def plan_of(  # noqa: PLR0913 - what a plan is made of
    problem: Problem,
    strategy: Strategy,
    *,
    noise: Noise = "laplace",
    seconds: float,
    max_records: int | None = None,
    bounds: tuple[float, Spectrum] | None = None,
) -> Plan:
    """Round a strategy to integers and state the accuracy that they promise.

    ``bounds`` are those of the same problem, where they are known already.
    """
    queries = problem.queries_for(strategy)
    final = quantise(strategy, queries, max_records, noise)
    measured = unit_strategy(final.strategy.matrix, final.strategy.bits)
    if bounds is None:
        bounds = strategy.least_error or least_error(problem), spectrum_of(problem)
    least, spectrum = bounds
    return Plan(
        workload=problem.workload,
        mechanism=strategy.mechanism,
        measured=final.strategy,
        rebuild=Reconstruction(queries, measured, final.inverse, final.reconstruction),
        least_error=least,
        spectrum=spectrum,
        noise=noise,
        exact=strategy.exact,
        details={**strategy.details, "seconds": seconds},
    )
