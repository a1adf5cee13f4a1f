"""An archive of 8 MB unpacked to 5 GB, and malformed headers raised raw Python errors.

Whatever a file holds, reading it is a clear error or succeeds, within the memory that
`lrm.files.reading` states: KeyError, TypeError, RecursionError and MemoryError came out before.
"""

import io
import json
import os
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lrm
from forging import resealed, unpacked
from lrm.domain.file import parse_domain
from lrm.errors import DomainError, FileFormatError, WorkloadError
from lrm.files.json_text import parse_json
from lrm.files.npy import parse_npy
from lrm.files.reading import read_bytes
from lrm.files.zips import unpack_zip
from lrm.queries.files import parse_batch
from lrm.queries.workload import families
from lrm.releases.counts_file import read_counts


@pytest.fixture
def saved(tmp_path):
    lrm.plan([[1, 1, 0], [0, 1, 1]], "noise-on-data").save(tmp_path / "plan.lrm")
    return tmp_path / "plan.lrm"


def _with_members(path, members, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as bundle:
        for name, data in members:
            bundle.writestr(name, data)
    return path


def _refused(path):
    with pytest.raises(FileFormatError) as caught:
        lrm.load_plan(path)
    assert "\n" not in str(caught.value)


def _bomb(size):
    """A zip whose one member unpacks to ``size`` zeros, made without packing them all."""
    zeros = bytes(1 << 24)
    packer = zlib.compressobj(6, wbits=-15)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    packed, check = block * (size >> 24) + b"\x03\x00", 0
    for _ in range(size >> 24):
        check = zlib.crc32(zeros, check)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:
        bundle.writestr("header.json", packed)
    data = bytearray(archive.getvalue())
    entry = data.rindex(b"PK\x01\x02")
    for place in (8, entry + 10):  # the method, in both records of the member
        data[place : place + 2] = (8).to_bytes(2, "little")
    for place in (14, entry + 16):  # its checksum and size
        data[place : place + 4] = check.to_bytes(4, "little")
        data[place + 8 : place + 12] = size.to_bytes(4, "little")
    return bytes(data)


def test_more_labels_than_python_can_count_are_refused(saved):
    def numbered(facts, arrays):
        facts["labels"] = [{"numbered": 2**63, "first": 1}]

    _refused(resealed(saved, numbered))


def test_an_archive_that_unpacks_to_gigabytes_is_refused_before_it_does(tmp_path):
    (tmp_path / "bomb.lrm").write_bytes(_bomb(5 << 28))
    script = (
        "import resource, sys, lrm; resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))\n"
        "try: lrm.load_plan(sys.argv[1])\n"
        "except lrm.LrmError as reason: print(reason)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "bomb.lrm"],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert "more than 1,024 MiB" in done.stdout, done.stderr[-1000:]


def test_small_files_that_unfold_stay_within_the_stated_memory(tmp_path):
    """A few kilobytes that stand for gigabytes: empty rows, all ranges, equal values, nesting."""
    traps = _traps(tmp_path)
    script = (
        "import resource, sys, lrm; from lrm.queries.workload.file import read_workload\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        "for path in sys.argv[1:]:\n"
        "    try: (lrm.load_plan if path.endswith('lrm') else read_workload)(path)\n"
        "    except lrm.LrmError as reason: assert 'memory' not in str(reason), reason\n"
        "    else: raise SystemExit(f'{path} was read')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *traps],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-1000:]


def _traps(folder):
    n = 20_000
    first_ten = families.ranges(64, [(0, 9)]).queries.sparse()
    lrm.plan(first_ten, "noise-on-data").save(folder / "small.lrm")

    def wide(facts, arrays):
        facts["workload"] = {"kind": "sparse", "shape": [1, n]}
        arrays["cell-index"] = arrays["strategy-indices"] = np.arange(n)
        arrays["cell-factor"] = np.ones(n, dtype=np.int64)
        facts["measured"]["merged_cells"], facts["measured"]["strategy"] = (
            n,
            {"kind": "sparse", "shape": [n, n]},
        )
        arrays["strategy-data"], arrays["strategy-indptr"] = np.full(n, 2.0**30), np.arange(n + 1)

    resealed(folder / "small.lrm", wide, folder / "plan.lrm")

    def empty_rows(facts, arrays):
        facts["workload"]["shape"] = [5 * 10**6, n]
        arrays["workload-indptr"] = np.append(arrays["workload-indptr"], np.full(5 * 10**6 - 1, 10))
        facts["labels"] = [{"numbered": 5 * 10**6, "first": 1}]

    def all_ranges(facts, arrays):
        facts["workload"] = {"kind": "all-ranges", "cells": n}
        facts["labels"] = [{"numbered": n * (n + 1) // 2, "first": 1}]
        facts["measured"]["strategy"] = {"kind": "sparse", "shape": [1, n]}
        arrays["strategy-data"] = np.full(n, 2.0**30)
        arrays["strategy-indices"] = np.arange(n)
        arrays["strategy-indptr"] = np.array([0, n])

    def long_ranges(facts, arrays):
        facts["workload"] = {"kind": "ranges", "cells": n}
        for part in ("data", "indices", "indptr"):
            del arrays[f"workload-{part}"]
        count = 10**5
        arrays["workload-starts"] = np.zeros(count, dtype=np.int64)
        arrays["workload-stops"], arrays["workload-weights"] = np.full(count, n), np.ones(count)
        facts["labels"] = [{"numbered": count, "first": 1}]

    def many_measurements(facts, arrays):
        facts["measured"]["strategy"]["shape"] = [2 * 10**6, n]
        arrays["strategy-data"] = np.full(2, 2.0**30)
        arrays["strategy-indices"] = np.arange(2)
        arrays["strategy-indptr"] = np.append([0, 1], np.full(2 * 10**6 - 1, 2))

    def nested(facts, arrays):
        facts["details"] = [[] for _ in range(10**5)]

    traps = [empty_rows, all_ranges, long_ranges, many_measurements, nested]
    for change in traps:
        resealed(folder / "plan.lrm", change, folder / f"{change.__name__}.lrm")
    pq.write_table(pa.table({"a": pa.nulls((1 << 27) + 1)}), folder / "equal.parquet")
    return [*(folder / f"{change.__name__}.lrm" for change in traps), folder / "equal.parquet"]


def test_a_size_that_lies_is_noticed(tmp_path):
    """The directory says 100 bytes, the member unpacks to a megabyte: 100 are read at most."""
    data = bytearray(_bomb(1 << 24))
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = (100).to_bytes(4, "little")
    with pytest.raises(FileFormatError):
        unpack_zip(bytes(data))


def test_many_members_and_double_names(tmp_path):
    many = _with_members(tmp_path / "many", [(f"a{n}.npy", b"") for n in range(65)])
    with pytest.raises(FileFormatError, match="more than 64 parts"):
        unpack_zip(many.read_bytes())
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = _with_members(tmp_path / "twice", [("a", b"1"), ("a", b"2")])
    with pytest.raises(FileFormatError, match="same name"):
        unpack_zip(twice.read_bytes())


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(method, tmp_path):
    with zipfile.ZipFile(tmp_path / "zip", "w", method) as bundle:
        bundle.writestr("a", bytes(1000))
    with pytest.raises(FileFormatError, match="unknown way"):
        unpack_zip((tmp_path / "zip").read_bytes())


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b'"lrm-plan"',
        b"{}",
        b'{"format": "lrm-plan"}',
        b'{"format": "lrm-plan", "version": 2}',
        b'{"format": "lrm-plan", "version": 2, "sha256": []}',
        b'{"format": "lrm-plan", "version": 2, "sha256": {"facts.json": 5}}',
        b'{"format": "lrm-plan", "version": 2, "sha256": {"facts.json": null}}',
        b'{"format": "lrm-plan", "version": true, "sha256": {}}',
        b'{"format": "lrm-plan", "version": 2.0, "sha256": {}}',
        b'{"format": ["lrm-plan"], "version": 2, "sha256": {}}',
        b'{"format": "lrm-plan", "format": "lrm-plan", "version": 2, "sha256": {}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"NaN",
        b"\xff\xfe",
        b'"\\ud800"',
        b"9" * 5000,
    ],
    ids=lambda header: header[:40].decode("latin-1"),
)
def test_malformed_headers(saved, header):
    with zipfile.ZipFile(saved) as bundle:
        members = [(name, bundle.read(name)) for name in bundle.namelist()]
    _with_members(saved, [(n, header if n == "header.json" else data) for n, data in members])
    _refused(saved)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": NaN}',
        b"[Infinity]",
        b"[-Infinity]",
        b"[1e999]",
        b"[1" + b"0" * 5000 + b"]",
        b'{"a": 1, "a": 2}',
        b'["\\ud800"]',
        b'{"\\udfff": 1}',
        b"[" * 20 + b"]" * 20,
        b"[" * 100_000,
        b'["\xed\xa0\x80"]',
        b"\xef\xbb\xbf[]",
    ],
    ids=lambda text: text[:20].decode("latin-1"),
)
def test_json_that_readers_understand_differently_is_refused(text):
    with pytest.raises(FileFormatError):
        parse_json(text)


def test_every_fact_of_the_wrong_type_is_a_sentence(saved):
    """Each fact replaced by each type of JSON, or left out: no raw Python error comes out."""
    values = [None, True, 0, -1, 2**70, 0.5, "", "x" * 1000, [], {}, [[]], {"kind": []}]
    whole = saved.read_bytes()
    _, facts, _ = unpacked(saved)
    for name, genuine in facts.items():
        for value in [*values, ...]:
            if value == genuine and type(value) is type(genuine):
                continue
            saved.write_bytes(whole)

            def change(facts, arrays, name=name, value=value):
                if value is ...:
                    del facts[name]
                else:
                    facts[name] = value

            resealed(saved, change)
            if name == "details" and isinstance(value, dict):
                lrm.load_plan(saved)  # plain facts for people, of any form
            elif name == "statements" and value is ...:
                assert lrm.load_plan(saved).workload.statements == ()  # a file of an older version
            elif name == "objective" and value is ...:
                assert lrm.load_plan(saved).objective == "total"  # a file of an older version
            else:
                _refused(saved)


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.zeros(3, dtype=[("a", "f8")]),
        np.zeros(3, dtype="M8[s]"),
        np.zeros(3, dtype=np.longdouble),
        np.zeros(3, dtype="S100"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_of_other_things_are_refused(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    with pytest.raises(FileFormatError):
        parse_npy(buffer.getvalue())


def test_counts_of_sixteen_bits_are_counts(tmp_path):
    """2^53 was compared as a number of 16 bits, with a warning."""
    np.save(tmp_path / "counts.npy", np.arange(3, dtype=np.float16))
    assert len(read_counts(tmp_path / "counts.npy")) == 3


def test_an_array_is_as_long_as_its_header_says():
    buffer = io.BytesIO()
    np.save(buffer, np.arange(4))
    for data in (buffer.getvalue()[:-1], buffer.getvalue() + b"0", b"", b"\x93NUMPY\x09\x00"):
        with pytest.raises(FileFormatError):
            parse_npy(data)


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    handle = os.open(tmp_path / "pipe", os.O_RDWR)  # so that opening it does not block
    try:
        with pytest.raises(FileFormatError, match="not a regular file"):
            read_bytes(tmp_path / "pipe", "plan file")
    finally:
        os.close(handle)
    with pytest.raises(FileFormatError, match="not a regular file"):
        read_bytes("/dev/zero", "plan file")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(FileFormatError, match="more than 1,024 MiB"):
        read_bytes(tmp_path / "large", "plan file")
    with pytest.raises(FileFormatError, match="cannot read"):
        read_bytes(tmp_path, "plan file")


def test_json_facts_survive_the_strict_reader():
    facts = {"a": [1, 2.5, None, True, "é\n"], "b": {"c": -1e300}}
    assert parse_json(json.dumps(facts).encode()) == facts


def test_yaml_that_takes_forever_or_overflows_is_refused():
    """The time of PyYAML grows with the square of the nesting: 5,000 brackets took minutes."""
    with pytest.raises(DomainError, match="too deeply"):
        parse_domain("[" * 100_000)
    domain = parse_domain("lrm-domain: 1\nunit: row\nattributes:\n  - {name: a, kind: integers, "
                          "low: 0, high: 3, null: drop, outside: drop}\n")  # fmt: skip
    text = "lrm-batch: 1\nqueries:\n  - {kind: total, importance: 1" + "0" * 400 + "}\n"
    with pytest.raises(WorkloadError, match="64 bits") as caught:
        parse_batch(text, domain)
    assert len(str(caught.value)) < 200
