"""What was chosen for a plan: its noise, statement by statement, and the amount for tolerances."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from lrm.files.spelling import in_percent, number
from lrm.planning.plan.tolerances import Met, Tolerance
from lrm.privacy.amounts import spell_amount
from lrm.privacy.budget import zcdp_of
from lrm.views.blocks import Block, Facts, Prose, plain_table
from lrm.views.statement_errors import StatementError, StatementErrors, part_title, stated

if TYPE_CHECKING:
    from lrm.planning.plan.comparison import NoiseChoice  # it imports all searches


def _pairs(choice: NoiseChoice, confidence: float) -> list[tuple[StatementError, StatementError]]:
    pure = StatementErrors(choice.pure).at(choice.pure.accuracy(choice.epsilon), confidence)
    gaussian = StatementErrors(choice.gaussian).at(
        choice.gaussian.accuracy(choice.delta), confidence
    )
    return list(zip(pure, gaussian, strict=True))


def noise_facts(choice: NoiseChoice, confidence: float) -> dict[str, Any]:
    """The intervals of each statement with either noise, as JSON holds them."""
    return {
        **choice.delta.facts,
        "chosen": choice.best.noise,
        "gaussian_to_pure": choice.ratio,
        "statements": [
            {"title": pure.part.title, "pure": pure.half, "gaussian": gaussian.half}
            for pure, gaussian in _pairs(choice, confidence)
            if not math.isnan(pure.half)
        ],
    }


def noise_blocks(choice: NoiseChoice, confidence: float) -> list[Block]:
    """Both kinds of noise as a table, and what was chosen, why, and what it would cost."""
    kind = "shaped" if choice.pure.noise == "shaped" else "Laplace"
    laplace, delta = f"{kind}, {choice.epsilon.symbols}", f"Gaussian, {choice.delta.symbols}"
    rows = []
    for pure, gaussian in _pairs(choice, confidence):
        ratio = gaussian.half / pure.half if pure.half else 1.0
        halves = stated(pure.half, "±"), stated(gaussian.half, "±")
        rows.append((pure.part.title, *halves, "—" if math.isnan(ratio) else f"{ratio:.2f}"))
    typical = f"Gaussian noise has {choice.ratio:.2f} times the standard errors of {kind} noise"
    rho = spell_amount(zcdp_of(choice.delta).rho, "up")
    if choice.best is choice.pure:
        chosen = (
            f"{typical}, so {kind} noise is chosen: it also keeps the stronger guarantee of pure "
            f"{choice.epsilon.symbols}."
        )
    else:
        chosen = (
            f"{typical}, so it is chosen. It keeps {choice.delta.symbols}; a release is charged "
            f"rho {rho}: the ledger needs `lrm budget create --accounting rho`. --noise pure keeps "
            f"{choice.epsilon.symbols} without delta."
        )
    title = f"{in_percent(confidence)} intervals with either noise"
    columns = ("statement", laplace, delta, "ratio")
    return [plain_table(title, columns, rows), Prose((chosen,))]


def met_facts(met: Met) -> dict[str, Any]:
    """The least amount, and the interval of each tolerance at it, as JSON holds them."""
    return {
        **met.privacy.facts,
        "confidence": met.confidence,
        "tolerances": [
            {
                "statement": tolerance.statement.name,
                "answer": tolerance.name,
                "within": tolerance.within,
                "half_width": ratio * tolerance.within,
                "determines": tolerance in met.determining,
            }
            for tolerance, ratio in zip(met.tolerances, met.ratios, strict=True)
        ],
    }


def met_blocks(met: Met) -> list[Block]:
    """Tolerances and how they are met, as a line, a table and a sentence."""
    ((name, amount),) = met.privacy.amounts.items()
    percent = in_percent(met.confidence)
    # Tables of one name, such as those of several grouping sets, are one row.
    named: dict[tuple[str, str], tuple[float, Tolerance]] = {}
    for tolerance, ratio in zip(met.tolerances, met.ratios, strict=True):
        key = tolerance.statement.name, tolerance.name
        if key not in named or named[key][0] < ratio:
            named[key] = ratio, tolerance
    counts = Counter(statement for statement, _ in named)
    rows = []
    for ratio, tolerance in named.values():
        several = counts[tolerance.statement.name] > 1
        rows.append(
            (
                part_title(tolerance.statement.title, tolerance.name if several else ""),
                number(tolerance.within),
                f"±{number(ratio * tolerance.within)}",
                "determines it" if tolerance in met.determining else "",
            )
        )
    noted = [answer for _, tolerance in named.values() for answer in tolerance.derived]
    notes = {f"{answer.label.query}: {answer.note}": None for answer in noted if answer.note}
    line = f"{name} {spell_amount(amount, 'up')} meets all tolerances with {percent} intervals"
    return [
        Facts((("least amount", line),)),
        plain_table("", ("answers", "within", f"{percent} interval", ""), rows, words=("",)),
        Prose(("wider tolerances for what determines it lower the amount", *notes)),
    ]
