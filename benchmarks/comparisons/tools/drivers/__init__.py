"""Drivers: each file runs in the environment of its tool, and imports that tool alone.

A driver is called as ``python DRIVER job.json answers.json``. The job has ``table`` (a CSV file),
``epsilon``, ``runs`` and ``asks``, a list of ``{"by": columns, "keys": groups}`` with all groups
that are public. The driver writes ``{"runs": […]}``: for each run and ask, one count per group,
in the order of the keys; null where the tool does not give the group. Each run is one use of
the whole ε.
"""
