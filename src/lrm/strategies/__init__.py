"""Workload to strategy: every mechanism behind one interface."""
