"""Release: private answers, with everything a reader needs to judge them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lrm.errors import BudgetError, UsageError
from lrm.files.archive import pack_archive, write_archive
from lrm.files.csv_cells import NumberStyle
from lrm.files.spelling import many
from lrm.planning.accuracy import Accuracy
from lrm.planning.derived import Noisy, derived_numbers, derived_values
from lrm.planning.design.reconstruction import Answering
from lrm.planning.plan import Plan
from lrm.planning.plan.saving import pack_plan
from lrm.privacy.budget import Privacy
from lrm.privacy.mechanism import Measurements, check_calibration
from lrm.privacy.unit import PrivacyUnit
from lrm.queries.maps.linear import Floats
from lrm.queries.maps.record_weights import RowSigns
from lrm.queries.workload import MOST_LISTED, Derived, Workload, check_listable
from lrm.queries.workload.finding import find_answers, find_statement
from lrm.queries.workload.frames import AnswerFrame, Picture
from lrm.queries.workload.layout import long_frame, long_frames
from lrm.queries.workload.statements import Statement
from lrm.releases.concerns import release_concerns
from lrm.releases.frames import displayed_rows, statement_numbers, with_numbers
from lrm.releases.further import answer_batch, answer_further
from lrm.releases.whole import Whole, whole_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes

    from lrm.releases.known import KnownTable
    from lrm.releases.postprocess import Processed
    from lrm.releases.synthetic import SyntheticRows

VERSION = 5

STATED_ANSWERS = 100_000
"""Answers up to which a file states them next to the measurements that they follow from."""

FACTS = ("software", "simulated", "privacy", "loss", "unit", "noise", "ledger_head", "plan")
"""What a release file states."""


BLOCK = 1024
"""Derived answers that are computed at a time."""

HELD_BLOCKS = 1024
"""Blocks of derived answers that a release keeps (32 MB)."""

Blocks = dict[tuple[Derived, int, int, float], dict[str, Floats]]
"""Columns of groups ``start:stop`` of a derived answer, with intervals of a confidence."""

Piece = tuple[Derived | None, int, int]
"""Groups ``start:stop`` of a derived answer; of the linear queries where that is None."""


SIMULATED_SCALE = 1e-6
"""How far the scale of simulated noise may lie from what is stated."""


IN_PARTS = "write them to a file with release.write, or ask for one query: release['name']"


@dataclass(frozen=True, eq=False)
class Release:
    """The answers of a plan's batch, under a stated guarantee.

    Everything follows from the plan and the noisy measurements, both of which are public:
    the answers, their errors, and any further query that the strategy supports.

    Parameters
    ----------
    plan
        The plan that was released.
    noisy_measurements
        The integers that left the mechanism.
    privacy
        The guarantee that was asked for.
    loss
        The privacy loss by the noise's own privacy map; at most that of the guarantee.
    distribution, scale
        The noise on each integer.
    unit
        Whom the guarantee protects.
    simulated
        True where the noise was made for a study, and nothing is guaranteed.
    ledger_head
        Head of the ledger right after this release was charged, where one was kept:
        ``lrm budget verify --expected-head`` finds it on the ledger's chain.
    clips
        Whether derived answers and ends of intervals are cut to what is possible (see
        `unclipped`).
    """

    plan: Plan
    noisy_measurements: NDArray[np.int64]
    privacy: Privacy
    loss: Fraction
    distribution: str
    scale: float
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    simulated: bool = False
    software: str = field(default_factory=lambda: f"lrm {version('lrm')}")
    ledger_head: str | None = None
    clips: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", self.plan.check_unit(self.unit))
        self._check_noise()
        values = np.array(self.noisy_measurements)
        if values.dtype != np.int64 or values.shape != (self.plan.measurement_count,):
            raise UsageError(
                f"the plan has {self.plan.measurement_count} measurements, which are 64-bit "
                f"integers; got an array of {values.dtype.name} and shape {values.shape}"
            )
        values.flags.writeable = False
        object.__setattr__(self, "noisy_measurements", values)
        if np.any(values % np.array(self.accuracy.law.steps)):
            raise BudgetError("the measurements are not multiples of the steps of their noise")

    def _check_noise(self) -> None:
        """Refuse noise that is not what the guarantee needs, for this plan and this unit."""
        if not self.plan.measured.norm.admits(self.privacy):
            raise BudgetError(f"{self.plan.noise} noise cannot keep this guarantee")
        if self.simulated:  # it guarantees nothing, and states errors all the same
            nominal = self.plan.accuracy(self.privacy, self.unit).law.scale
            if not abs(self.scale / nominal - 1) < SIMULATED_SCALE:
                raise BudgetError("the scale of the simulated noise is not the stated one")
            return
        check_calibration(
            self.plan.measured,
            self.privacy,
            self.unit,
            self.plan.record_bits,
            self.distribution,
            self.scale,
            self.loss,
        )

    @property
    def levels(self) -> tuple[Release, ...]:
        """The releases that were made together: itself, or one per level of a people."""
        return (self,)

    @property
    def names(self) -> Sequence[str]:
        """Names of the linear queries, those that are inputs of derived answers included."""
        return self.plan.workload.names

    @cached_property
    def answers(self) -> Floats:
        """One answer per query: unbiased, not rounded, not clipped."""
        check_listable(self.plan.workload, MOST_LISTED, IN_PARTS)
        values = self._answering(0, self.plan.workload.shape[0])
        values.flags.writeable = False
        return values

    @cached_property
    def _answering(self) -> Answering:
        return self.plan.reconstruction_map.answering(
            self.noisy_measurements.astype(np.float64) * 2.0**-self.plan.bits
        )

    def rows(self, start: int, stop: int) -> Floats:
        """Answers of the queries ``start:stop``."""
        return self._answering(start, stop)

    @cached_property
    def _derived_blocks(self) -> Blocks:
        """Numbers of derived answers that were computed: the next table or file needs them too."""
        return {}

    def shown_numbers(self, start: int, stop: int, confidence: float = 0.95) -> dict[str, Floats]:
        """The columns of `numbers` for the shown answers ``start:stop``.

        Queries that are only inputs of derived answers are left out; derived answers come last. A
        quantile has no standard error (NaN). Averages, rates and ends of intervals are cut to what
        is possible; the interval of an answer of which nothing is known is all that is possible.
        """
        noisy, held = self.noisy(self.rows), self._derived_blocks
        parts: list[dict[str, Floats]] = []
        for derived, first, last in _cut(_pieces(self.plan.workload), start, stop):
            if derived is None:
                parts.append(self.numbers(first, last, confidence))
                continue
            for low in range(first, last, BLOCK):
                key = derived, low, min(low + BLOCK, last), confidence
                if key not in held:
                    if len(held) >= HELD_BLOCKS:
                        held.clear()
                    held[key] = derived_numbers(*key[:3], noisy, confidence)
                parts.append(held[key])
        if not parts:
            return self.numbers(0, 0, confidence)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def noisy(self, rows: Callable[[int, int], Floats]) -> Noisy:
        """Answers of the linear queries, such as processed ones, with the law of their noise."""
        return Noisy(rows, self.accuracy, self.plan.workload.queries if self.clips else None)

    def shown_answers(self, start: int, stop: int) -> Floats:
        """The shown answers ``start:stop`` alone, without their errors."""
        return _shown_values(self, self.rows, start, stop)

    def shown_values(self, answers: Floats) -> Floats:
        """All shown values where the linear queries have other answers, such as processed ones."""
        count = len(self.plan.workload.shown)
        return _shown_values(self, lambda start, stop: answers[start:stop], 0, count)

    def numbers(self, start: int, stop: int, confidence: float = 0.95) -> dict[str, Floats]:
        """Answer, standard error and interval of the queries ``start:stop``, as columns."""
        answers = self._answering(start, stop)
        half = self.accuracy.half_widths_of(start, stop, confidence)
        low, high = answers - half, answers + half
        if self.clips:
            whole, nonnegative = self._signs.of(start, stop)
            answers, low, high = _without_rounding(answers, low, high, whole)
            low, high = (np.where(nonnegative, np.maximum(end, 0.0), end) for end in (low, high))
        errors = self.accuracy.errors_of(start, stop)
        return {"answer": answers, "standard_error": errors, "low": low, "high": high}

    @cached_property
    def _signs(self) -> RowSigns:
        return RowSigns.of_queries(self.plan.workload.queries)

    def shown_half_widths(self, start: int, stop: int, confidence: float = 0.95) -> Floats:
        """Half of the intervals of the shown answers ``start:stop``.

        Of linear queries before these are cut at 0.
        """
        numbers = self.shown_numbers(start, stop, confidence)
        halves = (numbers["high"] - numbers["low"]) / 2
        place = 0
        for derived, first, last in _cut(_pieces(self.plan.workload), start, stop):
            if derived is None:
                widths = self.accuracy.half_widths_of(first, last, confidence)
                halves[place : place + last - first] = widths
            place += last - first
        return halves

    @property
    def unclipped(self) -> Release:
        """The same release without what is impossible cut off.

        Averages, rates and shares then follow from the noisy sums alone, and intervals from the
        noise alone: some averages lie outside of the declared range, ends of intervals of counts
        below 0, and intervals have infinite ends where a denominator may be 0. Every method
        returns such numbers; a file holds the same in both cases.
        """
        return replace(self, clips=False)

    @cached_property
    def accuracy(self) -> Accuracy:
        """Errors and intervals of the answers: of the noise that was drawn, at its real scale."""
        planned = self.plan.accuracy(self.privacy, self.unit)
        law = replace(planned.law, scale=self.scale)
        if not self.distribution.endswith(law.distribution):
            law = law.fine  # of an older release
        return replace(planned, law=law, reconstruction=self.plan.reconstruction_map)

    @property
    def standard_errors(self) -> Floats:
        """Standard error of each answer, from the noise alone."""
        return self.accuracy.standard_errors

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for readers, such as answers that are all near zero.

        Made from the released numbers alone, at no privacy cost.
        """
        return release_concerns(self)

    def intervals(self, confidence: float = 0.95) -> Floats:
        """Lower and upper end of each answer's interval, as an m×2 array.

        They cover the noise alone: not rows that were dropped or lie outside the domain.
        """
        numbers = self.numbers(0, self.plan.workload.shape[0], confidence)
        return np.column_stack([numbers["low"], numbers["high"]])

    def table(self, confidence: float = 0.95, *, processed: Processed | None = None) -> AnswerFrame:
        """All answers in the long form, one row each; derived ones come last."""
        check_listable(self.plan.workload, MOST_LISTED, IN_PARTS)
        values = None if processed is None else self.shown_values(processed.answers)
        frame = with_numbers(self, long_frame(self.plan.workload), confidence, values)
        return _with_facts(frame, processed)

    def tables(
        self, confidence: float = 0.95, *, processed: Processed | None = None
    ) -> Iterator[AnswerFrame]:
        """Yield the rows of `table` in blocks that are small enough to hold, in order."""
        values = None if processed is None else self.shown_values(processed.answers)
        for frame in long_frames(self.plan.workload, self.shown_blocks()):
            yield _with_facts(with_numbers(self, frame, confidence, values), processed)

    def frame(
        self,
        statement: str | int | Statement | None = None,
        confidence: float = 0.95,
        *,
        processed: Processed | None = None,
    ) -> AnswerFrame:
        """The table of one statement: its groups, answers, errors, intervals and caveats.

        Its rows are those that the statement displays: HAVING, ORDER BY and LIMIT are applied.

        Parameters
        ----------
        statement
            The name of the statement or of one of its answers, its title, or its number counted
            from 1; not needed where the batch has one statement.
        confidence
            Of the intervals.
        processed
            What `consistent` returned: its answers are displayed next to the released ones.

        Examples
        --------
        >>> import lrm
        >>> domain = lrm.Domain([lrm.Categories("sex", ["f", "m"])], "people")
        >>> batch = lrm.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", domain)
        >>> frame = lrm.release(lrm.plan(batch), [10, 20], epsilon=1).frame("n")
        >>> frame.to_arrow().column_names
        ['sex', 'n', 'n_standard_error', 'n_low', 'n_high']
        """
        entry = find_statement(self.plan.workload, statement)
        values = None if processed is None else self.shown_values(processed.answers)
        frame = statement_numbers(self, displayed_rows(self, entry), confidence, values)
        return _with_facts(frame, processed)

    def frames(
        self, confidence: float = 0.95, *, processed: Processed | None = None
    ) -> Iterator[AnswerFrame]:
        """Yield the table of each statement, as `frame` returns it."""
        values = None if processed is None else self.shown_values(processed.answers)
        for statement in self.plan.workload.tables:
            frame = statement_numbers(self, displayed_rows(self, statement), confidence, values)
            yield _with_facts(frame, processed)

    def __len__(self) -> int:
        """Number of statements."""
        return len(self.plan.workload)

    def __iter__(self) -> Iterator[str]:
        """The names of the statements."""
        return iter(self.plan.workload)

    def __contains__(self, name: object) -> bool:
        """Whether a statement or an answer has this name."""
        return name in self.plan.workload

    def __bool__(self) -> bool:
        """A release is true, whatever its number of statements."""
        return True

    def head(self, count: int, confidence: float = 0.95) -> AnswerFrame:
        """The first answers, as `table` returns them; no others are computed."""
        labels = self.plan.workload.shown.first(count)
        frame = long_frame(self.plan.workload, (labels, [(0, len(labels))]))
        return with_numbers(self, frame, confidence)

    def __array__(
        self, dtype: DTypeLike | None = None, *, copy: bool | None = None
    ) -> NDArray[Any]:
        """The answers, for NumPy."""
        return np.array(self.answers, dtype=dtype, copy=copy)

    def __getitem__(self, query: str) -> AnswerFrame:
        """The answers of one query, or of one statement, in all groups: a row for each.

        Where several statements have an answer of this name, ``q2.n`` is that of the second.
        """
        batch = self.plan.workload
        return with_numbers(self, long_frame(batch, find_answers(batch, query)), 0.95)

    def write(  # noqa: PLR0913 - what may be asked for
        self,
        path: str | os.PathLike[str],
        confidence: float = 0.95,
        *,
        statement: str | None = None,
        processed: Processed | None = None,
        decimal: Literal[".", ","] = ".",
        thousands: Literal["", ",", ".", " ", "'"] = "",
    ) -> None:
        """Write the answers to a file, in the format that its ending names, or to a folder.

        ``.csv`` and ``.parquet`` have one row per answer, ``.xlsx`` one sheet per statement,
        ``.json`` everything that the release states; ``.md`` and ``.html`` are for readers. A
        folder gets one CSV file per statement. Answers of CSV and Parquet are computed and
        written in blocks, so that millions of them need little memory.

        Parameters
        ----------
        path
            A file, or a folder: a name without an ending.
        confidence
            Of the intervals.
        statement
            The one statement that is written, as `frame` finds it: its table, one row per group.
        processed
            What `consistent` returned: its answers are displayed next to the released ones.
        decimal
            Of the numbers of CSV files; one with ``","`` has semicolons between its cells.
        thousands
            What separates thousands in CSV files.
        """
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        style = NumberStyle(decimal, thousands)
        choices = {"confidence": confidence, "processed": processed, "style": style}
        notebook.write_answers(self, path, statement, **choices)

    @cached_property
    def whole(self) -> Whole:
        """The guarantee of the release and of the discoveries of values that it uses, together."""
        return whole_of(self)

    @property
    def stated(self) -> dict[str, str]:
        """What a table of the answers says of them: ``guarantee``, and what was ``clipped``."""
        words = self.privacy.words(self.unit)
        words = "; ".join(filter(None, (words, self.whole.sentence)))
        guarantee = "SIMULATED: it guarantees nothing" if self.simulated else words
        clipped = "; ".join(self.plan.clipping)
        return {"guarantee": guarantee, **({"clipped": clipped} if clipped else {})}

    def to_arrow(self, confidence: float = 0.95) -> pa.Table:
        """One row per answer as a ``pyarrow.Table``.

        Columns are ``statement``, the grouping attributes (null where an answer has no such group),
        ``query``, ``answer``, ``standard_error``, and ``low`` and ``high``, the ends of the
        interval. The metadata of its schema are `stated`.
        """
        return self.table(confidence).to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns of `to_arrow`, for every library that reads Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """The columns of `to_arrow`, for every library that reads the interchange protocol."""
        return self.to_arrow().__dataframe__(nan_as_null, allow_copy)

    def to_pandas(self, confidence: float = 0.95) -> pd.DataFrame:
        """One row per answer as a ``pandas.DataFrame``, with the columns of `to_arrow`.

        Its ``attrs`` are `stated`.
        """
        return self.table(confidence).to_pandas()

    def to_polars(self, confidence: float = 0.95) -> pl.DataFrame:
        """One row per answer as a ``polars.DataFrame``, with the columns of `to_arrow`."""
        return self.table(confidence).to_polars()

    def query(self, queries: Any) -> Release:
        """Answer further queries from the same measurements: this costs no privacy.

        Parameters
        ----------
        queries
            SQL over the release's domain, a ``Workload``, or a matrix with one row per query.
            A query that the measurements do not determine raises ``UnsupportedQuery``.
        """
        return answer_further(self, queries)

    def further(self, batch: Workload) -> Release:
        """Answers of a batch over the same cells; see `query`, which takes SQL too."""
        return answer_batch(self, batch)

    def consistent(
        self,
        total: float | None = None,
        source: str | None = None,
        known: Sequence[KnownTable] = (),
        *,
        progress: bool = True,
    ) -> Processed:
        """Answers that add up and count no negative number of rows, nearest to the released ones.

        They stand beside `answers`, which stay the unbiased ones that intervals belong to, and cost
        no privacy: nothing but this release is looked at. The sum of squared errors over the batch
        does not grow; small counts come out too large on average.

        Parameters
        ----------
        total
            The number of rows, where it was published exactly elsewhere. Never pass a total that
            is not public.
        source
            Where the total was published; pages and files state it.
        known
            Tables that were published exactly elsewhere, each with its source.
        progress
            Whether a line says that work goes on, where somebody watches.

        Examples
        --------
        >>> import lrm
        >>> plan = lrm.plan([[1, 1], [1, 0], [0, 1]])
        >>> fixed = lrm.release(plan, [0, 20], epsilon=1).consistent()
        >>> bool(fixed.answers.min() >= 0)
        True
        """
        from lrm.releases.postprocess import process  # noqa: PLC0415 - it holds a release

        with waiting("looking for answers that add up", progress):
            return process(self, ["consistent"], total, source, known)

    def synthesize(
        self,
        rows: int | None = None,
        seed: int | None = None,
        known: Sequence[KnownTable] = (),
        *,
        progress: bool = True,
    ) -> SyntheticRows:
        """Rows with declared values whose counts are near the answers: made up, not private data.

        They cost no privacy: nothing but this release is looked at. Counts that the batch asked
        about are as near to the answers as the noise allows; other relations are not kept.

        Parameters
        ----------
        rows
            Number of rows; by default the estimated number of rows of the table.
        seed
            For the random choices; by default a new one, which the metadata state.
        known
            Tables that were published exactly elsewhere, each with its source.
        progress
            Whether a line says that work goes on, where somebody watches.
        """
        from lrm.releases.synthetic import synthesize  # noqa: PLC0415 - it holds a release

        with waiting("making rows", progress):
            return synthesize(self, rows, seed, known=known)

    def shown_blocks(self) -> Iterator[tuple[int, int]]:
        """Yield ``(start, stop)`` of blocks of shown answers that are small enough to hold."""
        ranges = self.plan.reconstruction_map.answer_ranges()
        workload = self.plan.workload
        if not workload.derived:
            yield from ranges
            return
        place, blocks = 0, list(ranges)
        for part, first, last in _pieces(workload):
            cuts = blocks if part is None else [(k, k + BLOCK) for k in range(0, last, BLOCK)]
            for start, stop in cuts:
                length = min(stop, last) - max(start, first)
                if length > 0:
                    yield place, place + length
                    place += length

    def __copy__(self) -> Release:
        return self  # nothing of it can be changed

    def __deepcopy__(self, memo: dict[int, Any]) -> Release:
        return self

    def __reduce__(self) -> tuple[Callable[[bytes], Release], tuple[bytes]]:
        """A pickle holds the content of the release's file, which is checked when it is read."""
        from lrm.releases.file import parse_release  # noqa: PLC0415 - it makes releases

        return parse_release, (pack_archive("the release", *self._file_content()),)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file that ``lrm.load_release`` reads, whole or not at all."""
        write_archive(path, *self._file_content())

    def _file_content(self) -> tuple[str, int, dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {}
        plan = pack_plan(self.plan, arrays)
        arrays["noisy-measurements"] = self.noisy_measurements
        if states_results(self):
            arrays["answers"] = self.answers
            arrays["standard-errors"] = self.standard_errors
        facts = {
            "software": self.software,
            "simulated": self.simulated,
            "privacy": self.privacy.facts,
            "loss": str(self.loss),
            "unit": self.unit.facts,
            "noise": self._noise_facts(),
            "ledger_head": self.ledger_head,
            "plan": plan,
        }
        return "release", VERSION, facts, arrays

    def _noise_facts(self) -> Any:
        """The noise in a file."""
        return {"distribution": self.distribution, "scale": self.scale.hex()}

    def plot(self, ax: Axes | None = None) -> Picture:
        """Draw the first 40 answers with their intervals, as `AnswerFrame.plot` does.

        Parameters
        ----------
        ax
            Axes of Matplotlib to draw on; new ones by default.
        """
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.drawing(self, ax)

    def report(self, path: str | os.PathLike[str], confidence: float = 0.95) -> None:
        """Write one HTML page of the release, which needs neither network nor JavaScript.

        Where there are more than 2,000 answers, a CSV file of the same name has all of them.
        """
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        notebook.write(self, path, confidence=confidence)

    def _repr_html_(self) -> str:
        from lrm.views import notebook  # noqa: PLC0415 - views come after the records they draw

        return notebook.snippet(self)

    def __repr__(self) -> str:
        made = "SIMULATED release" if self.simulated else "Release"
        answers = many(len(self.plan.workload.shown), "answer", "answers")
        words = f"{answers} at {self.privacy.symbols}, protects {self.unit.words}"
        return f"<{made}: {words}>"


def _with_facts(frame: AnswerFrame, processed: Processed | None) -> AnswerFrame:
    """A frame that states how its answers were processed."""
    return frame if processed is None else replace(frame, stated=processed.stated)


def waiting(label: str, shown: bool) -> AbstractContextManager[None]:
    """A line about work of more than two seconds, where a person watches."""
    from lrm.views import progress  # noqa: PLC0415 - views come after records

    return progress.waiting(label, shown=shown)


def from_measurements(
    plan: Plan, measurements: Measurements, unit: PrivacyUnit, ledger_head: str | None = None
) -> Release:
    """A release of measurements that carry their noise already."""
    noise = measurements.noise
    return Release(
        plan,
        measurements.noisy_values,
        noise.privacy,
        noise.loss,
        noise.distribution,
        noise.scale,
        unit,
        ledger_head=ledger_head,
    )


def _without_rounding(
    answers: Floats, low: Floats, high: Floats, whole: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Whole answers of coarse noise without rounding errors: 12,549, not 12,548.999999.

    What such an answer is true for is a whole number, so that other ends hold it as well. Finer
    noise leaves no answer at a whole number.
    """
    nearest = np.rint(answers)
    # Rounding errors of answers are relative, those of ends a millionth of the step of a lattice.
    coarse = whole & (np.abs(answers - nearest) <= 1e-13 * (1 + np.abs(answers)))
    low, high = (
        np.where(coarse & (np.abs(end - np.rint(end)) <= 0.1), np.rint(end), end)
        for end in (low, high)
    )
    return np.where(coarse, nearest, answers), low, high


def _pieces(workload: Workload) -> Iterator[Piece]:
    """Everything that is shown, in order."""
    if not workload.derived:
        yield None, 0, workload.shape[0]
        return
    for start, stop in workload.labels.shown_ranges():
        yield None, start, stop
    for derived in workload.derived:
        yield derived, 0, derived.label.count


def _cut(pieces: Iterator[Piece], start: int, stop: int) -> Iterator[Piece]:
    """The parts of pieces that the positions ``start:stop`` fall on."""
    end = 0
    for part, first, last in pieces:
        begin, end = end, end + last - first
        low, high = max(start, begin), min(stop, end)
        if low < high:
            yield part, first + low - begin, first + high - begin


def _shown_values(
    release: Release, rows: Callable[[int, int], Floats], start: int, stop: int
) -> Floats:
    noisy = release.noisy(rows)
    pieces = _cut(_pieces(release.plan.workload), start, stop)
    values = [
        rows(first, last) if part is None else derived_values(part, first, last, noisy)
        for part, first, last in pieces
    ]
    return np.concatenate([np.empty(0), *values])


def states_results(release: Release) -> bool:
    """Whether a file states answers and standard errors, which follow from the measurements."""
    return release.plan.workload.shape[0] <= STATED_ANSWERS
