"""The study end to end on a tiny grid: run, kill, resume, fail, draw, judge."""

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lrm.cli import main
from lrm.errors import CountsError, FileFormatError
from lrm.plans.planner import plan
from lrm.study.claim_list import CLAIMS
from lrm.study.claims import SOLVER_TOLERANCE, best_ratios, evaluate, promises
from lrm.study.convergence import load_convergence, measure_convergence, save_convergence
from lrm.study.data import DATASETS, LENGTHS, look_alike, merge_counts, read_dataset
from lrm.study.evidence import HOLDS, IN_PART, NOT, SO_FAR, UNTESTED, Results
from lrm.study.grid import FIGURES, SCALES, PlanSpec, Setting, cells_of
from lrm.study.rows import DONE, FAILED, STOPPED, RowStore
from lrm.study.runner import run_cells
from lrm.study.simulate import simulate, simulated_release

TINY = SCALES["tiny"]
DRAWN = (3, 6, 9)


def chosen_cells():
    """Every mechanism, both kinds of figures; few points, so that it takes seconds."""
    kept = []
    for number in DRAWN:
        cells = cells_of(TINY, [number])
        ends = {cells[0].x, cells[-1].x}
        family = FIGURES[number].workloads[-1]
        kept += [c for c in cells if c.x in ends and c.plan.setting.family == family]
    return kept


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    cells = chosen_cells()
    result = run_cells(cells, folder, jobs=2, time_limit=60)
    assert result.computed == len(cells)
    assert not result.unfinished
    save_convergence(measure_convergence(TINY), folder / "convergence.json")
    return folder


def test_the_grid_is_table_1_of_the_paper():
    paper = SCALES["paper"]
    assert paper.cells == (128, 256, 512, 1024, 2048, 4096, 8192)
    assert paper.queries == (64, 128, 256, 512, 1024)
    assert (paper.default_cells, paper.default_queries, paper.repetitions) == (1024, 256, 20)
    cells = cells_of(paper)
    assert {cell.figure for cell in cells} == set(range(2, 10))
    for cell in cells:
        varied = FIGURES[cell.figure].varies
        setting, options = cell.plan.setting, dict(cell.plan.options)
        assert varied == "n" or setting.cells == 1024
        assert varied == "m" or setting.queries == 256
        if cell.label == "LRM":
            assert options["gamma"] == (cell.x if varied == "gamma" else 0.01)
            assert options["rank_ratio"] == (cell.x if varied == "rank_ratio" else 1.2)
        if setting.family == "WRelated":
            share = cell.x if varied == "s" else 0.5
            assert setting.s == round(share * min(setting.queries, setting.cells))
    assert not [c for c in cells if c.label == "AMM" and c.figure not in (4, 5, 6)]


def test_every_row_is_finished_and_says_what_it_is(finished):
    rows = RowStore(finished).load()
    assert {row.status for row in rows} == {DONE}, {row.reason for row in rows}
    for row in rows:
        assert row.simulated
        assert row.data_source == "look-alike"
        assert row.cpu_seconds > 0
        assert row.peak_memory_mb > 1
        assert "numpy" in row.versions
        assert "cores" in row.machine
        assert (row.delta > 0) == (row.noise == "gaussian")


def test_expected_and_measured_error_agree_on_every_row(finished):
    for row in RowStore(finished).load():
        assert row.agrees, row


def test_best_is_never_above_any_other_mechanism(finished):
    ratios = best_ratios(RowStore(finished).load())
    assert len(ratios) > 15
    worst = max(ratios)
    assert worst[0] <= 1 + SOLVER_TOLERANCE, worst


def test_a_second_run_computes_nothing(finished):
    before = (finished / "rows.parquet").read_bytes()
    result = run_cells(chosen_cells(), finished)
    assert (result.computed, result.kept) == (0, len(chosen_cells()))
    assert RowStore(finished).load() is not None
    assert len(before) == (finished / "rows.parquet").stat().st_size


def test_plans_are_shared_between_figures(finished):
    rows = RowStore(finished).load()
    plans = {row.plan_digest for row in rows}
    assert len(list((finished / "plans").glob("*.lrm"))) < len({row.cell for row in rows})
    assert len(plans) <= len(list((finished / "plans").glob("*.lrm")))


def test_plotting_reads_stored_rows_and_computes_nothing(finished, monkeypatch):
    monkeypatch.setattr("lrm.plans.planner.plan", None)
    result = CliRunner().invoke(main, ["study", "plot", "--out", str(finished), "--json"])
    assert result.exit_code == 0, result.output
    names = {Path(path).name for path in json.loads(result.stdout)["files"]}
    for figure in [*(f"figure{number}" for number in DRAWN), "convergence"]:
        assert {f"{figure}.svg", f"{figure}.png"} <= names
    page = (finished / "index.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == len(DRAWN) + 1
    assert "src='http" not in page
    for claim in CLAIMS:
        assert claim.sentence.split("'")[0][:30] in page


def test_every_claim_is_judged_by_rows(finished):
    result = CliRunner().invoke(main, ["study", "claims", "--out", str(finished), "--json"])
    told = json.loads(result.stdout)
    assert len(told["claims"]) >= 15
    assert {c["section"] for c in told["claims"]} == {"6.1", "6.2", "6.3", "6.4"}
    for claim in told["claims"]:
        assert claim["verdict"] in {HOLDS, SO_FAR, IN_PART, NOT, UNTESTED}
        assert claim["numbers"]
        assert bool(claim["instead"]) == (claim["verdict"] in {IN_PART, NOT})
    assert all(promise["kept"] for promise in told["promises"])


def test_changed_rows_change_verdicts(finished):
    rows = RowStore(finished).load()
    lowered = [
        replace(row, error_expected=row.error_expected * (1e-4 if row.label == "LRM" else 1))
        for row in rows
    ]
    claims = {c.sentence: c for c in evaluate(Results(lowered))}
    related = next(c for s, c in claims.items() if "WRelated LRM is the best" in s)
    assert related.verdict == SO_FAR  # five of seven n have no rows
    raised = [
        replace(row, error_expected=row.error_expected * (1e4 if row.label == "LRM" else 1))
        for row in rows
    ]
    claims = {c.sentence: c for c in evaluate(Results(raised))}
    related = next(c for s, c in claims.items() if "WRelated LRM is the best" in s)
    assert related.verdict == NOT
    assert related.best
    assert not promises(Results([replace(r, error_measured=math.inf) for r in rows]))[0].kept


def test_a_killed_run_resumes(tmp_path):
    """Kill the real command while it works, and go on."""
    command = [sys.executable, "-m", "lrm", "study", "run", "--scale", "tiny", "--figures", "7"]
    command += ["--out", str(tmp_path), "--json"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    parts = tmp_path / "parts"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (parts.is_dir() and len(list(parts.iterdir())) > 2):
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    first.stderr.close()
    stored = {row.cell for row in RowStore(tmp_path).load()}
    assert stored
    done = subprocess.run(command, capture_output=True, check=True)
    facts = json.loads(done.stdout)
    assert facts["kept"] >= len(stored)
    assert facts["kept"] + facts["computed"] == len(cells_of(TINY, [7]))
    assert facts["failed"] == 0
    assert not list(parts.glob("*"))


def test_a_failed_cell_is_a_row_with_its_reason(tmp_path):
    cell = cells_of(TINY, [4])[0]
    wrong = replace(cell, plan=PlanSpec(cell.plan.setting, "lowrank", (("gamma", -1.0),)))
    run_cells([wrong, cells_of(TINY, [4])[1]], tmp_path)
    failed, *fine = sorted(RowStore(tmp_path).load(), key=lambda row: row.status != FAILED)
    assert "gamma must be above 0" in failed.reason
    assert {row.status for row in fine} == {DONE}
    again = run_cells([wrong], tmp_path)
    assert (again.computed, again.kept) == (0, 1)
    assert run_cells([wrong], tmp_path, retry=True).computed == 1


def test_a_cell_that_does_not_fit_is_named_with_its_estimate(tmp_path):
    cells = [c for c in cells_of(SCALES["paper"], [4]) if c.label == "LRM" and c.x == 128]
    run_cells(cells, tmp_path, time_limit=0.5)
    (row,) = RowStore(tmp_path).load()
    assert row.status == STOPPED
    assert row.estimated_seconds > 0.5
    assert "0.5 s" in row.reason


def test_a_plan_far_beyond_its_limit_is_named_and_not_begun(tmp_path):
    small = [c for c in cells_of(TINY, [4, 5]) if c.label == "AMM"]
    large = [c for c in cells_of(SCALES["paper"], [4]) if c.label == "AMM" and c.x == 8192]
    run_cells([*small, *large], tmp_path, time_limit=60)
    rows = {row.cell: row for row in RowStore(tmp_path).load()}
    assert all(rows[cell.key].status == DONE for cell in small)
    for cell in large:
        assert rows[cell.key].status == STOPPED
        assert rows[cell.key].reason.startswith("not begun")
        assert rows[cell.key].estimated_seconds > 180


def test_a_run_whose_time_is_over_names_what_is_left(tmp_path):
    command = ["study", "run", "--scale", "tiny", "--figures", "5", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, [*command, "--time-budget", "0.001", "--json"])
    told = json.loads(result.stdout)
    assert len(told["unfinished"]) >= len(cells_of(TINY, [5])) - 1


def test_simulated_noise_has_the_stated_error_and_is_stamped():
    made = plan(Setting("WRange", 8, 16).workload(), "hierarchical")
    counts, rng = np.arange(16), np.random.default_rng(3)
    result = simulate(made, counts, "0.5", repetitions=2000, rng=rng)
    assert result.simulated
    assert abs(result.measured / result.expected - 1) < 0.1
    assert result.agrees
    release = simulated_release(made, made.measured.measure(counts), 1, None, rng)
    assert release.simulated
    assert "SIMULATED" in repr(release)


def test_the_bias_of_the_relaxed_program_is_part_of_its_error():
    made = plan(
        Setting("WRange", 8, 16).workload(), "lowrank", rank_ratio=0.8, exact=False, gamma=0.01
    )
    counts = look_alike("search_log").merged(16)
    rng = np.random.default_rng(3)
    result = simulate(made, counts, "1", repetitions=200, rng=rng)
    assert result.bias_squared > 0.5 * result.expected
    assert result.agrees


@pytest.mark.parametrize("name", DATASETS)
def test_look_alikes_have_the_papers_lengths_and_are_the_same_every_time(name):
    one, other = look_alike(name), look_alike(name)
    assert len(one.counts) == LENGTHS[name]
    assert np.array_equal(one.counts, other.counts)
    assert one.counts.min() == 0
    for cells in (8192, 1000, 128):
        assert merge_counts(one.counts, cells).sum() == one.counts.sum()


def test_real_files_are_read_and_named_without_their_folder(tmp_path):
    path = tmp_path / "searches.txt"
    path.write_text("3\n0\n5\n")
    data = read_dataset("search_log", str(path))
    assert data.counts.tolist() == [3, 0, 5]
    assert data.source.startswith("searches.txt")
    path.write_text("2\n1\n1\n0\n")
    assert read_dataset("social_network", str(path)).counts.tolist() == [1, 2, 1, 0]
    with pytest.raises(CountsError):
        data.merged(4)
    for wrong in ("1\nx\n", "", "-1\n"):
        path.write_text(wrong)
        with pytest.raises(FileFormatError):
            read_dataset("net_trace", str(path))


def test_convergence_is_stored_and_read_back(finished):
    stored = load_convergence(finished / "convergence.json")
    assert stored is not None
    assert set(stored.exponents()) == {"r", "m", "n"}
    for trace in stored.traces:
        assert trace.residual[-1] <= 0.01
        assert len(trace.beta) == len(trace.objective) == len(trace.residual)
    found = stored.findings(Results(RowStore(finished).load()))
    assert [finding.verdict != UNTESTED for _, finding in found].count(True) >= 3
