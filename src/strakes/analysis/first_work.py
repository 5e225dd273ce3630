"""Whether the pilot, the first work of a survey, was far beyond all later work: a survey changes what it measures.

All functions here are pure.

Of what happened before the first block no series of blocks tells, and of its first block hardly any.
"""

from __future__ import annotations

from collections.abc import Sequence

from strakes.analysis.beside import Shift
from strakes.analysis.levels import Levels, kind_of
from strakes.findings.results import Measured, Results
from strakes.findings.sample import Sample
from strakes.statistics.interval import median
from strakes.store.records import Visit
from strakes.studies.registry import study_named
from strakes.studies.transfer_size import TransferSize

# The pilot against later runs: so many of them and such a share of all, and so many times as fast. It works for another
# time and on other amounts than they do, so only what is far beyond them counts.
_FEWEST_LATER = 20
_MOST_OF_ALL = 0.5
_FAR_BEYOND = 3.0
# So few of them may come near it: a state that is gone comes back for a moment now and then.
_COME_NEAR = 0.05
# Data moved for a much shorter time than the pilot's tells of starting, not of the rate.
_SHORTER = 0.1


def since_pilot(visits: Sequence[Visit], results: Results, levels: Levels) -> tuple[Shift, ...]:
    """Return the kinds of work that the pilot did far faster than nearly all runs did later, or from some moment on.

    ``levels``: the changes that the runs show among themselves.
    """
    start_s = min((seen.at_s for figure in results.measured for seen in figure.observations), default=0.0)
    shifts = []
    for kind in ("create", "write"):
        pilots = [
            sample for visit in visits if visit.cell == "pilot" for sample in visit.samples if sample.name == kind
        ]
        figures = [
            figure
            for figure in results.measured
            if figure.estimate is not None and kind_of(figure) == kind and _comparable(figure, kind)
        ]
        if pilots and (shift := _since(pilots[0], kind, figures, levels, start_s)):
            shifts.append(shift)
    return tuple(shifts)


def _since(pilot: Sample, kind: str, figures: Sequence[Measured], levels: Levels, start_s: float) -> Shift | None:
    moves = kind != "create"
    fresh = pilot.bytes_per_s if moves else pilot.operations_per_s
    runs = sorted(
        (seen.at_s, seen.sample.bytes_per_s if moves else seen.sample.operations_per_s, seen.sample.elapsed_s)
        for figure in figures
        for seen in figure.observations
    )
    if not runs or min(rate for _, rate, _ in runs) <= 0:
        return None
    if moves and median([elapsed_s for *_, elapsed_s in runs]) < _SHORTER * pilot.elapsed_s:
        return None
    fewest = max(_FEWEST_LATER, _MOST_OF_ALL * len(runs))
    if sum(rate * _FAR_BEYOND <= fresh for _, rate, _ in runs) < (1 - _COME_NEAR) * fewest:
        return None
    # A first block is one run of each cell: too few to show a change among the runs themselves.
    told = any(figure.id in levels.changed for figure in figures)
    for share in (0.0,) if told else (0.0, _COME_NEAR):
        for moment in sorted({at_s for at_s, _, _ in runs})[: 1 if told else None]:
            rates = [rate for at_s, rate, _ in runs if at_s >= moment]
            near = sum(rate * _FAR_BEYOND > fresh for rate in rates)
            if len(rates) >= fewest and near <= share * len(rates):
                return Shift(
                    kind,
                    0.0 if moment == runs[0][0] else moment - start_s,
                    median(rates) / fresh,
                    (1 + near) / (1 + len(rates)),
                    tuple(figure.id for figure in figures),
                    fresh,
                    tuple(figure.id for figure in figures if _like(figure, kind, pilot)),
                    (len(rates) - near, len(rates)),
                )
    return None


def _comparable(figure: Measured, kind: str) -> bool:
    """Whether it is work such as the pilot does: no directories, and not what goes on where its last visit ended."""
    if kind == "create":
        does = not figure.is_side and "dir" not in str(figure.settings.get("operation", ""))
    else:
        does = figure.unit == "B/s"
    return does and not study_named(figure.study).visits_in_sequence


def _like(figure: Measured, kind: str, pilot: Sample) -> bool:
    """Whether it is of the work that the pilot did, by as many ranks."""
    settings = figure.settings
    if settings.get("ranks") != len(pilot.ranks):
        return False
    if kind == "create":
        return (settings.get("operation"), settings.get("directory")) == ("file-create", "unique")
    calls = {"operation": kind, "io": "buffered", "transfer_bytes": pilot.bytes // max(1, pilot.operations)}
    return figure.study == TransferSize.name and all(settings.get(name) == value for name, value in calls.items())
