"""Rows of an edition: those of other periods are in no cell, whatever the engine.

The date column becomes one more attribute, of as few cells as the editions have, and none of them
is distinguished. A row of another period, or without a date, then has no cell, as any row outside a
domain: it is dropped before the limit on a person's rows looks at any, and before anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lrm.domain import Attribute, Dates, Domain
from lrm.errors import TableError
from lrm.queries.maps.products.tabulation import Tabulation

if TYPE_CHECKING:
    from lrm.tables.count import Wanted


def of_edition(domain: Domain, requested: Wanted) -> tuple[Domain, Wanted]:
    """A domain without editions, and tabulations over it, that count the rows of the editions.

    Examples
    --------
    >>> from lrm.domain import Editions, Integers
    >>> quarterly = Domain([Integers("n", 1, 2)], editions=Editions("quarter", "day", "2025-Q1"))
    >>> counted, requested = of_edition(quarterly, None)
    >>> counted.names, counted.shape, requested[0].labels[0].tolist()
    (('n', 'day'), (2, 3), [0, 0, 0, 1, 1, 1])
    """
    editions = domain.editions
    if editions is None:
        return domain, requested
    if editions.edition is None:
        raise TableError(
            f"the domain is for every {editions.by}; name the edition to count, as in "
            f"domain.at({editions.each[0].name!r})"
        )
    if domain.level is not None:  # its tables are read by their own dates
        return replace(domain, editions=None, attributes=_absolutes(domain)), requested
    assert editions.date is not None  # noqa: S101 - that of the one table
    without = replace(domain, editions=None, attributes=_absolutes(domain))
    if editions.date in domain.names:
        if domain.attribute(editions.date).rest:
            raise TableError(
                f"attribute {editions.date!r} dates the rows of an edition, so that rows of other "
                "editions must not be counted; plan again"
            )
        return without, requested
    column = editions.attribute
    extended = replace(without, attributes=(*without.attributes, column))
    if requested is None or _is_list(requested, domain):
        labels = np.arange(domain.size) if requested is None else requested[0].labels[0]
        return extended, [Tabulation((np.repeat(labels, column.size),), by=(0,))]
    every = np.zeros(column.size, dtype=np.int64)
    return extended, [Tabulation((*table.labels, every), table.by) for table in requested]


def _is_list(requested: Sequence[Tabulation], domain: Domain) -> bool:
    """Whether cells in a list are asked for."""
    first = requested[0] if len(requested) == 1 else None
    return first is not None and first.sizes == (domain.size,) and first.by == (0,)


def _absolutes(domain: Domain) -> tuple[Attribute, ...]:
    return tuple(map(absolute, domain.attributes))


def absolute(attribute: Attribute) -> Attribute:
    """Dates of the edition as dates of their own."""
    if not isinstance(attribute, Dates) or not attribute.relative:
        return attribute
    return attribute.from_to(attribute.start, attribute.end, relative=False).with_rest(
        attribute.rest
    )
