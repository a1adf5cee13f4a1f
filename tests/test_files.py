"""Damaged, foreign and newer files are clear errors; nothing is half-written."""

import contextlib

import numpy as np
import pytest

import lrm
from forging import resealed
from lrm.errors import FileFormatError
from lrm.files.archive import write_archive


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
