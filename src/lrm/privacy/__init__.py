"""Exact amounts, promises, the privacy unit, exact noise, and where noise meets counts."""
