"""The public facts of a table: attributes, their numbered cells, whom the promise protects."""

from lrm.domain.attributes import Attribute, Categories, Rule
from lrm.domain.bins import Bins
from lrm.domain.core import Domain, NeighbourKind, PrivacyUnit
from lrm.domain.ordered import Dates, Integers, Period, SteppedAttribute

__all__ = [
    "Attribute",
    "Bins",
    "Categories",
    "Dates",
    "Domain",
    "Integers",
    "NeighbourKind",
    "Period",
    "PrivacyUnit",
    "Rule",
    "SteppedAttribute",
]
