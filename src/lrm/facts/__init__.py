"""What plans, comparisons, releases and budgets tell: computed here once, rendered elsewhere.

Functions that end in ``facts`` return values that JSON can hold. Those that end in ``lines`` or
``rows`` return the same as text; the command line, pages and notebooks lay it out.
"""
