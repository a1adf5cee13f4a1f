"""Batches that benchmarks plan: panels, products of attributes, tables, and yearly reports."""
