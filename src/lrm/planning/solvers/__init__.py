"""Optimisers over plain arrays: they know nothing of privacy, files or clocks."""
