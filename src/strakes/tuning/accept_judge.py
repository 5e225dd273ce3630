"""Compare measured values with the requirements on a file system. Verdicts: PASS, FAIL, UNKNOWN or a forecast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from strakes.base.foreign_text import for_terminal
from strakes.base.text_width import wrapped
from strakes.base.units import counted, format_bytes
from strakes.model.results import Measured, Results
from strakes.predict.asked import Asked, Stated
from strakes.predict.forecasts import forecast_figures
from strakes.predict.levels import FigureLevels, Scale
from strakes.predict.model import COVERAGE
from strakes.report.numbers import percent, show
from strakes.stats.grades import GOOD_ENOUGH, Choice, grade, times_to_decide
from strakes.studies.compose import log_values
from strakes.survey.analysis_held_back import held_back
from strakes.tuning.accept_needs import Need

PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"
PREDICTED_PASS, PREDICTED_FAIL = "PREDICTED PASS", "PREDICTED FAIL"
VERDICTS = (PASS, FAIL, PREDICTED_PASS, PREDICTED_FAIL, UNKNOWN)
HOUR_S = 3600.0
WIDTH_COLUMNS = 96


@dataclass(frozen=True)
class Answer:
    """Verdict on one requirement. ``found``: measured, reported or extrapolated value. ``limits``: caveats in words."""

    need: Need
    verdict: str
    wanted: str
    found: str
    limits: str
    evidence: tuple[str, ...] = ()
    forecast: bool = False


def judge(
    needs: Sequence[Need],
    facts: Mapping[str, Any],
    results: Results,
    figures: Sequence[FigureLevels],
    command: str = "",
) -> tuple[Answer, ...]:
    """Return a verdict on each requirement.

    A rate passes if its whole interval is at or above the required value. It fails if its whole interval is below this
    value and more clients or ranks would not raise the rate. ``figures``: series of rates to extrapolate from.
    ``command``: command that measures all required values.
    """
    evidence = _Evidence(results, figures, bool(facts.get("remote", False)), command)
    by_facts = {"files": _files, "bytes": _bytes}
    return tuple(
        by_facts[need.kind](need, facts) if need.kind in by_facts else _rate(_asked(need, results), evidence)
        for need in needs
    )


@dataclass(frozen=True)
class _Evidence:
    results: Results
    figures: Sequence[FigureLevels]
    remote: bool
    command: str

    def figure_of(self, cell: Measured) -> FigureLevels | None:
        figures = [one for one in self.figures if one.study == cell.study]
        return next((one for one in figures if one.settings.items() <= cell.settings.items()), None)

    def scale_of(self, cell: Measured) -> Scale:
        ranks = int(float(cell.settings["ranks"]))
        levels = figure.levels if (figure := self.figure_of(cell)) is not None else ()
        return next((level.scale for level in levels if level.scale.ranks == ranks), Scale(ranks=ranks))


@dataclass(frozen=True)
class _Rate:
    need: Need
    wanted: str
    cells: Sequence[Measured]
    at_least: float
    unit: str
    scale: float = 1.0
    clients: int | None = None

    def show(self, value: float) -> str:
        value *= self.scale
        return show(value, "B/s") if self.unit == "B/s" else f"{_plain(value)} {self.unit}"

    def answer(
        self, verdict: str, reading: str, limits: str, evidence: tuple[str, ...] = (), *, forecast: bool = False
    ) -> Answer:
        return Answer(self.need, verdict, self.wanted, reading, limits, evidence, forecast)


def _files(need: Need, facts: Mapping[str, Any]) -> Answer:
    wanted, total = counted(need.at_least, "file"), facts.get("total_inodes", 0)
    if not total:  # statvfs(3) reports 0 if the file system does not limit inodes.
        limits = (
            "This file system states no limit on the number of files. Grow a population: strakes study "
            "population DIR --files N."
        )
        return Answer(need, UNKNOWN, wanted, "no limit is stated", limits)
    limits = "The file system reports this number. Only a population of that size shows the rates with so many files."
    return Answer(need, PASS if total >= need.at_least else FAIL, wanted, f"room for {counted(total, 'file')}", limits)


def _bytes(need: Need, facts: Mapping[str, Any]) -> Answer:
    wanted, total = format_bytes(need.at_least), facts["total_bytes"]
    if not total:  # Some FUSE file systems do not answer statvfs(3).
        return Answer(need, UNKNOWN, wanted, "no size is stated", "This file system states no size.")
    verdict = PASS if total >= need.at_least else FAIL
    return Answer(need, verdict, wanted, format_bytes(total), "This is the total size, not the free space.")


def _asked(need: Need, results: Results) -> _Rate:
    cells = [cell for cell in results.of_study(need.study).where() if cell.settings.get("directory") != "shared"]
    cells = [cell for cell in cells if not need.operation or cell.settings["operation"] == need.operation]
    by = f" by {counted(need.clients, 'client')}" if need.clients else ""
    if need.kind == "bandwidth":
        blocks = max((float(cell.settings["block_bytes"]) for cell in cells), default=0.0)
        large = [cell for cell in cells if float(cell.settings["block_bytes"]) == blocks]
        wanted = f"{show(need.at_least, 'B/s')} {need.operation}{by}"
        return _Rate(need, wanted, large, need.at_least, "B/s", clients=need.clients)
    if need.kind == "operations-per-s":
        wanted = f"{_plain(need.at_least)} {need.operation} a second{by}"
        return _Rate(need, wanted, cells, need.at_least, "op/s", clients=need.clients)
    if need.kind == "files-per-hour":
        wanted = f"{counted(need.at_least, 'file')} an hour{by}"
        return _Rate(need, wanted, cells, need.at_least / HOUR_S, "files an hour", HOUR_S, need.clients)
    needed = need.at_least * need.files_per_hour_each / HOUR_S
    wanted = (
        f"{counted(need.at_least, 'client')} at {counted(need.files_per_hour_each, 'file')} an hour each "
        f"({_plain(needed)} files a second)"
    )
    return _Rate(need, wanted, cells, needed, "files a second", clients=int(need.at_least))


def _rate(asked: _Rate, evidence: _Evidence) -> Answer:
    if not asked.cells and evidence.command:
        return asked.answer(UNKNOWN, "this run did not measure it", f"To decide it: {evidence.command}")
    measured = [cell for cell in asked.cells if cell.estimate is not None and cell.estimate.low is not None]
    if asked.clients is not None and asked.cells:
        return _with_clients(asked, asked.clients, measured, evidence)
    if not measured:
        return asked.answer(UNKNOWN, _without_interval(asked, evidence), "Give a larger --budget.")
    best = max(measured, key=lambda cell: cell.estimate.median if cell.estimate else 0.0)
    answer = _judged(asked, best, evidence)
    if answer.verdict != FAIL:
        return answer
    largest = _where_levelled_off(measured, evidence, by_ranks=not evidence.remote)
    if largest is not None:
        return replace(answer, limits=f"{_say_size(largest)} were not faster than fewer. {answer.limits}")
    most = max(measured, key=lambda cell: evidence.scale_of(cell).ranks)
    if not evidence.remote and evidence.scale_of(most).ranks > evidence.scale_of(best).ranks:
        size = _say_size(evidence.scale_of(most))
        why = f"With {size} the rate was not higher, but the runs are too few to be sure: give a larger --budget."
    elif not evidence.remote:
        why = "This node alone does not meet the need; more ranks might, because the rate may still grow."
    else:
        why = "The nodes of this run do not meet the need; more nodes might, so measure from several more."
    return replace(answer, verdict=UNKNOWN, limits=why)


def _without_interval(asked: _Rate, evidence: _Evidence) -> str:
    seen = [(cell.estimate, cell) for cell in asked.cells if cell.estimate is not None]
    if not seen:
        return "not measured often enough"
    estimate, best = max(seen, key=lambda pair: pair[0].median)
    return (
        f"{asked.show(estimate.median)} with {_say_size(evidence.scale_of(best))} in {counted(estimate.runs, 'run')}, "
        "too few for an interval"
    )


def _where_levelled_off(measured: Sequence[Measured], evidence: _Evidence, *, by_ranks: bool) -> Scale | None:
    best: dict[int, Measured] = {}
    for cell in sorted(measured, key=lambda cell: cell.estimate.median if cell.estimate else 0.0):
        scale = evidence.scale_of(cell)
        best[scale.ranks if by_ranks else scale.clients] = cell
    cells = [best[size] for size in sorted(best)]
    (answer,) = grade([Choice(tuple(map(log_values, cells)))])
    if answer is None:
        return None
    most = len(cells) - 1
    if answer.chosen == most:
        level = any(one.high <= GOOD_ENOUGH for one in answer.others)
    else:
        level = any(one.level == most and 1 / one.low <= GOOD_ENOUGH for one in answer.others)
    return evidence.scale_of(cells[most]) if level else None


def _out_of_reach(
    asked: _Rate, clients: int, measured: Sequence[Measured], evidence: _Evidence, *, local: bool
) -> Answer | None:
    if any(map(held_back, measured)):
        return None
    scales = {cell.id: evidence.scale_of(cell) for cell in measured}
    sizes = {name: scale.ranks if local else scale.clients for name, scale in scales.items()}
    most = {cell.id: (cell.estimate.high or math.inf) / sizes[cell.id] for cell in measured if cell.estimate}
    if not most or clients < min(sizes.values()) or (reached := max(most.values()) * clients) >= asked.at_least:
        return None
    best = max(most, key=most.__getitem__)
    alike = [cell for cell in measured if sizes[cell.id] == sizes[best]]
    if not local and _where_levelled_off(alike, evidence, by_ranks=True) is None:
        return None
    found = f"at most {asked.show(most[best])} for each client, with {_say_size(scales[best])}"
    limits = f"Even at this rate for each, {counted(clients, 'client')} would reach only {asked.show(reached)}."
    return asked.answer(FAIL, found, limits, (best,))


def _judged(asked: _Rate, cell: Measured, evidence: _Evidence) -> Answer:
    estimate, scale = cell.estimate, evidence.scale_of(cell)
    assert estimate is not None and estimate.low is not None and estimate.high is not None
    span = f"{asked.show(estimate.low)} - {asked.show(estimate.high)}"
    reading = f"{asked.show(estimate.median)} [{span}] with {_say_size(scale)}"
    of = f"{percent(estimate.confidence)} interval of {counted(estimate.runs, 'run')}"
    limits = f"{of} at this time, with few files on the file system."
    verdict = PASS if estimate.low >= asked.at_least else FAIL
    if verdict == FAIL and (share := held_back(cell)):
        held = f"--impact or --neighbour limited the load for {percent(share)} of the time"
        verdict, limits = UNKNOWN, f"{held}; without this limit, the need may be met. {limits}"
    elif verdict == FAIL and estimate.high >= asked.at_least:
        times = times_to_decide(estimate.low / asked.at_least, estimate.high / asked.at_least)
        verdict = UNKNOWN
        limits = f"The interval contains the need: give about {times:.0f} times the --budget. {limits}"
    return asked.answer(verdict, reading, limits, (cell.id,))


def _with_clients(asked: _Rate, clients: int, measured: Sequence[Measured], evidence: _Evidence) -> Answer:
    figure = evidence.figure_of(asked.cells[0])
    if figure is None:
        return asked.answer(UNKNOWN, "no number of clients was measured", "Give a larger --budget.")
    (answer,) = forecast_figures([figure], Asked({"clients": clients}), Stated())
    for cell in measured:
        if evidence.scale_of(cell) == answer.scale:
            return _judged(asked, cell, evidence)
    if (failed := _out_of_reach(asked, clients, measured, evidence, local=figure.local)) is not None:
        return failed
    ids = evidence.results.ids(asked.cells)
    sizes = sorted({(level.scale.clients, level.scale.ranks) for level in figure.levels})
    fewest, most = (Scale(*sizes[place]) for place in (0, -1))
    span = _say_size(most) if len(sizes) == 1 else f"{_say_size(fewest)} to {_say_size(most)}"
    if answer.scale in {level.scale for level in figure.levels}:
        limits = "This number was measured too seldom for an interval: give a larger --budget."
    else:
        limits = f"Measured with {span}; the need is for {counted(clients, 'client')}: measure with exactly that many."
    if (forecast := answer.forecast) is None:
        return asked.answer(UNKNOWN, f"none: {answer.why}", limits, ids, forecast=True)
    low, high = forecast.low, forecast.high
    span = f"{asked.show(low)} - {asked.show(high)}, {percent(COVERAGE)} interval"
    outlook = f"{asked.show(forecast.median)} [{span}] with {counted(clients, 'client')}"
    verdict = PREDICTED_PASS if low >= asked.at_least else PREDICTED_FAIL if high < asked.at_least else UNKNOWN
    if verdict == UNKNOWN:
        limits = f"The interval contains the need. {limits}"
    return asked.answer(verdict, outlook, limits, ids, forecast=True)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _say_size(scale: Scale) -> str:
    if scale.clients == 1:
        return f"{counted(scale.ranks, 'rank')} of one node"
    return f"{counted(scale.ranks, 'rank')} of {counted(scale.clients, 'client')}"


def to_document(title: str, run: str, answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the answers as JSON values. Rates are in B/s or per second, times in seconds."""
    counts = {verdict: sum(answer.verdict == verdict for answer in answers) for verdict in VERDICTS}
    listed = [asdict(answer) for answer in answers]
    return {"schema": 1, "title": title, "run": run, "counts": counts, "answers": listed}


def render(document: Mapping[str, Any], warnings: Sequence[str] = ()) -> str:
    """Return the answers as text, with a block for each requirement: verdict, requirement, result and caveats.

    ``warnings``: lines to print above the verdicts.
    """
    lines = [document["title"], f"run {document['run']}", *warnings, ""]
    for answer in document["answers"]:
        lines.append(f"{answer['verdict']:<8} {answer['need']['name']}: {answer['wanted']}")
        found = f"{'forecast' if answer['forecast'] else 'measured'}: {answer['found']}"
        lines += [f"         {line}" for text in (found, answer["limits"]) for line in wrapped(text, WIDTH_COLUMNS - 9)]
    summary = ", ".join(f"{number} {verdict}" for verdict, number in document["counts"].items() if number)
    return "\n".join(map(for_terminal, [*lines, "", summary]))
