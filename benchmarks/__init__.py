"""Benchmarks that stay with the project: `make bench`, or `python -m benchmarks NAME`.

- ``gates`` fail: plans that must not become worse, limits of time and memory, mutants, sizes.
- ``evidence`` prints the figures of the documentation.
- ``comparisons`` measures other methods and tools next to `lrm`.
- ``batches`` are what these plan.
"""
