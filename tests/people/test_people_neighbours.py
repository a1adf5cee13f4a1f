"""One person moves what one person may move: brute force over small databases."""

import numpy as np
import pandas as pd
import pytest

from lrm.domain import persons
from lrm.domain.features import Feature, flag, like, undeclared
from lrm.privacy.mechanism import shown_to_owner
from lrm.tables import people_sql
from lrm.tables.people import open_people
from people.shop import SHOP, stored, tables

FEATURES = [
    Feature(undeclared("few", [2]), "orders", "count", where="category <> 'food'"),
    Feature(flag("any"), "orders", "exists", where="amount >= 100 OR day < '2025-02-01'"),
    Feature(
        like(SHOP.table("orders").attribute("category"), "first"),
        "orders",
        "first",
        "category",
        order="day",
    ),
]
LEVELS = {
    "persons": SHOP.persons(["region", "n_orders", "travels"], FEATURES),
    "sums": SHOP.persons(["spend", "first_day"]),
    "events": SHOP.events("orders", ["category", "region"]),
    "events of customers": SHOP.events(
        "orders", ["category", "amount"], [Feature(flag("known"), "customers", "exists")]
    ),
}
MOST = {"persons": 1, "sums": 1, "events": 4, "events of customers": 4}


def odd_tables(seed):
    """Few persons with many rows, doubled persons, rows of nobody, values outside."""
    data = tables(seed, customers=7, orders=40)
    rng = np.random.default_rng(seed)
    data["customers"] = pd.concat([data["customers"], data["customers"].head(2)])
    data["customers"].iloc[-1, 1] = "west"
    orders = data["orders"]
    orders["customer"] = orders["customer"].astype("Int64")
    orders.loc[rng.integers(0, 40, 4), "customer"] = pd.NA
    orders.loc[rng.integers(0, 40, 4), "category"] = "other"
    return {name: frame.sample(frac=1, random_state=seed) for name, frame in data.items()}


def without(data, person):
    """The database without one person, in other orders of storage."""
    columns = {"customers": "id", "orders": "customer", "visits": "customer"}
    return {
        name: frame[~(frame[columns[name]] == person).fillna(value=False)].sample(
            frac=1, random_state=1
        )
        for name, frame in data.items()
    }


def counts_of(level, data, source, folder):
    folder.mkdir(exist_ok=True)
    table = open_people(level, stored(data, source, folder))
    table.check(level.domain)
    return shown_to_owner(table.counts(level.domain))


@pytest.fixture(autouse=True)
def _same_key(monkeypatch):
    monkeypatch.setattr(persons, "fresh_key", lambda: b"the same for both")


def largest_move(level, data, source, folder):
    everyone = counts_of(level, data, source, folder)
    names = pd.concat([data["customers"]["id"], data["orders"]["customer"]]).dropna().unique()
    moves = []
    for person in names.tolist():
        others = counts_of(level, without(data, person), source, folder)
        difference = everyone - others
        assert (difference >= 0).all()
        moves.append(int(difference.sum()))
    return max(moves)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LEVELS)
def test_one_person_moves_at_most_the_stated_rows(name, seed, tmp_path):
    level = LEVELS[name]
    assert level.domain.unit.max_rows == MOST[name]
    assert largest_move(level, odd_tables(seed), "pandas", tmp_path) == MOST[name]


@pytest.mark.long
@pytest.mark.parametrize("source", ["csv", "duckdb", "postgres", "spark"])
@pytest.mark.parametrize("name", LEVELS)
def test_one_person_moves_at_most_the_stated_rows_on_every_engine(name, source, request, tmp_path):
    if source == "spark":
        request.getfixturevalue("spark")
    level = LEVELS[name]
    assert largest_move(level, odd_tables(3), source, tmp_path) <= MOST[name]


def test_a_feature_that_looks_at_other_persons_is_caught(monkeypatch, tmp_path):
    """The test above fails where a person's feature depends on rows of others."""
    own = people_sql.TableRows._aggregate

    def planted(self, feature):
        text = own(self, feature)
        if feature.value != "count":
            return text
        return f"({text} + (SELECT count(*) FROM {self.name}) % 2)"

    monkeypatch.setattr(people_sql.TableRows, "_aggregate", planted)
    data = odd_tables(0)
    with pytest.raises(AssertionError):
        assert largest_move(LEVELS["persons"], data, "pandas", tmp_path) <= 1


def test_the_order_of_rows_changes_nothing(tmp_path):
    data = odd_tables(2)
    shuffled = {name: frame.sample(frac=1, random_state=9) for name, frame in data.items()}
    for level in LEVELS.values():
        np.testing.assert_array_equal(
            counts_of(level, data, "pandas", tmp_path),
            counts_of(level, shuffled, "pandas", tmp_path),
        )
