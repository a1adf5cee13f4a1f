"""Genuine files of every format, small ones, for the fuzzer to damage."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

import lrm
from lrm.domain import Domain, Integers
from lrm.domain.file import parse_domain, write_domain
from lrm.ledger import Ledger
from lrm.privacy.budget import ZCDP, PureDP
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.sql import sql
from lrm.queries.workload import families

DOMAIN = """\
lrm-domain: 1
table: visits
unit: {column: patient, max_rows: 2, neighbours: substitute}
attributes:
  - {name: sex, kind: categories, values: [f, m, "x, y"], null: drop, outside: cell}
  - {name: age, kind: integers, low: 0, high: 9, width: 5, null: cell, outside: drop}
"""
BATCH = """\
lrm-batch: 1
queries:
  - {kind: total, importance: 5}
  - {kind: marginals, of: [[sex], [sex, age]], name: cross}
  - {kind: ranges, attribute: age, of: [[0, 4], [0, 9]], by: [sex], name: groups}
  - {kind: prefix, attribute: age, where: "sex = 'f'", name: cumulated}
  - kind: sql
    text: |
      SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex;
    importance: {n: 2}
"""
SQL = """\
SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex;
SELECT COUNT(*) AS young FROM visits WHERE age < 5 AND sex IN ('f', 'x, y');
SELECT SUM(CASE WHEN sex = 'm' THEN 2 ELSE 0.5 END) AS score FROM visits;
"""
DERIVED = """\
SELECT sex, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY sex HAVING n > 2 ORDER BY n;
SELECT MEDIAN(age) AS middle FROM visits;
"""
MATRIX = np.array([[1.0, 1.0, 0.0, 2.0], [0.0, 1.0, 1.0, 0.0], [0.5, 0.5, 0.0, 1.0]])
MECHANISMS = ("noise-on-data", "noise-on-results", "wavelet", "hierarchical", "lowrank", "best")


def make_seeds(folder: Path) -> list[Path]:
    """Write files of each format and form into ``folder``."""
    domain = parse_domain(DOMAIN)
    _plans_and_releases(folder, sql(SQL, domain))
    _derived(folder, domain)
    _matrices(folder)
    _counts(folder)
    write_domain(domain, folder / "domain.yaml")
    (folder / "batch.yaml").write_text(BATCH, encoding="utf-8")
    (folder / "batch.sql").write_text(SQL, encoding="utf-8")
    _ledger(folder)
    return sorted(folder.iterdir())


def _plans_and_releases(folder, grouped):
    workloads = {
        "matrix": lrm.Workload(MATRIX, names=["a", "b, c", "=d"], importance=[1, 2, 3]),
        "prefix": families.prefix(6),
        "ranges": families.all_ranges(4),
        "sparse": lrm.Workload(families.ranges(16, [(0, 7), (4, 11), (3, 3)]).queries.sparse()),
        "some-ranges": families.ranges(16, [(0, 7), (4, 11), (3, 3)]),
        "sql": grouped,
    }
    for number, (name, workload) in enumerate(workloads.items()):
        for place, mechanism in enumerate(MECHANISMS):
            noise = "gaussian" if (number + place) % 3 == 0 else "laplace"
            options = {"effort": "quick"} if mechanism == "best" else {}
            plan = lrm.plan(workload, mechanism, noise=noise, **options)
            plan.save(folder / f"{name}-{mechanism}.plan")
            if (number + place) % 2:
                promise = {"epsilon": "0.5"} if noise == "laplace" else {"rho": "0.1"}
                counts = list(range(workload.shape[1]))
                release = lrm.release(plan, counts, **promise)
                release.save(folder / f"{name}-{mechanism}.release")
    _products(folder)
    relaxed = lrm.plan(MATRIX, "lowrank", exact=False, gamma=0.5)
    relaxed.save(folder / "relaxed-lowrank.plan")


def _derived(folder, domain):
    """Rates, averages and quantiles, shown in an order and from a threshold on."""
    narrow = [domain.attributes[0], Integers("age", 0, 9, null="cell", outside="drop")]
    plan = lrm.plan(sql(DERIVED, Domain(narrow, domain.table, domain.unit)), "noise-on-data")
    plan.save(folder / "derived.plan")
    lrm.release(plan, list(range(plan.workload.shape[1])), 1).save(folder / "derived.release")


def _products(folder):
    """Plans over products: marginals, trees, dropped and merged values, residuals, groups."""
    some = [[1, 1, 0, 0], [0, 0, 1, 0]]
    prefixes = [["prefix", "total", "total"], ["identity", "identity", "total"]]
    terms = [["identity", some, "total"], ["total", some, "identity"]]
    # Of so many values that no list of cells is made; nothing is asked about the last attribute.
    sizes = [6, 4, 3, 1 << 17]
    longer = [[*term, "total"] for term in prefixes], [[*term, "total"] for term in terms]
    thirds = np.kron(np.eye(3), np.ones((1, 4)))
    fine = [
        ["identity", *["total"] * 2],
        [thirds, "identity", "total"],
        ["total", "identity", "total"],
    ]
    made = {
        "combined": lrm.plan(
            families.products([12, 4, 1 << 17], fine), noise="laplace", effort="quick"
        ),
        "folded": lrm.plan(families.marginals([2] * 13, [1]), noise="laplace", effort="quick"),
        "marginals": lrm.plan(families.products(sizes[:3], prefixes), "marginals"),
        "dropped": lrm.plan(families.products(sizes, longer[1]), noise="laplace", effort="quick"),
        "tree": lrm.plan(families.products(sizes, longer[0]), "hierarchical"),
        "residual": lrm.plan(families.products(sizes, longer[0]), noise="gaussian", effort="quick"),
        "tables": lrm.plan(families.marginals([3, 2, 2, 1 << 19], [1]), "noise-on-results"),
        "small": lrm.plan(families.products([6, 4, 3], prefixes), noise="gaussian"),
    }
    assert made["combined"].measured.combined
    assert any(map(any, (group.folds for group in made["folded"].measured.groups)))
    for name, plan in made.items():
        plan.save(folder / f"products-{name}.plan")
    for name, promise in {"marginals": {"epsilon": 1}, "small": {"rho": 1}}.items():
        release = lrm.release(made[name], list(range(72)), **promise)
        release.save(folder / f"products-{name}.release")


def _matrices(folder):
    np.save(folder / "w.npy", MATRIX)
    np.savez(folder / "dense.npz", MATRIX)
    for form in ("csr", "csc", "coo"):
        sp.save_npz(folder / f"{form}.npz", sp.csr_array(MATRIX).asformat(form))
    (folder / "w.csv").write_text("query,a,b\nyoung,1,0.5\nold,-2,1e-3\n", encoding="utf-8")
    columns = {"query": ["x", "y", "z"]} | {f"c{j}": MATRIX[:, j] for j in range(4)}
    pq.write_table(pa.table(columns), folder / "w.parquet")


def _counts(folder):
    counts = np.array([3, 1, 4, 1, 5])
    np.save(folder / "counts.npy", counts)
    (folder / "counts.csv").write_text("n\n3\n1\n4\n", encoding="utf-8")
    pq.write_table(pa.table({"n": counts}), folder / "counts.parquet")


def _ledger(folder):
    ledger = Ledger.open(str(folder / "ledger.sqlite"))
    ledger.create("people", "2", "epsilon")
    ledger.create("visits", "1/2", "rho")
    row = PrivacyUnit()
    ledger.spend("people", PureDP(Fraction(1, 4)), unit=row, purpose="plan 1")
    ledger.spend("visits", ZCDP(Fraction(1, 100)), unit=row, purpose="plan 2")
