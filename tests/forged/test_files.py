"""Damaged, foreign and newer files are clear errors; nothing is half-written."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

import lrm
from forging import resealed
from lrm.errors import FileFormatError
from lrm.files.archive import write_archive
from lrm.queries.workload import Quantile


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "plan.lrm"
    lrm.plan([[1, 1, 0], [0, 1, 1]], "noise-on-data").save(path)
    return path


def test_every_truncation_is_noticed(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 60)):
        saved.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            lrm.load_plan(saved)


def test_every_flipped_byte_is_noticed_or_harmless(saved):
    """A changed byte is an error, or lies where the format has slack: never another plan."""
    whole, digest = saved.read_bytes(), lrm.load_plan(saved).digest
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), size=150):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        saved.write_bytes(bytes(changed))
        with contextlib.suppress(FileFormatError):
            assert lrm.load_plan(saved).digest == digest


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, arrays: facts.update(sensitivity="1"),
        lambda facts, arrays: facts.update(max_records=str(2**60)),
        lambda facts, arrays: facts.update(bits=3),
        lambda facts, arrays: facts.pop("workload"),
        lambda facts, arrays: facts["measured"]["strategy"].update(kind="pickle"),
        lambda facts, arrays: arrays.update({"cell-factor": arrays["cell-factor"] * 2}),
        lambda facts, arrays: arrays.pop("cell-index"),
        lambda facts, arrays: arrays.update({"strategy-matrix": arrays["strategy-matrix"] * 2}),
    ],
)
def test_a_forged_plan_is_refused(saved, change):
    """Sensitivity and limits are read off the integers again, whatever the file says."""
    resealed(saved, change)
    with pytest.raises(FileFormatError):
        lrm.load_plan(saved)


def test_newer_and_foreign_files(tmp_path, saved):
    write_archive(tmp_path / "new", "plan", 99, {}, {})
    with pytest.raises(FileFormatError, match="install a newer lrm"):
        lrm.load_plan(tmp_path / "new")
    with pytest.raises(FileFormatError, match="is a plan file; give a release file"):
        lrm.load_release(saved)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FileFormatError, match="damaged or is not a plan file"):
        lrm.load_plan(tmp_path / "text")
    with pytest.raises(FileFormatError, match="no plan file at"):
        lrm.load_plan(tmp_path / "missing")


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(FileFormatError, match="No space left"):
        lrm.plan(np.eye(2), "noise-on-data").save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["plan.lrm"]


def test_unwritable_folder_is_a_sentence(tmp_path):
    with pytest.raises(FileFormatError, match="cannot write"):
        lrm.plan(np.eye(2), "noise-on-data").save(tmp_path / "no" / "such" / "plan.lrm")


def test_files_written_before_quantiles_had_methods_are_read():
    """What is left out of a file has one meaning for ever, and so has its digest."""
    folder = Path(__file__).with_name("older")
    plan = lrm.load_plan(folder / "plan-with-median.lrm")
    assert plan.digest.startswith("e182096eb0461a59")
    (median,) = [one for one in plan.workload.derived if isinstance(one, Quantile)]
    assert median.method == "lower"
    release = lrm.load_release(folder / "release-with-median.lrm")
    assert release.plan.digest == plan.digest
    assert release["m"].to_pandas()["answer"].tolist() == [5.0, 5.0]


def test_every_method_of_a_quantile_is_read_back(tmp_path):
    domain = lrm.Domain([lrm.Integers("age", 0, 9)], "people")
    text = """
        SELECT MEDIAN(age) AS a FROM people;
        SELECT QUANTILE_DISC(age, 0.5) AS b FROM people;
    """
    plan = lrm.plan(lrm.sql(text, domain), "noise-on-data")
    plan.save(tmp_path / "plan.lrm")
    loaded = lrm.load_plan(tmp_path / "plan.lrm")
    assert loaded.digest == plan.digest
    assert [one.method for one in loaded.workload.derived] == ["continuous", "lower"]
