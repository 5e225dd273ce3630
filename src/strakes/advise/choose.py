"""Which settings suit one application, out of what was measured.

Each with its reason, the cells it stands on and what it gains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from strakes.advise.app import App, AppPhase, Operation
from strakes.findings.portrait import IntervalOf
from strakes.findings.results import Measured, Results
from strakes.statistics.contrast import bonferroni
from strakes.studies.compose import (
    SATURATED,
    better_ratio,
    data_of_rank,
    describe,
    find_saturation,
    interval_of,
    level_text,
)
from strakes.units import counted, format_bytes

What = Literal["transfer size", "processes per node", "stripe count", "stripe size", "files"]
# Fewer stripes and processes are worth having for themselves; smaller calls and stripes are not.
_NOT_SPARED: tuple[What, ...] = ("transfer size", "stripe size")

# A file within this factor of one that was measured is taken to behave like it.
_LIKE = 8.0
# What is looked at for each phase.
_CHOICES = len(get_args(What))
# S1's usual stripe; the study varies the count at it.
_USUAL_STRIPE = 1 << 20


@dataclass(frozen=True)
class Choice:
    """One setting for one phase.

    ``gain``: how many times better than ``instead_of``, with its interval; None where that is no change.

    ``surer`` is what it would take to know better; empty when it is known well enough.
    """

    phase: str
    what: What
    value: int | str
    text: str
    reason: str
    evidence: tuple[str, ...]
    gain: IntervalOf | None = None
    surer: str = ""


@dataclass(frozen=True)
class Unknown:
    """What cannot be advised, and what it would take."""

    phase: str
    what: str
    why: str
    needs: str


@dataclass(frozen=True)
class SizeClass:
    """Files up to ``file_bytes`` do best with ``stripe_count`` stripes, as far as was measured."""

    file_bytes: int
    stripe_count: int
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Chosen:
    """Everything that is advised, and everything that cannot be."""

    choices: tuple[Choice, ...]
    unknowns: tuple[Unknown, ...]
    classes: tuple[SizeClass, ...] = ()

    def value(self, phase: AppPhase, what: What) -> int | str | None:
        """Return what was chosen for a phase, if anything."""
        return next(
            (choice.value for choice in self.choices if (choice.phase, choice.what) == (phase.name, what)), None
        )


def choose(app: App, results: Results) -> Chosen:
    """Everything the measurements say about this application. Pure."""
    # All that is advised holds together: a choice of size, number and layout for each phase.
    results = replace(results, confidence=bonferroni(results.confidence, _CHOICES * len(app.phases)))
    choices: list[Choice] = []
    unknowns: list[Unknown] = []
    for phase in app.phases:
        for outcome in (
            _transfer(phase, results),
            _writers(app, phase, results),
            *_stripes(app, phase, results),
            *_files(phase, results),
        ):
            if isinstance(outcome, Choice):
                choices.append(outcome)
            else:
                unknowns.append(outcome)
        if phase.files == "same" and app.ranks > app.nodes:
            why = "one reader per node that passes the data on (MPI_Bcast) was not compared with all ranks reading"
            unknowns.append(
                Unknown(
                    phase.name,
                    "who reads",
                    why,
                    "the study startup-load on several nodes; in S1, 1 reader per node was best",
                )
            )
    # A layout is for both operations: that of the larger share decides.
    operation = max(app.phases, key=lambda phase: phase.share or 0.0).operation
    return Chosen(tuple(choices), tuple(unknowns), size_classes(operation, results))


def _transfer(phase: AppPhase, results: Results) -> Choice | Unknown:
    cells = [
        cell
        for cell in results.of_study("transfer-size").where(operation=phase.operation, io="buffered")
        if "stripe_bytes" not in cell.settings
    ]
    # No call can move more than a rank has.
    cells = [cell for cell in cells if float(cell.settings["transfer_bytes"]) <= phase.data_bytes]
    outcome = _level(phase, "transfer size", cells, "transfer_bytes", phase.usual_record, results, "transfer-size")
    if isinstance(outcome, Choice) and int(outcome.value) * 2 > phase.data_bytes:
        return replace(outcome, surer="")  # no larger call is possible
    return outcome


def _writers(app: App, phase: AppPhase, results: Results) -> Choice | Unknown:
    cells = results.of_study("processes-per-node").where(operation=phase.operation)
    outcome = _level(phase, "processes per node", cells, "ranks", app.ranks_per_node, results, "processes-per-node")
    if isinstance(outcome, Choice) and len({round(data_of_rank(cell)) for cell in cells}) > 1:
        reason = f"{outcome.reason}; all ranks share one amount of data, so that its part for each may be the reason"
        outcome = replace(outcome, reason=reason)
    if isinstance(outcome, Choice) and app.nodes > 1:
        more = (
            f"measured on one node: run client-scaling on several nodes to see how {app.nodes} nodes share the servers"
        )
        return replace(outcome, surer="; ".join(filter(None, (outcome.surer, more))))
    return outcome


def _stripes(app: App, phase: AppPhase, results: Results) -> list[Choice | Unknown]:
    cells = results.of_study("striping").where(operation=phase.operation)
    size = app.file_bytes(phase)
    if not cells:
        return [
            Unknown(phase.name, "striping", "the layout of files was not measured here", "strakes study striping DIR")
        ]
    measured = sorted({float(cell.settings["file_bytes"]) for cell in cells})
    nearest = min(measured, key=lambda file_bytes: abs(math.log(file_bytes / size)))
    if not 1 / _LIKE <= nearest / size <= _LIKE:
        why = f"its files have {format_bytes(size)}, but the nearest size measured is {format_bytes(nearest)}"
        return [Unknown(phase.name, "striping", why, "strakes study striping DIR with a larger --budget")]
    like = [cell for cell in cells if float(cell.settings["file_bytes"]) == nearest]
    counts = [cell for cell in like if cell.settings["stripe_bytes"] == _USUAL_STRIPE]
    most = max(float(cell.settings["stripe_count"]) for cell in like)
    sizes = [cell for cell in like if float(cell.settings["stripe_count"]) == most]
    about = f", for files of {format_bytes(nearest)}" + (
        ", each written by one process" if phase.files != "per-process" else ""
    )
    return [
        _level(phase, "stripe count", counts, "stripe_count", 1, results, "striping", about),
        _level(phase, "stripe size", sizes, "stripe_bytes", _USUAL_STRIPE, results, "striping", about),
    ]


def _files(phase: AppPhase, results: Results) -> list[Choice | Unknown]:
    """One shared file against a file for each rank, for a phase that has one of them."""
    patterns = {"per-process": "MFWA", "shared": "SFSA"}
    if phase.files not in patterns:
        return []
    cells = [
        cell
        for cell in results.of_study("access-patterns").where(operation=phase.operation)
        if cell.settings.get("axis") == "requests"
    ]
    sizes = {float(cell.settings["transfer_bytes"]) for cell in cells}
    if not sizes:
        return [
            Unknown(
                phase.name, "files", "shared and own files were not compared here", "strakes study access-patterns DIR"
            )
        ]
    near = min(sizes, key=lambda size: abs(math.log(size / phase.usual_record)))
    at = {str(cell.settings["pattern"]): cell for cell in cells if float(cell.settings["transfer_bytes"]) == near}
    other = "shared" if phase.files == "per-process" else "per-process"
    now, instead = at.get(patterns[phase.files]), at.get(patterns[other])
    if now is None or instead is None:
        return []
    ratio = better_ratio(instead, now, results.confidence)
    if ratio is None or ratio.interval is None:
        return [
            Unknown(
                phase.name, "files", "too few runs compare shared and own files", "strakes study access-patterns DIR"
            )
        ]
    interval = ratio.interval
    gain = interval_of(interval, f"ratio of {describe(instead)} to {describe(now)}")
    evidence = (now.id, instead.id)
    if interval.low > 1:
        reason = f"{other} files are {ratio.median:.2f} times as fast in requests of {format_bytes(near)}"
        return [Choice(phase.name, "files", other, _files_text(other), reason, evidence, gain)]
    shown = "no slower" if interval.high <= 1 / SATURATED else "not shown to be slower"
    reason = f"{phase.files} files, as now, are {shown} than {other} files in requests of {format_bytes(near)}"
    surer = (
        ""
        if interval.high <= 1 / SATURATED
        else "a narrower interval: strakes study access-patterns DIR with a larger --budget"
    )
    return [Choice(phase.name, "files", phase.files, _files_text(phase.files), reason, evidence, None, surer)]


def _files_text(files: str) -> str:
    return "one shared file" if files == "shared" else "a file for each writing process"


def _level(
    phase: AppPhase,
    what: What,
    cells: Sequence[Measured],
    factor: str,
    now: float,
    results: Results,
    study: str,
    about: str = "",
) -> Choice | Unknown:
    """Return the smallest level shown to be as good as any."""
    cells = sorted(cells, key=lambda cell: float(cell.settings[factor]))
    command = f"strakes study {study} DIR"
    if len(cells) < 2:
        why = "it was not measured here" if not cells else "only one setting of it was measured"
        return Unknown(phase.name, what, f"{why}{about}", command)
    saturation = find_saturation(cells, factor, results.confidence)
    evidence = results.ids(cells)
    # What the application does now, or what was measured nearest to it.
    as_now = min(cells, key=lambda cell: abs(math.log(float(cell.settings[factor]) / now)))
    if saturation is not None and saturation.x is not None:
        best = next(cell for cell in cells if float(cell.settings[factor]) == saturation.x)
        enough = f"{SATURATED:.0%} of the {phase.operation} rate of every other"
        reason = f"the smallest measured that is shown to reach {enough}{about}"
        surer = f"larger ones were not measured: {command}" if saturation.verdict == "grows" else ""
        gain = _gain(best, as_now, factor, results)
        if what in _NOT_SPARED and (gain is None or gain.low <= 1) and float(as_now.settings[factor]) > saturation.x:
            # Less of it saves nothing: what is as good stays as it is.
            best, gain, reason = as_now, None, f"keep the present value: no other is shown to be faster{about}"
    else:
        more = (
            f"about {counted(saturation.more_runs, 'more run')} of each"
            if saturation is not None and saturation.more_runs
            else "more runs of each"
        )
        why = f"none of {len(cells)} settings is shown to be enough{about}"
        return Unknown(phase.name, what, why, f"{more}: {command} with a larger --budget")
    level = best.settings[factor]
    assert not isinstance(level, str)
    text = format_bytes(float(level)) if factor.endswith("_bytes") else str(level)
    return Choice(phase.name, what, int(level), text, reason, evidence, gain, surer)


def _gain(best: Measured, other: Measured, factor: str, results: Results) -> IntervalOf | None:
    """Return how many times better, by fresh runs if there are enough; None for the same cell or too few runs."""
    if best is other:
        return None
    for purpose, runs in (
        ("confirm", "fresh paired runs"),
        ("measure", "paired runs, which were also used to choose it"),
    ):
        ratio = better_ratio(best, other, results.confidence, purpose)
        if ratio is not None and ratio.interval is not None:
            of = f"ratio to {level_text(factor, other.settings[factor])}, {ratio.runs} {runs}"
            return interval_of(ratio.interval, of)
    return None


def size_classes(operation: Operation, results: Results) -> tuple[SizeClass, ...]:
    """Stripe counts by file size, for a layout that grows with the file."""
    cells = results.of_study("striping").where(operation=operation, stripe_bytes=_USUAL_STRIPE)
    classes: list[SizeClass] = []
    for size in sorted({float(cell.settings["file_bytes"]) for cell in cells}):
        like = [cell for cell in cells if float(cell.settings["file_bytes"]) == size]
        probe = AppPhase("", operation, "per-process", int(size))
        outcome = _level(probe, "stripe count", like, "stripe_count", 1, results, "striping")
        if isinstance(outcome, Choice):
            # A component cannot have fewer stripes than the one before it without wasting those.
            count = max([int(outcome.value), *(size_class.stripe_count for size_class in classes)])
            classes.append(SizeClass(int(size), count, outcome.evidence))
    return tuple(classes)
