"""Exact arithmetic: reductions that lose nothing, integer strategies, and reconstruction."""
