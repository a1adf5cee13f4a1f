"""The paper's whole study: grid → plans → rows → figures → claims.

``python -m study run`` computes rows, ``plot`` draws them, and ``claims`` tests the paper's
statements. The counts used here are not private; the noise is simulated from a seed and
guarantees nothing.
"""
