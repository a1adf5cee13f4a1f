"""Budgets of tables, kept in a file or database and spent before data is read."""

from lrm.ledger.core import Ledger
from lrm.ledger.entries import Budget, Entry, Kind, Unit

__all__ = ["Budget", "Entry", "Kind", "Ledger", "Unit"]
