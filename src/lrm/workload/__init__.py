"""Batches of linear queries over the cells of a domain: by hand, by family, from files."""

from lrm.workload import families
from lrm.workload.answer_table import AnswerTable
from lrm.workload.core import EXPLICIT_QUERIES, Workload, check_listable, weigh_rows
from lrm.workload.label_parts import Group, Grouped, Label, Named, Numbered, TakenLabels
from lrm.workload.labels import Labels, Names

__all__ = [
    "EXPLICIT_QUERIES",
    "AnswerTable",
    "Group",
    "Grouped",
    "Label",
    "Labels",
    "Named",
    "Names",
    "Numbered",
    "TakenLabels",
    "Workload",
    "check_listable",
    "families",
    "weigh_rows",
]
