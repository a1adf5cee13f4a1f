"""The public facts of a table: attributes, their numbered cells, whom the promise protects."""

from lrm.domain.attributes import Attribute, Categories, Rule
from lrm.domain.bins import Bins
from lrm.domain.core import Domain
from lrm.domain.ordered import Dates, Integers, Period, SteppedAttribute
from lrm.privacy.unit import PrivacyUnit

__all__ = [
    "Attribute",
    "Bins",
    "Categories",
    "Dates",
    "Domain",
    "Integers",
    "Period",
    "PrivacyUnit",
    "Rule",
    "SteppedAttribute",
]
