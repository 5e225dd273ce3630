"""Sort questions and claims by importance, and estimate the budgets to answer them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from strakes.base.units import typed_seconds
from strakes.model.cell import UNITS, Cell
from strakes.model.phases import MetadataPhase, ProbePhase, SmallFilesPhase, StreamPhase, TransferPhase
from strakes.model.plan import Phase
from strakes.model.portrait import CellEstimate
from strakes.model.results import Measured, Results
from strakes.studies.study import Pilot, Study
from strakes.survey.amounts import MEASURE_SHARE, OVERHEAD, WANTED_BLOCKS, weight
from strakes.survey.pilot import NO_PILOT


@dataclass(frozen=True)
class Verdict:
    """One question or claim of a study, with the keys of the measurements that it compares."""

    study: str
    cells: tuple[str, ...]


# Postpone a question if the trials of one of its cells need more than this share of the budget.
_LARGE_SHARE = 0.1


def verdicts_of(
    studies: Sequence[Study],
    cells: Sequence[Cell],
    facts: Mapping[str, Any],
    visits_s: Mapping[str, float],
    budget_s: float,
) -> list[Verdict]:
    """Return the questions and claims that the measurements can answer, most important first.

    First come claims, and comparisons of a question's first option with its last. Then come comparisons of all options,
    and finally comparisons with options whose trials take long. In each group, studies alternate.
    """
    most_s = _LARGE_SHARE * budget_s / WANTED_BLOCKS
    planned = _as_if_measured(cells, facts)
    key_of = {cell.measure_id(measure.suffix): cell.key for cell in cells for measure in cell.measures}
    passes: tuple[list[list[Verdict]], ...] = ([], [], [])
    for study in studies:
        own = planned.of_study(study.name)
        asked = [
            [[key_of[measure] for measure in option.measures] for option in question.options]
            for question in study.questions(own)
        ]
        for of_pass in passes:
            of_pass.append([])
        ends, between, large = (of_pass[-1] for of_pass in passes)
        ends += [_verdict(study, [key_of[measure] for measure in claim.measures]) for claim in study.claims(own)]
        for options in asked:
            small = [keys for keys in options if max(visits_s[key] for key in keys) <= most_s]
            outer = small if len(small) > 1 else options
            ends.append(_verdict(study, outer[0], outer[-1]))
            if len(small) > 2:
                between.append(_verdict(study, *small))
            large += [_verdict(study, options[0], keys) for keys in options if keys not in small]
    priority = {cell.key: cell.priority for cell in cells}
    found = [
        verdict
        for of_pass in passes
        for verdict in sorted(
            (one for row in zip_longest(*of_pass) for one in row if one is not None),
            key=lambda one: max(priority[key] for key in one.cells),
        )
    ]
    asked_for = {key for verdict in found for key in verdict.cells}
    return [*found, *(Verdict(cell.study, (cell.key,)) for cell in cells if cell.key not in asked_for)]


def _verdict(study: Study, *options: Sequence[str]) -> Verdict:
    return Verdict(study.name, tuple(dict.fromkeys(key for keys in options for key in keys)))


def _as_if_measured(cells: Sequence[Cell], facts: Mapping[str, Any]) -> Results:
    measured = []
    for cell in cells:
        for measure in cell.measures:
            identifier, settings = cell.measure_id(measure.suffix), {**cell.settings, **measure.settings}
            unit = UNITS[measure.metric]
            estimate = CellEstimate(identifier, cell.study, settings, 1.0, None, None, 0.9, 0, unit, ())
            measured.append(Measured(identifier, cell.study, settings, unit, (), estimate))
    return Results(tuple(measured), 0.9, facts)


def visit_s(cell: Cell, pilot: Pilot, phase_s: float) -> float:
    """Return the expected seconds of a trial at the rates of the pilot measurement."""
    return OVERHEAD * sum(_phase_s(phase, cell, pilot, phase_s) for phase in cell.plan.phases) + pilot.overhead_s


def _phase_s(phase: Phase, cell: Cell, pilot: Pilot, phase_s: float) -> float:
    operations = phase.operations(cell.plan.ranks)
    if isinstance(phase, ProbePhase):
        return phase.seconds
    if pilot == NO_PILOT:
        return phase_s
    if isinstance(phase, TransferPhase | StreamPhase):
        each = phase.transfer_bytes if isinstance(phase, TransferPhase) else phase.block_bytes
        rate = pilot.read_bytes_per_s if phase.operation == "read" else pilot.write_bytes_per_s
        taken_s = operations * each / rate
    elif isinstance(phase, MetadataPhase | SmallFilesPhase) and operations:
        taken_s = weight(phase) * operations / pilot.creates_per_s
    else:
        return phase_s
    limit_s = phase.stop.seconds
    return taken_s if limit_s is None else min(taken_s, limit_s)


def budgets_of(verdicts: Sequence[Verdict], visits_s: Mapping[str, float], prepared_s: float = 0.0) -> list[float]:
    """Return a list of budgets in seconds: for the first question, for the first two questions, and so on.

    ``prepared_s``: seconds already spent on the preparation.
    """
    seen: set[str] = set()
    spent_s, budgets = 0.0, []
    for verdict in verdicts:
        spent_s += sum(visits_s[key] for key in verdict.cells if key not in seen)
        seen.update(verdict.cells)
        budgets.append((prepared_s + WANTED_BLOCKS * spent_s) / MEASURE_SHARE)
    return budgets


def larger_budgets(verdicts: Sequence[Verdict], budgets: Sequence[float], left: Collection[int]) -> dict[str, str]:
    """Return study -> text with the ``--budget`` for the next open question and for all open questions.

    ``budgets``: sufficient budget for each question. ``left``: indices of the open questions.
    """
    open_: dict[str, list[str]] = {}
    for index in sorted(left):
        open_.setdefault(verdicts[index].study, []).append(f"--budget {typed_seconds(budgets[index], up=True)}")
    return {
        study: options[0] if options[0] == options[-1] else f"{options[0]}, all {options[-1]}"
        for study, options in open_.items()
    }
