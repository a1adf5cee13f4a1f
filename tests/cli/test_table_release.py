"""Releases from a table: paid for, checked before, nothing lost that need not be."""

from fractions import Fraction
from pathlib import Path

import pytest

import lrm
from lrm.errors import FileFormatError
from lrm.releases import Release
from lrm.tables.duckdb_table import DuckDbTable
from visits import GAUSSIAN, RELEASE, fits, refused

pytestmark = pytest.mark.usefixtures("visits_files")


def test_release_from_a_table(released, ledger, run, run_json):
    assert ledger.remaining("visits") == Fraction(1, 2)
    assert fits(released.stdout)
    release = lrm.load_release("out.lrm")
    assert release.unit.max_rows == 2
    run_json("budget", "verify", "--ledger", "l.sqlite", "--expected-head", release.ledger_head)
    assert run_json("show", "out.lrm")["provenance"]["ledger_head"] == release.ledger_head


def test_gaussian_release_from_a_table(run_json, planned, ledger):
    facts = run_json(*GAUSSIAN, "--rho", "0.1", "--budget", "shared", "-o", "out.lrm")
    assert Fraction(facts["privacy"]["loss"]["exact"]) == ledger.budget("shared").spent
    assert facts["mechanism"]["noise"]["distribution"] == "discrete Gaussian"


def test_dry_run_tells_all_and_touches_nothing(run, run_json, planned, ledger, monkeypatch):
    def counts(*args):
        raise AssertionError("a row was read")

    monkeypatch.setattr(DuckDbTable, "counts", counts)
    before = ledger.head(), sorted(Path().iterdir())
    result = run(*RELEASE, "--epsilon", "0.4", "--dry-run")
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    assert "would spend 0.4 epsilon from the budget of 'visits'" in shown
    assert "would leave 0.6 of 1 epsilon" in shown
    assert "nothing was spent, and no row was read" in shown
    assert fits(result.stdout)
    facts = run_json(*RELEASE, "--epsilon", "0.4", "--dry-run")
    assert facts["budget"]["remaining_after"] == "3/5"
    expected = run_json("explain", "plan.lrm", "--epsilon", "0.4")
    assert facts["queries"] == expected["queries"]
    assert (ledger.head(), sorted(Path().iterdir())) == before


def test_dry_run_without_a_ledger_and_in_rho(run, run_json, planned, ledger):
    args = ("release", "gauss.lrm", "--table", "visits.csv", "--dry-run", "--rho", "0.25")
    assert "which no ledger would record" in run(*args).stdout
    facts = run_json(*args, "--ledger", "l.sqlite", "--budget", "shared")
    assert float(Fraction(facts["budget"]["cost"])) == pytest.approx(0.25)
    refused(run(*args, "--ledger", "l.sqlite"), 1, "pure releases only")


WRONG = {
    "too much": (("--epsilon", "2"), 1, ("1 epsilon left", "costs 2")),
    "no such budget": (("--epsilon", "0.5", "--budget", "people"), 1, ("no budget",)),
    "delta": (("--epsilon", "0.5", "--delta", "1e-6"), 2, ("epsilon alone",)),
    "rho": (("--rho", "0.5"), 2, ("epsilon alone",)),
    "no amount": ((), 2, ("epsilon",)),
    "zero": (("--epsilon", "0"), 2, ("epsilon",)),
    "confidence": (("--epsilon", "0.5", "--confidence", "1"), 2, ("confidence",)),
    "neighbours": (("--epsilon", "0.5", "--neighbours", "substitute"), 2, ("the domain protects",)),
    "max rows": (("--epsilon", "0.5", "--max-rows", "1"), 2, ("the domain protects",)),
    "both payers": (("--epsilon", "0.5", "--no-ledger"), 2, ("--no-ledger contradicts",)),
    "both sources": (("--epsilon", "0.5", "--counts", "c.csv"), 2, ("--table", "--counts")),
    "csv over table": (("--epsilon", "0.5", "--csv", "visits.csv", "--force"), 2, ("same file",)),
    "csv over ledger": (("--epsilon", "0.5", "--csv", "l.sqlite", "--force"), 2, ("same file",)),
    "no folder": (("--epsilon", "0.5", "--csv", "none/a.csv"), 1, ("its folder does not exist",)),
}


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize("kind", WRONG)
def test_wrong_releases_cost_nothing(run, planned, ledger, kind, dry):
    args, code, words = WRONG[kind]
    refused(run(*RELEASE, *args, "-o", "out.lrm", *dry), code, *words)
    assert ledger.remaining("visits") == 1
    assert not Path("out.lrm").exists()
    assert Path("visits.csv").read_text().startswith("patient")


TABLES = {
    "missing": ("none.csv", 1, ("none.csv",)),
    "other columns": ("other.csv", 1, ("'state'",)),
    "unknown kind": ("visits.txt", 1, ("visits.txt",)),
    "damaged": ("bad.parquet", 1, ("bad.parquet",)),
    "no database": ("none.duckdb::visits", 1, ("none.duckdb",)),
    "empty": ("empty.csv", 1, ("empty",)),
}


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize("kind", TABLES)
def test_wrong_tables_cost_nothing(run, planned, ledger, kind, dry):
    table, code, words = TABLES[kind]
    Path("other.csv").write_text("patient,land,age\np1,NY,8213\n")
    Path("bad.parquet").write_bytes(b"PAR1 8213")
    Path("empty.csv").write_text("")
    Path("visits.txt").write_text("8213")
    args = ("release", "plan.lrm", "--table", table, "--ledger", "l.sqlite", "--epsilon", "0.5")
    result = run(*args, "-o", "out.lrm", *dry)
    refused(result, code, *words)
    assert "8213" not in result.output
    assert ledger.remaining("visits") == 1
    assert not Path("out.lrm").exists()


def test_a_matrix_plan_takes_no_table_and_counts_name_no_budget(run, plan_file, ledger):
    args = ("release", "plan.lrm", "--epsilon", "0.5", "-o", "out.lrm", "--ledger", "l.sqlite")
    refused(run(*args, "--table", "visits.csv"), 2, "no domain")
    refused(run(*args, "--counts", "c.csv"), 2, "--budget")
    refused(run(*args[:-2], "--counts", "c.csv", "--no-ledger", "--budget", "b"), 2, "--ledger")
    refused(run(*args[:4], "--table", "visits.csv", "--no-ledger"), 2, "-o")
    Path("c.csv").write_text("1\n2\n3\n4\n")
    refused(run(*args, "--counts", "c.csv", "--budget", "visits"), 1, "protects one row, added")
    ledger.create("rows", 1)
    done = run(*args, "--counts", "c.csv", "--budget", "rows")
    assert done.exit_code == 0, done.output
    assert (ledger.remaining("rows"), ledger.remaining("visits")) == (Fraction(1, 2), 1)


def test_the_ledger_may_come_from_the_environment(run, planned, ledger, monkeypatch):
    monkeypatch.setenv("LRM_LEDGER", "l.sqlite")
    args = ("release", "plan.lrm", "--table", "visits.csv", "--epsilon", "0.5", "-o", "out.lrm")
    assert run(*args).exit_code == 0
    assert ledger.remaining("visits") == Fraction(1, 2)


def test_a_release_that_cannot_be_saved_is_saved_elsewhere(run, planned, ledger, monkeypatch):
    """A disk that fills up between the check and the end must not waste what was paid."""
    really = Release.save

    def save(self, path):
        if str(path) == "out.lrm":
            raise FileFormatError("cannot write out.lrm: the disk is full")
        really(self, path)

    monkeypatch.setattr(Release, "save", save)
    result = run(*RELEASE, "--epsilon", "0.5", "-o", "out.lrm")
    refused(result, 1, "the disk is full", "was saved to")
    place = result.stderr.split("was saved to ")[1].split(" instead")[0]
    assert lrm.load_release(place).names[0] == "n[state=NY]"
    Path(place).unlink()
    Path(place).parent.rmdir()


def test_a_file_of_an_older_format_is_refused(run, released, monkeypatch):
    from lrm.releases import file as release_file

    old, new = release_file.VERSION, release_file.VERSION + 1
    monkeypatch.setattr(release_file, "VERSION", new)
    refused(run("show", "out.lrm"), 1, f"has format version {old}, not {new}", "older", "again")


def test_a_release_that_was_saved_is_a_success_whatever_its_view_does(
    run, planned, ledger, monkeypatch
):
    def fails(*args):
        raise ZeroDivisionError("8213")

    monkeypatch.setattr("lrm.views.release_document.release_document", fails)
    result = run(*RELEASE, "--epsilon", "0.1", "-o", "out.lrm")
    assert result.exit_code == 0
    assert "saved to out.lrm" in result.stderr
    assert "cannot be shown here (ZeroDivisionError)" in result.stderr
    assert "8213" not in result.output
    assert len(lrm.load_release("out.lrm").answers)


@pytest.mark.parametrize(
    ("table", "output"),
    [
        ("visits=visits.csv", "visits.csv"),
        ("./vis*.csv", "visits.csv"),
        ("parts", "parts/year=2024/x.lrm"),
        ("visits=parts/**/*.parquet", "parts/year=2024/a.parquet"),
    ],
)
def test_no_output_replaces_a_file_of_a_table(run, planned, ledger, table, output):
    Path("parts/year=2024").mkdir(parents=True)
    Path("parts/year=2024/a.parquet").write_bytes(b"rows")
    args = ("--table", table, "--ledger", "l.sqlite", "--epsilon", "0.5", "-o", output, "--force")
    refused(run("release", "plan.lrm", *args), 2, "same file")
    assert ledger.remaining("visits") == 1
    assert Path("visits.csv").read_text().startswith("patient")
