"""Batches over products of attributes: one small factor per attribute and term."""
