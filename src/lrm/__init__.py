"""The Low-Rank Mechanism: batches of counting queries under differential privacy.

>>> import lrm
>>> plan = lrm.plan([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
>>> round(plan.expected_squared_error(epsilon="0.1"))
800
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lrm import rendering

if TYPE_CHECKING:
    from lrm.batches import marginals as marginals
    from lrm.batches import prefix as prefix
    from lrm.batches import products as products
    from lrm.batches import ranges as ranges
    from lrm.batches import read_batch as read_batch
    from lrm.batches import sql as sql
    from lrm.batches import stack as stack
    from lrm.batches import total as total
    from lrm.batches import where as where
    from lrm.batches import with_importance as with_importance
    from lrm.domain import Bins as Bins
    from lrm.domain import Categories as Categories
    from lrm.domain import CsvForm as CsvForm
    from lrm.domain import Dates as Dates
    from lrm.domain import Domain as Domain
    from lrm.domain import Integers as Integers
    from lrm.domain import Lookup as Lookup
    from lrm.domain import Numbers as Numbers
    from lrm.domain.file import read_domain as read_domain
    from lrm.errors import LrmError as LrmError
    from lrm.ledger import Ledger as Ledger
    from lrm.plans import Plan as Plan
    from lrm.plans.comparison import compare as compare
    from lrm.plans.file import load_plan as load_plan
    from lrm.plans.planner import plan as plan
    from lrm.privacy.unit import PrivacyUnit as PrivacyUnit
    from lrm.releases import Release as Release
    from lrm.releases import release as release
    from lrm.releases.file import load_release as load_release
    from lrm.tables import open_table as open_table
    from lrm.workload import Workload as Workload
    from lrm.workload import families as families

_HOMES = {
    "Bins": "lrm.domain",
    "Numbers": "lrm.domain",
    "Categories": "lrm.domain",
    "CsvForm": "lrm.domain",
    "Dates": "lrm.domain",
    "Domain": "lrm.domain",
    "Integers": "lrm.domain",
    "Ledger": "lrm.ledger",
    "Lookup": "lrm.domain",
    "LrmError": "lrm.errors",
    "Plan": "lrm.plans",
    "PrivacyUnit": "lrm.privacy.unit",
    "Release": "lrm.releases",
    "Workload": "lrm.workload",
    "compare": "lrm.plans.comparison",
    "families": "lrm.workload",
    "load_plan": "lrm.plans.file",
    "load_release": "lrm.releases.file",
    "marginals": "lrm.batches",
    "open_table": "lrm.tables",
    "plan": "lrm.plans.planner",
    "prefix": "lrm.batches",
    "products": "lrm.batches",
    "ranges": "lrm.batches",
    "read_batch": "lrm.batches",
    "read_domain": "lrm.domain.file",
    "release": "lrm.releases",
    "sql": "lrm.batches",
    "stack": "lrm.batches",
    "total": "lrm.batches",
    "where": "lrm.batches",
    "with_importance": "lrm.batches",
}
"""Public name → module. Loaded on first use: ``lrm --help`` must not import NumPy."""

rendering.connect(lambda: import_module("lrm.views.notebook"))

__all__ = [*sorted(_HOMES), "__version__"]  # noqa: PLE0604 - built from one list


def __getattr__(name: str) -> Any:
    if name == "__version__":  # importlib.metadata alone takes half of `lrm --help`
        from importlib.metadata import version  # noqa: PLC0415

        return version("lrm")
    if name not in _HOMES:
        raise AttributeError(f"module 'lrm' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
