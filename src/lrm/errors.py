"""Every exception that lrm raises on purpose, as a tree.

The message of each is one sentence that says what was expected, what was given, and
what to do. None of them ever holds a value that was computed from private data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

Charge = Literal["none", "made", "unknown"]
"""Whether a ledger was charged before an error: surely not, surely, or nobody can say."""


class LrmError(Exception):
    """Base of all errors that lrm raises on purpose.

    Parameters
    ----------
    sentence
        What is wrong, what was expected and what to do.
    line, column
        Where it is in a text, counted from 1; None where that is not known.
    field
        The field of a file or of a form that it is about; None where that is not known.
    plain
        What is wrong, without the place, for a view that shows it at its place.

    Examples
    --------
    >>> error = UsageError("page.md, line 3: there is no field 'titel'", line=3, field="titel")
    >>> error.line, error.field, error.column, error.charged
    (3, 'titel', None, None)
    """

    line: int | None = None
    column: int | None = None
    field: str | None = None
    # The sentence about what a ledger was charged before the error; None where nothing is known.
    charged: str | None = None
    # The same as a word, which programs read.
    charge: Charge = "none"

    def __init__(
        self,
        *sentences: str,
        line: int | None = None,
        column: int | None = None,
        field: str | None = None,
        plain: str | None = None,
    ) -> None:
        super().__init__(*sentences)
        self.line, self.column, self.field, self._plain = line, column, field, plain

    @property
    def plain(self) -> str:
        """What is wrong, without the file and the line."""
        return str(self) if self._plain is None else self._plain

    @property
    def each(self) -> tuple[LrmError, ...]:
        """The errors of a text that has several, each with its own line and field."""
        return (self,)

    @property
    def sentences(self) -> list[str]:
        """The message of each error of a text that has several."""
        return [str(self)]


def note_charge(reason: BaseException, sentence: str, charge: Charge = "none") -> None:
    """State on an error what it has cost: as its attribute ``charged``, and as a note of Python.

    >>> error = LrmError("the table cannot be read")
    >>> note_charge(error, "the budget of 'visits' was charged 0.5 pure", "made")
    >>> error.charged == error.__notes__[0], error.charge
    (True, 'made')
    """
    reason.add_note(sentence)
    reason.charged = sentence  # type: ignore[attr-defined] # Ctrl-C too has it
    reason.charge = charge  # type: ignore[attr-defined]


class UsageError(LrmError, ValueError):
    """The caller asked for something that does not make sense (exit code 2)."""


class WorkloadError(UsageError):
    """A workload, a domain or a query is malformed."""


class UnknownName(WorkloadError, KeyError):  # noqa: N818 - says what the name is
    """No statement or answer has this name."""

    def __str__(self) -> str:  # that of a KeyError is a repr
        return str(self.args[0])


class DomainError(UsageError):
    """A domain, one of its attributes, or a domain file is malformed.

    Parameters
    ----------
    errors
        What is wrong: a sentence, or the errors of a file that has several.
    each
        The errors that one sentence is about.
    place
        Line, field and plain sentence, as every error has them.
    """

    def __init__(
        self, *errors: str | DomainError, each: Sequence[DomainError] = (), **place: Any
    ) -> None:
        super().__init__("\n".join(map(str, errors)), **place)
        self._sentences = [str(error) for error in errors]
        found = [error for error in errors if isinstance(error, DomainError)]
        self._errors = (*found, *each)
        if self._errors and not place:
            self.line, self.field = self._errors[0].line, self._errors[0].field

    @property
    def each(self) -> tuple[LrmError, ...]:
        """The errors of a file that has several."""
        return self._errors or (self,)

    @property
    def sentences(self) -> list[str]:
        """The message of each error of a file."""
        return self._sentences


class UnknownAttribute(DomainError, KeyError):  # noqa: N818 - says what the name is
    """A domain has no attribute of this name."""

    def __str__(self) -> str:  # that of a KeyError is a repr
        return str(self.args[0])


class SqlError(UsageError):
    """A SQL batch asks for something that is not supported.

    Parameters
    ----------
    sentence
        What is wrong, what was expected and what to write instead.
    code
        The kind of error, as the documentation lists them.
    line, column
        Where it is in the text, counted from 1; None where that is not known.
    found, advice
        What was found, and what to write instead, where they are known separately.
    at
        Characters before it in its statement, until line and column are known.
    others
        Further errors of the same text.
    source
        The file that the text is from.
    """

    def __init__(  # noqa: PLR0913 - a record
        self,
        sentence: str,
        *,
        code: str = "unsupported",
        line: int | None = None,
        column: int | None = None,
        found: str = "",
        advice: str = "",
        at: int | None = None,
        others: tuple[SqlError, ...] = (),
        source: str = "",
    ) -> None:
        where = "" if line is None else f"line {line}: "
        where = f"{source} {where}" if source else where
        super().__init__("\n".join([f"{where}{sentence}", *map(str, others)]))
        self.sentence = sentence
        self.code = code
        self.line = line
        self.column = column
        self._plain = sentence
        self.found = found
        self.advice = advice
        self.at = at
        self.others = others
        self.source = source
        self._where = where

    @property
    def each(self) -> tuple[LrmError, ...]:
        """The error itself, and the others of the text."""
        return (self, *(error for other in self.others for error in other.each))

    @property
    def sentences(self) -> list[str]:
        """The message of each error of the text, with its line."""
        own = f"{self._where}{self.sentence}"
        return [own, *(line for other in self.others for line in other.sentences)]

    def beside(self, others: Sequence[SqlError], source: str = "") -> SqlError:
        """Return this error with others of the text, which is from a file where one is named."""
        return self.replaced(others=tuple(others), source=source or self.source)

    def replaced(self, **changes: Any) -> SqlError:
        """Return this error with some parts of it changed."""
        names = ("sentence", "code", "line", "column", "found", "advice", "at", "others", "source")
        return SqlError(**{name: getattr(self, name) for name in names} | changes)

    def in_file(self, source: str) -> SqlError:
        """These errors, each with the name of the file that they are in."""
        return self.beside([error.in_file(source) for error in self.others], source)


class BudgetError(UsageError):
    """A privacy parameter is malformed, zero, negative or out of range."""


class CountsError(UsageError):
    """Counts do not fit the plan: wrong length, negative, fractional or too large."""


class UnsupportedQuery(UsageError):  # noqa: N818 - says what the query is
    """A further query does not follow from what a release measured."""


class FileFormatError(LrmError):
    """A file is damaged, of another kind, or written by a newer version."""


class FileConflict(UsageError):  # noqa: N818 - says what happened, as the reader would
    """A file was changed by somebody else since it was read."""


class TableError(LrmError):
    """A table cannot be opened or read, or does not have the columns that a domain declares."""


class MissingExtra(LrmError):  # noqa: N818 - says what happened, as the reader would
    """A part needs a package that is not installed; the message names the command."""


class LedgerError(LrmError):
    """A ledger cannot be read, written or trusted, or does not keep such a budget."""


class BudgetExceeded(LedgerError):  # noqa: N818 - says what happened, as the reader would
    """A release would cost more than is left of a table's budget."""


class AlreadyCharged(LedgerError):  # noqa: N818 - says what happened, as the reader would
    """The key of a job was charged before, so that nothing is charged again.

    Parameters
    ----------
    sentence
        What was charged, and when.
    head
        The head of the ledger after that charge, which the release of the charge states.
    """

    def __init__(self, sentence: str, head: str) -> None:
        super().__init__(sentence)
        self.head = head


class ChargeUnknown(LedgerError):  # noqa: N818 - says what happened, as the reader would
    """A ledger was lost while it was charged, its server or its disk: nobody can say if it was."""

    charge: Charge = "unknown"


class ConvergenceError(LrmError):
    """A solver ended without a strategy that passes the exactness check."""


class StopSolver(Exception):  # noqa: N818 - a request, not an error
    """Raised by an ``on_step`` callback to end a solver with the best so far."""


class PrivacyWarning(UserWarning):
    """The guarantee is kept, but it is so weak that it protects nobody."""


class PlanWarning(UserWarning):
    """A plan has larger errors than a simpler one would have."""


class ReleaseWarning(UserWarning):
    """What released numbers say about the table: perhaps every row was dropped."""


class WorkloadWarning(UserWarning):
    """A file was read as a matrix of queries, but looks like a table of records."""


class TableWarning(UserWarning):
    """A table has a column of another type than the domain seems to mean."""


class SqlWarning(UserWarning):
    """A statement was compiled, but probably does not mean what was meant."""
