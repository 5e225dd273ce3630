"""Choose settings for an application from measured settings. Each choice has a reason, evidence and a gain."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from strakes.base.units import format_bytes, typed_seconds
from strakes.model.answers import Answer, Comparison
from strakes.model.portrait import IntervalOf
from strakes.model.results import Measured, Results
from strakes.model.setting_text import level_of, level_text
from strakes.report.answer_text import answer_text
from strakes.stats.grades import INTERVAL_CONFIDENCE, MOST_TIMES, times_to_decide
from strakes.studies.overview import along, usual_cells
from strakes.survey.analysis_answers import answer_among
from strakes.tuning.advise_app import App, AppPhase, Operation

What = Literal["transfer size", "processes per node", "stripe count", "stripe size", "files"]
_NOT_SPARED: tuple[What, ...] = ("transfer size", "stripe size")

# A measured file size counts for the application's files if the sizes differ by at most this factor.
_LIKE_TIMES = 8.0
# Stripe size while the stripe count varies, in the striping study and in the publication that it repeats (S1).
_USUAL_STRIPE_BYTES = 1 << 20


@dataclass(frozen=True)
class Choice:
    """One recommended setting for one I/O phase of an application.

    ``gain``: interval of the rate with the recommended value divided by the rate with the present value (None: no
    proven gain). ``surer``: command of a longer measurement, for a more certain answer.
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
    """A setting without a recommendation, because a measurement is missing.

    ``needs``: the missing measurement. ``times``: required budget as a multiple of this run's, or 0 for the default.
    """

    phase: str
    what: str
    why: str
    needs: str
    times: float = 0.0


@dataclass(frozen=True)
class SizeClass:
    """The best measured ``stripe_count`` for files of at most ``file_bytes``."""

    file_bytes: int
    stripe_count: int
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Chosen:
    """Recommendations for an application: settings, missing measurements, and best stripe counts by file size."""

    choices: tuple[Choice, ...]
    unknowns: tuple[Unknown, ...]
    classes: tuple[SizeClass, ...] = ()

    def value(self, phase: AppPhase, what: What) -> int | str | None:
        """Return the recommended value of a setting for an I/O phase, or None if there is no recommendation."""
        return next((one.value for one in self.choices if (one.phase, one.what) == (phase.name, what)), None)


def choose(app: App, results: Results, budget_s: float = 120.0) -> Chosen:
    """Return advice for an application from the results of a run. ``budget_s``: budget of the run. Pure function."""
    outcomes: list[Choice | Unknown] = []
    for phase in app.phases:
        outcomes += [_transfer(phase, results), _writers(app, phase, results)]
        outcomes += [*_stripes(app, phase, results), *_files(phase, results)]
        if phase.files == "same" and app.ranks > app.nodes:
            why = "one reader per node that passes the data on (MPI_Bcast) was not compared with all ranks reading"
            needs = "the study startup-load on several nodes (Tian et al., 2020: 1 reader per node was best)"
            outcomes.append(Unknown(phase.name, "who reads", why, needs))
    choices = [one for one in outcomes if isinstance(one, Choice)]
    unknowns = [one for one in outcomes if isinstance(one, Unknown)]
    directory = shlex.quote(str(results.facts.get("path", "DIR")))
    for place, unknown in enumerate(unknowns):
        budget = f" --budget {typed_seconds(unknown.times * budget_s, up=True)}" if unknown.times else ""
        unknowns[place] = replace(unknown, needs=unknown.needs.replace(" DIR", f" {directory}") + budget)
    # A file has one layout for reads and writes, so choose it for the I/O phase with the largest share.
    operation = max(app.phases, key=lambda phase: phase.share or 0.0).operation
    return Chosen(tuple(choices), tuple(unknowns), size_classes(operation, results))


def _transfer(phase: AppPhase, results: Results) -> Choice | Unknown:
    cells = [
        cell
        for cell in results.of_study("transfer-size").where(operation=phase.operation, io="buffered")
        if "stripe_bytes" not in cell.settings
    ] or _overview(results, phase.operation, "transfer_bytes")
    cells = [cell for cell in cells if float(cell.settings["transfer_bytes"]) <= phase.data_bytes]
    return _level(results, phase, "transfer size", cells, "transfer_bytes", phase.usual_record, "transfer-size")


def _writers(app: App, phase: AppPhase, results: Results) -> Choice | Unknown:
    cells = [
        cell
        for cell in results.of_study("processes-per-node").where(operation=phase.operation)
        if not cell.settings.keys() & {"data_bytes", "on"}
    ] or _overview(results, phase.operation, "ranks")
    outcome = _level(results, phase, "processes per node", cells, "ranks", app.ranks_per_node, "processes-per-node")
    if isinstance(outcome, Choice) and app.nodes > 1:
        more = f"measured on one node: client-scaling on several nodes shows how {app.nodes} nodes share the servers"
        return replace(outcome, surer="; ".join(filter(None, (outcome.surer, more))))
    return outcome


def _overview(results: Results, operation: str, factor: str) -> list[Measured]:
    return [cell for _, cells in along(results.of_study("overview"), operation, factor) for cell in cells]


def _stripes(app: App, phase: AppPhase, results: Results) -> list[Choice | Unknown]:
    cells = results.of_study("striping").where(operation=phase.operation)
    size = app.file_bytes(phase)
    if not cells:
        if results.facts.get("no_striping") or int((results.facts.get("striping") or {}).get("data_targets", 2)) < 2:
            return []
        why = "the layout of files was not measured here"
        return [Unknown(phase.name, "striping", why, "strakes study striping DIR")]
    measured = sorted({float(cell.settings["file_bytes"]) for cell in cells})
    nearest = min(measured, key=lambda file_bytes: abs(math.log(file_bytes / size)))
    if not 1 / _LIKE_TIMES <= nearest / size <= _LIKE_TIMES:
        why = f"the files have {format_bytes(size)}, but the nearest measured size is {format_bytes(nearest)}"
        return [Unknown(phase.name, "striping", why, "strakes study striping DIR", 2)]
    like = [cell for cell in cells if float(cell.settings["file_bytes"]) == nearest]
    counts = [cell for cell in like if cell.settings["stripe_bytes"] == _USUAL_STRIPE_BYTES]
    most = max(float(cell.settings["stripe_count"]) for cell in like)
    sizes = [cell for cell in like if float(cell.settings["stripe_count"]) == most]
    about = f", for files of {format_bytes(nearest)}"
    if phase.files != "per-process":
        about += ", each written by one process"
    return [
        _level(results, phase, "stripe count", counts, "stripe_count", 1, "striping", about),
        _level(results, phase, "stripe size", sizes, "stripe_bytes", _USUAL_STRIPE_BYTES, "striping", about),
    ]


def _files(phase: AppPhase, results: Results) -> list[Choice | Unknown]:
    if phase.files not in ("per-process", "shared"):
        return []
    cells = _by_files(phase, results)
    command = "strakes study access-patterns DIR"
    if len(cells) < 2:
        return [Unknown(phase.name, "files", "a shared file and a file per process were not compared here", command)]
    names = {cell.id: name for name, cell in cells.items()}
    answer = answer_among(list(cells.values()), results)
    if answer is None:
        return [Unknown(phase.name, "files", "too few runs compare a shared file with a file per process", command, 2)]
    best = names[answer.measure]
    ratio = f"{answer.against.ratio:.2f} times the rate of {names[answer.against.measure]} files"
    if answer.grade in ("sure", "likely") and best != phase.files:
        gain = _interval(answer.against, f"ratio of {best} to {phase.files} files")
        return [Choice(phase.name, "files", best, _files_text(best), f"{ratio} ({answer.grade})", tuple(names), gain)]
    if answer.grade == "undecided":
        labels = {one: f"{name} files" for one, name in names.items()}
        return [Unknown(phase.name, "files", _as_surveyed(answer, labels), *_more(answer, command))]
    reason = f"keep {phase.files} files: no other is faster ({answer.grade})"
    return [Choice(phase.name, "files", phase.files, _files_text(phase.files), reason, tuple(names))]


def _by_files(phase: AppPhase, results: Results) -> dict[str, Measured]:
    cells = results.of_study("access-patterns").where(operation=phase.operation, axis="requests")
    sizes = {float(cell.settings["transfer_bytes"]) for cell in cells}
    if not sizes:
        found = {
            name: usual_cells(results.of_study("overview"), phase.operation, files=files)
            for name, files in (("per-process", "own"), ("shared", "segmented"))
        }
        return {name: own[0] for name, own in found.items() if own}
    near = min(sizes, key=lambda size: abs(math.log(size / phase.usual_record)))
    patterns = {"MFWA": "per-process", "SFSA": "shared"}
    return {
        patterns[str(cell.settings["pattern"])]: cell
        for cell in cells
        if float(cell.settings["transfer_bytes"]) == near and cell.settings["pattern"] in patterns
    }


def _files_text(files: str) -> str:
    return "one shared file" if files == "shared" else "a file for each writing process"


def _level(
    results: Results,
    phase: AppPhase,
    what: What,
    cells: Sequence[Measured],
    factor: str,
    now: float,
    study: str,
    about: str = "",
) -> Choice | Unknown:
    cells = sorted(cells, key=lambda cell: float(cell.settings[factor]))
    command = f"strakes study {study} DIR"
    if len(cells) < 2:
        why = "this setting was not measured" if not cells else "only one level was measured"
        return Unknown(phase.name, what, f"{why}{about}", command)
    answer = answer_among(cells, results, ordered=True)
    evidence = tuple(cell.id for cell in cells)
    if answer is None:
        return Unknown(phase.name, what, f"too few runs compare levels of this setting{about}", command, 2)
    best = results.get(answer.measure)
    surveyed = _as_surveyed(answer, {cell.id: level_of(factor, cell.settings[factor]) for cell in cells}) + about
    if answer.grade == "undecided":
        return Unknown(phase.name, what, surveyed, *_more(answer, command))
    if what not in _NOT_SPARED and float(now) >= 2 * float(cells[-1].settings[factor]):
        return Unknown(phase.name, what, f"{surveyed}; {now:g}, the present value, was not measured", command)
    as_now = min(cells, key=lambda cell: abs(math.log(float(cell.settings[factor]) / now)))
    better = next((one for one in answer.others if one.measure == as_now.id and one.grade != "undecided"), None)
    if best.id != as_now.id and better is None and (what in _NOT_SPARED or float(now) < float(best.settings[factor])):
        reason = f"keep the present value: no other is shown to be faster{about}"
        level = level_of(factor, as_now.settings[factor])
        return Choice(phase.name, what, _value(factor, as_now), level, reason, evidence)
    gain = None if better is None else _interval(better, f"ratio to {level_text(factor, as_now.settings[factor])}")
    unclear = {one.measure for one in answer.others if one.grade == "undecided"}
    smaller = [level_of(factor, cell.settings[factor]) for cell in cells[: cells.index(best)] if cell.id in unclear]
    more = f"; {' or '.join(smaller)} may be good enough, too" if smaller else ""
    reason = f"the smallest level that is shown to be good enough{about} ({answer.grade}){more}"
    level = level_of(factor, best.settings[factor])
    return Choice(phase.name, what, _value(factor, best), level, reason, evidence, gain)


def _value(factor: str, cell: Measured) -> int:
    return int(float(cell.settings[factor]))


def _interval(versus: Comparison, of: str) -> IntervalOf:
    return IntervalOf(versus.low, versus.high, INTERVAL_CONFIDENCE, of, "times")


def _as_surveyed(answer: Answer, labels: Mapping[str, str]) -> str:
    others = tuple(replace(one, option=labels[one.measure]) for one in answer.others)
    against = replace(answer.against, option=labels[answer.against.measure])
    return answer_text(replace(answer, chosen=labels[answer.measure], others=others, against=against, remark=""))


def _more(answer: Answer, command: str) -> tuple[str, float]:
    times = times_to_decide(answer.against.low, answer.against.high)
    if times > MOST_TIMES:
        return f"{command} at a quieter time, because the runs scatter too much", 0.0
    return command, times


def size_classes(operation: Operation, results: Results) -> tuple[SizeClass, ...]:
    """Return the best stripe count for each measured file size. Larger files get at least the count of smaller ones."""
    cells = results.of_study("striping").where(operation=operation, stripe_bytes=_USUAL_STRIPE_BYTES)
    classes: list[SizeClass] = []
    for size in sorted({float(cell.settings["file_bytes"]) for cell in cells}):
        like = [cell for cell in cells if float(cell.settings["file_bytes"]) == size]
        probe = AppPhase("", operation, "per-process", int(size))
        outcome = _level(results, probe, "stripe count", like, "stripe_count", 1, "striping")
        if isinstance(outcome, Choice):
            # Stripe counts must not decrease. Otherwise, a progressive layout of Lustre would leave targets unused.
            count = max([int(outcome.value), *(size_class.stripe_count for size_class in classes)])
            classes.append(SizeClass(int(size), count, outcome.evidence))
    return tuple(classes)
