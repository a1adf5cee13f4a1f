"""Wrong input of many kinds: the right exit code, one sentence, nothing half-written."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lrm.errors import FileFormatError

COUNTS = (8213, 7411, 9127, 6521)
"""What the fixture's counts file holds: numbers that no message may show."""

RELEASE = ("release", "plan.lrm", "--counts", "counts.csv", "--epsilon", "0.5", "-o", "out.lrm")


def names():
    """What stands in the folder."""
    return sorted(path.name for path in Path().iterdir())


def refused(result, code, *words):
    """The command ended with ``code`` and one sentence that holds ``words``."""
    assert result.exit_code == code, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("lrm: ")
    assert "Traceback" not in result.output
    for word in words:
        assert word in lines[0], lines[0]
    for count in COUNTS:
        assert str(count) not in result.output


CSVS = {
    "ragged": ("1,0,1\n1,0\n", 2, ("line 2", "2 fields", "3")),
    "word": ("1,0,1\n1,x,1\n", 2, ("line 2", "column 2", "not a number")),
    "missing": ("1,0,1\n1,,1\n", 2, ("line 2", "column 2", "empty")),
    "nan": ("1,0\n1,nan\n", 2, ("line 2", "column 2", "finite")),
    "infinite": ("1,0\n1,-inf\n", 2, ("line 2", "finite")),
    "mixed header": ("a,1,b\n1,0,1\n", 2, ("line 1", "column 3")),
    "mixed names": ("a,1,0\n1,0,1\n", 2, ("line 1", "not begin with a number")),
    "number as corner": ("1,x\n1,0\n", 2, ("line 1", "column 2")),
    "header only": ("a,b,c\n", 2, ("no query",)),
    "empty": ("", 2, ("empty",)),
    "blank": ("\n \n,,\n", 2, ("empty",)),
    "wrong separator": ("1;0;1\n1;1;0\n", 2, ("separator",)),
    "same names": ("a,1,0\na,0,1\n", 2, ("lines 1 and 2", "same name")),
    "huge": ("1e300,1\n", 2, ("scale",)),
    "open quote": ('1,"0\n1,1\n', 1, ("CSV",)),
}


@pytest.mark.parametrize("kind", CSVS)
def test_broken_csv_workloads(run, kind):
    text, code, words = CSVS[kind]
    Path("w.csv").write_text(text)
    refused(run("plan", "w.csv", "-o", "out.lrm"), code, "w.csv", *words)
    assert names() == ["w.csv"]


FAMILIES = {
    "prefix": ("prefix:CELLS",),
    "prefix:": ("prefix:CELLS",),
    "prefix:0": ("between 1",),
    "prefix:-3": ("whole numbers",),
    "prefix:3.5": ("whole numbers",),
    "prefix:64x2": ("prefix:CELLS",),
    "wrange:64": ("wrange:QUERIESxCELLS",),
    "wrange:64x128:seed=x": ("seed=x",),
    "wrange:64x128:sed=1": ("sed=1",),
    "wrange:64x128:seed=1:seed=2": ("seed=2",),
    "wdiscrete:9999999x9999999": ("weights",),
    "prefix:99999999999999": ("between",),
    "width-ranges:4x9": ("width",),
    "width-ranges:67108864x2": ("67,108,863 ranges",),
    "nothing": ("neither a file",),
    "nothing:64": ("neither a file",),
    "table.xlsx": (".parquet",),
}


@pytest.mark.parametrize("spelling", FAMILIES)
def test_wrong_families(run, spelling):
    refused(run("plan", spelling), 2, *FAMILIES[spelling])


def test_files_that_are_not_what_they_say(run, in_folder):
    (in_folder / "w.npy").write_bytes(os.urandom(64))
    refused(run("plan", "w.npy"), 1, "w.npy", "damaged")
    (in_folder / "w.npz").write_bytes(b"PK\x03\x04" + bytes(40))
    refused(run("plan", "w.npz"), 1, "w.npz", "damaged")
    (in_folder / "w.parquet").write_bytes(b"PAR1 and nothing more")
    refused(run("plan", "w.parquet"), 1, "w.parquet", "Parquet")
    (in_folder / "w.csv").write_bytes(b"\xff\xfe\x00\x81")
    refused(run("plan", "w.csv"), 1, "w.csv", "UTF-8")
    refused(run("plan", "missing.csv"), 1, "missing.csv", "check the name")
    (in_folder / "folder.csv").mkdir()
    refused(run("plan", "folder.csv"), 1, "folder.csv")


def test_pickles_are_never_read(run):
    np.save("w.npy", np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    refused(run("plan", "w.npy"), 1, "pickled objects are never read")


def test_arrays_of_other_kinds(run):
    np.save("complex.npy", np.ones((2, 2), dtype=complex))
    refused(run("plan", "complex.npy"), 2, "complex128")
    np.save("cube.npy", np.ones((2, 2, 2)))
    refused(run("plan", "cube.npy"), 2, "cube.npy", "3 dimension")
    np.savez("two.npz", a=np.ones(2), b=np.ones(2))
    refused(run("plan", "two.npz"), 2, "2 arrays")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), ()),
        (("nothing",), ("no command", "plan, compare")),
        (("plan",), ("WORKLOAD",)),
        (("plan", "prefix:4", "--bogus"), ("--bogus",)),
        (("plan", "prefix:4", "-m", "magic"), ("magic", "wavelet")),
        (("plan", "prefix:4", "-m", "wavelet", "--rank", "3"), ("no option 'rank'",)),
        (("plan", "prefix:4", "-m", "noise-on-data", "--effort", "quick"), ("no option",)),
        (("plan", "prefix:4", "-m", "hierarchical", "--fanout", "1"), ("fanout",)),
        (("plan", "prefix:4", "--seed", "-1"), ("seed",)),
        (("plan", "prefix:4", "--time-limit", "0"), ("time-limit",)),
        (("compare", "prefix:4", "--mechanisms", "wavelet,magic"), ("magic",)),
        (("compare", "prefix:4", "--mechanisms", ","), ("mechanisms are",)),
        (("compare", "prefix:4", "--epsilon", "0"), ("not positive",)),
        (("compare", "prefix:4", "--plot", "x.pdf"), (".svg",)),
        (("completion", "tcsh"), ("tcsh",)),
        (("demo", "--epsilon", "nan"), ("finite",)),
    ],
)
def test_wrong_usage(run, args, words):
    if args:
        refused(run(*args), 2, *words)
    else:
        assert run().exit_code == 2  # click prints the help of a group without a command


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "abc", "1e-20", "1e9", "1/0", ""])
def test_wrong_epsilons(run, plan_file, counts_file, epsilon):
    refused(run("explain", plan_file, "--epsilon", epsilon), 2, "epsilon")
    args = [*RELEASE, "--no-ledger"]
    args[args.index("0.5")] = epsilon
    refused(run(*args), 2, "epsilon")
    assert not Path("out.lrm").exists()


def test_explain_needs_one_question(run, plan_file):
    refused(run("explain", plan_file), 2, "--epsilon, --error, --rmse or --meet")
    refused(run("explain", plan_file, "--epsilon", "1", "--rmse", "2"), 2, "one of")
    refused(run("explain", plan_file, "--rmse", "-2"), 2, "above 0")
    refused(run("explain", plan_file, "--error", "nan"), 2, "above 0")
    refused(run("explain", plan_file, "--epsilon", "1", "--confidence", "1"), 2, "confidence")


COUNT_FILES = {
    "fraction": ("8213\n7411.5\n9127\n6521\n", 2, ("line 2", "whole number")),
    "word": ("8213\nmany\n9127\n6521\n", 2, ("line 2", "whole number")),
    "negative": ("8213\n-7411\n9127\n6521\n", 2, ("negative",)),
    "nan": ("8213\nnan\n9127\n6521\n", 2, ("line 2",)),
    "gap": ("8213\n\n9127\n6521\n", 2, ("line 2",)),
    "too few": ("8213\n7411\n9127\n", 2, ("4 cells", "3 counts")),
    "two columns": ("8213,7411\n9127,6521\n", 2, ("line 1",)),
    "too large": ("8213\n9999999999999999999\n9127\n6521\n", 2, ("counts",)),
    "many digits": ("8213\n" + "7" * 40 + "\n9127\n6521\n", 2, ("line 2",)),
    "header only": ("count\n", 2, ("no counts",)),
    "empty": ("", 2, ("no counts",)),
}


@pytest.mark.parametrize("debug", ["", "1"])
@pytest.mark.parametrize("kind", COUNT_FILES)
def test_broken_counts_tell_no_count(run, plan_file, kind, debug, monkeypatch):
    text, code, words = COUNT_FILES[kind]
    Path("counts.csv").write_text(text)
    if debug:
        monkeypatch.setenv("LRM_DEBUG", debug)
    result = run(*RELEASE, "--no-ledger")
    assert result.exit_code == code
    sentence = result.stderr.strip().splitlines()[-1]
    assert sentence.startswith("lrm: ")
    for word in words:
        assert word in sentence
    for secret in (*map(str, COUNTS), "many", "99999999", "77777777"):
        assert secret not in result.output
    assert names() == ["counts.csv", "plan.lrm"]


def test_counts_files_that_are_not_what_they_say(run, plan_file, in_folder):
    def with_counts(name):
        args = ["release", "plan.lrm", "--counts", name, "--epsilon", "1", "-o", "out.lrm"]
        return run(*args, "--no-ledger")

    (in_folder / "c.csv").write_bytes(b"\xff8213\n")
    refused(with_counts("c.csv"), 1, "UTF-8")
    (in_folder / "c.npy").write_bytes(b"8213 7411 9127")
    refused(with_counts("c.npy"), 1, "damaged")
    (in_folder / "c.parquet").write_bytes(b"8213 7411 9127")
    refused(with_counts("c.parquet"), 1, "damaged")
    np.save("o.npy", np.array(COUNTS, dtype=object), allow_pickle=True)
    refused(with_counts("o.npy"), 1, "damaged")
    np.save("f.npy", np.array(COUNTS) + 0.5)
    refused(with_counts("f.npy"), 2, "whole numbers")
    refused(with_counts("c.txt"), 2, ".csv")
    refused(with_counts("none.csv"), 1, "none.csv")


def test_an_unexpected_error_in_a_release_tells_no_count(run, plan_file, counts_file, monkeypatch):
    def broken(*args, **kwargs):
        raise KeyError(COUNTS[0])

    monkeypatch.setattr("lrm.releases.making.measure", broken)
    refused(run(*RELEASE, "--no-ledger"), 1, "KeyError", "LRM_DEBUG=1")
    monkeypatch.setenv("LRM_DEBUG", "1")
    result = run(*RELEASE, "--no-ledger")
    assert result.exit_code == 1
    assert "in broken" in result.stderr
    assert str(COUNTS[0]) not in result.output


def test_release_without_a_ledger_must_be_said(run, plan_file, counts_file):
    refused(run(*RELEASE), 2, "--no-ledger to release without a record")
    assert not Path("out.lrm").exists()


def test_release_looks_at_its_outputs_before_noise_is_drawn(
    run, plan_file, counts_file, monkeypatch
):
    def drawn(*args, **kwargs):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("lrm.releases.making.measure", drawn)
    monkeypatch.setattr("lrm.releases.counts_file.read_counts", drawn)
    args = ["release", "plan.lrm", "--counts", "counts.csv", "--epsilon", "1", "--no-ledger"]
    refused(run(*args, "-o", "none/out.lrm"), 1, "its folder does not exist")
    refused(run(*args, "-o", "."), 2, "folder")
    refused(run(*args, "-o", "plan.lrm", "--force"), 2, "same file")
    refused(run(*args, "-o", "counts.csv", "--force"), 2, "same file")
    refused(run(*args, "-o", "x.lrm", "--csv", "x.lrm"), 2, "same file")
    Path("old.lrm").write_text("precious")
    refused(run(*args, "-o", "old.lrm"), 2, "exists already", "--force")
    refused(run(*args, "-o", "x.lrm", "--csv", "old.lrm"), 2, "exists already")
    refused(run(*args, "-o", "x.lrm", "--confidence", "2"), 2, "confidence")
    assert Path("old.lrm").read_text() == "precious"
    assert names() == ["counts.csv", "old.lrm", "plan.lrm"]


def test_a_failed_plan_leaves_an_old_file_alone(run):
    Path("plan.lrm").write_text("precious")
    refused(run("plan", "prefix:4", "-o", "plan.lrm"), 2, "exists already")
    Path("w.csv").write_text("1,x\n1,0\n")
    refused(run("plan", "w.csv", "-o", "plan.lrm", "--force"), 2, "line 1")
    refused(run("plan", "w.csv", "-o", "w.csv", "--force"), 2, "same file")
    assert Path("plan.lrm").read_text() == "precious"


def test_damaged_and_foreign_files(run, plan_file, release_file, in_folder):
    whole = plan_file.read_bytes()
    plan_file.write_bytes(whole[: len(whole) // 2])
    refused(run("show", plan_file), 1, "plan.lrm")
    refused(run("explain", plan_file, "--epsilon", "1"), 1, "plan.lrm")
    refused(run("explain", release_file, "--epsilon", "1"), 1, "give a plan file")
    refused(run("show", "missing.lrm"), 1, "missing.lrm")
    with zipfile.ZipFile("other.zip", "w") as other:
        other.writestr("readme.txt", "hello")
    refused(run("show", "other.zip"), 1, "other.zip")
    (in_folder / "garbage.lrm").write_bytes(os.urandom(500))
    refused(run("show", "garbage.lrm"), 1, "garbage.lrm")


def test_a_plan_has_no_answers_to_draw(run, plan_file):
    refused(run("show", plan_file, "--csv", "out.csv"), 2, "a plan has none")
    assert not Path("out.csv").exists()


def test_expected_errors_are_told_apart_by_exit_code(run, monkeypatch):
    def fails(*args, **kwargs):
        raise FileFormatError("the disk is full")

    monkeypatch.setattr("lrm.queries.files.read_workload", fails)
    refused(run("plan", "prefix:4"), 1, "the disk is full")

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("lrm.queries.files.read_workload", interrupted)
    result = run("plan", "prefix:4", "-o", "out.lrm")
    assert result.exit_code == 130
    assert result.stderr.strip().startswith("lrm: interrupted")
    assert not names()


@pytest.mark.parametrize("content", [b"", b"{}", b"a,b\n8213,7411\n", b"PK\x03\x04 and no more"])
def test_show_names_both_kinds_of_file_that_it_takes(run, content, in_folder):
    (in_folder / "other.lrm").write_bytes(content)
    refused(run("show", "other.lrm"), 1, "neither a plan nor a release", "`lrm release -o` wrote")


def test_show_tells_of_a_foreign_archive(run, in_folder):
    with zipfile.ZipFile(in_folder / "other.zip", "w") as bundle:
        bundle.writestr("header.json", '{"format": "something else"}')
    refused(run("show", "other.zip"), 1, "neither a plan nor a release", "`lrm plan -o`")


@pytest.mark.parametrize(
    "words", [("show", "x" * 5000), ("domain", "init", "x" * 5000 + ".csv")], ids=["show", "init"]
)
def test_a_name_too_long_for_a_file(run, words):
    refused(run(*words), 2, "too long")


def test_a_table_in_place_of_a_domain_is_not_shown(run):
    """YAML reads a CSV file as one long text, and the error quoted it."""
    rows = "".join(f"NY,{count}\n" for count in COUNTS)
    Path("people.csv").write_text(f"state,patient\n{rows}")
    Path("q.sql").write_text("SELECT COUNT(*) FROM people")
    for command in (
        ("domain", "check", "people.csv"),
        ("plan", "q.sql", "--domain", "people.csv"),
        ("budget", "create", "people", "--limit", "1", "--domain", "people.csv", "--ledger", "b"),
    ):
        result = run(*command)
        refused(result, 2, "people.csv", "no fields")
        assert "NY" not in result.output
