"""All kinds of bases of one attribute, by the name that files have for them.

A new kind is a class of `ProductBasis` in a file of its own, a line here, and a call in the
mechanism or search that measures it (``CONTRIBUTING.md``).
"""

from __future__ import annotations

from lrm.planning.design.products.basis import MarginalBasis, ProductBasis
from lrm.planning.design.products.residuals import ResidualBasis
from lrm.planning.design.products.trees import TreeBasis

KINDS: dict[str, type[ProductBasis]] = {
    MarginalBasis.kind: MarginalBasis,
    ResidualBasis.kind: ResidualBasis,
    TreeBasis.kind: TreeBasis,
}
