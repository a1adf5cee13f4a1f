"""Symmetric convex bodies and exact noise of density ∝ exp(−‖z‖/scale) in their norms."""
