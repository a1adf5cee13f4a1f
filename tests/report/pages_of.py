"""Small plans, releases and comparisons with names that try to break a page."""

from functools import cache

import numpy as np

import lrm
from lrm.domain import Categories, Domain, Integers, PrivacyUnit
from lrm.queries.builders import marginals, prefix, total

NASTY = "<script>alert('x')</script> & \"q\" $x_1$ $\\frac{$"
SECRETS = np.array([918273, 645341, 777123, 535353, 121417, 343536])

DOMAIN = Domain(
    [Categories("state", ["NY", "<img src=x onerror=alert(1)>"]), Integers("age", 0, 29, width=10)],
    table="visits & more",
    unit=PrivacyUnit("patient</dd>", 3),
)


@cache
def plan(noise="laplace"):
    batch = lrm.families.stack(
        [
            total(DOMAIN, name=NASTY),
            marginals(DOMAIN, [("state",)], name="by state"),
            prefix(DOMAIN, "age", name="up to"),
        ]
    )
    return lrm.plan(batch, "noise-on-data", noise=noise)


def release(epsilon="0.5"):
    return lrm.release(plan(), SECRETS, epsilon=epsilon)


def tables():
    """Single counts, and tables of one, two and three attributes."""
    domain = Domain(
        [
            Categories("colour", ["red", "blue"]),
            Categories("size", [f"size {i}" for i in range(10)]),
            Categories("kind", ["a", "b"]),
        ],
        table="things",
    )
    batch = lrm.families.stack(
        [
            total(domain, name="all"),
            marginals(domain, [("colour",), ("size",), ("colour", "size")], name="n"),
            marginals(domain, [("colour", "size", "kind")], name="m"),
        ]
    )
    made = lrm.plan(batch, "noise-on-data")
    return lrm.release(made, np.arange(100, 100 + domain.size), epsilon=1)


def comparison():
    rows = [
        {"mechanism": "best", "expected_squared_error": 28.0, "ratio_to_best": 1.0}
        | {"measurements": 4, "seconds": 0.5, "interrupted": True},
        {"mechanism": "noise-on-data", "expected_squared_error": 5600.0, "ratio_to_best": 200.0}
        | {"measurements": 8, "seconds": 0.0},
        {"mechanism": "matrix", "reason": "it needs <b>more</b> memory than there is"},
    ]
    return {
        "workload": "queries<b>.csv",
        "epsilon": "1/3",
        "noise": "laplace",
        "queries": 7,
        "cells": 8,
        "lower_bound": 23.9,
        "best": "best",
        "mechanisms": rows,
    }
