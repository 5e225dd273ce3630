"""The fifth set of truths, those of an adversary: what happens to mislead, in turn, in step, or in one place only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.truth.fifth_world import MIB, Fifth, Never, Now, Shape, kind
from strakes.plan import MetadataPhase, Phase, TransferPhase

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = r"not-stationary|takes? turns|dependent-runs|bimodal"
FLAT = (
    Never(r"still grow", "severe", "all numbers and sizes are alike"),
    Never(r"needs? more than", "severe", "one rank and the smallest size do as well"),
)
STEP_S = 0.05
STEPS = 12_000


def _data(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase)


def _in_turn(every: int, factor: float, *, data: bool) -> Callable[[Now, Phase, int], float]:
    return lambda now, phase, _: factor if now.visit % every == 0 and _data(phase) is data else 1.0


def _by_lot(share: float, factor: float) -> Callable[[Now, Phase, int], float]:
    return lambda now, _phase, _ranks: factor if now.lot < share else 1.0


def _beats(now: Now, _: Phase, _ranks: int) -> float:
    return 0.1 if now.at_s % 0.4 < 0.1 else 1.0


def _swings(now: Now, phase: Phase, _: int) -> float:
    return 0.6 if _data(phase) and now.at_s % 1.0 < 0.5 else 1.0


def _drained(now: Now, phase: Phase, _: int) -> float:
    return 0.65 if now.get("dirty") > 0 and kind(phase) != "write" else 1.0


def _drain(now: Now, phase: Phase | None, _: int, amount: float, seconds: float) -> None:
    written = amount if phase and kind(phase) == "write" else 0.0
    now.values["dirty"] = max(0.0, min(128 * MIB, now.get("dirty") + written) - 250 * MIB * seconds)


def _cleaning(now: Now, phase: Phase, _: int) -> float:
    return 0.6 if now.get("left") > 500 and not _data(phase) else 1.0


def _clean(now: Now, phase: Phase | None, _: int, amount: float, seconds: float) -> None:
    removed = amount if phase and kind(phase) == "remove" else 0.0
    now.values["left"] = max(0.0, now.get("left") + removed - 1500 * seconds)


def _plan(phase: Phase, ranks: int) -> str:
    if isinstance(phase, TransferPhase):
        return f"{phase.operation} {ranks} {phase.transfer_bytes} {phase.block_bytes} {phase.layout} {phase.access} {phase.direct}"
    assert isinstance(phase, MetadataPhase)
    return f"{phase.operation} {ranks} {phase.directory} {phase.items} {phase.files}"


def _learned(now: Now, phase: Phase, ranks: int) -> float:
    name = _plan(phase, ranks)
    return 0.72 if now.get(name) + (now.age_s == 0) <= 5 else 1.0


def _learn(now: Now, phase: Phase | None, ranks: int, _: float, _seconds: float) -> None:
    if phase and now.age_s == 0:
        name = _plan(phase, ranks)
        now.values[name] = now.get(name) + 1


def _eight_readers(now: Now, phase: Phase, ranks: int) -> float:
    return 0.55 if ranks == 8 and kind(phase) == "read" and now.at_s >= 66 else 1.0


def _crossing(now: Now, phase: Phase, ranks: int) -> float:
    if kind(phase) != "write":
        return 1.0
    better = {1: 1.0, 2: 0.9, 4: 0.8, 8: 0.65} if now.at_s < 55 else {1: 0.5, 2: 0.7, 4: 0.9, 8: 1.1}
    return better.get(ranks, 0.85)


def _opposite(now: Now, phase: Phase, _: int) -> float:
    part = min(1.0, now.at_s / 115)
    return {"read": 0.75 + 0.4 * part, "write": 1.15 - 0.4 * part}.get(kind(phase), 1.0)


def _buffered(now: Now, phase: Phase, _: int) -> float:
    return 3.0 if kind(phase) == "write" and now.age_s < 0.075 else 1.0


def _large_directory(now: Now, phase: Phase, ranks: int) -> float:
    if not isinstance(phase, MetadataPhase) or kind(phase) not in {"create", "remove"}:
        return 1.0
    inside = now.done if phase.directory == "shared" else now.done / ranks
    return 0.45 if inside >= 300 else 1.0


def _telegraph(on_s: float, off_s: float) -> Callable[[np.random.Generator], dict[str, np.ndarray[Any, Any]]]:
    def draw(random: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
        on = np.zeros(STEPS)
        at = int(random.exponential(off_s) / STEP_S)
        while at < STEPS:
            lasts = 1 + int(random.exponential(on_s) / STEP_S)
            on[at : at + lasts] = 1.0
            at += lasts + 1 + int(random.exponential(off_s) / STEP_S)
        return {"on": on}

    return draw


def _neighbour(now: Now, phase: Phase, _: int) -> float:
    return 0.5 if _data(phase) and now.track("on") > 0 else 1.0


def _wandering(random: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
    keep = math.exp(-STEP_S / 12)
    level, levels = random.normal(0.0, 0.22), []
    for shock in random.normal(0.0, 0.22 * math.sqrt(1 - keep**2), STEPS):
        level = keep * level + shock
        levels.append(math.exp(level))
    return {"names": np.array(levels)}


def _wanders(now: Now, phase: Phase, _: int) -> float:
    return 1.0 if _data(phase) else now.track("names")


def _large_calls(now: Now, phase: Phase, _: int) -> float:
    return 1.5 if isinstance(phase, TransferPhase) and phase.transfer_bytes >= MIB and now.at_s >= 78 else 1.0


def _sawtooth(now: Now, phase: Phase, _: int) -> float:
    return 1.3 - 0.6 * (now.at_s % 17) / 17 if kind(phase) == "write" else 1.0


def _late(now: Now, _: Phase, _ranks: int) -> float:
    return 0.7 if now.at_s >= 85 else 1.0


def _half_cached(_: Now, phase: Phase, _ranks: int) -> float:
    return 1.9 if isinstance(phase, TransferPhase) and phase.operation == "read" and not phase.direct else 1.0


def _static() -> tuple[Fifth, ...]:
    nothing = ("any setting is better or worse", "anything changed or takes turns", "a cache answered")
    four = {f"oss{number}": 0.5 for number in range(4)}
    return (
        Fifth("equal, as fast as memory", False, "everything alike: 6 GiB/s and 300,000 operations/s", nothing,
              Shape(write=6144 * MIB, read=6144 * MIB, operation=300_000), nothing=True, never=FLAT),
        Fifth("half of what is read is cached", False, "buffered reads come by half from the client's own cache, 1.9 times as fast; servers count the rest",
              ("reads are faster than writes as such", "buffered reads are better than O_DIRECT"),
              factor=_half_cached, remote=True, servers=four, cause=("cache-suspect",), never=FLAT,
              cached=lambda phase: 0.0 if isinstance(phase, TransferPhase) and phase.direct else 0.5),
    )  # fmt: skip


def _luck() -> tuple[Fifth, ...]:
    no_better = (
        "a setting is better: it met the faster half",
        "the figure of one level is the median",
        "it changed for good",
    )
    return (
        Fifth("two metadata servers in turn", False, "each new directory goes to the other of two servers; one has names at 0.55; data alike",
              no_better, factor=_in_turn(2, 0.55, data=False), luck=True, cause=(TURNS,),
              never=(*FLAT, Never(r"directories for many files = a", "severe", "both are alike"))),
        Fifth("every third directory is slow", False, "data of every third visit at 0.5, as of three pools in turn; names alike",
              no_better, factor=_in_turn(3, 0.5, data=True), luck=True, cause=(TURNS,), never=FLAT),
        Fifth("a beat of 0.4 s", False, "0.1 s of every 0.4 s everything is at 0.1",
              no_better, factor=_beats, luck=True, cause=(TURNS,), never=FLAT),
        Fifth("half a second each", False, "data at 0.6 for 0.5 s of every second, in step with phases; names alike",
              no_better, factor=_swings, luck=True, cause=(TURNS,), never=FLAT),
        Fifth("three visits of ten", False, "three visits of ten, by lot, have everything at 0.55",
              no_better, factor=_by_lot(0.3, 0.55), luck=True, cause=(TURNS,), never=FLAT),
        Fifth("one path of sixteen", False, "six visits of a hundred, by lot, have everything at 0.25",
              no_better, factor=_by_lot(0.06, 0.25), luck=True, cause=(TURNS,), never=FLAT),
        Fifth("bursts of a neighbour", False, "data at 0.5 for 1.2 s on average, with 3.5 s between; names alike",
              no_better, factor=_neighbour, draw=_telegraph(1.2, 3.5), luck=True, cause=(TURNS,), never=FLAT),
        Fifth("names wander", False, "names wander by 22 % with a memory of 12 s; data alike",
              ("data change", "names jumped at one moment by half and stayed", "directories differ"),
              factor=_wanders, draw=_wandering, cause=(TURNS, "drift"), never=FLAT),
    )  # fmt: skip


def _order() -> tuple[Fifth, ...]:
    return (
        Fifth("write-back drains", False, "until 250 MiB/s have drained what was written (128 MiB at most), reads and names are at 0.65",
              ("a number of ranks or a size is better", "reads are slower than writes as such"),
              factor=_drained, advance=_drain, never=FLAT),
        Fifth("removing leaves work", False, "what was removed is cleaned at 1,500/s; while 500 are left, names are at 0.6",
              ("data change", "directories differ", "names are one level"),
              factor=_cleaning, advance=_clean, cause=(TURNS, "fresh", "drift"), never=FLAT),
        Fifth("the server learns", False, "each plan is at 0.72 for its first five runs, then at 1",
              ("a setting is better", "one median holds for first and later runs"),
              factor=_learned, advance=_learn, cause=(TURNS, "drift"), never=FLAT),
        Fifth("only eight readers fall", False, "reads by 8 ranks at 0.55 from 66 s on; all else alike",
              ("8 ranks suffice, or are better, at all times", "other reads changed"),
              factor=_eight_readers, cause=(TURNS,), never=FLAT),
        Fifth("ranks change places", False, "until 55 s 1 rank writes best (8: 0.65), from then on 8 (1: 0.45 of them)",
              ("1 rank suffices for writing at all times", "8 ranks are needed at all times"),
              factor=_crossing, cause=(TURNS,)),
        Fifth("reads rise, writes fall", False, "reads from 0.75 to 1.15, writes from 1.15 to 0.75, within 115 s",
              ("reads are so many times as fast as writes at all times", "nothing drifts", "a setting is better"),
              factor=_opposite, cause=(TURNS, "drift"), never=FLAT),
        Fifth("a buffer takes what is short", False, "the first 0.075 s of each write are three times as fast",
              ("the rate of short phases lasts", "a number of ranks is better"), factor=_buffered, never=FLAT),
        Fifth("large directories", False, "beyond 300 entries of a directory creating and removing are at 0.45",
              ("a shared directory of few files costs as much as one of many", "the file system became slower"),
              factor=_large_directory, never=FLAT),
        Fifth("large calls improve late", False, "from 78 s on calls of 1 MiB and more are 1.5 times as fast",
              ("64 KiB suffice at all times", "everything became faster"), factor=_large_calls, cause=(TURNS,), never=FLAT[:1]),
        Fifth("a log fills and is emptied", False, "writes fall from 1.3 to 0.7 within 17 s, then begin anew; all else alike",
              ("writes changed for good", "a setting of writes is better", "reads or names change"),
              factor=_sawtooth, luck=True, cause=(TURNS, "drift"), never=FLAT),
        Fifth("late and for good", False, "from 85 s on everything at 0.7",
              ("one median holds", "a setting is better", "the change came at another time"),
              factor=_late, cause=(TURNS, "drift"), never=FLAT),
    )  # fmt: skip


def adversarial() -> tuple[Fifth, ...]:
    return (*_static(), *_luck(), *_order())
