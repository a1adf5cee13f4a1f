"""Plans: what will be measured for a workload, how they are made, compared and stored."""

from lrm.plans.core import Plan

__all__ = ["Plan"]
