"""Benchmarks that stay with the project: `make bench`, or `python -m benchmarks NAME`."""
