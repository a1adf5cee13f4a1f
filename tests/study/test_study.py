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
from scipy.stats import chi2

from lrm.errors import CountsError, FileFormatError, StopSolver
from lrm.planning.plan.planner import plan
from lrm.privacy.bodies.split import SplitHull
from lrm.privacy.bodies.tables import Tables
from study import worker
from study.claim_list import CLAIMS
from study.claims import SOLVER_TOLERANCE, best_ratios, evaluate, promises
from study.commands import main
from study.convergence import load_convergence, measure_convergence, save_convergence
from study.data import DATASETS, LENGTHS, look_alike, merge_counts, read_dataset
from study.evidence import HOLDS, IN_PART, NOT, SO_FAR, UNTESTED, Results
from study.grid import FIGURES, SCALES, PlanSpec, Setting, cases_of
from study.rows import DONE, FAILED, STOPPED, RowStore
from study.runner import run_cases
from study.shaped_noise import ShapedSpread, simulated_noise
from study.simulate import (
    FALSE_ALARM,
    error_spread,
    simulate,
    simulated_release,
    tolerance,
)

TINY = SCALES["tiny"]
DRAWN = (3, 6, 9)


def chosen_cases():
    """Every mechanism, both kinds of figures; few points, so that it takes seconds."""
    kept = []
    for number in DRAWN:
        cases = cases_of(TINY, [number])
        ends = {cases[0].x, cases[0 if number == 6 else -1].x}
        family = FIGURES[number].workloads[-1]
        chosen = [c for c in cases if c.x in ends and c.plan.setting.family == family]
        # hulls of eight dimensions take seconds
        kept += [c for c in chosen if c.label != "shaped" or c.plan.setting.s < 8]
    return kept


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    cases = chosen_cases()
    result = run_cases(cases, folder, jobs=2, time_limit=60)
    assert result.computed == len(cases)
    assert not result.unfinished
    save_convergence(measure_convergence(TINY), folder / "convergence.json")
    return folder


def test_the_grid_is_table_1_of_the_paper():
    paper = SCALES["paper"]
    assert paper.cells == (128, 256, 512, 1024, 2048, 4096, 8192)
    assert paper.queries == (64, 128, 256, 512, 1024)
    assert (paper.default_cells, paper.default_queries, paper.repetitions) == (1024, 256, 20)
    cases = cases_of(paper)
    assert {case.figure for case in cases} == set(range(2, 10))
    for case in cases:
        varied = FIGURES[case.figure].varies
        setting, options = case.plan.setting, dict(case.plan.options)
        assert varied == "n" or setting.cells == 1024
        assert varied == "m" or setting.queries == 256
        if case.label == "LRM":
            assert options["gamma"] == (case.x if varied == "gamma" else 0.01)
            assert options["rank_ratio"] == (case.x if varied == "rank_ratio" else 1.2)
        if setting.family == "WRelated":
            share = case.x if varied == "s" else 0.5
            assert setting.s == round(share * min(setting.queries, setting.cells))
    assert not [c for c in cases if c.label == "AMM" and c.figure not in (4, 5, 6)]


def test_shaped_noise_has_a_series_where_hulls_are_tried():
    assert not [case for case in cases_of(SCALES["paper"]) if case.label == "shaped"]
    quick = [case for case in cases_of(SCALES["quick"]) if case.label == "shaped"]
    assert {case.figure for case in quick} == {6, 8, 9}
    assert max(case.plan.setting.s for case in quick) == 22  # the next one is 26
    assert [case.x for case in quick if case.figure == 9] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]


def test_the_series_of_shaped_noise_is_pure_and_never_above_best(finished):
    rows = RowStore(finished).load()
    laplace = {(r.figure, r.x, r.data): r.error_expected for r in rows if r.label == "best"}
    shaped = [row for row in rows if row.label == "shaped"]
    assert {row.noise for row in shaped} == {"laplace", "shaped"}  # rank 1: nothing is better
    for row in shaped:
        least = laplace[row.figure, row.x, row.data]
        assert row.error_expected <= least * (0.9 if row.noise == "shaped" else 1 + 1e-6)


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
    assert len(ratios) > 10
    worst = max(ratios)
    assert worst[0] <= 1 + SOLVER_TOLERANCE, worst


def test_a_second_run_computes_nothing(finished):
    before = RowStore(finished).load()
    result = run_cases(chosen_cases(), finished)
    assert (result.computed, result.kept) == (0, len(chosen_cases()))
    assert repr(RowStore(finished).load()) == repr(before)  # NaN is not equal to itself


def test_plans_are_shared_between_figures(finished):
    rows = RowStore(finished).load()
    plans = {row.plan_digest for row in rows}
    assert len(list((finished / "plans").glob("*.lrm"))) < len({row.case for row in rows})
    assert len(plans) <= len(list((finished / "plans").glob("*.lrm")))


def test_plotting_reads_stored_rows_and_computes_nothing(finished, monkeypatch):
    for planner in ("lrm.planning.plan.planner.plan", "study.worker.plan"):
        monkeypatch.setattr(planner, None)
    result = CliRunner().invoke(main, ["plot", "--out", str(finished), "--json"])
    assert result.exit_code == 0, result.output
    names = {Path(path).name for path in json.loads(result.stdout)["files"]}
    for figure in [*(f"figure{number}" for number in DRAWN), "shaped", "convergence"]:
        assert f"{figure}.svg" in names
    page = (finished / "index.md").read_text(encoding="utf-8")
    assert page.count("](figures/") == len(DRAWN) + 2
    for claim in CLAIMS:
        assert claim.sentence.split("'")[0][:30] in page


def test_every_claim_is_judged_by_rows(finished):
    result = CliRunner().invoke(main, ["claims", "--out", str(finished), "--json"])
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


def verdict_on(sentence, rows):
    return next(c.verdict for c in evaluate(Results(rows)) if sentence in c.sentence)


def test_a_verdict_says_on_how_many_points_it_rests(finished):
    rows = [row for row in RowStore(finished).load() if row.figure == 9]
    for claim in evaluate(Results(rows)):
        if claim.verdict in {HOLDS, SO_FAR, IN_PART, NOT}:
            assert ("have no finished rows" in claim.numbers) == (claim.verdict != HOLDS)
    assert verdict_on("s is exactly the rank", rows) == SO_FAR  # two of its ten s were run
    wrong = [replace(row, rank=row.rank + 1) for row in rows]
    assert verdict_on("s is exactly the rank", wrong) == NOT
    unsettled = [replace(row, converged=False) for row in rows]
    told = next(c for c in evaluate(Results(unsettled)) if "grows rapidly" in c.sentence)
    assert told.verdict == UNTESTED or "did not converge" in told.numbers


def test_the_bias_of_the_relaxed_program_refutes_what_the_paper_says_of_epsilon(finished):
    rows = [row for row in RowStore(finished).load() if row.figure == 3]
    assert verdict_on("quadratic in 1/ε", rows) == IN_PART
    unbiased = [
        replace(row, error_expected=(row.error_expected - row.bias_squared) or 1.0) for row in rows
    ]
    assert verdict_on("quadratic in 1/ε", unbiased) == SO_FAR


def test_a_killed_run_resumes(tmp_path):
    """Kill the real command while it works, and go on."""
    command = [sys.executable, "-m", "study", "run", "--scale", "tiny", "--figures", "7"]
    command += ["--out", str(tmp_path), "--json"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    parts = tmp_path / "parts"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (parts.is_dir() and len(list(parts.iterdir())) > 2):
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    first.stderr.close()
    stored = {row.case for row in RowStore(tmp_path).load()}
    assert stored
    done = subprocess.run(command, capture_output=True, check=True)
    facts = json.loads(done.stdout)
    assert facts["kept"] >= len(stored)
    assert facts["kept"] + facts["computed"] == len(cases_of(TINY, [7]))
    assert facts["failed"] == 0
    assert not list(parts.glob("*"))


def test_a_failed_cell_is_a_row_with_its_reason(tmp_path):
    case = cases_of(TINY, [4])[0]
    wrong = replace(case, plan=PlanSpec(case.plan.setting, "lowrank", (("gamma", -1.0),)))
    run_cases([wrong, cases_of(TINY, [4])[1]], tmp_path)
    failed, *fine = sorted(RowStore(tmp_path).load(), key=lambda row: row.status != FAILED)
    assert "gamma must be above 0" in failed.reason
    assert {row.status for row in fine} == {DONE}
    again = run_cases([wrong], tmp_path)
    assert (again.computed, again.kept) == (0, 1)
    assert run_cases([wrong], tmp_path, retry=True).computed == 1


def test_a_cell_that_does_not_fit_is_named_with_its_estimate(tmp_path):
    cases = [c for c in cases_of(SCALES["paper"], [4]) if c.label == "LRM" and c.x == 128]
    run_cases(cases, tmp_path, time_limit=0.5)
    (row,) = RowStore(tmp_path).load()
    assert row.status == STOPPED
    assert row.estimated_seconds > 0.5
    assert "0.5 s" in row.reason


def test_a_plan_far_beyond_its_limit_is_named_and_not_begun(tmp_path):
    small = [c for c in cases_of(TINY, [4, 5]) if c.label == "AMM"]
    large = [c for c in cases_of(SCALES["paper"], [4]) if c.label == "AMM" and c.x == 8192]
    told = []
    run_cases([*small, *large], tmp_path, time_limit=60, on_progress=told.append)
    assert [progress.done for progress in told] == list(range(1, 1 + len(told)))
    assert {progress.total for progress in told} == {len(told)}
    assert told[-1].seconds_left == 0
    assert told[-2].seconds_left == 0  # what will not be begun takes no time
    rows = {row.case: row for row in RowStore(tmp_path).load()}
    assert all(rows[case.key].status == DONE for case in small)
    for case in large:
        assert rows[case.key].status == STOPPED
        assert rows[case.key].reason.startswith("not begun")
        assert rows[case.key].estimated_seconds > 180


def test_a_run_whose_time_is_over_names_what_is_left(tmp_path):
    command = ["run", "--scale", "tiny", "--figures", "5", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, [*command, "--time-budget", "0.001", "--json"])
    told = json.loads(result.stdout)
    assert len(told["unfinished"]) >= len(cases_of(TINY, [5])) - 1


def test_simulated_noise_has_the_stated_error_and_is_stamped():
    made = plan(Setting("WRange", 8, 16).workload(), "hierarchical")
    counts, rng = np.arange(16), np.random.default_rng(3)
    result = simulate(made, counts, "0.5", repetitions=2000, rng=rng)
    assert result.simulated
    assert abs(result.measured / result.expected - 1) < 0.1
    assert result.agrees
    release = simulated_release(
        made, made.measured.measure(made.measured.counts_of(counts)), 1, None, rng
    )
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
    for wrong, told in (
        ("1\nx\n", "line 2"),
        ("", "no line"),
        ("-1\n", "line 1"),
        ("1 2\n", "line 1"),
        ("9007199254740992\n1\n", "total"),
    ):
        path.write_text(wrong)
        with pytest.raises(FileFormatError, match=told):
            read_dataset("net_trace", str(path))
    path.write_text("2\n0\n")
    with pytest.raises(FileFormatError, match="2 lines and a degree of 2"):
        read_dataset("social_network", str(path))


def test_convergence_is_stored_and_read_back(finished):
    stored = load_convergence(finished / "convergence.json")
    assert stored is not None
    assert set(stored.exponents()) == {"r", "m", "n"}
    for trace in stored.traces:
        assert trace.residual[-1] <= 0.01
        assert len(trace.beta) == len(trace.objective) == len(trace.residual)
    found = stored.findings(Results(RowStore(finished).load()))
    assert [finding.verdict != UNTESTED for _, finding in found].count(True) >= 3


def invoke(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


def quick_cases(label="LM", number=4):
    return [case for case in cases_of(TINY, [number]) if case.label == label]


def test_the_page_names_what_a_stopped_run_left(tmp_path):
    run_cases(quick_cases(), tmp_path)
    assert invoke("plot", "--out", tmp_path).exit_code == 0
    page = (tmp_path / "index.md").read_text(encoding="utf-8")
    missing = len(cases_of(TINY, [4])) - len(quick_cases())
    assert f"{missing} cases have no result" in page
    assert f"Points without a result: {missing}." in page


def test_a_folder_keeps_to_one_scale_and_one_set_of_data(tmp_path):
    run_cases(quick_cases(), tmp_path)
    before = RowStore(tmp_path).load()
    result = invoke("run", "--scale", "quick", "--figures", "4", "--out", tmp_path)
    assert result.exit_code == 2
    assert "holds rows of the scale tiny" in result.stderr
    real = tmp_path / "real.txt"
    real.write_text("7\n" * 64)
    command = ["run", "--scale", "tiny", "--figures", "4", "--data", f"search_log={real}"]
    result = invoke(*command, "--out", tmp_path)
    assert result.exit_code == 2
    assert "from look-alike, but real.txt" in result.stderr
    assert repr(RowStore(tmp_path).load()) == repr(before)


def test_two_runs_do_not_share_a_folder(tmp_path):
    with RowStore(tmp_path).locked():
        result = invoke("run", "--scale", "tiny", "--figures", "4", "--out", tmp_path)
    assert result.exit_code == 1
    assert "another run is at work" in result.stderr
    with RowStore(tmp_path).locked():
        pass


def test_rows_that_come_while_others_are_put_together_stay(tmp_path, monkeypatch):
    run_cases(quick_cases(), tmp_path)
    store, row = RowStore(tmp_path), RowStore(tmp_path).load()[0]
    store.append("one", [replace(row, case="one")])
    really = RowStore.load

    def and_another(self):
        rows = really(self)
        store.append("two", [replace(row, case="two")])
        return rows

    monkeypatch.setattr(RowStore, "load", and_another)
    store.compact()
    monkeypatch.undo()
    assert {"one", "two"} <= {row.case for row in store.load()}


@pytest.mark.parametrize("suffix", ["lrm", "json"])
def test_a_damaged_plan_in_the_cache_is_made_again(tmp_path, suffix):
    run_cases(quick_cases(), tmp_path)
    for path in (tmp_path / "plans").glob(f"*.{suffix}"):
        path.write_text("x")
    (tmp_path / "rows.parquet").unlink()
    run_cases(quick_cases(), tmp_path)
    assert {row.status for row in RowStore(tmp_path).load()} == {DONE}


def test_a_plan_that_was_ended_from_outside_is_not_kept(tmp_path, monkeypatch):
    def interrupted(self, step):
        raise StopSolver

    monkeypatch.setattr(worker._Clock, "__call__", interrupted)
    case = quick_cases("LRM")[-1]
    context = worker.Context(str(tmp_path), (), None, None, "", "", "")
    ((_, (row,)),) = worker.work(worker.Task(case.plan, (case,)), context)
    assert row.status == FAILED
    assert not list(tmp_path.glob("*"))


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1", "soon"])
def test_limits_are_numbers_of_seconds(tmp_path, seconds):
    result = invoke("run", "--scale", "tiny", "--time-limit", seconds, "--out", tmp_path / "new")
    assert result.exit_code == 2
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_told_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("here")
    result = invoke("run", "--scale", "tiny", "--figures", "4", "--out", tmp_path / "file")
    assert result.exit_code == 1
    assert "choose another --out" in result.stderr
    assert "error in lrm itself" not in result.stderr


def test_a_damaged_convergence_is_told_before_anything_is_drawn(tmp_path):
    run_cases(quick_cases(), tmp_path)
    (tmp_path / "convergence.json").write_text("{}")
    result = invoke("plot", "--out", tmp_path)
    assert result.exit_code == 1
    assert "convergence.json" in result.stderr
    assert not (tmp_path / "figures").exists()


def test_a_data_file_of_too_few_lines_is_told_before_any_work(tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("1\n2\n")
    command = ["run", "--scale", "tiny", "--data", f"net_trace={short}", "--out", tmp_path / "new"]
    result = invoke(*command)
    assert result.exit_code == 1
    assert "has 2 lines" in result.stderr
    result = invoke(*command, "--data", f"net_trace={short}")
    assert result.exit_code == 2
    assert "twice" in result.stderr
    assert not (tmp_path / "new").exists()


def test_a_broken_promise_has_an_exit_code(tmp_path):
    run_cases(quick_cases(), tmp_path)
    rows = RowStore(tmp_path).load()
    assert [promise.kept for promise in promises(Results(rows))] == [True, None]
    RowStore(tmp_path).append(rows[0].case, [replace(rows[0], error_measured=1e99)])
    result = invoke("claims", "--out", tmp_path)
    assert result.exit_code == 1
    assert "BROKEN: Expected and measured" in result.stdout


def test_the_upper_tolerance_of_a_single_query_is_beyond_its_chi_square_law():
    made = plan(np.ones((1, 6)), "noise-on-data", noise="gaussian")
    spread = error_spread(made)
    assert spread.largest == pytest.approx(1.0)
    _, high = tolerance(1.0, spread.relative, spread, 20)
    assert chi2.sf(20 * high, 20) < FALSE_ALARM


def test_the_upper_tolerance_is_rarely_passed_by_laplace_noise():
    """Noise on data under one query that all cells share: the heaviest tail of the grid."""
    made = plan(np.ones((1, 6)), "noise-on-data")
    spread, rng = error_spread(made), np.random.default_rng(5)
    _, high = tolerance(1.0, spread.relative, spread, 20)
    noise = rng.laplace(size=(100_000, 20, 6)).sum(axis=2)
    means = np.square(noise).mean(axis=1) / 12  # six variables of variance 2
    assert np.mean(means) == pytest.approx(1.0, rel=0.01)
    assert np.count_nonzero(means > high) == 0
    assert np.count_nonzero(means > 1 + (high - 1) / 2) > 0  # and it is not out of the world


def test_the_tolerance_of_shaped_noise_is_rarely_passed():
    """The disc, whose directions all have the same error: the law of its squared error is known."""
    spread, rng = ShapedSpread(2, np.array([1 / 6]), np.ones(1)), np.random.default_rng(5)
    low, high = spread.limits(20, FALSE_ALARM)
    means = np.square(rng.standard_gamma(2, size=(100_000, 20))).mean(axis=1) / 6
    assert np.mean(means) == pytest.approx(1.0, rel=0.01)
    assert np.count_nonzero((means < low) | (means > high)) == 0
    often, seldom = spread.limits(20, 0.01)
    assert 10 < np.count_nonzero(means < often) < 1000  # a bound, and not out of the world
    assert 10 < np.count_nonzero(means > seldom) < 1000


def test_noise_of_a_split_hull_is_not_from_the_sample_that_states_its_errors():
    side = Tables((1,), (False,), 4)
    hull = SplitHull(np.array([[4, 0], [0, 4], [3, 3]]), (side, side), (0, 1))
    rng = np.random.default_rng(5)
    draws = np.array([simulated_noise(hull, rng) for _ in range(2000)])
    assert np.cov(draws.T) == pytest.approx(hull.covariance, rel=0.2)
    slopes = hull.directions[:, 1] / hull.directions[:, 0]
    assert not np.isin(draws[:, 1] / draws[:, 0], slopes).any()
