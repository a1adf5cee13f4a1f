"""Files as an attacker would write them: edited, and sealed again as if nothing had happened."""

import copy
import io
import json
import zipfile

import numpy as np

from lrm.files.archive import write_archive


def edited(record, **changes):
    """A copy of a frozen record with other fields, past its own checks."""
    twin = copy.copy(record)
    twin.__dict__.pop("digest", None)
    for name, value in changes.items():
        object.__setattr__(twin, name, value)
    return twin


def forged_plan(plan, path, *, matrix=None, cells=None, stated=1, **changes):
    """Save ``plan`` with another strategy or other cells, and a stated sensitivity."""
    (group,) = plan.measured.groups
    basis = edited(
        plan.measured.cells,
        matrix=matrix or plan.measured.cells.matrix,
        cell_map=cells or plan.measured.cells.cell_map,
        **{name: changes.pop(name) for name in ("row_rank",) if name in changes},
    )
    measured = edited(
        plan.measured,
        groups=(edited(group, bases=(basis,)),),
        sensitivity=stated,
        max_records=changes.pop("max_records", plan.measured.max_records),
        **{name: changes.pop(name) for name in ("bits",) if name in changes},
    )
    edited(plan, measured=measured, **changes).save(path)
    return path


def unpacked(path):
    """The header, facts and arrays of a file that lrm wrote."""
    with zipfile.ZipFile(path) as bundle:
        header = json.loads(bundle.read("header.json"))
        facts = json.loads(bundle.read("facts.json"))
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(bundle.read(name)))
            for name in header["sha256"]
            if name.endswith(".npy")
        }
    return header, facts, arrays


def resealed(path, change, target=None):
    """Apply ``change(facts, arrays)`` to a file, with checksums that fit."""
    header, facts, arrays = unpacked(path)
    change(facts, arrays)
    kind = header["format"].removeprefix("lrm-")
    write_archive(target or path, kind, header["version"], facts, arrays)
    return target or path
