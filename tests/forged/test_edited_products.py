"""Plan files over products that somebody has edited: refused with a sentence, or as private.

Everything that is stated (sensitivity, limits, digest) is stated again for the edited integers, as
a careful forger would.
"""

import itertools
import math
import tracemalloc

import numpy as np
import pytest

import lrm
from forging import resealed, unpacked
from lrm.errors import FileFormatError
from lrm.planning.plan import file as plan_file
from lrm.queries.maps.products.batch import sum_batch
from lrm.queries.maps.products.map import ProductMap
from lrm.queries.maps.products.tabulation import NOT_COUNTED, tabulate
from lrm.queries.workload import families

SIZES = [16, 4, 3, 2, 10**4]
SOME = [[1, 1, 0, 0], [0, 0, 1, 0]]  # the last value of the attribute is dropped
TERMS = [
    ["prefix", "total", "total", "total", "total"],
    ["identity", "total", "identity", "total", "total"],
    ["total", "total", "identity", "identity", "total"],
]
DROPPED = [["total", SOME, "identity", "total", "total"], ["identity", SOME, *["total"] * 3]]
MEMORY = (1 << 30) + (1 << 28)
"""A reader's buffer for the largest file, and some more."""


MIXED = sum_batch(
    SIZES,
    [
        [
            (1, ["total", np.eye(4)[[x]], [3 * x + np.arange(3) <= c], "total", "total"])
            for x in range(c // 3 + 1)
        ]
        for c in range(12)
    ],
)
"""Running totals over two attributes, every combination of which counts: residuals are mixed."""


TOTALS = ["total", "total"]
JOINT = sum_batch(
    [24, 3, 24, 1, 10**4],
    [
        [(1, [np.eye(24)[[x]], "total", [np.arange(24) < x], *TOTALS]) for x in range(1, 24)],
        [(1, [np.eye(24)[[x]], "identity", [np.arange(24) <= x], *TOTALS]) for x in range(24)],
        [(1, ["total", "identity", "prefix", *TOTALS])],
        [(1, ["identity", *["total"] * 4])],
    ],
)
"""Conditions on two attributes together, whose combinations are in classes, beside tables."""


SUMS = sum_batch(
    [4, 30, 10**4],
    [
        [(1, ["identity", np.arange(30.0)[None], "total"])],
        [(1, ["identity", "total", "total"])],
        [(1, ["total", (np.arange(30) > 9).astype(float)[None], "total"])],
    ],
)
"""Counts and sums of a number, whose values are parts of four corners."""


@pytest.fixture(scope="module", params=["tree", "gaussian", "dropped", "tables", "mixed", "joint"])
def saved(request, tmp_path_factory):
    """A plan of each kind as a file."""
    terms = DROPPED if request.param == "dropped" else TERMS
    noise = "gaussian" if request.param == "gaussian" else "laplace"
    if request.param == "tables":
        plan = lrm.plan(families.products(SIZES, terms[1:]), "noise-on-results")
    elif request.param == "mixed":
        plan = lrm.plan(lrm.Workload(ProductMap(MIXED)), noise="gaussian", effort="quick")
        assert plan.measured.groups[0].mixes
    elif request.param == "joint":
        plan = lrm.plan(lrm.Workload(ProductMap(JOINT)), effort="quick")
        assert plan.measured.groups[-1].axes[0].size == 3
    elif request.param == "sums":
        plan = lrm.plan(lrm.Workload(ProductMap(SUMS)), effort="quick")
        (group,) = plan.measured.groups
        assert group.axes[1].parts is not None
        assert group.axes[1].size == 4
    elif request.param == "tree":
        plan = lrm.plan(families.products(SIZES, terms), "hierarchical")
    else:
        plan = lrm.plan(families.products(SIZES, terms), noise=noise, effort="quick")
    assert plan.measured.cells is None
    path = tmp_path_factory.mktemp("plans") / request.param
    plan.save(path)
    assert lrm.load_plan(path).digest == plan.digest
    return path


class Pieces:
    """Where the pieces of each group are in the array of all integers."""

    def __init__(self, facts, arrays):
        self.facts, self.arrays, self.places = facts["measured"], arrays, []
        sizes, start = facts["workload"]["sizes"], 0

        def piece(length):
            nonlocal start
            start += length
            return slice(start - length, start)

        for group in self.facts["groups"]:
            found = {
                "terms": piece(group["terms"]),
                "lengths": piece(group["sets"]),
                "members": piece(group["members"]),
                "factors": piece(group["sets"]),
                "folds": piece(group["sets"]),
                "labels": [piece(sizes[i]) for i in group["labels"]],
                "bases": [],
            }
            labels = dict(zip(group["labels"], found["labels"], strict=True))
            merged = [
                int(arrays["measured"][labels[i]].max()) + 1 if i in labels else n
                for i, n in enumerate(sizes)
            ]
            values = [math.prod(merged[i] for i in axis) for axis in group["axes"]]
            found["classes"] = {k: piece(values[k]) for k in group.get("classes", ())}
            for k, place in found["classes"].items():
                values[k] = int(arrays["measured"][place].max()) + 1
            found["parts"] = {k: piece(rows * values[k]) for k, rows in group.get("parts", ())}
            values = [dict(group.get("parts", ())).get(k, n) for k, n in enumerate(values)]
            for k, rows in group["bases"]:
                found["bases"].append((piece(values[k]), piece(rows * values[k])))
            lengths = arrays["measured"][found["lengths"]]
            members = np.split(arrays["measured"][found["members"]], np.cumsum(lengths)[:-1])
            heights = {**dict(enumerate(values)), **dict(group["bases"])}
            found["mixes"] = [
                piece(rows * math.prod(heights[k] for k in members[b].tolist()))
                for b, rows in group.get("mixes", ())
            ]
            self.places.append(found)
        assert start == len(arrays["measured"])

    def __getitem__(self, name):
        return self.places[0][name]

    @property
    def integers(self):
        return self.arrays["measured"]

    @property
    def group(self):
        return self.facts["groups"][0]


def restated(path, monkeypatch):
    """State what follows from the edited integers, where anything does."""
    with monkeypatch.context() as patch:
        patch.setattr(plan_file, "_check_same", lambda plan, facts: None)
        try:
            plan = lrm.load_plan(path)
        except FileFormatError:
            return

    def change(facts, arrays):
        del arrays
        facts["sensitivity"] = str(plan.measured.sensitivity)
        facts["max_records"] = str(plan.measured.max_records)
        facts["digest"] = plan.digest

    resealed(path, change)


def one_record(tables, values):
    """The entries of all tabulations of a table that holds one record."""
    entries = []
    for table in tables:
        labels = [int(marks[value]) for marks, value in zip(table.labels, values, strict=True)]
        counts = np.zeros(table.shape, dtype=np.int64)
        if NOT_COUNTED not in labels:
            counts[tuple(labels[i] for i in table.by)] = 1
        entries.append(counts.reshape(-1))
    return np.concatenate(entries)


def check_private(plan):
    """One record moves the measurements by at most what is stated, whatever its values.

    Of values that every tabulation labels alike the first is tried.
    """
    measured = plan.measured
    tables = measured.tabulations
    different = [
        np.unique(np.stack(marks), axis=1, return_index=True)[1]
        for marks in zip(*(table.labels for table in tables), strict=True)
    ]
    assert math.prod(map(len, different)) <= 2000
    for values in itertools.product(*different):
        move = measured.measure_clamped(one_record(tables, values)).tolist()
        assert sum(map(abs, move)) <= measured.sensitivity
        assert sum(m * m for m in move) <= measured.squared_l2_sensitivity


def tried(saved, tmp_path, monkeypatch, change, *, may_load=False):
    """Edit a file, and say with which sentence it is refused."""

    def edit(facts, arrays):
        arrays["measured"] = arrays["measured"].copy()
        change(Pieces(facts, arrays), facts)

    path = resealed(saved, edit, tmp_path / "plan")
    restated(path, monkeypatch)
    plan, said = None, ""
    tracemalloc.start()
    try:
        plan = lrm.load_plan(path)
    except FileFormatError as reason:
        said = str(reason)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEMORY
    assert "\n" not in said
    assert plan is None or may_load, "an edited plan was accepted"
    if plan is not None:
        check_private(plan)
    return said


FACTORS = [0, -1, -(2**63), 2**62, 2**63 - 1]


@pytest.mark.parametrize("factor", FACTORS)
def test_factors_are_positive_and_bounded(saved, tmp_path, monkeypatch, factor):
    def change(pieces, facts):
        del facts
        pieces.integers[pieces["factors"].start] = factor

    assert "factors" in tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("fold", [2, -2, -(2**63), 2**63 - 1])
def test_folds_are_signs(saved, tmp_path, monkeypatch, fold):
    def change(pieces, facts):
        del facts
        pieces.integers[pieces["folds"].start] = fold

    assert "folded" in tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("fold", [1, -1])
def test_other_folds_are_refused_or_measure_something_else(saved, tmp_path, monkeypatch, fold):
    def change(pieces, facts):
        del facts
        place = pieces["folds"]
        pieces.integers[place] = np.where(pieces.integers[place] == fold, 0, fold)

    tried(saved, tmp_path, monkeypatch, change, may_load=True)


@pytest.mark.parametrize("factor", [1, 7, 2**40, 2**61])
def test_other_factors_have_another_sensitivity(saved, tmp_path, monkeypatch, factor):
    def change(pieces, facts):
        del facts
        pieces.integers[pieces["factors"].start] = factor

    tried(saved, tmp_path, monkeypatch, change, may_load=True)


@pytest.mark.parametrize("number", [-2, -(2**63), 6, 2**40, 2**63 - 1])
@pytest.mark.parametrize("piece", ["terms", "lengths", "members", "labels"])
def test_numbers_out_of_range(saved, tmp_path, monkeypatch, piece, number):
    def change(pieces, facts):
        del facts
        found = pieces[piece] if piece != "labels" else pieces[piece][-1]
        pieces.integers[found.start] = number

    assert tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("saved", ["tree", "gaussian"], indirect=True)
@pytest.mark.parametrize("entry", [-(2**63), -(2**62), -1, 0, 2**31, 2**62, 2**63 - 1])
@pytest.mark.parametrize("part", [0, 1])
def test_entries_of_bases(saved, tmp_path, monkeypatch, part, entry):
    """Columns whose sums differ, and vectors that are not sent to 0."""

    def change(pieces, facts):
        del facts
        place = pieces["bases"][0][part]
        old = pieces.integers[place.start]
        pieces.integers[place.start] = entry if entry != old else entry + 1

    tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("saved", ["mixed"], indirect=True)
@pytest.mark.parametrize("entry", [-(2**63), -(2**40), -1, 0, 1, 2**20, 2**51, 2**63 - 1])
def test_entries_of_mixes(saved, tmp_path, monkeypatch, entry):
    """Another matrix has another sensitivity, or is refused."""

    def change(pieces, facts):
        del facts
        pieces.integers[pieces["mixes"][-1].start] = entry

    tried(saved, tmp_path, monkeypatch, change, may_load=True)


@pytest.mark.parametrize("saved", ["mixed"], indirect=True)
@pytest.mark.parametrize(
    "mixes",
    [None, {}, [[0]], [[0, -1]], [[99, 1]], [[-1, 1]], [[0, 2**40]], [[0.0, 1]], [[0, 1], [0, 1]]],
)
def test_mixes_that_do_not_fit(saved, tmp_path, monkeypatch, mixes):
    def change(pieces, facts):
        del pieces
        facts["measured"]["groups"][0]["mixes"] = mixes

    assert tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("saved", ["joint"], indirect=True)
@pytest.mark.parametrize("label", [-(2**63), -2, -1, 0, 1, 2, 3, 4, 2**63 - 1])
def test_other_classes(saved, tmp_path, monkeypatch, label):
    """A combination in another class is one that queries distinguish from it."""

    def change(pieces, facts):
        del facts
        (place,) = pieces.places[-1]["classes"].values()
        entry = place.start + 24 * 5 + 3
        pieces.integers[entry] = label if label != pieces.integers[entry] else (label + 1) % 3

    # A class of its own is as good.
    assert tried(saved, tmp_path, monkeypatch, change, may_load=label == 3) or label == 3


@pytest.mark.parametrize("saved", ["joint"], indirect=True)
@pytest.mark.parametrize("classes", [None, {}, [], [1], [0, 1], [0, 0], [-1], [2], [0.0], [2**63]])
def test_classes_of_other_axes(saved, tmp_path, monkeypatch, classes):
    def change(pieces, facts):
        del pieces
        facts["measured"]["groups"][-1]["classes"] = classes

    assert tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("saved", ["sums"], indirect=True)
@pytest.mark.parametrize("entry", [-(2**63), -1, 2, 2**16 + 1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("others", ["same", "sums", "all"])
def test_other_parts(saved, tmp_path, monkeypatch, entry, others):
    """Parts that do not add up, or by which values do not lie between their corners."""

    def change(pieces, facts):
        del facts
        (place,) = pieces["parts"].values()
        parts = pieces.integers[place].reshape(4, -1)
        column = int(np.flatnonzero(parts.max(axis=0) < parts[:, 0].sum())[0])
        if others == "all":  # more than one part in every place
            parts[:] = parts * 2 + 1
        elif others == "sums":  # the sum is as before, in 64 bits
            parts[0, column] += entry >> 1
            parts[1, column] -= entry >> 1
        else:
            parts[0, column] = entry if entry != parts[0, column] else 0

    assert tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("saved", ["sums"], indirect=True)
@pytest.mark.parametrize("parts", [None, {}, [], [1], [[0, 4]], [[1, 3]], [[1, -1]], [[1, 2**63]]])
def test_parts_of_other_axes(saved, tmp_path, monkeypatch, parts):
    def change(pieces, facts):
        del pieces
        facts["measured"]["groups"][0]["parts"] = parts

    assert tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("saved", ["gaussian"], indirect=True)
def test_wrapped_residuals(saved, tmp_path, monkeypatch):
    """A row of -2^63 has a product of 0 with even vectors, and an absolute value below 0."""

    def change(pieces, facts):
        null, rows = pieces["bases"][0]
        pieces.integers[null] *= 2
        pieces.integers[rows.start] = -(2**63)
        facts["noise"] = "laplace"

    assert "too large" in tried(saved, tmp_path, monkeypatch, change)


def test_sets_twice(saved, tmp_path, monkeypatch):
    def change(pieces, facts):
        del facts
        group, p = pieces.group, pieces
        first = int(p.integers[p["lengths"].start])
        members = p.integers[p["members"]][:first]
        pieces.arrays["measured"] = np.concatenate(
            [
                p.integers[p["terms"]],
                p.integers[p["lengths"]],
                [first],
                p.integers[p["members"]],
                members,
                p.integers[p["factors"]],
                [1],
                p.integers[p["folds"]],
                [p.integers[p["folds"].start]],
                p.integers[p["folds"].stop :],
            ]
        )
        group["sets"] += 1
        group["members"] += first

    assert "once" in tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("way", ["missing", "twice"])
def test_terms_are_answered_once(saved, tmp_path, monkeypatch, way):
    def change(pieces, facts):
        del facts
        terms = pieces["terms"]
        if way == "twice":
            pieces.integers[terms.stop - 1] = pieces.integers[terms.start] + 1
            pieces.integers[terms.start] = pieces.integers[terms.start] + 1
        if way == "missing":
            pieces.arrays["measured"] = np.delete(pieces.integers, terms.start)
            pieces.group["terms"] -= 1

    assert tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("saved", ["tables"], indirect=True)
def test_terms_of_two_groups_are_not_exchanged(saved, tmp_path, monkeypatch):
    """Their values are merged in other ways."""

    def change(pieces, facts):
        del facts
        first, second = (places["terms"].start for places in pieces.places)
        pieces.integers[[first, second]] = pieces.integers[[second, first]]

    assert tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize("flag", ["residual", "combined"])
def test_flags(saved, tmp_path, monkeypatch, flag):
    def change(pieces, facts):
        del pieces
        facts["measured"][flag] = not facts["measured"][flag]

    tried(saved, tmp_path, monkeypatch, change, may_load=True)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_noise_of_the_other_kind(saved, tmp_path, monkeypatch, noise):
    """The sensitivity is that of the noise that is drawn, whichever the integers were made for."""

    def change(pieces, facts):
        del pieces
        facts["noise"], facts["least_error"] = noise, 0.0

    tried(saved, tmp_path, monkeypatch, change, may_load=True)


@pytest.mark.parametrize("saved", ["dropped", "tables"], indirect=True)
def test_merged_values_that_queries_distinguish(saved, tmp_path, monkeypatch):
    def change(pieces, facts):
        del facts
        group, p = pieces.group, pieces
        i = next(one[0] for one in group["axes"] if one[0] not in group["labels"])
        marks = np.arange(SIZES[i])
        marks[-1] = 0
        order = [j for one in group["axes"] for j in one]
        before = [j for j in group["labels"] if order.index(j) < order.index(i)]
        start = p["folds"].stop + sum(SIZES[j] for j in before)
        pieces.arrays["measured"] = np.insert(p.integers, start, marks)
        group["labels"].insert(len(before), i)

    assert "merges values" in tried(saved, tmp_path, monkeypatch, change)


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts["workload"]["sizes"].__setitem__(0, 7),
        lambda facts: facts["workload"]["sizes"].__setitem__(4, 10**6 + 1),
        lambda facts: facts["workload"]["sizes"].__setitem__(4, 2**26),
        lambda facts: facts["workload"]["sizes"].__setitem__(4, 2**40),
        lambda facts: facts["workload"]["sizes"].append(2),
        lambda facts: facts["measured"]["groups"].append(facts["measured"]["groups"][0]),
        lambda facts: facts["measured"].update(groups=[]),
        lambda facts: facts["measured"].update(groups={"a": 1}),
        lambda facts: facts["measured"].update(bits=63),
        lambda facts: facts["measured"]["groups"][0].update(terms=2**26),
        lambda facts: facts["measured"]["groups"][0].update(sets=-1),
        lambda facts: facts["measured"]["groups"][0].update(axes=[[0], [1], [2], [3]]),
        lambda facts: facts["measured"]["groups"][0].update(axes=[[0], [1], [2], [3], [3]]),
        lambda facts: facts["measured"]["groups"][0].update(axes=[[0], [1], [2], [3], [True]]),
        lambda facts: facts["measured"]["groups"][0].update(axes=[[], [0], [1], [2], [3], [4]]),
        lambda facts: facts["measured"]["groups"][0].update(bases=[[0, 2**26]]),
        lambda facts: facts["measured"]["groups"][0].update(bases=[[9, 1]]),
        lambda facts: facts["measured"]["groups"][0].update(bases=[[0, 1], [0, 1]]),
        lambda facts: facts["measured"]["groups"][0].update(bases=[[0, -1]]),
        lambda facts: facts["measured"]["groups"][0].update(labels=[4, 4]),
        lambda facts: facts["measured"]["groups"][0].update(labels=[9]),
        lambda facts: facts["measured"]["groups"][0].update(extra=1),
    ],
)
def test_facts_that_do_not_fit(saved, tmp_path, monkeypatch, change):
    assert tried(saved, tmp_path, monkeypatch, lambda pieces, facts: change(facts))


def test_fused_axes_do_not_fill_the_memory(saved, tmp_path, monkeypatch):
    """Six attributes of a million values as one axis have 10^36."""

    def change(pieces, facts):
        group = pieces.group
        group["axes"] = [[0, 1, 2, 3, 4]]
        group["labels"], group["bases"] = [], []
        facts["workload"]["sizes"] = [10**6] * 5

    tried(saved, tmp_path, monkeypatch, change)


def _small_plan(path, change):
    """A plan for two tables whose groups are then edited by ``change(group, integers)``."""
    lrm.plan(families.products([50, 40, 10**6], [["identity", "identity", "total"]])).save(path)

    def edit(facts, arrays):
        arrays["measured"] = change(facts["measured"]["groups"][0], arrays["measured"])

    return resealed(path, edit)


def test_bases_of_very_many_rows_do_not_fill_the_memory(tmp_path):
    """The reconstruction had a matrix of rows x rows: a file of 8 MB took 8 TB."""

    def change(group, integers):
        group["bases"] = [[2, 10**6]]
        return np.concatenate([integers, [1], np.ones(10**6, dtype=np.int64)])

    with pytest.raises(FileFormatError, match="too many rows"):
        lrm.load_plan(_small_plan(tmp_path / "plan", change))


def test_strategies_beyond_the_memory_are_refused(tmp_path):
    def change(group, integers):
        group["labels"] = []
        return integers[: -(10**6)]  # each value of the last attribute for itself

    path = _small_plan(tmp_path / "plan", change)
    _, facts, arrays = unpacked(path)
    group = facts["measured"]["groups"][0]
    members = arrays["measured"][group["terms"] + group["sets"] :][: group["members"]]
    assert members.tolist() == [0, 1]

    def measure_all(facts, arrays):
        group = facts["measured"]["groups"][0]
        start = group["terms"]
        arrays["measured"] = np.insert(arrays["measured"], start + 1 + 2, 2)
        arrays["measured"][start] = 3
        group["members"] = 3

    with pytest.raises(FileFormatError, match="more than"):
        lrm.load_plan(resealed(path, measure_all))


def test_a_release_beyond_the_memory_is_refused(monkeypatch):
    plan = lrm.plan(lrm.families.marginals([3, 2], [1]), "marginals")
    monkeypatch.setattr("lrm.releases.making.MOST_MEASUREMENTS", 1)
    with pytest.raises(lrm.errors.UsageError, match="a release admits 1"):
        lrm.release(plan, [1] * 6, epsilon=1)


def test_permuted_values_are_answered_for_what_they_are(tmp_path, monkeypatch):
    """Labels that are a permutation were taken for no labels at all."""
    path = tmp_path / "plan"

    def change(group, integers):
        group["labels"] = [0, *group["labels"]]
        place = group["terms"] + 3 * group["sets"] + group["members"]
        return np.insert(integers, place, np.roll(np.arange(50), 1))

    restated(_small_plan(path, change), monkeypatch)
    plan = lrm.load_plan(path)
    counts = np.arange(50 * 40)
    table = tabulate(
        [
            type(one)((*one.labels[:2], np.zeros(1, dtype=np.int64)), one.by)
            for one in plan.measured.tabulations
        ],
        counts,
        (50, 40, 1),
    )
    found = plan.reconstruction_map.apply(plan.measured.measure(table) * 2.0**-plan.measured.bits)
    np.testing.assert_allclose(found, counts, atol=1e-6)


def test_plans_of_many_groups_are_read_again(tmp_path):
    """An archive has at most 64 members; a plan with a group for each of 30 tables had 130."""
    tables = [["identity" if i == k else "total" for i in range(30)] for k in range(30)]
    plan = lrm.plan(families.products([8] * 30, tables), "noise-on-results")
    assert len(plan.measured.groups) == 30
    plan.save(tmp_path / "plan")
    assert lrm.load_plan(tmp_path / "plan").digest == plan.digest
