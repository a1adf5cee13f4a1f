"""Plans: what will be measured for a workload, how they are made, compared and stored."""

from lrm.planning.plan.core import Plan

__all__ = ["Plan"]
