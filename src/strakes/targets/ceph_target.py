"""CephFS, mounted by ceph-fuse or by the kernel. The ``ceph`` command supplies facts and counters."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError, EnvironmentLacksError, StrakesError
from strakes.base.units import KIB, MIB, counted
from strakes.targets import calls
from strakes.targets import ceph_cluster as cluster
from strakes.targets.answers import understood
from strakes.targets.calls import Quota
from strakes.targets.ceph_cluster import Eviction, evictions_in, interruptions_in
from strakes.targets.ceph_tool import (
    MOST_ELSEWHERE,
    Access,
    ClientRequests,
    Daemons,
    access_of,
    ceph,
    data_counters,
    loads_of_clients,
    metadata_counters,
    used_share,
)
from strakes.targets.command import Runner, Servers, run
from strakes.targets.description import (
    SERVER,
    DataTargetState,
    Description,
    Interruption,
    Layout,
    Limit,
    Observation,
    Placement,
    Striping,
)
from strakes.targets.mountinfo import Mount
from strakes.targets.target import Target, TargetFacts, said

_FSID, _CLIENT = "ceph.cluster_fsid", "ceph.client_id"
_PROBE = ".strakes-layout"
# Extended attributes with layouts and pins (docs.ceph.com: cephfs/file-layouts, cephfs/multimds).
FILE, DIRECTORY = "ceph.file.layout", "ceph.dir.layout"
PIN, DISTRIBUTED, RANDOM = "ceph.dir.pin", "ceph.dir.pin.distributed", "ceph.dir.pin.random"
# In CephFS, stripe units are multiples of 64 KiB, and objects have 4 MiB by default.
UNIT_BYTES, _OBJECT_BYTES = 64 * KIB, 4 * MIB
# Maximum age in seconds of a cached MDS map. Ceph itself needs some seconds to replace a metadata server.
_MAP_FRESH_S = 1.0
# Seconds between calls of ``ceph osd df``. On clusters with many OSDs, it replaces a query of each OSD.
_STORES_EACH_S = 300.0


def _counters(read: Callable[[Any], dict[str, float]], answer: Any) -> dict[str, float]:
    with suppress(StrakesError), understood("ceph"):
        return {} if isinstance(answer, StrakesError) else read(answer)
    return {}


class CephTarget(Target):
    """A CephFS mount. All calls have a time limit."""

    moves_directories = True
    permission = "To set layouts and pins, own the directory, and mount with a Ceph user with the cap mds 'allow rwp'."

    def __init__(self, path: Path, mount: Mount, *, servers: Servers | None = None, runner: Runner = run) -> None:
        super().__init__(path, mount, servers=servers, runner=runner)
        self._map: tuple[float, cluster.Json] | None = None
        self._number = ""
        self._requests = ClientRequests()
        self._stores: dict[str, Any] | None = None
        self._all_stores: tuple[float, Mapping[str, DataTargetState]] = (-math.inf, {})

    def facts(self, workspace: Path | None = None) -> TargetFacts:
        facts = super().facts(workspace)
        if self.mount.file_system == "ceph":
            return facts
        cache = "ceph-fuse has its own data cache (client_oc_size): reads of recently written data may come from it."
        return replace(facts, notes=(*facts.notes, cache))

    def _sizes(self) -> calls.Sizes:
        # statvfs(2) applies the quota of only one parent directory, so read the quotas of all.
        sizes = super()._sizes()
        quotas = self._call("the quotas cannot be read", "trees", *self._above(self.path))
        return sizes.within([Quota.of(*limits) for limits in quotas])

    def controls(self) -> tuple[str, ...]:
        return (
            f"stripe unit, stripe count, object size and pool of new files ({DIRECTORY})",
            f"metadata rank of directories: by hand ({PIN}), over all ranks ({DISTRIBUTED})",
        )

    def describe(self) -> Description:
        client = self._client()
        try:
            with understood("ceph"):
                self._require_same_cluster()
                questions = ("fs_dump", "osd_df", "osd_tree", "mon_dump", "versions")
                with ThreadPoolExecutor(len(questions) + 1) as pool:
                    groups = pool.submit(self._ceph, "pg", "dump", "pgs_brief")
                    given = pool.map(lambda question: self._ceph(*question.split("_")), questions)
                    answers = dict(zip(questions, given, strict=True))
                answers["osd_dump"], mdsmap = self._osd_dump, self._mdsmap(answers["fs_dump"])
                described = cluster.description(answers, mdsmap, groups.result()["pg_stats"])
        except StrakesError as error:
            name = self.access.file_system or "CephFS"
            return replace(super().describe(), file_system_name=name, client=client, notes=(said(error),))
        return replace(described, client=client)

    def layout(self, path: Path) -> Layout | None:
        nearest, *others = self._above(path)
        text = self._call("the layout cannot be read", "first", nearest, DIRECTORY, *others)
        return None if text is None else read_layout(text)

    def _above(self, path: Path) -> list[str]:
        top = self.mount.mount_point
        return [str(directory) for directory in (path, *path.parents) if directory.is_relative_to(top)]

    def set_layout(self, directory: Path, wanted: Layout) -> Layout:
        with understood("ceph"):
            stores = len(self._osd_dump["osds"]) if wanted.stripe_count == -1 else 0
        value = write_layout(wanted, self.layout(directory) or Layout(), stores)
        given = self._call(
            f"the layout cannot be set ({value})",
            "layout",
            *(str(directory), DIRECTORY, value, _PROBE, FILE),
            remedy="Give a stripe unit that is a multiple of 64 KiB and divides the object size, and a data pool of "
            "the file system.",
        )
        return read_layout(given or "")

    def striping(self) -> Striping | None:
        try:
            with understood("ceph"):
                self._require_same_cluster()
                return Striping(sum(bool(store["up"]) for store in self._osd_dump["osds"]), UNIT_BYTES)
        except StrakesError:
            return None

    def placement(self, directory: Path) -> Placement | None:
        return read_pins(self._attributes(directory, PIN, DISTRIBUTED, RANDOM))

    def make_directory(self, parent: Path, name: str, wanted: Placement) -> Placement:
        with understood("ceph"):
            pin = pin_for(wanted, tuple(cluster.ranks_of(self._mdsmap())) if wanted.kind == "manual" else ())
        path = str(parent / name)
        self._call("the directory was not made", "mkdir", path)
        if pin is not None:
            try:
                self._call(f"the directory cannot be pinned ({pin[0]} = {pin[1]})", "setxattr", path, *pin)
            except StrakesError:
                with suppress(StrakesError):
                    self._call("the directory cannot be removed", "rmdir", path)
                raise
        return self.placement(Path(path)) or wanted

    def observe(self) -> Observation:
        with suppress(StrakesError), understood("ceph"):
            self._stores = None
            self._require_same_cluster()
            ranks = self._daemons_of_ranks()
            stores = self._observed_stores()
            answers = self._daemons.ask_all((*(daemon for daemon, _ in ranks.values()), *stores), "perf dump")
            self._stores = {name: answers[name] for name in stores}
            seen: dict[str, dict[str, float]] = {}
            for name, (daemon, number) in ranks.items():
                counted = _counters(metadata_counters, answers[daemon])
                seen[name] = counted and counted | {SERVER: number}
            for name, answer in self._stores.items():
                seen[name] = _counters(data_counters, answer)
            return seen
        return {}

    def data_target_states(self) -> Mapping[str, DataTargetState]:
        with suppress(StrakesError), understood("ceph"):
            if self._stores is None:
                return {}
            if len(self._stores) < len(self._osd_dump["osds"]):
                if time.monotonic() - self._all_stores[0] >= _STORES_EACH_S:
                    self._all_stores = (time.monotonic(), cluster.states_in(self._ceph("osd", "df")))
                return self._all_stores[1]
            silent = {name for name, answer in self._stores.items() if isinstance(answer, StrakesError)}
            stores = self._ceph("osd", "dump")["osds"] if silent else ()
            down = {name for store in stores if not store["up"] and (name := f"osd.{store['osd']}") in silent}
            return {
                name: DataTargetState(name not in down, None if name in silent else used_share(answer))
                for name, answer in self._stores.items()
            }
        return {}

    def client_requests(self) -> Mapping[str, float]:
        with suppress(StrakesError), understood("ceph"):
            self._require_same_cluster()
            daemons = [daemon for daemon, _ in self._daemons_of_ranks().values()]
            answers = self._daemons.ask_all(daemons, "session ls")
            loads = {daemon: loads_of_clients(answer) for daemon, answer in answers.items()}
            return self._requests.add(time.monotonic(), loads)
        return {}

    def interruptions(self) -> tuple[Interruption, ...]:
        with suppress(StrakesError), understood("ceph"):
            # An evicted client may be unable to read its own id, so keep the id that was read first.
            self._number = self._number or self._own_number()
            self._require_same_cluster()
            # ``ceph fs dump`` takes half a second, so it is skipped if the daemons of the ranks are unchanged.
            known = self._map is not None and cluster.holders(self._map[1]) == self._daemons_of_ranks()
            mdsmap = self._map[1] if self._map is not None and known else self._mdsmap()
            log = self._log()
            own = int(self._number) if self._number.isdigit() else None
            met = interruptions_in(log, mdsmap, own)
            ranks = {f"mds.{daemon['name']}": rank for rank, daemon in cluster.ranks_of(mdsmap).items() if daemon}
            evictions = [each for each in evictions_in(log) if each.number == own and each.daemon in ranks]
            if not evictions or any(lost.evicted for lost in met):
                return met
            last = evictions[-1]
            target = cluster.target_name(mdsmap, ranks[last.daemon])
            ended = None if self._own_number() in ("", self._number) else last.unix_s
            return (*met, Interruption(target, last.unix_s, ended, True, 1, evicted_names=(str(last),)))
        return ()

    def _log(self) -> list[cluster.Json]:
        return list(self._ceph("log", "last", "1000", "info", "cluster"))

    def _own_number(self) -> str:
        with suppress(StrakesError):
            return self._attributes(Path(self.mount.mount_point), _CLIENT).get(_CLIENT, "").removeprefix("client")
        return ""

    def _blocked(self, blocklist: Mapping[str, str]) -> list[str]:
        number = self._number or self._own_number()
        evictions: list[Eviction] = [each for each in evictions_in(self._log()) if str(each.number) == number]
        return [
            f"This client, {eviction}, was evicted and is blocklisted until {blocklist[eviction.address]}: mount again."
            for eviction in evictions
            if eviction.address in blocklist
        ]

    def trouble(self) -> tuple[str, ...]:
        try:
            with understood("ceph"):
                health = self._ceph("health", "detail")
                fs_dump = self._ceph("fs", "dump")
                osd_dump = self._ceph("osd", "dump")
                stores = {f"osd.{store['osd']}": bool(store["up"]) for store in osd_dump["osds"]}
                mdsmap = self._mdsmap(fs_dump)
                lines = self._blocked(osd_dump.get("blocklist") or osd_dump.get("blacklist", {}))
                asked = [f"mds.{daemon['name']}" for daemon in cluster.ranks_of(mdsmap).values() if daemon]
                asked += [name for name, up in stores.items() if up][:MOST_ELSEWHERE]
                for daemon, answer in self._daemons.ask_all(asked, "version").items():
                    if isinstance(answer, StrakesError):
                        lines.append(f"{daemon} does not answer: {answer.why or answer.what}.")
                lines += [f"{name} is down." for name, up in stores.items() if not up]
                for check in health["checks"].values():
                    if not check.get("muted"):
                        first = next((f": {detail['message']}" for detail in check.get("detail", ())), "")
                        lines.append(f"Ceph says: {check['summary']['message']}{first}.")
                return tuple(dict.fromkeys(lines))
        except StrakesError as error:
            return (f"The monitors do not report the state of the servers: {said(error)}.",)

    def limits(self) -> tuple[Limit, ...]:
        why = "Ceph places objects by a hash of their names, so a file may be on fewer stores than its stripe count"
        limits = [Limit("choose which object stores hold a file", why)]
        try:
            with understood("ceph"):
                self._require_same_cluster()
                ranks = cluster.ranks_of(self._mdsmap())
                stores, observed = self._osd_dump["osds"], self._observed_stores()
        except StrakesError as error:
            return (*limits, Limit("describe servers and targets, and read their counters", said(error)))
        if len(ranks) == 1:
            limits.append(Limit("spread directories", "there is only one metadata rank"))
        if len(observed) < len(stores):
            why = f"some of the {len(stores)} are on other machines, and queries would outlast the measurement"
            limits.append(Limit("read counters of object stores", why))
        return tuple(limits)

    @cached_property
    def access(self) -> Access:
        return access_of(self.mount)

    @cached_property
    def _daemons(self) -> Daemons:
        return Daemons(self.run, self.access)

    def _ceph(self, *words: str) -> Any:
        return ceph(self.access, *words).ask(self.run)

    @cached_property
    def _osd_dump(self) -> cluster.Json:
        dump: cluster.Json = self._ceph("osd", "dump")
        return dump

    def _mdsmap(self, fs_dump: cluster.Json | None = None) -> cluster.Json:
        if fs_dump is None:
            if self._map is not None and time.monotonic() - self._map[0] < _MAP_FRESH_S:
                return self._map[1]
            fs_dump = self._ceph("fs", "dump")
        # Reading the attribute may hang, so read it only if the cluster has several file systems.
        pool = ""
        if len(fs_dump["filesystems"]) > 1 and not self.access.file_system:
            layout = self._attributes(Path(self.mount.mount_point), DIRECTORY).get(DIRECTORY)
            pool = read_layout(layout).pool if layout else ""
        mdsmap = cluster.file_system_of(fs_dump, self.access.file_system, pool, self._osd_dump["pools"])
        if mdsmap is None:
            where = self.access.file_system or self.mount.source
            raise EnvironmentLacksError("the Ceph cluster has no file system of this name", where=where)
        self._map = (time.monotonic(), mdsmap)
        return mdsmap

    def _daemons_of_ranks(self) -> dict[str, tuple[str, int]]:
        if self._map is not None:
            known = [f"mds.{daemon['name']}" for daemon in self._map[1]["info"].values()]
            if all(map(self._daemons.is_here, known)):
                answers = self._daemons.ask_all(known, "status")
                ranks = {
                    answer["whoami"]: (name, answer["id"])
                    for name, answer in answers.items()
                    if not isinstance(answer, StrakesError)
                }
                if set(ranks) == set(cluster.ranks_of(self._map[1])):
                    return {cluster.target_name(self._map[1], rank): daemon for rank, daemon in sorted(ranks.items())}
        return cluster.holders(self._mdsmap())

    def _observed_stores(self) -> list[str]:
        stores = [f"osd.{store['osd']}" for store in self._osd_dump["osds"]]
        return stores if len(stores) <= MOST_ELSEWHERE else []

    def _require_same_cluster(self) -> None:
        mounted, asked = self._clusters
        if mounted not in ("", asked):
            why = f"the configuration belongs to cluster {asked}, but the mount belongs to {mounted}"
            remedy = "Set CEPH_CONF to the configuration file of the mount."
            raise EnvironmentLacksError("strakes cannot query the Ceph cluster", why=why, remedy=remedy)

    def cluster_id(self) -> str:
        # Clients released before 2021 report no cluster id.
        return self._attributes(Path(self.mount.mount_point), _FSID).get(_FSID, "")

    @cached_property
    def _clusters(self) -> tuple[str, str]:
        return self.cluster_id(), self._ceph("fsid")["fsid"]

    def _client(self) -> dict[str, str]:
        rows = {
            "client": "the kernel's" if self.mount.file_system == "ceph" else "ceph-fuse",
            "mount options": ",".join(self.mount.all_options),
            "configuration": self.access.configuration or "Ceph's defaults ($CEPH_CONF, /etc/ceph/ceph.conf)",
        }
        with suppress(StrakesError):
            if number := self._attributes(self.path, _CLIENT).get(_CLIENT):
                rows["session"] = number
        return rows

    def _attributes(self, path: Path, *names: str) -> dict[str, str]:
        attributes: dict[str, str] = self._call("a Ceph attribute cannot be read", "getxattr", str(path), *names)
        return attributes


def read_layout(text: str) -> Layout:
    """Parse the value of a CephFS layout attribute. Raises MeasurementError if it is invalid."""
    # A Ceph pool's name may contain spaces, so it extends to the end of the text or to pool_namespace=.
    fields, _, pool = text.partition(" pool=")
    pool = pool.partition(" pool_namespace=")[0]
    values = dict(field.partition("=")[::2] for field in fields.split())
    with understood("getfattr", text):
        unit, count, size = (int(values[name]) for name in ("stripe_unit", "stripe_count", "object_size"))
        return Layout(unit, count, pool=pool, object_bytes=size)


def write_layout(wanted: Layout, current: Layout, stores: int) -> str:
    """Return a layout as the value of a CephFS layout attribute. Raises BadInputError if CephFS does not support it.

    ``current`` supplies values missing in ``wanted``. ``stores``: number of OSDs, for the stripe count -1 (all).
    """
    for what, asked in (("first_target", "the first target"), ("pattern", "a pattern"), ("components", "components")):
        if getattr(wanted, what):
            why = "Ceph places objects by a hash of their names"
            raise BadInputError(f"a CephFS layout cannot specify {asked}", why=why)
    unit = wanted.stripe_size_bytes or current.stripe_size_bytes or _OBJECT_BYTES
    count = wanted.stripe_count or current.stripe_count or 1
    usual = current.object_bytes or _OBJECT_BYTES
    size = usual if usual % unit == 0 else unit * max(1, _OBJECT_BYTES // unit)
    fields = [f"stripe_unit={unit}", f"stripe_count={stores if count == -1 else count}", f"object_size={size}"]
    return " ".join([*fields, f"pool={wanted.pool}"] if wanted.pool else fields)


def read_pins(values: Mapping[str, str]) -> Placement:
    """Return the placement of a CephFS directory. ``values``: values of pin attributes by name."""
    rank = values.get(PIN, "-1")
    if rank.isdecimal():
        return Placement("manual", (int(rank),), inherited=True)
    if values.get(DISTRIBUTED, "0") == "1":
        return Placement("automatic", count=1, hash="distributed")
    if values.get(RANDOM, "0").strip("0."):
        return Placement("automatic", count=1, hash=f"random {values[RANDOM]}", inherited=True)
    return Placement("inherit")


def pin_for(wanted: Placement, ranks: tuple[int, ...]) -> tuple[str, str] | None:
    """Return the CephFS pin (name, value) for a placement, None for "inherit". Raises BadInputError if none exists."""
    if wanted.kind == "inherit":
        return None
    if wanted.kind == "manual":
        (rank,) = wanted.metadata_targets
        # Ceph accepts a pin to a missing rank without an error, and ignores the pin.
        if rank not in ranks:
            why, remedy = f"the ranks are {', '.join(map(str, ranks))}", "Raise max_mds, or choose one of these ranks."
            raise BadInputError(f"metadata rank {rank} does not exist", why=why, remedy=remedy)
        return PIN, str(rank)
    if wanted.count not in (None, 1, -1):
        why = "it can spread only a directory's children over all ranks (distributed), or a share of its tree (random)"
        what = f"CephFS does not spread a directory over {counted(wanted.count, 'metadata rank')}"
        raise BadInputError(what, why=why)
    return DISTRIBUTED, "1"
