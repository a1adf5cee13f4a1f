"""One small basis repeated over blocks of cells, below rows over the blocks.

Over tens of thousands of cells rows in addition to the identity would have to be thousands. So the
cells of each block of 16 are measured by one basis S, with L1 columns of norm 1, and the rows
Θ over the blocks see the totals of these. With ``H = (SᵀS)⁻¹``, ``h = H·1`` and ``s = 1 + Σ|Θ|``
the error is that of `lrm.solvers.sparse_rows` over blocks, with ``widths = 1ᵀH1``, energies
``tr(H·G_cc)`` of the diagonal blocks G_cc of WᵀW, and ``WᵀW`` summed over blocks with weights h.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lrm.exact.plus_rows import BLOCK
from lrm.maps.words import chain_blocks
from lrm.solvers import settings
from lrm.solvers.extra_rows import assemble, optimise_extra_rows
from lrm.solvers.gram_operators import ChainGram

__all__ = ["BLOCK", "local_basis", "local_gram", "local_strategy"]

Matrix = NDArray[np.float64]


def local_basis() -> Matrix:
    """A basis for the prefix sums within a block and its total, of L1 columns of norm 1.

    >>> np.abs(local_basis()).sum(axis=0).round(9).tolist() == BLOCK * [1.0]
    True
    """
    W = np.vstack([np.tri(BLOCK), np.full((1, BLOCK), settings.LOCAL_TOTAL_WEIGHT)])
    rng = np.random.default_rng(0)
    tried = [
        optimise_extra_rows(
            W, 0.5 * rng.random((settings.LOCAL_BASIS_ROWS, BLOCK)), nonnegative=True
        )
        for _ in range(settings.LOCAL_TRIES)
    ]
    best = min(tried, key=lambda candidate: candidate.error)
    return np.asarray(assemble(W, best.rows)[1].toarray())


def local_gram(chain: tuple[Matrix, Matrix], basis: Matrix) -> ChainGram:
    """``WᵀW`` of prefix sums or all ranges (`LinearMap.gram_chain`), over blocks."""
    inverse = np.linalg.inv(basis.T @ basis)
    weights = inverse.sum(axis=1)
    blocks = chain_blocks(*chain, BLOCK)
    left, right = (values.reshape(-1, BLOCK) @ weights for values in chain)
    energies = np.einsum("cij,ij->c", blocks, inverse)
    inside = np.einsum("cij,i,j->c", blocks, weights, weights)
    widths = np.full(len(blocks), weights.sum())
    return ChainGram(widths, energies, left, right, inside - left * right)


def local_strategy(rows: sp.csr_array, basis: Matrix) -> sp.csr_array:
    """The basis over each block, and the rows over blocks spread over their cells."""
    blocks = rows.shape[1]
    shares = np.repeat(1.0 / (1.0 + np.asarray(abs(rows).sum(axis=0)).ravel()), BLOCK)
    local = sp.kron(sp.eye_array(blocks), sp.csr_array(basis), format="csr")
    busy = np.flatnonzero(np.diff(rows.indptr))
    spread = sp.csr_array(rows)[busy][:, np.repeat(np.arange(blocks), BLOCK)]
    return sp.csr_array(sp.vstack([local, spread]) @ sp.diags_array(shares))
