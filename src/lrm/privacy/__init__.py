"""Exact amounts, guarantees, the privacy unit, exact noise, and where noise meets counts."""
