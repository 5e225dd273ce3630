"""Faults of the lab's pair, which `strakes failover pair` does one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from strakes.drill.faults.fault import Fault
from strakes.drill.undo import RestorePair
from strakes.errors import BadInputError
from strakes.failover.rehearsal.room import RoomPart
from strakes.failover.timeline import Moment
from strakes.lab.ha.pair import Pair

POWER_OFF, CUT_ONE, CUT_ALL, HANG = "power-off", "cut-one", "cut-all", "service-hung"


class PairEntry(NamedTuple):
    """One fault of the pair; ``do`` is given the pair and the node that serves."""

    summary: str
    do: Callable[[Pair, str], None]


PAIR_FAULTS: Mapping[str, PairEntry] = {
    POWER_OFF: PairEntry("the BMC cuts the power of the node that serves", lambda pair, node: pair.power_off(node)),
    CUT_ONE: PairEntry("the first heartbeat link is cut", lambda pair, _node: pair.cut(0)),
    CUT_ALL: PairEntry("both heartbeat links are cut", lambda pair, _node: pair.cut_all()),
    HANG: PairEntry(
        "the service is stopped (SIGSTOP): its process is there and does not answer",
        lambda pair, node: pair.hang_service(node),
    ),
}


_LINKS = ("first", "second")


def apply(pair: Pair, part: RoomPart, *, mended: bool, serving: str) -> None:
    """Let a part of the lab's room fail, or put it right. ``serving`` is the node whose service fails."""
    if part.kind == "network":
        link = _LINKS.index(part.name)
        if mended:
            pair.connect(link)
        else:
            pair.cut(link)
    elif part.kind == "one-way":
        pair.lose(_LINKS.index(part.name), lost=not mended)
    elif part.kind == "bmc":
        pair.mute_bmc(part.name, muted=not mended)
    elif part.kind == "node" and mended:
        pair.power_on(part.name)
    elif part.kind == "node":
        pair.die(part.name)
    elif part.kind == "service":
        pair.kill_service(serving)
    else:
        raise BadInputError(f"the lab's pair cannot do that: {part.text}")


class PairFault(Fault):
    """One of ``PAIR_FAULTS``, done to the lab ``lab`` while ``node`` serves.

    Cables and power of the lab are restored afterwards.
    """

    undo: RestorePair

    def __init__(self, name: str, lab: str, pair: Pair, node: str) -> None:
        self.text, self._do = PAIR_FAULTS[name]
        self.undo = RestorePair(lab)
        self._pair, self._node = pair, node

    def strike(self) -> tuple[Moment, ...]:
        """Do the fault to the node, and return when it began and ended."""
        began = time.time()
        self._do(self._pair, self._node)
        return (Moment(began, "drill", self.text), Moment(time.time(), "drill", "the fault is done"))
