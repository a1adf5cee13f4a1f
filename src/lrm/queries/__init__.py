"""Batches of queries: linear maps, labelled workloads, and SQL, YAML and builders that make them.

Every way ends in a `Workload`, so that the parts of a batch may come from several of them;
`lrm.stack` joins them.
"""
