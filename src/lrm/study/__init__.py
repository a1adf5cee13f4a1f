"""The paper's whole study: grid → plans → rows → figures → claims.

``lrm study run`` computes rows, ``lrm study plot`` draws them, ``lrm study claims`` puts the
paper's sentences to the test. Everything here works on counts that are not private, with
noise that is simulated from a seed and promises nothing.
"""
