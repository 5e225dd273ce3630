"""Servers of a Lustre file system: targets, health and counters, and the description of the file system."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from strakes.base.errors import StrakesError
from strakes.base.units import counted
from strakes.targets import lustre_lfs as lfs
from strakes.targets import lustre_parameters as parameters
from strakes.targets.answers import NotUnderstoodError
from strakes.targets.command import Command, Runner, Servers
from strakes.targets.description import (
    CLIENT,
    SERVER,
    SINCE,
    Description,
    Observation,
    Server,
    StorageTarget,
    TargetRecovery,
)
from strakes.targets.lustre_lfs import LIST_NIDS, ClientName, LustreSpace, TargetState
from strakes.targets.lustre_parameters import (
    DEACTIVATED,
    MD_STATS,
    NEVER_CONNECTED,
    OST_STATS,
    RECOVERY_STATUS,
    States,
    Stats,
    parse_recovery,
    parse_states,
    parse_stats,
)
from strakes.targets.lustre_tool import Answers, Params, ask_servers, device, get_param, is_target_of, of_mount
from strakes.targets.mountinfo import Mount
from strakes.targets.target import said

ACTIVE = "active"
# Host name for targets on this node, which Lustre shows with the address 0@lo.
THIS_NODE = "localhost"
_LOOPBACK = "0@lo"
# Before the first connection to a target, Lustre shows this text instead of an address.
_NO_ADDRESS = "<none>"
NOTHING = Params({})
# Address of the first management server in the source of a mount, such as fd00::1@tcp in fd00::1@tcp:fd00::2@tcp:/name.
_MANAGER = re.compile(r"[^@/,]*@\w+|[^:/]*")
_NO_SPACE = LustreSpace((), {})


@dataclass(frozen=True)
class Connection:
    """This client's connection to a target. ``address``: "" if unknown. ``state``: "active", or a problem."""

    name: str
    kind: str
    index: int
    address: str
    state: str

    @property
    def host(self) -> str:
        return host_of(self.address)


def host_of(address: str) -> str:
    """Return the host of a Lustre address: 10.0.0.1 for ``10.0.0.1@tcp``, ``THIS_NODE`` for the loopback address."""
    return THIS_NODE if address == _LOOPBACK else address.partition("@")[0]


def addresses(answers: Answers, file_system: str, ask_instance: Callable[[], str]) -> dict[str, str]:
    """Return target -> address of its present server, or "" before the first connection to the target.

    ``ask_instance`` returns the id of the mount; it may query servers.
    """
    asked = get_param(f"mdc.{file_system}-*.mds_conn_uuid", f"osc.{file_system}-*.ost_conn_uuid")
    params = answers.get(asked, NOTHING)
    if params.cut_off:
        answers.notes.append(f"{shlex.join(asked.argv)}: {params.why or 'it failed and said nothing'}")
    values = of_mount(params.values, file_system, ask_instance)
    # Lustre may name a server on this node by any of the node's addresses. Only root may list these addresses.
    own = Answers(answers.run).get(LIST_NIDS, ()) if values else ()
    known = {parameter: "" if value == _NO_ADDRESS else value for parameter, value in values.items()}
    return {target_in(parameter): _LOOPBACK if value in own else value for parameter, value in known.items()}


def target_in(parameter: str) -> str:
    """Return the target in a parameter's name: ``lab-OST0000`` in ``osc.lab-OST0000-osc-ff01.state``."""
    return re.split("-(?:mdc|osc)-", device(parameter))[0]


def connections(answers: Answers, path: str, name: ClientName) -> tuple[Connection, ...]:
    """Return this client's connections to all targets, metadata targets first."""
    where = addresses(answers, name.file_system, lambda: name.instance)
    now = states(answers, name.file_system, lambda: name.instance)

    def connection(target: TargetState) -> Connection:
        known = now.get(target.name)
        state = ACTIVE if known is None or known.working else known.current.lower()
        if where.get(target.name) == "":
            state = NEVER_CONNECTED
        if target.state != "ACTIVE" or (known is not None and known.deactivated):
            state = "inactive"
        return Connection(target.name, target.kind, target.index, where.get(target.name, ""), state)

    known = (answers.get(lfs.target_list(verb, path), ()) for verb in ("mdts", "osts"))
    return tuple(connection(target) for kind in known for target in kind)


def state_query(file_system: str) -> Command[Params]:
    """Return the command that prints the states of all connections of a file system."""
    return get_param(f"mdc.{file_system}-*.state", f"osc.{file_system}-*.state")


def states(answers: Answers, file_system: str, ask_instance: Callable[[], str]) -> dict[str, States]:
    """Return target -> states of its connection. The kernel supplies them, so the call never blocks."""
    params = answers.get(state_query(file_system), NOTHING)
    known: dict[str, States] = {}
    for parameter, text in () if params.cut_off else of_mount(params.values, file_system, ask_instance).items():
        try:
            known[device(parameter)] = parse_states(text)
        except StrakesError as error:
            answers.note(error)
    if not all(of.working for of in known.values()):
        taken_out = _taken_out(answers, file_system)
        known = {name: replace(of, deactivated=name in taken_out) for name, of in known.items()}
    return {target_in(f".{name}."): of for name, of in known.items()}


def _taken_out(answers: Answers, file_system: str) -> set[str]:
    names = (f"{kind}.{file_system}-*.{own}" for own in ("active", "import") for kind in ("mdc", "osc"))
    # Some versions of Lustre lack the parameter ``active`` for some devices, so read ``import`` as well.
    values = answers.get(get_param(*names), NOTHING).values
    return {
        device(parameter)
        for parameter, text in values.items()
        if (text.strip() == "0" if parameter.endswith(".active") else DEACTIVATED.search(text))
    }


def ways_to_servers(run: Runner, servers: Servers | None, on: tuple[str, ...]) -> dict[str, Runner]:
    """Return host -> function that runs commands there. Without ``servers``, only this node can be reached."""
    ways = {host: run for host in on if host == THIS_NODE}
    return ways if servers is None else ways | {host: servers.runner(host, run) for host in on if host not in ways}


def hosts(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct hosts of the addresses, in their order. Unknown addresses ("") are skipped."""
    return tuple(dict.fromkeys(host for address in addresses if (host := host_of(address))))


_HEALTH = "health_check"
_WELL = "healthy"


def ask_health(
    answers: Answers, ways: Mapping[str, Runner], file_system: str
) -> tuple[tuple[TargetRecovery, ...], tuple[str, ...]]:
    """Query the health of servers. Return the recoveries of targets, and a sentence for each problem.

    ``ways``: for each host, a function that runs commands there. Errors are added to ``answers``.
    """
    asked = ask_servers(ways, _HEALTH, *RECOVERY_STATUS)
    if THIS_NODE not in ways:
        asked = {"This client": answers.get(get_param(_HEALTH), NOTHING), **asked}
    recoveries: list[TargetRecovery] = []
    complaints: list[str] = []
    for host, params in asked.items():
        if isinstance(params, StrakesError):
            answers.note(params)
            continue
        if wrong := complaint(params.values.get(_HEALTH, _WELL)):
            complaints.append(f"{host} is not healthy: {wrong}.")
        for parameter, text in params.values.items():
            if parameter == _HEALTH or not is_target_of(device(parameter), file_system):
                continue
            try:
                recoveries.append(parse_recovery(text, device(parameter)))
            except StrakesError as error:
                answers.note(error)
    complaints += [
        f"{recovery.target} is in recovery: its clients are reconnecting ({recovery.status})."
        for recovery in recoveries
        if not recovery.serving
    ]
    return tuple(recoveries), tuple(complaints)


def complaint(text: str) -> str:
    """Return the problems that the parameter ``health_check`` lists, or "" for a healthy node."""
    lines = [line for each in text.splitlines() if (line := each.strip()) not in ("", _WELL)]
    if not lines:
        return ""
    return "; ".join(line for line in lines if line != "NOT HEALTHY") or "health_check gives no reason"


# Name under which an Observation contains the client's counters of the whole mount.
MOUNT = "client"

_SERVER_PARAMETERS = (MD_STATS, OST_STATS, *RECOVERY_STATUS)


def observe(run: Runner, name: ClientName, servers: Servers | None) -> tuple[Observation, dict[str, str]]:
    """Return the counters of the mount and of each target, and host -> error for each server that cannot be read.

    A target without readable counters has an empty entry.
    """
    answers = Answers(run)
    seen = client_counters(answers, name)
    ways = ways_to_servers(run, servers, hosts(addresses(answers, name.file_system, lambda: name.instance).values()))
    of_servers, unread = server_counters(ways, name.file_system)
    for target, counters in of_servers.items():
        seen[target] = {**seen.get(target, {}), **counters}
    # Without --servers, only root on a server node can read server counters, so missing counters are no error.
    return seen | ({} if servers is None else {host: {} for host in unread}), {} if servers is None else unread


def client_counters(answers: Answers, name: ClientName) -> dict[str, dict[str, float]]:
    """Return this client's counters, or {} for users other than root, for whom lctl truncates the output."""
    names = ("llite.{}.stats", "mdc.{}.stats", "mdc.{}.md_stats", "osc.{}.stats")
    params = answers.get(get_param(*(own.format(f"*-{name.instance}") for own in names)), NOTHING)
    stats = {} if params.cut_off else {parameter: _parsed(text) for parameter, text in params.values.items()}
    seen: dict[str, dict[str, float]] = {}
    for parameter, own in stats.items():
        kind = parameter.partition(".")[0]
        if parameter.endswith(".md_stats"):
            continue
        target = MOUNT if kind == "llite" else target_in(parameter)
        seen[target] = {}
        if own is None:
            continue
        if kind == "llite":
            # Lustre's client (llite) counts system calls, including calls that its cache served.
            seen[target] = own.named(parameters.LLITE_COUNTERS, CLIENT) | own.data(CLIENT) | _since(CLIENT, own)
        elif kind == "osc":
            seen[target] = own.data(CLIENT) | _since(CLIENT, own)
        elif (kinds := stats.get(parameter.removesuffix(".stats") + ".md_stats")) is not None:
            requests = {f"{CLIENT}md.requests": float(own.samples("req_waittime"))}
            seen[target] = kinds.named(parameters.MDC_COUNTERS, CLIENT) | requests | own.data(CLIENT)
            seen[target] |= _since(CLIENT, own, kinds)
    return seen


def server_counters(ways: Mapping[str, Runner], file_system: str) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return target -> counters, and host -> error for each server whose counters cannot be read."""
    seen: dict[str, dict[str, float]] = {}
    unread = {}
    for host, params in ask_servers(ways, *_SERVER_PARAMETERS).items():
        if isinstance(params, StrakesError):
            unread[host] = said(params)
        elif params.cut_off:
            unread[host] = params.why or "lctl prints only a part of the counters"
        elif own := _of_one_server(params, file_system):
            seen |= own
        else:
            unread[host] = f"it serves no target of {file_system}"
    return seen, unread


def _of_one_server(params: Params, file_system: str) -> dict[str, dict[str, float]]:
    mine = {
        parameter: text for parameter, text in params.values.items() if is_target_of(device(parameter), file_system)
    }
    seen: dict[str, dict[str, float]] = {}
    for parameter, text in mine.items():
        if not parameter.endswith(".recovery_status"):
            own = _parsed(text)
            # Lustre's metadata targets also count reads and writes, because they may hold the data of small files.
            names = parameters.MD_COUNTERS if parameter.endswith(".md_stats") else {}
            seen[device(parameter)] = {} if own is None else own.named(names) | own.data() | _since("", own)
    for parameter, text in mine.items():
        if parameter.endswith(".recovery_status") and (counters := seen.get(device(parameter))):
            with suppress(NotUnderstoodError):
                # The start time of the last recovery identifies the server process, because every restart changes it.
                counters[SERVER] = float(parse_recovery(text).started_unix_s or 0)
    return seen


def _parsed(text: str) -> Stats | None:
    with suppress(NotUnderstoodError):
        return parse_stats(text)
    return None


def _since(side: str, *stats: Stats) -> dict[str, float]:
    starts = [counted.start_s for counted in stats if counted.start_s is not None]
    return {side + SINCE: max(starts)} if starts else {}


# Parameters of hybrid I/O (Lustre 2.17), which handles large buffered reads and writes as direct I/O.
_HYBRID = ("hybrid_io", "hybrid_io_write_threshold_bytes", "hybrid_io_read_threshold_bytes")
# Parameters that can limit the speed of this client. Any user may read them.
_SETTINGS = {
    "llite": ("max_read_ahead_mb", "max_read_ahead_per_file_mb", "max_cached_mb", "statahead_max", *_HYBRID),
    "mdc": ("max_rpcs_in_flight", "max_mod_rpcs_in_flight"),
    "osc": ("max_rpcs_in_flight", "max_pages_per_rpc", "max_dirty_mb", "checksums"),
}


def describe(answers: Answers, path: str, mount: Mount, name: ClientName, servers: Servers | None) -> Description:
    """Return the description of the file system. Its notes list the missing parts, each with the reason."""
    targets = connections(answers, path, name)
    ways = ways_to_servers(answers.run, servers, hosts(target.address for target in targets))
    recoveries, _ = ask_health(answers, ways, name.file_system)
    if own := answers.get(LIST_NIDS, ()) if THIS_NODE in ways else ():
        # Other nodes cannot use the loopback address, so replace it by the first address of this node.
        targets = tuple(replace(each, address=own[0]) if each.host == THIS_NODE else each for each in targets)
    space = answers.get(lfs.df(path), _NO_SPACE)
    complaints = {target.name: target.state for target in space.targets if target.state}
    complaints |= {name.removesuffix("_UUID"): why.lower() for name, why in space.missing.items()}
    complaints |= {each.target: each.status.lower() for each in recoveries if not each.serving}
    targets = tuple(
        replace(each, state=complaints[each.name]) if each.state == ACTIVE and each.name in complaints else each
        for each in targets
    )
    room = {target.name: (target.total, target.free) for target in space.targets}
    inodes_there = answers.get(lfs.df(path, inodes=True), _NO_SPACE)
    inodes = {target.name: (target.total, target.free) for target in inodes_there.targets}
    pools = answers.get(lfs.pool_list(name.file_system), ())
    in_pool = {pool: answers.get(lfs.pool_list(name.file_system, pool), ()) for pool in pools}

    def fields(target: Connection) -> tuple[str, int, str, str, int, int, int, int]:
        sizes = (*room.get(target.name, (0, 0)), *inodes.get(target.name, (0, 0)))
        return (target.name, target.index, target.host, target.state, *sizes)

    return Description(
        file_system_name=name.file_system,
        version=answers.get(lfs.VERSION, ""),
        servers=_servers(targets, _MANAGER.match(mount.source)[0]),  # type: ignore[index]
        data_targets=tuple(
            StorageTarget(*fields(target), pools=tuple(pool for pool in in_pool if target.name in in_pool[pool]))
            for target in targets
            if target.kind == "OST"
        ),
        metadata_targets=tuple(StorageTarget(*fields(target)) for target in targets if target.kind == "MDT"),
        pools=tuple(in_pool),
        # If this user may not list the client's addresses, take the networks from the servers' addresses.
        network=answers.get(LIST_NIDS, ())
        or tuple(dict.fromkeys(target.address.partition("@")[2] for target in targets if target.address)),
        client=_client(answers, mount, name),
        notes=tuple(answers.notes),
    )


def _servers(targets: Iterable[Connection], manager: str) -> tuple[Server, ...]:
    servers = [Server(host_of(manager), "mgs", manager, "")]
    for kind, role in (("MDT", "mds"), ("OST", "oss")):
        by_address: dict[str, list[Connection]] = {}
        for target in targets:
            if target.kind == kind and target.address:
                by_address.setdefault(target.address, []).append(target)
        for address, there in by_address.items():
            ill = [target.name for target in there if target.state != ACTIVE]
            state = f"{len(ill)} of {counted(len(there), 'target')} not active" if ill else ACTIVE
            servers.append(Server(host_of(address), role, address, state))
    return tuple(servers)


def _client(answers: Answers, mount: Mount, name: ClientName) -> dict[str, str]:
    settings = {"mount options": ",".join(mount.all_options)}
    order = [(kind, own) for kind, names in _SETTINGS.items() for own in names]
    values = answers.get(get_param(*(f"{kind}.*-{name.instance}.{own}" for kind, own in order)), NOTHING).values
    of_setting: dict[tuple[str, str], list[str]] = {}
    for parameter, text in values.items():
        kind, own = parameter.partition(".")[0], parameter.rpartition(".")[2]
        of_setting.setdefault((kind, own), []).append(_value(own, text))
    return settings | {".".join(key): _summary(of_setting[key]) for key in order if key in of_setting}


def _value(own: str, text: str) -> str:
    # The parameter max_cached_mb has several lines. The value follows "max_cached_mb:".
    lines = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith(f"{own}:")]
    return lines[0] if lines else text


def _summary(values: list[str]) -> str:
    seen = Counter(values).most_common()
    return seen[0][0] if len(seen) == 1 else ", ".join(f"{value} ({counted(times, 'target')})" for value, times in seen)
