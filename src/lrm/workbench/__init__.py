"""The workbench: a local page where a batch is written, planned, rated and released.

The files of one folder are the state. The page shows their state, and
plans, dry runs and releases are made as the command line makes them, in processes of their own.
"""
