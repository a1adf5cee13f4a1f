"""Batches of linear queries over the cells of a domain: by hand, by family, from files."""

from lrm.workload import families
from lrm.workload.answer_table import AnswerTable
from lrm.workload.core import EXPLICIT_QUERIES, Workload, check_listable, weigh_rows
from lrm.workload.cross_tabs import CrossTabs
from lrm.workload.label_parts import Group, Grouped, Label, Named, Numbered
from lrm.workload.labels import Labels, Names
from lrm.workload.numbered_labels import NumberedLabels
from lrm.workload.taken_labels import TakenLabels

__all__ = [
    "EXPLICIT_QUERIES",
    "AnswerTable",
    "CrossTabs",
    "Group",
    "Grouped",
    "Label",
    "Labels",
    "Named",
    "Names",
    "Numbered",
    "NumberedLabels",
    "TakenLabels",
    "Workload",
    "check_listable",
    "families",
    "weigh_rows",
]
