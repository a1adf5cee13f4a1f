"""Batches of linear queries over the cells of a domain: by hand, by family, from files."""

from lrm.queries.workload import families
from lrm.queries.workload.core import (
    EXPLICIT_QUERIES,
    MOST_LISTED,
    Workload,
    check_listable,
    weigh_rows,
)
from lrm.queries.workload.derived import (
    Block,
    Computed,
    Derived,
    Method,
    Quantile,
    derived_from_facts,
)
from lrm.queries.workload.formulas import Dual, Formula, Step
from lrm.queries.workload.label_blocks import Group, Label, LabelBlock, NumberedLabels
from lrm.queries.workload.labels import Labels, Names, TakenLabels
from lrm.queries.workload.statements import Column, Kind, Statement
from lrm.queries.workload.uses import Uses

__all__ = [
    "EXPLICIT_QUERIES",
    "MOST_LISTED",
    "Block",
    "Column",
    "Computed",
    "Derived",
    "Dual",
    "Formula",
    "Group",
    "Kind",
    "Label",
    "LabelBlock",
    "Labels",
    "Method",
    "Names",
    "NumberedLabels",
    "Quantile",
    "Statement",
    "Step",
    "TakenLabels",
    "Uses",
    "Workload",
    "check_listable",
    "derived_from_facts",
    "families",
    "weigh_rows",
]
