"""Events in the cluster log: fail-overs of metadata ranks, and evicted clients."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from strakes.targets.ceph_cluster import Json
from strakes.targets.description import Interruption

# Words of Ceph's monitors and metadata servers (src/mon/MDSMonitor.cc, src/mds/Server.cc and MDSRank.cc).
_REPLACING = re.compile(r"Replacing daemon mds\.(\S+) as rank (\d+) with standby daemon mds\.(\S+)")
_GONE = re.compile(r"(?:MDS )?daemon mds\.(\S+) (?:is removed because it is dead|restarted)")
_ASSIGNED = re.compile(r"(?:Standby )?daemon mds\.(\S+) assigned to filesystem (\S+) as rank (\d+)")
_ACTIVE = re.compile(r"daemon mds\.(\S+) is now active in filesystem (\S+) as rank (\d+)")
_UNRESPONSIVE = re.compile(r"evicting unresponsive client ([^\s:]*)\S* \((\d+)\), after")
_EVICTING = re.compile(r"Evicting (?:\(and bl(?:oc|ac)klisting\) )?client session (\d+) \((\S+)\)")
# Clocks of servers differ a little.
_AROUND_S = 2.0


@dataclass(frozen=True)
class Eviction:
    """A client that a metadata server evicted. ``host``, ``address``: "" if the log does not name them."""

    unix_s: float
    daemon: str
    number: int
    host: str = ""
    address: str = ""

    def __str__(self) -> str:
        """Return the client as Ceph names it, with host and address.

        >>> str(Eviction(0, "mds.a", 4116, "node7", "10.0.0.7:0/2245556896"))
        'client.4116 (node7, 10.0.0.7)'
        """
        places = ", ".join(filter(None, (self.host, self.address.rpartition(":")[0])))
        return f"client.{self.number} ({places})" if places else f"client.{self.number}"


def evictions_in(log: Sequence[Json]) -> tuple[Eviction, ...]:
    """Return the evictions, each once: a metadata server may log one in two lines."""
    evictions: dict[tuple[str, int], Eviction] = {}
    for unix_s, daemon, message in _messages(log):
        if told := _UNRESPONSIVE.match(message):
            number, host, address = int(told[2]), told[1], ""
        elif told := _EVICTING.match(message):
            number, host, address = int(told[1]), "", told[2]
        else:
            continue
        before = evictions.get((daemon, number), Eviction(unix_s, daemon, number))
        evictions[daemon, number] = Eviction(
            before.unix_s, daemon, number, host or before.host, address or before.address
        )
    return tuple(evictions.values())


def interruptions_in(log: Sequence[Json], mdsmap: Json, own: int | None = None) -> tuple[Interruption, ...]:
    """Return the times during which a rank had no active server, beginning when the monitors noticed it.

    Each has the clients that the next server evicted. ``own``: the number of this client.
    """
    file_system, created = mdsmap["fs_name"], _unix(mdsmap["created"])
    evictions = evictions_in(log)
    interruptions = []
    serving: dict[str, tuple[str, int]] = {}
    away: dict[int, float] = {}
    for unix_s, _, message in _messages(log):
        if told := _REPLACING.match(message):
            system, rank = serving.pop(f"mds.{told[1]}", (file_system, int(told[2])))
            if system == file_system:
                away.setdefault(rank, unix_s)
        elif told := _GONE.match(message):
            system, rank = serving.pop(f"mds.{told[1]}", ("", 0))
            if system == file_system:
                away.setdefault(rank, unix_s)
        elif (told := _ASSIGNED.match(message)) and told[2] == file_system:
            # The log may not reach back to the previous holder of the rank; a new file system had no previous holder.
            if unix_s > created + _AROUND_S:
                away.setdefault(int(told[3]), unix_s)
        elif told := _ACTIVE.match(message):
            daemon, rank = f"mds.{told[1]}", int(told[3])
            serving[daemon] = (told[2], rank)
            if told[2] == file_system and rank in away:
                interruptions.append(_interruption(file_system, rank, away.pop(rank), unix_s, daemon, evictions, own))
    lasting = [_interruption(file_system, rank, began, None, "", evictions, own) for rank, began in away.items()]
    return (*interruptions, *lasting)


def _interruption(
    file_system: str,
    rank: int,
    began: float,
    ended: float | None,
    daemon: str,
    evictions: Iterable[Eviction],
    own: int | None,
) -> Interruption:
    latest = float("inf") if ended is None else ended + _AROUND_S
    shut_out = [
        eviction
        for eviction in evictions
        if eviction.daemon == daemon and began - _AROUND_S <= eviction.unix_s <= latest
    ]
    return Interruption(
        f"{file_system}:{rank}",
        began,
        ended,
        evicted=any(eviction.number == own for eviction in shut_out),
        evicted_clients=len(shut_out) if daemon else None,
        evicted_names=tuple(map(str, shut_out)),
    )


def _messages(log: Sequence[Json]) -> list[tuple[float, str, str]]:
    """Return Unix time, sender and text of each message, in order of time; messages of servers reach the log late."""
    messages = [(_unix(entry["stamp"]), str(entry["name"]), str(entry["message"])) for entry in log]
    return sorted(messages, key=lambda message: message[0])


def _unix(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
