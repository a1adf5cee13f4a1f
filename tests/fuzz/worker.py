"""One process of the fuzzer: damage files, read them, and hold what is read to its promises.

Run as ``python -m fuzz.worker FOLDER SEED FIRST LAST``. Any exception that is not an ``LrmError``,
a promise that is not kept, a minute without an end or a crash ends the process; ``FOLDER/case``
then says which case it was.
"""

import json
import resource
import signal
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np

import lrm
from fuzz import mutations
from fuzz.mutations import packed, sealed, unpacked
from lrm.domain.file import read_domain
from lrm.files.archive import archive_format, read_archive
from lrm.files.facts import Facts
from lrm.ledger import Ledger
from lrm.planning.plan import file as plan_file
from lrm.privacy.budget import zcdp_of
from lrm.privacy.mechanism import calibrate
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.files import read_batch
from lrm.queries.workload.file import read_workload
from lrm.releases import file as release_file
from lrm.releases.counts_file import read_counts
from lrm.views.plans import plan_facts, plan_lines
from lrm.views.releases import release_lines, summary_facts

MEMORY = 6 << 30
"""What docs/reference/files.md states: opening a file takes less."""

SECONDS = 60

MOST_CELLS = 100_000
"""Tables of more cells are not made: a product may have any number of them."""


def check_plan(plan, rng):
    """Sensitivity bounds every neighbour, answers are those of the batch, and facts can be told."""
    measured = plan.measured
    n = plan.workload.shape[1]
    for _ in range(3 if n <= MOST_CELLS else 0):
        most = max(1, min(10**6, (measured.max_records - 1) // n))
        counts = rng.integers(0, most, n)
        moved = counts.copy()
        moved[rng.integers(n)] += 1
        if moved.sum() > measured.max_records:
            continue
        counted, after = measured.counts_of(counts), measured.counts_of(moved)
        before = measured.measure(counted).tolist()
        change = [
            one - two for one, two in zip(measured.measure(after).tolist(), before, strict=True)
        ]
        assert sum(abs(step) for step in change) <= measured.sensitivity
        assert sum(step * step for step in change) <= measured.squared_l2_sensitivity
        assert max(map(abs, before), default=0) <= 2**62
        assert before == measured.measure_clamped(counted).tolist()
        if plan.exact and plan.measurement_count:
            _check_answers(plan, counts, before)
    assert plan.reconstruction_map.shape == (plan.workload.shape[0], plan.measurement_count)
    plan_facts(plan)
    plan_lines(plan)


def _check_answers(plan, counts, measurements):
    answers = plan.reconstruction_map.apply(
        np.array(measurements, dtype=float) * 2.0**-plan.measured.bits
    )
    truth = plan.workload.queries.apply(counts.astype(float))
    room = np.abs(plan.workload.queries.dense()) @ counts
    noise = np.sqrt(plan.reconstruction_map.row_squared_norms) * plan.sensitivity
    assert np.all(np.abs(answers - truth) <= 1e-6 * (room + noise * counts.sum() + 1))


def check_release(release, rng):
    """The noise is what the promise needs, and the stated errors are those of the noise."""
    plan, unit = release.plan, release.unit
    check_plan(plan, rng)
    factor, scale = unit.factor, Fraction(release.scale)
    if not release.simulated and plan.noise == "laplace":
        assert plan.measured.sensitivity * factor <= scale * release.privacy.epsilon
    if not release.simulated and plan.noise == "gaussian":
        square = plan.measured.squared_l2_sensitivity * factor**2
        assert square <= scale**2 * 2 * zcdp_of(release.privacy).rho
    assert np.allclose(release.standard_errors, _errors(release), rtol=1e-6)
    intervals, possible = release.unclipped.intervals(0.95), release.intervals(0.95)
    assert np.all(intervals[:, 0] <= release.answers)
    assert np.all(release.answers <= intervals[:, 1])
    assert np.all(possible[:, 0] <= possible[:, 1])
    summary_facts(release, 0.95)
    release_lines(release)


def _errors(release):
    """Standard errors of the answers, from the rows of B where the noise has a lattice."""
    plan, unit = release.plan, 2.0**-release.plan.measured.bits
    if not release.distribution.endswith("on lattices"):
        norms = np.sqrt(plan.reconstruction_map.row_squared_norms)
        return norms * _deviation(plan.noise, release.scale) * unit
    steps = np.broadcast_to(np.array(release.accuracy.law.steps), plan.measurement_count)
    assert not np.any(np.broadcast_to(plan.measured.divisors, steps.shape) % steps)
    rows = plan.reconstruction_map.rows(0, plan.workload.shape[0])
    deviations = [step * _deviation(plan.noise, release.scale / step) for step in steps.tolist()]
    return np.sqrt(rows**2 @ np.square(deviations)) * unit


def _deviation(noise, scale):
    """The standard deviation of the discrete distribution, summed up where it is narrow."""
    if scale > 1000:
        return scale * 2**0.5 if noise == "laplace" else scale
    values = np.arange(-40_000.0, 40_001.0)
    exponents = np.abs(values) / scale if noise == "laplace" else (values / scale) ** 2 / 2
    weights = np.exp(-np.minimum(exponents, 700))
    return float(np.sqrt(np.dot(weights, values**2) / weights.sum()))


def check_ledger(path):
    """Whatever is read adds up."""
    ledger = Ledger.open(str(path))
    ledger.verify()
    for budget in ledger.budgets():
        assert budget.spent <= budget.limit


def consistent(path, kind, rng):
    """State what a careful forger would: digest, limits, noise and answers that fit the rest."""
    genuine, plan_file._check_same = plan_file._check_same, lambda plan, facts: None
    try:
        facts, arrays = read_archive(path, kind, plan_file.VERSION)
        inner = facts["plan"] if kind == "release" else facts
        plan = plan_file.unpack_plan(inner, arrays)
        inner["sensitivity"] = str(plan.measured.sensitivity)
        inner["max_records"] = str(plan.measured.max_records)
        inner["digest"] = plan.digest
    except (lrm.LrmError, KeyError, TypeError):
        return
    finally:
        plan_file._check_same = genuine
    if kind == "release" and rng.random() < 0.5:
        _restate_release(path, facts, arrays, plan)
        return
    members = unpacked(path.read_bytes())
    members["facts.json"] = json.dumps(facts).encode()
    path.write_bytes(packed(sealed(members)))


def _restate_release(path, values, arrays, plan):
    try:
        facts = Facts(values, release_file.FACTS)
        privacy, unit = release_file._privacy(facts), PrivacyUnit.from_facts(facts.any("unit"))
        noise = calibrate(plan.measured, privacy, unit)
        values = arrays.take("noisy-measurements", "i8", (plan.measurement_count,))
        forged = lrm.Release(
            plan, values, privacy, noise.loss, noise.distribution, noise.scale, unit
        )
        forged.save(path)
    except (lrm.LrmError, AttributeError):
        return


class Fuzzer:
    """Cases by number: the same number is the same file."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.files = sorted((folder / "seeds").iterdir())
        self.bytes = {file.name: file.read_bytes() for file in self.files}
        self.domain = read_domain(folder / "seeds" / "domain.yaml")
        self.accepted: dict[str, int] = {}

    def run(self, number: int) -> None:
        """Make, read and check one case."""
        rng = np.random.default_rng([self.seed, number])
        file = self.files[int(rng.integers(len(self.files)))]
        if rng.random() < 0.5:  # half of all cases are plans and releases
            ours = [each for each in self.files if each.suffix in {".plan", ".release"}]
            file = ours[int(rng.integers(len(ours)))]
        path = self.folder / f"case{file.suffix}"
        if file.stem in {"counts", "domain", "batch", "ledger"}:
            path = self.folder / f"{file.stem}{file.suffix}"
        path.write_bytes(self.damaged(rng, file))
        if file.suffix in {".plan", ".release"} and rng.random() < 0.7:
            consistent(path, file.suffix[1:], rng)
        archive_format(path)
        try:
            self.read(path, file, rng)
        except lrm.LrmError:
            return
        kind = f"{file.stem if path.stem == file.stem else 'file'}{file.suffix}"
        self.accepted[kind] = self.accepted.get(kind, 0) + 1

    def damaged(self, rng, file: Path) -> bytes:
        """The bytes of ``file``, damaged in one of several ways."""
        data = self.bytes[file.name]
        way = rng.random()
        if file.suffix in {".plan", ".release", ".npz"} and way < 0.85:
            same = [each for each in self.files if each.suffix == file.suffix]
            other = unpacked(self.bytes[same[int(rng.integers(len(same)))].name])
            members = unpacked(data)
            mutations.mutate_members(rng, members, other)
            if file.suffix == ".npz":
                return packed(members)
            if way < 0.05:
                header = json.loads(members["header.json"])
                mutations.mutate_json(rng, header)
                members["header.json"] = json.dumps(header).encode()
                return packed(members)
            return packed(sealed(members))
        if file.suffix in {".yaml", ".sql", ".csv"} and way < 0.7:
            return mutations.retold(rng, data)
        if file.suffix == ".npy" and way < 0.7:
            return mutations.npy(mutations.mutate_array(rng, np.load(file)))
        return mutations.damaged(rng, data, [self.bytes[each.name] for each in self.files])

    def read(self, path: Path, file: Path, rng) -> None:
        """Read a file as what its name says, and check what came of it."""
        match file.stem, file.suffix:
            case _, ".plan":
                check_plan(lrm.load_plan(path), rng)
            case _, ".release":
                check_release(release_file.load_release(path), rng)
            case "counts", _:
                read_counts(path)
            case "domain", _:
                assert read_domain(path).size >= 1
            case "batch", _:
                read_batch(path, self.domain)
            case "ledger", _:
                check_ledger(path)
            case _:
                workload = read_workload(path)
                if workload.shape[0] * workload.shape[1] < 10_000:
                    check_plan(lrm.plan(workload, "noise-on-data"), rng)


def _too_long(*_):
    raise TimeoutError(f"a case took more than {SECONDS} s of the processor, or ten times as long")


def main() -> None:
    """Run the cases that the arguments name, and print how many were accepted."""
    folder, (seed, first, last) = Path(sys.argv[1]), map(int, sys.argv[2:5])
    warnings.simplefilter("error")
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fuzzer = Fuzzer(folder, seed)
    for number in range(first, last):
        (folder / "case").write_text(f"seed {seed} case {number}")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(10 * SECONDS)  # it may wait rather than work
        fuzzer.run(number)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"accepted": fuzzer.accepted, "peak MiB": peak}))


if __name__ == "__main__":
    main()
