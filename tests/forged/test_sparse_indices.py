"""Opening a file corrupted memory.

SciPy's compiled routines follow the index arrays of a sparse matrix without looking: an index out
of range in a plan file or an ``.npz`` workload made them read and write where the file said, and
`lrm show` or `lrm plan` ended with SIGSEGV. `numpy.load` allocated whatever a header claimed.

The files are opened in a process of their own, whose death would be seen.
"""

import io
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import lrm
from forging import resealed
from lrm.errors import WorkloadError
from lrm.queries.workload import families

READ = """
import resource, sys
import lrm
from lrm.releases.counts_file import read_counts
from lrm.queries.workload.file import read_workload
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
readers = {"lrm": [lrm.load_plan], "npz": [read_workload], "npy": [read_counts, read_workload]}
for path in sys.argv[1:]:
    for reader in readers[path.rsplit(".")[-1]]:
        try:
            reader(path)
            outcome = "read"
        except lrm.LrmError as reason:
            assert "\\n" not in str(reason), reason
            outcome = "refused"
    print(outcome)
"""


def outcomes(*paths):
    """What a fresh process says of each file: ``read`` or ``refused``."""
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


def _broken_parts(rows, columns):
    """Index arrays that do not fit a matrix of four entries, by what is wrong with them."""
    last = rows
    good = np.array([0, 1, 2, 3]) % columns
    limits = np.minimum(np.arange(rows + 1), 4)
    limits[-1] = 4
    far = 1 << 40

    def at(array, place, value):
        changed = array.astype(np.int64)
        changed[place] = value
        return changed

    return {
        "index far above": (at(good, 1, far), limits),
        "index just above": (at(good, 1, columns), limits),
        "index below": (at(good, 1, -1), limits),
        "index far below": (at(good, 1, -far), limits),
        "limits fall": (good, at(limits, 1, 3)),
        "limits too high": (good, at(limits, last, far)),
        "limits not from zero": (good, at(limits, 0, -far)),
        "limits negative": (good, at(limits, 1, -5)),
        "too few limits": (good, limits[:-1]),
        "too many limits": (good, np.append(limits, 4)),
        "too few indices": (good[:-1], limits),
        "indices of two dimensions": (good.reshape(2, 2), limits),
        "limits as floats": (good, limits.astype(np.float64)),
        "indices as floats": (good.astype(np.float64), limits),
    }


def test_sparse_plans_with_broken_indices(tmp_path):
    plan = lrm.plan(families.ranges(64, [(0, 31), (8, 40)]), "noise-on-data")
    plan.save(tmp_path / "plan.lrm")
    paths = []
    for name in ("workload", "strategy"):
        for number, (indices, limits) in enumerate(_broken_parts(4, 64).values()):

            def change(facts, arrays, name=name, indices=indices, limits=limits):
                facts[name] = {"kind": "sparse", "shape": [4, 64]}
                arrays.pop(f"{name}-matrix", None)
                arrays[f"{name}-data"] = np.ones(4)
                arrays[f"{name}-indices"] = indices
                arrays[f"{name}-indptr"] = limits

            target = tmp_path / f"{name}{number}.lrm"
            paths.append(resealed(tmp_path / "plan.lrm", change, target))
    assert outcomes(*paths) == ["refused"] * len(paths)


def test_sparse_workloads_with_broken_indices(tmp_path):
    paths = []
    for form in ("csr", "csc"):
        for number, (indices, limits) in enumerate(_broken_parts(4, 4).values()):
            paths.append(tmp_path / f"{form}{number}.npz")
            parts = {"data": np.ones(4), "indices": indices, "indptr": limits}
            np.savez(paths[-1], format=form.encode(), shape=(4, 4), **parts)
    for number, row in enumerate([np.array([0, 1 << 40]), np.array([0, -(1 << 40)])]):
        paths.append(tmp_path / f"coo{number}.npz")
        np.savez(paths[-1], format=b"coo", shape=(2, 2), data=np.ones(2), row=row, col=[0, 1])
    assert outcomes(*paths) == ["refused"] * len(paths)


def test_headers_that_claim_more_than_there_is(tmp_path):
    """A hundred bytes that claim 10^12 numbers: nothing of that size may be allocated."""
    paths = []
    for number, shape in enumerate(["(1000000, 1000000)", "(-1, 4)", "(2, 99999999999999999999)"]):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
        buffer = io.BytesIO()
        buffer.write(b"\x93NUMPY\x01\x00")
        text = header.ljust(117) + "\n"
        buffer.write(len(text).to_bytes(2, "little") + text.encode() + bytes(64))
        paths.append(tmp_path / f"w{number}.npy")
        paths[-1].write_bytes(buffer.getvalue())
    assert outcomes(*paths) == ["refused"] * len(paths)


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("index", [-1, 4, 1 << 30])
def test_sparse_matrices_handed_over_in_python(form, index):
    matrix = sp.csr_array(np.eye(4)).asformat(form)
    places = matrix.coords[0] if form == "coo" else matrix.indices
    places.flags.writeable = True
    places[1] = index
    with pytest.raises(WorkloadError, match="outside"):
        lrm.Workload(matrix)


def test_whole_files_are_still_read(tmp_path):
    for form in ("csr", "csc", "coo"):
        sp.save_npz(tmp_path / f"{form}.npz", sp.csr_array(np.eye(4)).asformat(form))
    np.savez(tmp_path / "dense.npz", np.eye(4))
    swapped = {"data": np.ones(2, dtype=">i4"), "indices": np.array([0, 1], dtype=">u8")}
    np.savez(
        tmp_path / "swapped.npz",
        format=b"csr",
        shape=(2, 2),
        indptr=np.arange(3, dtype=">i2"),
        **swapped,
    )
    np.save(tmp_path / "w.npy", np.asfortranarray(np.eye(4, dtype=">i2")))
    lrm.plan(families.ranges(64, [(0, 31)]), "noise-on-data").save(tmp_path / "plan.lrm")
    paths = sorted(tmp_path.iterdir())
    assert outcomes(*paths) == ["read"] * 7
