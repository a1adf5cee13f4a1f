"""Hole 13: ``-o /dev/full --force`` replaced the device node and reported success.

Every file is written by one writer, which makes or replaces regular files only: devices, pipes,
sockets and folders are refused before any work, and a symbolic link is followed.
"""

import ast
import os
import socket
import stat
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lrm.cli import main
from lrm.domain import Categories, Domain
from lrm.domain.file import write_domain
from lrm.errors import FileFormatError, UsageError
from lrm.files.writing import write_text
from lrm.planning.plan.file import load_plan
from lrm.planning.plan.planner import plan

SOURCE = Path(__file__).parents[2] / "src" / "lrm"


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pipe():
    os.mkfifo("special")
    return "special"


def device():
    """A device of our own where we may make one, else a link to the system's."""
    try:
        os.mknod("special", stat.S_IFCHR | 0o666, os.makedev(1, 7))
    except PermissionError:
        Path("special").symlink_to("/dev/full")
    return "special"


def socket_file():
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("special")
    return "special"


def folder():
    Path("special").mkdir()
    return "special"


def link_to_device():
    Path("special").symlink_to("/dev/full")
    return "special"


SPECIAL = {
    "a device": device,
    "a pipe": pipe,
    "a socket": socket_file,
    "a folder": folder,
    "a link to a device": link_to_device,
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_regular_file_is_refused_and_stays(kind):
    path = SPECIAL[kind]()
    before = os.lstat(path)
    words = "a device" if "device" in kind else kind
    made = plan(np.eye(2), "noise-on-data")
    with pytest.raises(UsageError, match=f"is {words}"):
        made.save(path)
    with pytest.raises(UsageError, match=f"is {words}"):
        write_domain(Domain([Categories("sex", ["f", "m"])]), path)
    result = CliRunner().invoke(main, ["plan", "identity:2", "-o", path, "--force"])
    assert result.exit_code == 2
    assert f"is {words}" in result.stderr
    after = os.lstat(path)
    assert (before.st_ino, before.st_mode, before.st_rdev) == (
        after.st_ino,
        after.st_mode,
        after.st_rdev,
    )
    assert [one.name for one in Path().iterdir()] == [path]


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("command", [["show"], ["report"], ["domain", "check"]])
def test_nothing_else_is_read_and_nobody_waits_for_a_pipe(kind, command):
    result = CliRunner().invoke(main, [*command, SPECIAL[kind]()])
    assert result.exit_code in {1, 2}
    assert "special" in result.stderr


def test_a_name_with_nul_is_one_sentence():
    with pytest.raises(FileFormatError, match="no plan file at"):
        load_plan("a\0")


def test_a_link_stays_and_its_target_is_replaced(in_folder):
    (in_folder / "inner").mkdir()
    target, link = Path("inner/target.txt"), Path("link.txt")
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    dangling = Path("later.txt")
    dangling.symlink_to("inner/later.txt")
    write_text(dangling, "made")
    assert Path("inner/later.txt").read_text() == "made"
    assert sorted(path.name for path in Path("inner").iterdir()) == ["later.txt", "target.txt"]


def test_a_loop_of_links_is_one_sentence():
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    result = CliRunner().invoke(main, ["plan", "identity:2", "-o", "a", "--force"])
    assert result.exit_code == 1
    assert result.stderr.startswith("lrm: cannot write a: ")


def test_a_replaced_file_keeps_its_rights():
    private = Path("plan.lrm")
    private.write_text("old")
    private.chmod(0o600)
    write_text(private, "new")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600


def test_one_writer():
    """No other module opens a file for writing, but for the study's lock and the null device."""
    allowed = {"files/writing.py", "study/rows.py", "cli/endings.py"}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or name in allowed:
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in {"write_text", "write_bytes"}:
                owner = getattr(node.func, "value", None)
                assert owner is None, f"{name} writes a file by itself"
            modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if called == "open":
                assert not {"w", "wb", "a", "ab", "x"}.intersection(map(str, modes)), name
