"""PASS, FAIL or UNKNOWN for each need, with the evidence and the limits of what it says. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strakes.accept.needs import Need
from strakes.accept.service_level import Minute
from strakes.accept.service_level import judge as count_minutes
from strakes.analysis.held_back import held_back
from strakes.findings.record import from_record
from strakes.findings.results import Measured, Results
from strakes.predict.gather import level_of, settle_errors
from strakes.predict.model import COVERAGE, Model
from strakes.predict.scale import Scale
from strakes.report.numbers import percent, show
from strakes.studies.compose import find_saturation
from strakes.units import counted, format_bytes

PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"
# Of more than was measured: what is forecast never passes.
PREDICTED_PASS, PREDICTED_FAIL = "PREDICTED PASS", "PREDICTED FAIL"
VERDICTS = (PASS, FAIL, PREDICTED_PASS, PREDICTED_FAIL, UNKNOWN)
HOUR_S, DAY_S, YEAR_S = 3600.0, 86400.0, 365.25 * 86400.0


@dataclass(frozen=True)
class Answer:
    """``found`` is what was measured or read; ``limits`` what it does not say, or what it would take."""

    need: Need
    verdict: str
    wanted: str
    found: str
    limits: str
    evidence: tuple[str, ...] = ()


def judge(
    needs: Sequence[Need], facts: Mapping[str, Any], results: Results, minutes: Sequence[Minute] = ()
) -> tuple[Answer, ...]:
    """Return every need answered. A rate passes when the lower end of its interval reaches it.

    It fails only when the upper end does not *and* nothing that was left out could help: more clients of a network file
    system might. ``minutes``: what a watch has seen, for service levels.
    """
    stated: Mapping[str, Callable[[Need, _Capacity], Answer]] = {
        "files": _files,
        "bytes": _bytes,
        "operating-life": _life,
        "service-level": lambda need, _: _service_level(need, minutes),
    }
    measured: Mapping[str, Callable[[Need, _Evidence], Answer]] = {
        "files-per-hour": _files_per_hour,
        "clients": _clients,
        "bandwidth": _bandwidth,
        "operations-per-s": _operations,
    }
    evidence, capacity = _Evidence(results, bool(facts.get("remote", False))), from_record(_Capacity, facts)
    return tuple(
        stated[need.kind](need, capacity) if need.kind in stated else measured[need.kind](need, evidence)
        for need in needs
    )


@dataclass(frozen=True)
class _Evidence:
    results: Results
    remote: bool


@dataclass(frozen=True)
class _Capacity:
    """What the file system states of itself; ``total_inodes`` is 0 where it does not count them."""

    total_bytes: int = 0
    free_bytes: int = 0
    total_inodes: int = 0
    free_inodes: int = 0


@dataclass(frozen=True)
class _Rate:
    """What a need asks of rates over numbers of clients; a figure is shown times ``scale``, in ``unit``."""

    need: Need
    wanted: str
    cells: Sequence[Measured]
    factor: str
    at_least: float
    unit: str
    scale: float = 1.0
    clients: int | None = None

    def show(self, value: float) -> str:
        value *= self.scale
        if self.unit == "B/s":
            return show(value, "B/s")
        return f"{value:,.0f} {self.unit}" if value >= 100 else f"{value:,.3g} {self.unit}"

    def answer(self, verdict: str, reading: str, limits: str, evidence: tuple[str, ...] = ()) -> Answer:
        return Answer(self.need, verdict, self.wanted, reading, limits, evidence)


def _files(need: Need, capacity: _Capacity) -> Answer:
    wanted, total = f"{counted(need.at_least, 'file')}", capacity.total_inodes
    if not total:
        limits = (
            "This file system states no limit on the number of files. Grow a population: strakes study "
            "population DIR --files N."
        )
        return Answer(need, UNKNOWN, wanted, "no limit is stated", limits)
    limits = "According to the file system. How fast it is with so many files, only a population of that size can show."
    return Answer(need, PASS if total >= need.at_least else FAIL, wanted, f"room for {counted(total, 'file')}", limits)


def _bytes(need: Need, capacity: _Capacity) -> Answer:
    verdict = PASS if capacity.total_bytes >= need.at_least else FAIL
    wanted, total = format_bytes(need.at_least), format_bytes(capacity.total_bytes)
    return Answer(need, verdict, wanted, total, "This is the total size, not the free space.")


def _life(need: Need, capacity: _Capacity) -> Answer:
    """Return how long what is free lasts at so many files a day."""
    wanted = f"{need.at_least / YEAR_S:,.3g} years at {need.files_per_day:,.0f} files a day"
    files = capacity.free_inodes if capacity.total_inodes else math.inf
    by_size = capacity.free_bytes / need.file_bytes if need.file_bytes else math.inf
    lasts_s = min(files, by_size) / need.files_per_day * DAY_S
    if math.isinf(lasts_s):
        limits = "Add file_bytes to the need, so that the free space gives an answer."
        return Answer(need, UNKNOWN, wanted, "the file system states no limit on files", limits)
    scarce = "files run" if files <= by_size else "space runs"
    outlook = f"the free space lasts {lasts_s / DAY_S:,.3g} days ({scarce} out first)"
    limits = (
        "This assumes a constant rate, no removals and files of the stated size; wear of devices is not considered."
    )
    return Answer(need, PASS if lasts_s >= need.at_least else FAIL, wanted, outlook, limits)


def _service_level(need: Need, minutes: Sequence[Minute]) -> Answer:
    assert need.level is not None
    kept = count_minutes(need.level, minutes)
    if kept.kept is None:
        limits = "Watch the file system for a month: strakes watch DIR."
        return Answer(need, UNKNOWN, need.level.text, "no minute was watched", limits)
    found = (
        f"exceeded in {kept.bad:,.0f} of {counted(kept.minutes, 'minute')}; {percent(kept.budget_left)} of the "
        "budget is left"
    )
    limits = "What the probe of strakes watch measured on this client in the last 30 days."
    return Answer(need, PASS if kept.kept else FAIL, need.level.text, found, limits)


def _files_per_hour(need: Need, evidence: _Evidence) -> Answer:
    wanted = f"{need.at_least:,.0f} files an hour{_by_clients(need)}"
    cells = evidence.results.of_study("client-scaling").where()
    asked = _Rate(need, wanted, cells, "clients", need.at_least / HOUR_S, "files an hour", HOUR_S, need.clients)
    return _rate(asked, evidence)


def _clients(need: Need, evidence: _Evidence) -> Answer:
    """So many clients at a rate each: measured where there were as many, forecast beyond."""
    needed = need.at_least * need.files_per_hour_each / HOUR_S
    wanted = (
        f"{need.at_least:,.0f} clients at {need.files_per_hour_each:,.0f} files an hour each ({needed:,.0f} "
        "files a second)"
    )
    cells = evidence.results.of_study("client-scaling").where()
    return _rate(_Rate(need, wanted, cells, "clients", needed, "files a second", clients=int(need.at_least)), evidence)


def _bandwidth(need: Need, evidence: _Evidence) -> Answer:
    wanted = f"{show(need.at_least, 'B/s')} {need.operation}{_by_clients(need)}"
    cells = evidence.results.of_study("stream").where(operation=need.operation)
    blocks = max((float(cell.settings["block_bytes"]) for cell in cells), default=0.0)
    large = [cell for cell in cells if float(cell.settings["block_bytes"]) == blocks]
    return _rate(_Rate(need, wanted, large, "ranks", need.at_least, "B/s", clients=need.clients), evidence)


def _operations(need: Need, evidence: _Evidence) -> Answer:
    wanted = f"{need.at_least:,.0f} {need.operation} a second{_by_clients(need)}"
    cells = evidence.results.of_study("metadata-ops").where(operation=need.operation, directory="unique")
    return _rate(_Rate(need, wanted, cells, "ranks", need.at_least, "op/s", clients=need.clients), evidence)


def _by_clients(need: Need) -> str:
    return f" by {counted(need.clients, 'client')}" if need.clients else ""


def _rate(asked: _Rate, evidence: _Evidence) -> Answer:
    """Return the rate with the number of clients asked for, or the best there was."""
    measured = [cell for cell in asked.cells if cell.estimate is not None and cell.estimate.low is not None]
    if not measured:
        return asked.answer(UNKNOWN, "not measured often enough", "Give a larger --budget.")
    reached = int(max(float(cell.settings[asked.factor]) for cell in measured))
    if asked.clients is not None and asked.clients > reached:
        return _beyond(asked, measured, reached, evidence)
    if asked.clients is None:
        best = max(measured, key=lambda cell: cell.estimate.median if cell.estimate else 0.0)
    else:
        enough = [cell for cell in measured if float(cell.settings[asked.factor]) >= asked.clients]
        best = min(enough, key=lambda cell: float(cell.settings[asked.factor]))
    cell = best.estimate
    assert cell is not None and cell.low is not None and cell.high is not None
    ranks = int(float(best.settings[asked.factor]))
    reading = (
        f"{asked.show(cell.median)} [{asked.show(cell.low)} - {asked.show(cell.high)}] with "
        f"{counted(ranks, 'rank')} of one node"
    )
    limits = (
        f"{percent(cell.confidence)} interval of {cell.runs} runs on this node at this time, with few files on "
        "the file system."
    )
    if cell.low >= asked.at_least:
        return asked.answer(PASS, reading, limits, (best.id,))
    if held_back(best):
        held = (
            f"Held back for {percent(held_back(best))} of the time by --impact or --neighbour; without them the need "
            "may be met."
        )
        return asked.answer(UNKNOWN, reading, f"{held} {limits}", (best.id,))
    if cell.high >= asked.at_least:
        return asked.answer(
            UNKNOWN, reading, f"The interval contains the need: give a larger --budget. {limits}", (best.id,)
        )
    saturation = find_saturation(measured, asked.factor, evidence.results.confidence)
    settled = saturation is not None and saturation.x is not None and saturation.x < reached
    if asked.clients is not None or (settled and not evidence.remote):
        return asked.answer(FAIL, reading, limits, (best.id,))
    why = (
        "more nodes might, so measure from several"
        if evidence.remote
        else "more ranks might, because the rate is not shown to have levelled off"
    )
    return asked.answer(UNKNOWN, reading, f"This node alone does not meet the need; {why}.", (best.id,))


def _beyond(asked: _Rate, measured: Sequence[Measured], reached: int, evidence: _Evidence) -> Answer:
    """More clients than were measured: a forecast, which never passes or fails but says what to expect."""
    ids = evidence.results.ids(measured)
    assert asked.clients is not None
    limits = (
        f"{counted(reached, 'rank')} of one node took part, but the need is for {counted(asked.clients, 'client')}: "
        "measure with that many."
    )
    sizes = [_clients_of(cell, asked) for cell in measured]
    levels = [level for cell, size in zip(measured, sizes, strict=True) if (level := level_of(cell, size)) is not None]
    if len({level.scale for level in levels}) < 2:
        outlook = f"no more than {counted(reached, 'client')} took part"
        return asked.answer(UNKNOWN, outlook, f"{limits} A forecast needs at least two numbers of clients.", ids)
    size = Scale(clients=asked.clients, ranks=asked.clients)
    forecast = Model(settle_errors(levels)).forecast(size)
    outlook = (
        f"forecast for {counted(asked.clients, 'client')}: {asked.show(forecast.median)} "
        f"[{asked.show(forecast.low)} - {asked.show(forecast.high)}, {percent(COVERAGE)} interval]"
    )
    if forecast.low >= asked.at_least:
        return asked.answer(PREDICTED_PASS, outlook, limits, ids)
    if forecast.high < asked.at_least:
        return asked.answer(PREDICTED_FAIL, outlook, limits, ids)
    return asked.answer(UNKNOWN, outlook, f"The interval contains the need. {limits}", ids)


def _clients_of(cell: Measured, asked: _Rate) -> Scale:
    number = int(float(cell.settings[asked.factor]))
    return Scale(clients=number, ranks=number)
