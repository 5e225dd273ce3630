"""Parse the output of Ceph's monitors: description of the file system, and fail-overs and evictions in the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from strakes.base.units import KIB, counted
from strakes.targets.description import DataTargetState, Description, Interruption, Server, StorageTarget

_VERSION = re.compile(r"ceph version (\S+) \([0-9a-f]+\) (\w+).*")

Json = Mapping[str, Any]


def file_system_of(dump: Json, name: str, pool: str, pools: Iterable[Json]) -> Json | None:
    """Return the MDS map of the file system ``name`` or, without a name, of a file system with this data ``pool``."""
    maps: list[Json] = [file_system["mdsmap"] for file_system in dump["filesystems"]]
    if name:
        return next((mdsmap for mdsmap in maps if mdsmap["fs_name"] == name), None)
    numbers = {candidate["pool"] for candidate in pools if candidate["pool_name"] == pool}
    with_pool = [mdsmap for mdsmap in maps if numbers & set(mdsmap["data_pools"])]
    return next(iter(with_pool or maps), None)


def ranks_of(mdsmap: Json) -> dict[int, Json | None]:
    """Return metadata rank -> the MDS daemon that holds it, or None if no daemon holds it."""
    holding = {
        daemon["rank"]: daemon
        for daemon in mdsmap["info"].values()
        if daemon["rank"] >= 0 and daemon["state"] != "up:standby-replay"
    }
    if len(ranks := sorted({*mdsmap["in"], *holding})) > 256:  # MAX_MDS in src/mds/mdstypes.h of Ceph
        raise ValueError("it has more than 256 metadata ranks")  # Each would be queried by a command.
    return {rank: holding.get(rank) for rank in ranks}


def _state_of_rank(mdsmap: Json, rank: int, daemon: Json | None) -> str:
    if daemon is None:
        return "damaged" if rank in mdsmap["damaged"] else "failed"
    state = str(daemon["state"]).removeprefix("up:")
    return f"{state}, laggy" if "laggy_since" in daemon else state


def target_name(mdsmap: Json, rank: int) -> str:
    """Return the name of a metadata rank as Ceph writes it: ``FILE_SYSTEM:RANK``."""
    return f"{mdsmap['fs_name']}:{rank}"


def holders(mdsmap: Json) -> dict[str, tuple[str, int]]:
    """Return name of a metadata rank -> (name, global id) of its MDS daemon. Ranks without a daemon are omitted."""
    return {
        target_name(mdsmap, rank): (f"mds.{daemon['name']}", daemon["gid"])
        for rank, daemon in ranks_of(mdsmap).items()
        if daemon
    }


def metadata_targets(mdsmap: Json) -> tuple[StorageTarget, ...]:
    """Return the metadata ranks of a file system, each with its MDS daemon and state."""
    targets = []
    for rank, daemon in ranks_of(mdsmap).items():
        server = f"mds.{daemon['name']}" if daemon else ""
        state = _state_of_rank(mdsmap, rank, daemon)
        targets.append(StorageTarget(target_name(mdsmap, rank), rank, server, state))
    return tuple(targets)


def data_targets(
    osd_df: Json, osd_dump: Json, groups: Sequence[Json], hosts: Mapping[int, str]
) -> tuple[StorageTarget, ...]:
    """Return the object stores (OSDs), with sizes and pools. ``groups``: placement groups, which map OSDs to pools."""
    names = {pool["pool"]: str(pool["pool_name"]) for pool in osd_dump["pools"]}
    takes_part: dict[int, set[str]] = {}
    for group in groups:
        number = int(str(group["pgid"]).partition(".")[0])
        for store in group["acting"]:
            takes_part.setdefault(store, set()).add(names.get(number, str(number)))
    room = {
        entry["id"]: (int(entry["kb"]) * KIB, int(entry["kb_avail"]) * KIB)
        for entry in (*osd_df.get("nodes", ()), *osd_df.get("stray", ()))
    }
    targets = []
    for entry in osd_dump["osds"]:
        number = int(entry["osd"])
        sizes, pools = room.get(number, (0, 0)), tuple(sorted(takes_part.get(number, ())))
        state = _state_of_store(entry)
        targets.append(StorageTarget(f"osd.{number}", number, hosts.get(number, ""), state, *sizes, pools=pools))
    return tuple(targets)


def _state_of_store(store: Json) -> str:
    if not store["up"]:
        return "down" if store["in"] else "down, out"
    odd = [word for word in store["state"] if word not in ("exists", "up")]
    return ", ".join(["up", *([] if store["in"] else ["out"]), *odd])


def states_in(osd_df: Json) -> dict[str, DataTargetState]:
    """Return name of an object store (OSD) -> its state, from the output of ``ceph osd df``."""
    return {
        entry["name"]: DataTargetState(entry["status"] == "up", entry["utilization"] / 100 if entry["kb"] else None)
        for entry in (*osd_df.get("nodes", ()), *osd_df.get("stray", ()))
    }


def servers_of(
    mon_dump: Json, fs_dump: Json, mdsmap: Json, hosts: Mapping[int, str], targets: Sequence[StorageTarget]
) -> tuple[Server, ...]:
    """Return the monitors, the metadata servers (active and standby), and the hosts of object stores."""
    monitors = []
    for monitor in mon_dump["mons"]:
        state = "in quorum" if monitor["rank"] in mon_dump["quorum"] else "out of quorum"
        monitors.append(Server(f"mon.{monitor['name']}", "mon", str(monitor["public_addr"]), state))
    metadata = [
        Server(f"mds.{daemon['name']}", "mds", str(daemon["addr"]), str(daemon["state"]).removeprefix("up:"))
        for daemon in (*mdsmap["info"].values(), *fs_dump["standbys"])
    ]
    stores = []
    for host in dict.fromkeys(hosts.values()):
        states = [target.state for target in targets if target.server == host]
        up = sum(state.startswith("up") for state in states)
        stores.append(Server(host, "osd", "", f"{up} of {len(states)} object stores up"))
    return (*monitors, *metadata, *stores)


def _notes_of(mdsmap: Json, fs_dump: Json, osd_dump: Json) -> tuple[str, ...]:
    standbys = len(fs_dump["standbys"]) + sum(one["state"] == "up:standby-replay" for one in mdsmap["info"].values())
    notes = [f"{len(mdsmap['in'])} of at most {counted(mdsmap['max_mds'], 'metadata rank')}, {standbys} standby."]
    for pool in osd_dump["pools"]:
        if pool["pool"] in (*mdsmap["data_pools"], mdsmap["metadata_pool"]):
            kind = "metadata" if pool["pool"] == mdsmap["metadata_pool"] else "data"
            copies = "one copy" if pool["size"] == 1 else f"{pool['size']} copies"
            coded = f", erasure-coded ({pool['erasure_code_profile']})" if pool.get("erasure_code_profile") else ""
            objects = f"{copies} of every object{coded}, {pool['pg_num']} placement groups"
            notes.append(f"Pool {pool['pool_name']} ({kind}): {objects}.")
    return tuple(notes)


def description(answers: Mapping[str, Json], mdsmap: Json, groups: Sequence[Json]) -> Description:
    """Return the description of a Ceph file system. ``answers``: monitor command (``fs_dump``, ...) -> its output."""
    fs_dump, osd_dump, mon_dump = answers["fs_dump"], answers["osd_dump"], answers["mon_dump"]
    nodes = [node for node in answers["osd_tree"]["nodes"] if node["type"] == "host"]
    hosts = {child: str(node["name"]) for node in nodes for child in node["children"]}
    own = [group for group in groups if int(str(group["pgid"]).partition(".")[0]) in mdsmap["data_pools"]]
    stores = data_targets(answers["osd_df"], osd_dump, own, hosts)
    in_use = {*mdsmap["data_pools"], mdsmap["metadata_pool"]}
    counts = answers["versions"].get("overall", {})
    frequent_first = sorted(counts, key=lambda text: -counts[text])
    return Description(
        file_system_name=str(mdsmap["fs_name"]),
        version=", ".join(_VERSION.sub(r"\1 \2", text) for text in frequent_first),
        servers=servers_of(mon_dump, fs_dump, mdsmap, hosts, stores),
        data_targets=stores,
        metadata_targets=metadata_targets(mdsmap),
        pools=tuple(
            str(pool["pool_name"])
            for pool in osd_dump["pools"]
            if pool["pool"] in in_use or any(pool["pool_name"] in store.pools for store in stores)
        ),
        network=tuple(str(monitor["public_addr"]) for monitor in mon_dump["mons"]),
        notes=_notes_of(mdsmap, fs_dump, osd_dump),
    )


# Log messages of Ceph's monitors and metadata servers (src/mon/MDSMonitor.cc, src/mds/Server.cc and MDSRank.cc).
_REPLACING = re.compile(r"Replacing daemon mds\.(\S+) as rank (\d+) with standby daemon mds\.(\S+)")
_GONE = re.compile(r"(?:MDS )?daemon mds\.(\S+) (?:is removed because it is dead|restarted)")
_ASSIGNED = re.compile(r"(?:Standby )?daemon mds\.(\S+) assigned to filesystem (\S+) as rank (\d+)")
_ACTIVE = re.compile(r"daemon mds\.(\S+) is now active in filesystem (\S+) as rank (\d+)")
_UNRESPONSIVE = re.compile(r"evicting unresponsive client ([^\s:]*+)\S*+ \((\d+)\), after")
_EVICTING = re.compile(r"Evicting (?:\(and bl(?:oc|ac)klisting\) )?client session (\d+) \((\S+)\)")
# Maximum difference in seconds between the times of two log entries on one event, because clocks differ.
_AROUND_S = 2.0


@dataclass(frozen=True)
class Eviction:
    """The eviction of a client by a metadata server. ``number``: client id. ``host``, ``address``: "" if unknown."""

    unix_s: float
    daemon: str
    number: int
    host: str = ""
    address: str = ""

    def __str__(self) -> str:
        places = ", ".join(filter(None, (self.host, self.address.rpartition(":")[0])))
        return f"client.{self.number} ({places})" if places else f"client.{self.number}"


def evictions_in(log: Sequence[Json]) -> tuple[Eviction, ...]:
    """Return the evictions of clients in Ceph's cluster log. Two lines on the same eviction are merged."""
    evictions: dict[tuple[str, int], Eviction] = {}
    for unix_s, daemon, message in _messages(log):
        if told := _UNRESPONSIVE.match(message):
            number, host, address = int(told[2]), told[1], ""
        elif told := _EVICTING.match(message):
            number, host, address = int(told[1]), "", told[2]
        else:
            continue
        before = evictions.get((daemon, number), Eviction(unix_s, daemon, number))
        evictions[daemon, number] = replace(before, host=host or before.host, address=address or before.address)
    return tuple(evictions.values())


def interruptions_in(log: Sequence[Json], mdsmap: Json, own: int | None = None) -> tuple[Interruption, ...]:
    """Return the periods in which a metadata rank had no active server, from Ceph's cluster log.

    A period begins when the monitors notice the loss. ``own``: client id of this mount, which determines ``evicted``.
    """
    file_system, created = mdsmap["fs_name"], _unix(mdsmap["created"])
    evictions = evictions_in(log)
    interruptions = []
    serving: dict[str, tuple[str, int]] = {}
    away: dict[int, float] = {}
    for unix_s, _, message in _messages(log):
        if told := _REPLACING.match(message) or _GONE.match(message):
            otherwise = (file_system, int(told[2])) if told.re is _REPLACING else ("", 0)
            system, rank = serving.pop(f"mds.{told[1]}", otherwise)
            if system == file_system:
                away.setdefault(rank, unix_s)
        elif (told := _ASSIGNED.match(message)) and told[2] == file_system:
            # Ceph may log only the successor of a lost daemon. The interruption then begins with this entry.
            if unix_s > created + _AROUND_S:
                away.setdefault(int(told[3]), unix_s)
        elif told := _ACTIVE.match(message):
            daemon, rank = f"mds.{told[1]}", int(told[3])
            serving[daemon] = (told[2], rank)
            if told[2] == file_system and rank in away:
                began = away.pop(rank)
                around = (each for each in evictions if began - _AROUND_S <= each.unix_s <= unix_s + _AROUND_S)
                shut_out = [each for each in around if each.daemon == daemon]
                evicted = any(each.number == own for each in shut_out)
                names = tuple(map(str, shut_out))
                lost = Interruption(target_name(mdsmap, rank), began, unix_s, evicted, len(names), evicted_names=names)
                interruptions.append(lost)
    return (*interruptions, *(Interruption(target_name(mdsmap, rank), began, None) for rank, began in away.items()))


def _messages(log: Sequence[Json]) -> list[tuple[float, str, str]]:
    messages = [(_unix(entry["stamp"]), str(entry["name"]), str(entry["message"])) for entry in log]
    return sorted(messages, key=lambda message: message[0])  # The log may be out of order.


def _unix(stamp: str) -> float:
    unix_s = datetime.fromisoformat(stamp).timestamp()
    if not 0 <= unix_s < 2**36:  # datetime can format these times, and those of events around them.
        raise ValueError(f"{stamp} is no time of a log")
    return unix_s
