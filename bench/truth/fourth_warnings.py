"""Judges warnings, for :mod:`bench.truth.fourth_judge`, which says what is false."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median

from bench.truth.fourth_world import (
    APART_S,
    NEAR,
    OFTEN,
    UNITS,
    Once,
    Statement,
    World,
    is_cached,
    seconds,
    shown,
    spread,
)
from strakes.findings.portrait import CellEstimate, RunWarning
from strakes.plan import Phase, TransferPhase
from strakes.units import format_bytes

_SILENT = (
    "short-phases",
    "stonewalled",
    "interval-not-reached",
    "few-runs",
    "budget-skipped",
    "names-from-memory",
    "fits-servers-memory",
    "cache-unseen",
)


def warned(warning: RunWarning, cells: dict[str, CellEstimate], world: World) -> list[Statement]:
    text = f"{warning.code}: {warning.text}"
    if warning.code in _SILENT:
        return [Statement(warning.code, text, "cannot be judged")]
    if warning.code == "cache-suspect":
        wrong = [one for one in warning.cells if world.runs(one) and not is_cached(one, world)]
        reason = f"no cache answered {', '.join(wrong)}"
        return [Statement("cache", text, "false" if wrong else "true", reason if wrong else "", bool(wrong))]
    if warning.code == "server-unlike":
        return [_server(warning, text, world)]
    if warning.code == "bimodal":
        return [_groups(warning, text, cells, world)]
    if warning.code == "dependent-runs" and "may resemble" in text:
        return [Statement("dependent runs", text, "cannot be judged")]
    if warning.code == "dependent-runs":
        good = world.remembers
        return [Statement("dependent runs", text, "true" if good else "false", "" if good else "nothing has a memory")]
    if warning.code in ("not-stationary", "drift"):
        return _moving(warning, text, cells, world)
    if warning.code in ("background-load", "clock-jump", "begun-apart", "node-unlike", "memory-file-system"):
        return [Statement(warning.code, text, "false", "there is nothing of that kind")]
    return [Statement(warning.code, text, "cannot be judged")]


def _server(warning: RunWarning, text: str, world: World) -> Statement:
    found = re.search(r"Server (.+?) moves ([\d.]+) - ([\d.]+) times as much as the others", warning.text)
    if found is None:
        return Statement("server", text, "cannot be judged")
    ratios = []
    for one in world.all:
        busy = dict(world.truth.servers(one.state))
        if found[1] in busy and len(busy) > 1:
            own = busy.pop(found[1])
            ratios.append(sum(busy.values()) / len(busy) / own)
    if not ratios:
        return Statement("server", text, "false", "no such server, or the only one", severe=True)
    low, high = float(found[2]) * (1 - NEAR), float(found[3]) * (1 + NEAR)
    good = median(ratios) < 0.95 and any(low <= ratio <= high for ratio in ratios)
    return Statement("server", text, "true" if good else "false", f"true {shown(ratios)}", not good)


def _number(text: str) -> float:
    found = re.match(r"([\d,.]+) ([A-Za-z/]+)", text)
    return float(found[1].replace(",", "")) * UNITS.get(found[2], 1.0) if found else math.nan


def _groups(warning: RunWarning, text: str, cells: dict[str, CellEstimate], world: World) -> Statement:
    found = re.search(r"two groups: ([\d.]+) ?% around (.+?), the others around (.+?)\.$", warning.text)
    if found is None or not warning.cells:
        return Statement("two groups", text, "cannot be judged")
    share, one, other = float(found[1]) / 100, _number(found[2]), _number(found[3])
    reason = ""
    for cell in warning.cells:
        each = [
            _not_there(world.values(cell, cells[cell].unit, measured=measured, luck=True), one, other, share)
            for measured in (True, False)
        ]
        reason = reason or (f"{cell}: {each[0]}" if all(each) else "")
    return Statement("two groups", text, "false" if reason else "true", reason)


def _not_there(values: Sequence[float], one: float, other: float, share: float) -> str:
    """Why there are no two such groups of values; nothing where there are."""
    near = sum(abs(math.log(value / one)) < abs(math.log(value / other)) for value in values) / len(values)
    missing = [mode for mode in (one, other) if min(abs(math.log(mode / value)) for value in values) > 0.15]
    apart = abs(math.log(one / other))
    if missing or math.log(spread(values)) < apart / 2 or abs(near - share) > OFTEN:
        return f"true {shown(values)}, {near:.0%} nearer to the first"
    return ""


def _of_kind(kind: str, phase: Phase) -> bool:
    """Whether a phase is what a warning names so: a kind of work, or with calls of some sizes only."""
    moves = isinstance(phase, TransferPhase)
    if found := re.match(r"(\w+) \((.+)\)$", kind):
        calls = (
            f"{format_bytes(phase.transfer_bytes)}{' direct' if phase.direct else ''}"
            if isinstance(phase, TransferPhase)
            else ""
        )
        return _of_kind(found[1], phase) and (not moves or calls in found[2].split("; "))
    kind = re.sub(r"s$", "", kind.strip().split(" of ")[0])
    if kind in ("all that was measured", "everything"):
        return True
    if kind in ("all reads and write", "data"):
        return moves
    if kind in ("all metadata operation", "name"):
        return not moves
    if moves:
        return phase.operation == kind
    return kind in phase.operation.split("-")


def _kinds(text: str) -> list[str]:
    return (
        [kind for part in text.split(", ") for kind in re.split(r" and (?![^(]*\))", part) if part]
        if " reads and " not in text
        else [text]
    )


def _moving(warning: RunWarning, text: str, cells: dict[str, CellEstimate], world: World) -> list[Statement]:
    body = warning.text
    if warning.code == "drift" or body.startswith("From the first third"):
        return [_drift(body, text, cells, world)]
    if found := re.search(
        r"The rate of (.+?) depends on what was done before: fresh (.+?) \(the pilot\), then (.+?) \(", body
    ):
        fresh, later = _number(found[2]), _number(found[3])
        return [_fresh(kind, fresh / later, text, world) for kind in _kinds(found[1])]
    named, test = _tested(body, world.first_s)
    if named is None:
        return [Statement("change", text, "cannot be judged", "a sentence that the judge does not know")]
    kinds, reasons = _kinds(named), []
    for kind in kinds:
        series = world.relative(partial(_is_once_of, kind))
        if series and (reason := test(series)):
            reasons.append(f"{kind}: {reason}")
    name = "change, part of it" if 0 < len(reasons) < len(kinds) else "change"
    severe = bool(reasons) and not world.remembers
    return [Statement(name, text, "false" if reasons else "true", "; ".join(reasons), severe)]


Series = list[tuple[float, float]]


def _tested(body: str, first_s: float) -> tuple[str | None, Callable[[Series], str]]:
    """Return which kinds of work a sentence says have changed, and the test of that: a reason where it is not so."""
    if found := re.search(r"The level of (.+?) changed (.+?) after the first run: then it was ([\d.]+) times", body):
        at_s, factor = seconds(found[2]), float(found[3])
        return found[1], lambda series: _step(series, at_s, factor, first_s)
    if found := re.search(
        r"From (.+?) to (.+?) after the first run, the speed of (.+?) was ([\d.]+) times what it was before and after",
        body,
    ):
        start_s, end_s, factor = seconds(found[1]), seconds(found[2]), float(found[4])
        return found[3], lambda series: _stretch(series, start_s, end_s, factor, first_s)
    if found := re.search(r"Two levels of (.+?) take turns: ([\d.]+) times as fast in ([\d.]+) ?% of the runs", body):
        factor, share = float(found[2]), float(found[3]) / 100
        return found[1], lambda series: _turns(series, factor, share)
    return None, lambda _: ""


def _is_once_of(kind: str, one: Once) -> bool:
    return _of_kind(kind, one.phase)


def _middle(series: Iterable[tuple[float, float]], start_s: float, end_s: float) -> float:
    values = [value for at_s, value in series if start_s <= at_s < end_s]
    return median(values) if len(values) >= 2 else math.nan


def _as_large(true: float, told: float) -> bool:
    """Whether a change goes the way it is said to, by half of that at least."""
    if math.isnan(true) or true <= 0:
        return False
    return math.log(true) * math.log(told) > 0 and abs(math.log(true)) >= max(0.5 * abs(math.log(told)), 0.02)


def _step(series: Series, told_s: float, factor: float, first_s: float) -> str:
    best = 1.0
    for begin_s in (0.0, first_s):
        for off_s in range(-int(APART_S), int(APART_S) + 1):
            at_s = begin_s + told_s + off_s
            for width_s in (12.0, 30.0, math.inf):
                true = _middle(series, at_s, at_s + width_s) / _middle(series, at_s - width_s, at_s)
                if _as_large(true, factor):
                    return ""
                if not math.isnan(true) and abs(math.log(true)) > abs(math.log(best)):
                    best = true
    return f"at most {best:.3f} times near {told_s:g} s"


def _stretch(series: Series, start_s: float, end_s: float, factor: float, first_s: float) -> str:
    reason = ""
    for begin_s in (0.0, first_s):
        start, end = begin_s + start_s, begin_s + end_s
        around = [value for at_s, value in series if start - 30 <= at_s < start or end <= at_s < end + 30]
        inside = [value for at_s, value in series if start <= at_s < end]
        if not (around and inside):
            continue
        usual = median(around)
        changed = sum(_as_large(value / usual, factor) for value in inside) / len(inside)
        beside = [
            value for at_s, value in series if start - 20 <= at_s < start - APART_S or end + APART_S <= at_s < end + 20
        ]
        also = sum(_as_large(value / usual, factor) for value in beside) / max(1, len(beside))
        if _as_large(median(inside) / usual, factor) and changed >= 0.6 and also <= 0.5:
            return ""
        reason = f"true {median(inside) / usual:.3f} times; {changed:.0%} inside, {also:.0%} beside it"
    return reason or "nothing was run then"


def _turns(series: Series, factor: float, share: float) -> str:
    values = [value for _, value in series]
    fastest = sorted(values, reverse=factor < 1)
    high = median(fastest[: max(3, len(values) // 10)])
    is_slow = [_as_large(value / high, factor) for value in values]
    true = sum(is_slow) / len(is_slow)
    returns = sum(before and not after for before, after in itertools.pairwise(is_slow))
    if true < 0.01:
        return "there is one level"
    if not share / 4 <= true <= 4 * share:
        return f"in {true:.0%} of the runs"
    begins = sum(after and not before for before, after in itertools.pairwise(is_slow))
    return "" if returns + begins >= 2 else "it changed once"


def _fresh(kind: str, factor: float, text: str, world: World) -> Statement:
    """``factor``: how many times faster the pilot was than what came later."""
    later = [one for one in world.all if _of_kind(kind, one.phase) and one.purpose == "measure"]
    early = [one.state for one in world.all[:6]]
    # Of the same plan, in the states of the beginning.
    true = [
        world.truth.typical(one.phase, one.ranks, state) / one.rate
        for one in later[len(later) // 4 :]
        for state in early[:3]
    ]
    good = bool(true) and (_as_large(median(true), factor) or _as_large(max(true), factor))
    return Statement(
        "fresh and later", text, "true" if good else "false", f"true {shown(true)}" if true else "none", not good
    )


def _drift(body: str, text: str, cells: dict[str, CellEstimate], world: World) -> Statement:
    found = re.search(r"half of the figures (\w+) by ([\d.]+) ?% or more", body)
    if found is None:
        return Statement("drift", text, "cannot be judged")
    factor = 1 + float(found[2]) / 100 * (1 if found[1] == "rose" else -1)
    moved = []
    for cell in cells.values():
        values = world.values(cell.id, "op/s") if cell.unit not in ("%", "B") else []
        third = len(values) // 3
        if third:
            moved.append(_as_large(median(values[-third:]) / median(values[:third]), factor))
    share = sum(moved) / max(1, len(moved))
    return Statement("drift", text, "true" if share >= 0.33 else "false", f"{share:.0%} of the figures did")
