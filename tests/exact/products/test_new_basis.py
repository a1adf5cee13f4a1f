"""The kind of basis that CONTRIBUTING.md adds: planned, rounded, saved, loaded, released."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import lrm
from lrm.errors import FileFormatError
from lrm.planning.design.products.axes import axes_of
from lrm.planning.design.products.basis import MarginalBasis
from lrm.planning.design.products.kinds import KINDS
from lrm.planning.design.products.quadratic import Quadratic
from lrm.planning.design.products.strategy import Group, Marginals, ProductStrategy, marginals_error
from lrm.planning.design.products.subsets import masks_of
from lrm.planning.plan.proposals import Proposal
from lrm.planning.strategies import products
from lrm.planning.strategies.base import Problem, ProductChoice
from lrm.privacy.norms import L1, L2
from lrm.queries.maps.products.batch import product_batch
from lrm.queries.maps.products.map import ProductMap

PAGE = Path(__file__).parents[3] / "CONTRIBUTING.md"
BATCH = product_batch(
    [8, 5], [["prefix", "identity"], ["all-ranges", "total"], ["total", "prefix"]]
)


@pytest.fixture
def haar(monkeypatch):
    """The class of the page, among the kinds of bases."""
    section = PAGE.read_text(encoding="utf-8").split("## A new kind of basis")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    module = ModuleType("haar")
    monkeypatch.setitem(sys.modules, "haar", module)
    exec(code, module.__dict__)  # noqa: S102 - what CONTRIBUTING.md shows
    monkeypatch.setitem(KINDS, "haar", module.HaarBasis)
    return module.HaarBasis


def planned(haar, norm):
    """A plan that measures both attributes by wavelets, and their totals."""
    sets = masks_of(np.array([[True, True], [True, False]]))
    marginals = Marginals(sets, np.array([0.7, 0.3]), (haar.even(8), haar.even(5)))
    axes = axes_of([np.arange(8), np.arange(5)])
    error = marginals_error(Quadratic(BATCH), marginals)
    strategy = ProductStrategy((Group(np.arange(BATCH.terms), axes, marginals, error),), error)
    problem = Problem(lrm.Workload(ProductMap(BATCH)))
    return strategy, Proposal(problem, ProductChoice("marginals", strategy), norm).plan()


@pytest.mark.parametrize(("norm", "amount"), [(L1(), {"epsilon": 1}), (L2(), {"rho": 1})])
def test_a_wavelet_is_planned_rounded_saved_and_released(haar, norm, amount, tmp_path):
    strategy, plan = planned(haar, norm)
    L, W = plan.measured.flat().real_matrix(), BATCH.dense()
    B = W @ np.linalg.pinv(L)
    assert np.abs(L).sum(axis=0).max() == pytest.approx(
        plan.measured.sensitivity * 2.0**-plan.measured.bits
    )
    assert strategy.error == pytest.approx(
        (B * B).sum() * np.abs(L).sum(axis=0).max() ** 2, rel=1e-3
    )
    np.testing.assert_allclose(plan.reconstruction_map.row_squared_norms, (B * B).sum(axis=1))
    plan.save(tmp_path / "plan.lrm")
    again = lrm.load_plan(tmp_path / "plan.lrm")
    assert again.measured.digest == plan.measured.digest
    counts = np.arange(40)
    release = lrm.release(again, counts, **amount, ledger=None)
    release.save(tmp_path / "release.lrm")
    answers = lrm.load_release(tmp_path / "release.lrm").answers
    np.testing.assert_array_equal(answers, release.answers)
    errors = plan.accuracy(plan.privacy(**amount)).standard_errors
    assert np.all(np.abs(answers - W @ counts) <= 12 * errors)


def test_a_file_with_a_basis_of_no_known_kind_is_refused(haar, tmp_path, monkeypatch):
    planned(haar, L1())[1].save(tmp_path / "plan.lrm")
    monkeypatch.delitem(KINDS, "haar")
    with pytest.raises(FileFormatError, match="a basis must be of the kind 'marginal'"):
        lrm.load_plan(tmp_path / "plan.lrm")


def test_a_mechanism_over_products_has_it_by_one_call(haar, monkeypatch, tmp_path):
    def wavelet(problem, search):
        return products.product_of_bases(problem, "wavelet", lambda _, n: haar.even(n))

    monkeypatch.setattr(products, "wavelet", wavelet)
    sizes = {"age": 90, "region": 40, "pay": 30}
    domain = lrm.Domain([lrm.Integers(name, 0, n - 1) for name, n in sizes.items()], "t")
    batch = """SELECT age, COUNT(*) FROM t WHERE pay > 20 GROUP BY age;
        SELECT COUNT(*) FROM t WHERE region BETWEEN 3 AND 21"""
    plan = lrm.plan(batch, "wavelet", domain=domain)
    plan.save(tmp_path / "plan.lrm")
    assert lrm.load_plan(tmp_path / "plan.lrm").measured.digest == plan.measured.digest
    assert {basis.kind for basis in plan.measured.groups[0].bases} == {"haar"}
    assert plan.reconstruction_map.relative_residual < 1e-12


def test_one_attribute_has_it_beside_others_with_identities(haar):
    """A mechanism chooses the basis of each attribute by its number."""
    problem = Problem(lrm.Workload(ProductMap(BATCH)))
    choice = products.product_of_bases(
        problem, "wavelet", lambda i, n: haar.even(n) if i == 0 else MarginalBasis.identity(n)
    )
    plan = Proposal(problem, choice, L1()).plan()
    assert [basis.kind for basis in plan.measured.groups[0].bases] == ["haar", "marginal"]
    L, W = plan.measured.flat().real_matrix(), BATCH.dense()
    norms = ((W @ np.linalg.pinv(L)) ** 2).sum(axis=1)
    np.testing.assert_allclose(plan.reconstruction_map.row_squared_norms, norms)
