"""The Low-Rank Mechanism: batches of counting queries under differential privacy.

>>> import lrm
>>> plan = lrm.plan([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
>>> round(plan.expected_squared_error(epsilon=1), 3)
8.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrm.domain import CsvForm as CsvForm
    from lrm.domain import Domain as Domain
    from lrm.errors import LrmError as LrmError
    from lrm.ledger import Ledger as Ledger
    from lrm.plans import Plan as Plan
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
    "CsvForm": "lrm.domain",
    "Domain": "lrm.domain",
    "Ledger": "lrm.ledger",
    "LrmError": "lrm.errors",
    "Plan": "lrm.plans",
    "PrivacyUnit": "lrm.privacy.unit",
    "Release": "lrm.releases",
    "Workload": "lrm.workload",
    "families": "lrm.workload",
    "load_plan": "lrm.plans.file",
    "load_release": "lrm.releases.file",
    "open_table": "lrm.tables",
    "plan": "lrm.plans.planner",
    "release": "lrm.releases",
}
"""Public name → module. Loaded on first use: ``lrm --help`` must not pay for NumPy."""

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
