"""What commands print: JSON for machines, tables that fit a terminal for people."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import click

__all__ = ["beside", "number", "print_facts", "print_json", "print_table", "ratio", "seconds"]


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object; what is no finite number becomes null."""
    click.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def number(value: float, digits: int = 4) -> str:
    """Spell a number for people: some digits, groups of three, no exponent where avoidable.

    >>> number(1234567.8), number(38.0), number(0.0123), number(1.5e-9)
    ('1,234,568', '38', '0.0123', '1.5e-09')
    """
    if not math.isfinite(value):
        return "—"
    if value == 0:
        return "0"
    if abs(value) >= 1e15 or abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def beside(value: float, error: float) -> str:
    """Spell a value to the digits that an error of this size leaves of it.

    >>> beside(1620.7432, 95.1), beside(81.77512, 4.0), beside(-0.012, 0.4)
    ('1,621', '81.8', '-0.01')
    """
    if not (error > 0 and math.isfinite(error)):
        return number(value, 6)
    text = f"{value:,.{min(12, max(0, 1 - math.floor(math.log10(error))))}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def ratio(value: float) -> str:
    """Spell a ratio.

    >>> ratio(1.0), ratio(2.4321), ratio(1234.5)
    ('1.000', '2.432', '1,234')
    """
    if not math.isfinite(value):
        return "—"
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def seconds(value: float) -> str:
    """Spell a duration.

    >>> seconds(0.0123), seconds(75.2)
    ('0.01 s', '75 s')
    """
    return f"{value:.2f} s" if value < 9.995 else f"{value:.0f} s"


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns; long values wrap inside theirs."""
    table = _table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(_text(name), _text(value))
    _console().print(table)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[str] = ()
) -> None:
    """Print a table that fits the terminal: columns called in ``words`` wrap, numbers never."""
    table = _table(show_header=True)
    for column in columns:
        wraps = column in words
        table.add_column(
            column, justify="left" if wraps else "right", no_wrap=not wraps, overflow="fold"
        )
    for row in rows:
        table.add_row(*map(_text, row))
    _console().print(table)


def _table(*, show_header: bool) -> Any:
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD if show_header else None, pad_edge=False, show_header=show_header
    )


def _text(text: str) -> Any:
    from rich.text import Text

    return Text(text)  # a query's name in square brackets is no markup


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)
