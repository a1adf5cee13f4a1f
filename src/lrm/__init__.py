"""The Low-Rank Mechanism: batches of counting queries under differential privacy.

>>> import lrm
>>> plan = lrm.plan([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
>>> round(plan.expected_squared_error(epsilon="0.1"))
800
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrm.domain import Bins as Bins
    from lrm.domain import Categories as Categories
    from lrm.domain import CsvForm as CsvForm
    from lrm.domain import Dates as Dates
    from lrm.domain import Domain as Domain
    from lrm.domain import Editions as Editions
    from lrm.domain import Integers as Integers
    from lrm.domain import Lookup as Lookup
    from lrm.domain import Numbers as Numbers
    from lrm.domain.features import Feature as Feature
    from lrm.domain.file import read_domain as read_domain
    from lrm.domain.people import People as People
    from lrm.domain.private_tables import PrivateTable as PrivateTable
    from lrm.errors import LrmError as LrmError
    from lrm.ledger import Ledger as Ledger
    from lrm.planning.plan import Plan as Plan
    from lrm.planning.plan.comparison import compare as compare
    from lrm.planning.plan.file import load_plan as load_plan
    from lrm.planning.plan.planner import plan as plan
    from lrm.privacy.unit import GroupLimit as GroupLimit
    from lrm.privacy.unit import PrivacyUnit as PrivacyUnit
    from lrm.queries.builders import marginals as marginals
    from lrm.queries.builders import prefix as prefix
    from lrm.queries.builders import products as products
    from lrm.queries.builders import ranges as ranges
    from lrm.queries.builders import total as total
    from lrm.queries.builders import where as where
    from lrm.queries.builders import with_importance as with_importance
    from lrm.queries.files import read_batch as read_batch
    from lrm.queries.sql import sql as sql
    from lrm.queries.workload import Workload as Workload
    from lrm.queries.workload import families as families
    from lrm.queries.workload.families import stack as stack
    from lrm.releases import Release as Release
    from lrm.releases import release as release
    from lrm.releases.file import load_release as load_release
    from lrm.releases.known import KnownTable as KnownTable
    from lrm.releases.series import Series as Series
    from lrm.tables import open_table as open_table

_HOMES = {
    "Bins": "lrm.domain",
    "Numbers": "lrm.domain",
    "Categories": "lrm.domain",
    "CsvForm": "lrm.domain",
    "Editions": "lrm.domain",
    "Dates": "lrm.domain",
    "Domain": "lrm.domain",
    "Feature": "lrm.domain.features",
    "Integers": "lrm.domain",
    "Ledger": "lrm.ledger",
    "KnownTable": "lrm.releases.known",
    "Lookup": "lrm.domain",
    "LrmError": "lrm.errors",
    "People": "lrm.domain.people",
    "Plan": "lrm.planning.plan",
    "GroupLimit": "lrm.privacy.unit",
    "PrivacyUnit": "lrm.privacy.unit",
    "PrivateTable": "lrm.domain.private_tables",
    "Release": "lrm.releases",
    "Series": "lrm.releases.series",
    "Workload": "lrm.queries.workload",
    "compare": "lrm.planning.plan.comparison",
    "families": "lrm.queries.workload",
    "load_plan": "lrm.planning.plan.file",
    "load_release": "lrm.releases.file",
    "marginals": "lrm.queries.builders",
    "open_table": "lrm.tables",
    "plan": "lrm.planning.plan.planner",
    "prefix": "lrm.queries.builders",
    "products": "lrm.queries.builders",
    "ranges": "lrm.queries.builders",
    "read_batch": "lrm.queries.files",
    "read_domain": "lrm.domain.file",
    "release": "lrm.releases",
    "sql": "lrm.queries.sql",
    "stack": "lrm.queries.workload.families",
    "total": "lrm.queries.builders",
    "where": "lrm.queries.builders",
    "with_importance": "lrm.queries.builders",
}
"""Public name → module. Loaded on first use: ``lrm --help`` must not import NumPy."""

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
