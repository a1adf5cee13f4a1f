"""The public facts of a table: attributes, their numbered cells, whom the guarantee protects."""

from lrm.domain.attributes import Attribute, Categories, Rule
from lrm.domain.bins import Bins
from lrm.domain.core import Domain
from lrm.domain.csv_form import CsvForm
from lrm.domain.editions import Editions
from lrm.domain.lookups import Lookup
from lrm.domain.numbers import Numbers
from lrm.domain.ordered import Dates, Integers, Period, SteppedAttribute
from lrm.privacy.unit import PrivacyUnit

__all__ = [
    "Attribute",
    "Bins",
    "Categories",
    "CsvForm",
    "Dates",
    "Domain",
    "Editions",
    "Integers",
    "Lookup",
    "Numbers",
    "Period",
    "PrivacyUnit",
    "Rule",
    "SteppedAttribute",
]
