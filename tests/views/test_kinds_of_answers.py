"""Counts, sums and derived answers have errors of their own; none is averaged with another."""

import lrm
from lrm.domain.file import domain_text
from lrm.views.statement_errors import StatementErrors, statement_parts, typical_count
from lrm.workbench.compiling import Compiler, asked_statements
from lrm.workbench.folder import Text

TEXT = """
SELECT shop, COUNT(*) AS n, SUM(items) AS sold FROM orders GROUP BY shop;
SELECT SUM(amount) AS revenue FROM orders;
SELECT COUNT(*) FILTER (WHERE items > 1 OR shop = 'a') AS some FROM orders;
SELECT SUM(CASE WHEN items > 2 THEN 1 ELSE 0 END) AS many FROM orders;
"""
KINDS = [("count", 2), ("sum", 2), ("sum", 1), ("count", 1), ("count", 1)]
SEVERAL = [
    lrm.Categories("shop", ["a", "b"]),
    lrm.Integers("items", 1, 4),
    lrm.Numbers("amount", [0, 20, 100]),
]


def test_kinds_of_linear_answers():
    batch = lrm.sql(TEXT, lrm.Domain(SEVERAL, "orders"))
    parts = statement_parts(batch)
    assert [(part.kind, part.count) for part in parts] == KINDS
    assert [part.title for part in parts][:3] == [
        "n and sold by shop: counts",
        "n and sold by shop: sold",
        "revenue",
    ]


def test_kinds_over_a_list_of_cells():
    domain = lrm.Domain([lrm.Integers("items", 1, 4)], "orders")
    text = "SELECT COUNT(*) AS n FROM orders; SELECT SUM(items) AS sold FROM orders"
    assert [part.kind for part in statement_parts(lrm.sql(text, domain))] == ["count", "sum"]


def test_a_sum_does_not_change_the_error_of_a_count():
    batch = lrm.sql(TEXT, lrm.Domain(SEVERAL, "orders"))
    plan = lrm.plan(batch, "noise-on-data")
    errors = StatementErrors(plan).at(plan.accuracy(plan.privacy(epsilon=1)))
    counts = [error.typical for error in errors if error.part.kind == "count"]
    assert min(counts) <= typical_count(errors) <= max(counts)
    assert typical_count(errors) < max(error.typical for error in errors)


def test_the_page_names_the_same_parts_before_a_plan_is_made():
    domain = lrm.Domain(SEVERAL, "orders")
    outcome = Compiler().compile(Text("d.yaml", domain_text(domain)), Text("q.sql", TEXT))
    assert outcome.statements == asked_statements(lrm.sql(TEXT, domain))
