"""Strategies over products of attributes: what they measure, and what follows from it."""
