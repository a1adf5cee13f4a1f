"""Batches of linear queries over the cells of a domain: by hand, by family, from files."""

from lrm.workload import families
from lrm.workload.answer_table import AnswerTable, find_query, group_titles
from lrm.workload.core import EXPLICIT_QUERIES, MOST_LISTED, Workload, check_listable, weigh_rows
from lrm.workload.cross_tabs import CrossTabs
from lrm.workload.derived import Block, Computed, Derived, Method, Quantile, derived_from_facts
from lrm.workload.formulas import Dual, Formula, Step
from lrm.workload.label_columns import LabelColumns, Span, spans_of
from lrm.workload.label_parts import Group, Grouped, Label, Named, Numbered
from lrm.workload.labels import Labels, Names
from lrm.workload.numbered_labels import NumberedLabels
from lrm.workload.statements import Column, Kind, Statement
from lrm.workload.taken_labels import TakenLabels

__all__ = [
    "EXPLICIT_QUERIES",
    "MOST_LISTED",
    "AnswerTable",
    "Block",
    "Column",
    "Computed",
    "CrossTabs",
    "Derived",
    "Dual",
    "Formula",
    "Group",
    "Grouped",
    "Kind",
    "Label",
    "LabelColumns",
    "Labels",
    "Method",
    "Named",
    "Names",
    "Numbered",
    "NumberedLabels",
    "Quantile",
    "Span",
    "Statement",
    "Step",
    "TakenLabels",
    "Workload",
    "check_listable",
    "derived_from_facts",
    "families",
    "find_query",
    "group_titles",
    "spans_of",
    "weigh_rows",
]
