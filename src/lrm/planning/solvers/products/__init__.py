"""Strategies for batches over products of attributes; nothing has the size of the product."""
