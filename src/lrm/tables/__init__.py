"""Private tables on real engines, counted by the cells of a public domain."""

from lrm.tables.base import Table
from lrm.tables.opening import open_table

__all__ = ["Table", "open_table"]
