"""Immutable descriptions of a file system: servers, targets, layouts, placements, counters, interruptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from strakes.base.units import UnixTime, format_seconds

# Server or target -> counter -> value. Names of this client's counters begin with "client.". All file systems use these
# names: md.create, md.open, md.close, md.getattr, md.setattr, md.unlink, md.mkdir, md.rmdir, md.rename, md.lookup,
# md.readdir, md.requests (all requests), data.read_bytes, data.write_bytes, data.read_requests, data.write_requests,
# data.device_read_bytes (cache misses), data.replicated_bytes, data.busy_s, data.waited_s (latency of
# data.waited_requests).
Observation = Mapping[str, Mapping[str, float]]

# Prefix of gauges such as now.memory_bytes, which are not cumulative.
NOW = "now."
# Unix time of the last reset of the counters, by a user or by a restart of the server.
SINCE = "since_unix_s"
# Number that identifies the server process. It changes in a fail-over.
SERVER = "server_number"
# Number of lost connections and time-outs. The gauge now.times_lost is above 0 while a connection is lost.
LOST = "times_lost"
CLIENT = "client."


@dataclass(frozen=True)
class Server:
    """A process or machine that serves a file system. ``role``: mgs, mds, oss, mon, brick, chunkserver, ..."""

    name: str
    role: str
    address: str
    state: str


@dataclass(frozen=True)
class DataTargetState:
    """The state of a data target. ``serving``: its server answers. ``used``: used share of its space (0 to 1)."""

    serving: bool
    used: float | None = None


@dataclass(frozen=True)
class StorageTarget:
    """A data target (OST, OSD, brick) or a metadata target (MDT, MDS rank). Unknown sizes are 0.

    ``index``: None if the file system does not number targets. ``pools``: names of the pools that contain it.
    """

    name: str
    index: int | None = None
    server: str = ""
    state: str = ""
    total_bytes: int = 0
    free_bytes: int = 0
    total_inodes: int = 0
    free_inodes: int = 0
    pools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """A file system with its servers, targets and pools, as far as they are known. Unknown sizes are 0."""

    file_system_name: str
    version: str
    servers: tuple[Server, ...] = ()
    data_targets: tuple[StorageTarget, ...] = ()
    metadata_targets: tuple[StorageTarget, ...] = ()
    pools: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    client: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LayoutComponent:
    """The layout of bytes ``begin`` to ``end`` (exclusive) of a file. ``end`` None: to the end of the file."""

    begin: int
    end: int | None
    layout: Layout
    mirror: int = 0


@dataclass(frozen=True)
class Layout:
    """The distribution of a file's data over targets. None means "unknown" or, in a request, "any".

    ``stripe_count`` -1: all targets. ``targets``: in stripe order. ``pattern`` "mdt": data on the metadata target
    ``first_target``. ``object_bytes``: maximum object size. ``components``: layouts of parts of the file.
    """

    stripe_size_bytes: int | None = None
    stripe_count: int | None = None
    first_target: int | None = None
    pool: str = ""
    pattern: str = ""
    components: tuple[LayoutComponent, ...] = ()
    targets: tuple[int, ...] = ()
    object_bytes: int | None = None


@dataclass(frozen=True)
class Striping:
    """The possible layouts of files: up to ``data_targets`` stripes, with stripe sizes in multiples of ``unit_bytes``.

    ``kinds``: options of other layouts by name, for example of progressive layouts.
    """

    data_targets: int
    unit_bytes: int
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """The placement of a directory on metadata targets.

    ``kind`` "manual": the directory is on ``metadata_targets``. "inherit": it is on the parent's target. "automatic":
    the file system distributes the entries over ``count`` targets (-1: all). With a ``count`` of 1, it distributes
    subdirectories, but not files. ``inherited``: new subdirectories get the same placement.
    """

    kind: Literal["inherit", "manual", "automatic"]
    metadata_targets: tuple[int, ...] = ()
    count: int | None = None
    hash: str = ""
    inherited: bool = False


# Maximum number of evicted clients that a message names. The message grows in proportion: 30 characters a name.
_MOST_NAMES = 10


@dataclass(frozen=True)
class Interruption:
    """A period during which a server or target did not serve this client.

    ``ended_unix_s``: None until the service is back. ``or_earlier``: it may have begun before ``began_unix_s``.
    ``within_s``: maximum error of the times. ``reconnected``: the same server process is back, without a restart.
    ``clock_ahead_s``: minimum number of seconds by which the server's clock is ahead of this machine's.
    """

    target: str
    began_unix_s: UnixTime
    ended_unix_s: float | None
    evicted: bool = False
    evicted_clients: int | None = None
    or_earlier: bool = False
    within_s: float = 1.0
    evicted_names: tuple[str, ...] = ()
    reconnected: bool = field(default=False, compare=False)
    clock_ahead_s: float = 0.0

    def __str__(self) -> str:
        began = datetime.fromtimestamp(self.began_unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        if self.or_earlier:
            began += " or earlier"
        if self.ended_unix_s is None:
            lasted = "until now"
        elif self.ended_unix_s < self.began_unix_s:
            lasted = "for an unknown time (the clock was set back)"
        else:
            at_least = "at least " if self.or_earlier else ""
            lasted = f"for {at_least}{format_seconds(self.ended_unix_s - self.began_unix_s)}"
        evicted = ", which was evicted" if self.evicted else ""
        if self.evicted_clients is not None:
            clients = "client was" if self.evicted_clients == 1 else "clients were"
            evicted += f"; {self.evicted_clients} {clients} evicted"
            if self.evicted_names:
                others = len(self.evicted_names) - _MOST_NAMES
                evicted += f": {', '.join(self.evicted_names[:_MOST_NAMES])}{f' and {others} more' * (others > 0)}"
        clock = ""
        if self.clock_ahead_s:
            clock = f"; the clock of its server is at least {format_seconds(self.clock_ahead_s)} ahead"
        return f"{self.target} did not serve this client from {began} {lasted}{evicted}{clock}."


@dataclass(frozen=True)
class ConnectionChange:
    """A state change of this client's connection to a target. ``unix_s``: Unix time in whole seconds."""

    target: str
    unix_s: float
    state: str


@dataclass(frozen=True)
class TargetRecovery:
    """The last recovery of a Lustre target. Values that the server does not report are None."""

    target: str
    status: str
    duration_s: float | None = None
    clients: int | None = None
    evicted: int | None = None
    replayed: int | None = None
    started_unix_s: float | None = None
    serving: bool = True


@dataclass(frozen=True)
class Limit:
    """An operation that is not possible on this file system, and the reason."""

    what: str
    why: str


def difference(before: Observation, after: Observation) -> dict[str, dict[str, float]]:
    """Return target -> counter -> increase between two observations.

    Counters that were cleared or not read are omitted; :func:`disturbed` describes them.
    """
    between = {}
    for name in after:
        if name not in before:
            continue
        undone = {
            side
            for side in ("", CLIENT)
            if (before[name] and _unread(before[name], after[name], side))
            or _restarted(before[name], after[name], side)
        }
        between[name] = {
            counter: value if counter.startswith(NOW) else value - before[name].get(counter, 0.0)
            for counter, value in after[name].items()
            if _side(counter) not in undone and not counter.endswith((SINCE, SERVER, LOST))
        }
    return {name: counters for name, counters in between.items() if counters}


def lost_between(before: Observation, after: Observation) -> tuple[str, ...]:
    """Return the names of targets whose server was lost or replaced between two observations."""
    return tuple(
        name
        for name in sorted(before.keys() & after.keys())
        if before[name].get(NOW + LOST)
        or after[name].get(NOW + LOST)
        or any(
            sign in before[name] and sign in after[name] and before[name][sign] != after[name][sign]
            for sign in (SERVER, CLIENT + LOST)
        )
    )


def disturbed(before: Observation, after: Observation) -> tuple[str, ...]:
    """Return a sentence for each target or client whose counters were cleared, or are missing in an observation."""
    lines = []
    for name in sorted({*before, *after}):
        first, then = before.get(name, {}), after.get(name, {})
        for side, of, words in (
            ("", "", "its counters were cleared or the server was restarted"),
            (CLIENT, " of the client", "the client's counters were cleared or the client was remounted"),
        ):
            if missing := _unread(first, then, side):
                lines.append(f"{name}: no counters{of} from {missing} the measurement")
            elif _restarted(first, then, side):
                lines.append(f"{name}: {words} during the measurement")
    return tuple(lines)


def _unread(before: Mapping[str, float], after: Mapping[str, float], side: str) -> str:
    first, then = (
        any(_side(counter) == side and not counter.startswith(NOW) for counter in seen) for seen in (before, after)
    )
    return "" if first == then else "after" if first else "before"


def _side(counter: str) -> str:
    return CLIENT if counter.startswith(CLIENT) else ""


def _restarted(before: Mapping[str, float], after: Mapping[str, float], side: str) -> bool:
    if any(before.get(side + sign) != after.get(side + sign) for sign in (SINCE, SERVER)):
        return True
    counts = (name for name in before if _side(name) == side and not name.startswith(NOW) and not name.endswith(LOST))
    return any(after.get(counter, 0.0) < before[counter] for counter in counts)


_LAYOUT = ("stripe_count", "stripe_size_bytes", "first_target", "pool", "pattern", "targets", "object_bytes")


def layout_differences(wanted: Layout, given: Layout) -> tuple[str, ...]:
    """Return the differing values of two layouts as texts. ``wanted``: requested layout. ``given``: actual layout."""
    lines = _differences(wanted, given, *_LAYOUT)
    if wanted.components and _extents(wanted) != _extents(given):
        return (*lines, f"components {_extents(given)} instead of {_extents(wanted)}")
    pairs = zip(wanted.components, given.components, strict=False)
    inner = (
        f"component {number}: {line}"
        for number, (asked, got) in enumerate(pairs, start=1)
        for line in layout_differences(asked.layout, got.layout)
    )
    return (*lines, *inner)


def _extents(layout: Layout) -> str:
    extents = (f"{part.begin}-{'end' if part.end is None else part.end}" for part in layout.components)
    return ", ".join(extents) or "none"


def placement_differences(wanted: Placement, given: Placement) -> tuple[str, ...]:
    """Return the differing values of two placements as texts. ``wanted``: requested. ``given``: actual placement."""
    lines = _differences(wanted, given, "metadata_targets", "count")
    return (*lines, "subdirectories do not inherit it") if wanted.inherited and not given.inherited else lines


def _differences(wanted: object, given: object, *names: str) -> tuple[str, ...]:
    # If the request was -1 (all targets), a file system may report the number of targets, so do not compare.
    values = ((name, getattr(wanted, name), getattr(given, name)) for name in names)
    return tuple(
        f"{name.replace('size_bytes', 'size').replace('_', ' ')} {_shown(got)} instead of {_shown(asked)}"
        for name, asked, got in values
        if asked not in (None, "", (), -1, got)
    )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value) or "none"
    return "not reported" if value is None else str(value) or "none"
