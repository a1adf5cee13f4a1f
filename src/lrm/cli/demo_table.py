"""A synthetic table of patients, its domain, and a few questions. Nobody in it exists."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrm.domain import Domain
from lrm.domain.file import parse_domain
from lrm.files.writing import write_text
from lrm.queries.maps.linear import Floats
from lrm.queries.sql import sql

PATIENTS = 200_000
STATES = ("NY", "NJ", "CA", "WA", "TX", "FL", "IL", "MA")

DOMAIN = """\
lrm-domain: 1
table: patients
unit: row
attributes:
  - {name: state, kind: categories, values: [NY, NJ, CA, WA, TX, FL, IL, MA],
     null: drop, outside: drop}
  - {name: age, kind: integers, low: 0, high: 99, width: 20,
     null: drop, outside: drop}
  - {name: hiv, kind: categories, values: [negative, positive],
     null: drop, outside: drop}
"""

QUESTIONS = """\
SELECT state, hiv, COUNT(*) AS patients FROM patients GROUP BY state, hiv;
SELECT age, COUNT(*) AS positive FROM patients
  WHERE hiv = 'positive' GROUP BY age;
SELECT COUNT(*) AS east FROM patients
  WHERE hiv = 'positive' AND state IN ('NY', 'NJ', 'MA');
"""

FILES = ("patients.csv", "domain.yaml", "questions.sql")


@dataclass(frozen=True, eq=False)
class SyntheticPatients:
    """Made-up patients: one state, age in years and HIV status for each.

    >>> table = SyntheticPatients.generate(seed=0, patients=1_000)
    >>> int(table.counts().sum())
    1000
    """

    state: NDArray[np.int64]
    age: NDArray[np.int64]
    hiv: NDArray[np.int64]

    @classmethod
    def generate(cls, seed: int = 0, patients: int = PATIENTS) -> SyntheticPatients:
        """Draw patients: states by size, ages 0 to 99, HIV more often in middle age."""
        rng = np.random.default_rng(seed)
        sizes = np.array([19.6, 9.3, 39.0, 7.8, 30.0, 22.2, 12.6, 7.0])
        state = rng.choice(len(STATES), size=patients, p=sizes / sizes.sum())
        years = np.clip(rng.normal(47, 22, size=patients), 0, 99.9)
        rate = 0.004 + 0.026 * np.exp(-(((years - 42) / 16) ** 2))
        hiv = (rng.random(patients) < rate).astype(np.int64)
        return cls(state, np.floor(years).astype(np.int64), hiv)

    def counts(self) -> NDArray[np.int64]:
        """Return the number of patients in each cell of `demo_domain`."""
        shape = demo_domain().shape
        cells = np.ravel_multi_index((self.state, self.age // 20, self.hiv), shape)
        return np.bincount(cells, minlength=int(np.prod(shape)))

    def answers(self) -> Floats:
        """Return the true answers to the questions: no secret, as the table is made up."""
        return sql(QUESTIONS, demo_domain()).queries.apply(self.counts().astype(float))

    def write(self, path: str | Path) -> None:
        """Write the table as a CSV file."""
        states, statuses = np.array(STATES), np.array(["negative", "positive"])
        columns = states[self.state], self.age.astype(str), statuses[self.hiv]
        lines = map(",".join, zip(*(column.tolist() for column in columns), strict=True))
        write_text(path, "\n".join([",".join(demo_domain().names), *lines, ""]))


def demo_domain() -> Domain:
    """Return the domain: state, age in steps of 20 years, HIV status.

    >>> demo_domain().size
    80
    """
    return parse_domain(DOMAIN)


def write_files(folder: str | Path, seed: int = 0) -> SyntheticPatients:
    """Write the table, its domain and the questions into ``folder``, and return the table."""
    table = SyntheticPatients.generate(seed)
    table_file, domain_file, questions_file = (Path(folder) / name for name in FILES)
    table.write(table_file)
    write_text(domain_file, DOMAIN)
    write_text(questions_file, QUESTIONS)
    return table
