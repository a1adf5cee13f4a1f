"""Budgets of tables, kept in a file or database and spent before data is read."""

from lrm.ledger.core import Ledger
from lrm.ledger.entries import Accounting, Budget, Entry, Kind

__all__ = ["Accounting", "Budget", "Entry", "Kind", "Ledger"]
