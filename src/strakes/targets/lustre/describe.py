"""A Lustre file system in its parts: servers, targets with their room, pools, network, and this client's settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from strakes.errors import StrakesError
from strakes.targets.command import CommandTimeout, Runner, Servers
from strakes.targets.description import DataTarget, Description, MetadataTarget, Server
from strakes.targets.lustre.answers import Answers
from strakes.targets.lustre.ask_each import ask_each
from strakes.targets.lustre.connections import (
    ACTIVE,
    THIS_NODE,
    Connection,
    connections,
    host_of,
    hosts,
    ways_to_servers,
)
from strakes.targets.lustre.lctl_list_nids import list_nids
from strakes.targets.lustre.lctl_param import Params, device, get_param
from strakes.targets.lustre.lfs_df import LustreSpace, df
from strakes.targets.lustre.lfs_getname import ClientName
from strakes.targets.lustre.lfs_pools import members, pools
from strakes.targets.lustre.lfs_quota import LustreQuota, quota, user_name
from strakes.targets.lustre.own import is_target_of
from strakes.targets.lustre.recovery_status import PARAMETERS as RECOVERY
from strakes.targets.lustre.recovery_status import Recovery, parse_recovery
from strakes.targets.lustre.version import module_version, tool_version
from strakes.targets.mountinfo import Mount
from strakes.units import counted, format_bytes

_NOTHING = Params({})
_NO_SPACE = LustreSpace((), ())
_NO_LIMITS = LustreQuota(0, 0, 0, 0, 0, 0, exact=False)
# With these, large buffered calls are direct ones (2.17 and newer).
_HYBRID = ("hybrid_io", "hybrid_io_write_threshold_bytes", "hybrid_io_read_threshold_bytes")
# What decides how fast this client may be; any user may read them.
_SETTINGS = {
    "llite": ("max_read_ahead_mb", "max_read_ahead_per_file_mb", "max_cached_mb", "statahead_max", *_HYBRID),
    "mdc": ("max_rpcs_in_flight", "max_mod_rpcs_in_flight"),
    "osc": ("max_rpcs_in_flight", "max_pages_per_rpc", "max_dirty_mb", "checksums"),
}


def describe(answers: Answers, path: str, mount: Mount, name: ClientName, servers: Servers | None) -> Description:
    """Return what can be known; notes say what could not, and why."""
    targets, manager, manager_state = connections(answers, path, name)
    ways = ways_to_servers(answers.run, servers, hosts(targets))
    targets = _restated(targets, _recovering(answers, ways, name))
    if own := answers.get(list_nids(), ()) if THIS_NODE in ways else ():
        # As other clients call this node.
        targets = tuple(replace(each, address=own[0]) if each.host == THIS_NODE else each for each in targets)
    space = _space(answers, path)
    targets = _with_complaints(targets, space)
    room = {target.name: (target.total, target.free) for target in space.targets}
    inodes = {target.name: (target.total, target.free) for target in _space(answers, path, inodes=True).targets}
    in_pool = {
        pool: answers.get(members(name.file_system, pool), ()) for pool in answers.get(pools(name.file_system), ())
    }

    def sizes(target: Connection) -> tuple[int, int, int, int]:
        return (*room.get(target.name, (0, 0)), *inodes.get(target.name, (0, 0)))

    return Description(
        file_system_name=name.file_system,
        version=answers.get(module_version(), "") or answers.get(tool_version(), ""),
        servers=_servers(targets, manager, manager_state),
        data_targets=tuple(
            DataTarget(
                *(target.name, target.index, target.host, target.state),
                *sizes(target),
                pools=tuple(pool for pool, names in in_pool.items() if target.name in names),
            )
            for target in targets
            if target.kind == "OST"
        ),
        metadata_targets=tuple(
            MetadataTarget(target.name, target.index, target.host, target.state, *sizes(target))
            for target in targets
            if target.kind == "MDT"
        ),
        pools=tuple(in_pool),
        network=_network(answers, targets),
        client=_client(answers, mount, name),
        notes=(*_quota_notes(answers, path), *answers.notes),
    )


def _space(answers: Answers, path: str, *, inodes: bool = False) -> LustreSpace:
    """Return the room of all targets that answer: one that does not must not hide the others."""
    try:
        return df(path, inodes=inodes).ask(answers.run)
    except CommandTimeout as error:
        answers.note(error)
        return answers.get(df(path, inodes=inodes, lazy=True), _NO_SPACE)
    except StrakesError as error:
        answers.note(error)
        return _NO_SPACE


def _with_complaints(targets: Iterable[Connection], space: LustreSpace) -> tuple[Connection, ...]:
    """Return what ``lfs df`` says of a target that is otherwise well: degraded, read-only, no answer."""
    complaints = {target.name: target.state for target in space.targets if target.state}
    complaints |= {missing.name.removesuffix("_UUID"): missing.why.lower() for missing in space.missing}
    return _restated(targets, complaints)


def _restated(targets: Iterable[Connection], states: Mapping[str, str]) -> tuple[Connection, ...]:
    return tuple(
        replace(target, state=states[target.name]) if target.state == ACTIVE and target.name in states else target
        for target in targets
    )


def _recovering(answers: Answers, ways: Mapping[str, Runner], name: ClientName) -> dict[str, str]:
    """Targets that take their clients back at the moment, with their state."""

    def ask(host: str) -> Mapping[str, Recovery] | StrakesError:
        try:
            params = get_param(*RECOVERY).ask(ways[host])
            return {device(parameter): parse_recovery(text) for parameter, text in params.values.items()}
        except StrakesError as error:
            return error

    recovering: dict[str, str] = {}
    for states in ask_each(ways, ask).values():
        if isinstance(states, StrakesError):
            answers.note(states)
            continue
        recovering |= {target: state.status.lower() for target, state in states.items() if not state.serving}
    return {target: state for target, state in recovering.items() if is_target_of(target, name.file_system)}


def _servers(targets: Iterable[Connection], manager: str, manager_state: str) -> tuple[Server, ...]:
    """One entry for each machine and what it does there."""
    servers = [Server(host_of(manager), "mgs", manager, manager_state)] if manager else []
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


def _network(answers: Answers, targets: Iterable[Connection]) -> tuple[str, ...]:
    """Return this client's addresses; the kinds of network its servers are on where only root may know those."""
    own = answers.get(list_nids(), ())
    return own or tuple(dict.fromkeys(target.address.partition("@")[2] for target in targets if target.address))


def _client(answers: Answers, mount: Mount, name: ClientName) -> dict[str, str]:
    settings = {"mount options": ",".join(dict.fromkeys((*mount.options, *mount.super_options)))}
    wanted = [f"{kind}.*-{name.instance}.{own}" for kind, names in _SETTINGS.items() for own in names]
    values = answers.get(get_param(*wanted), _NOTHING).values
    for kind, names in _SETTINGS.items():
        for own in names:
            told = [
                _value(own, text)
                for parameter, text in values.items()
                if parameter.startswith(f"{kind}.") and parameter.endswith(f".{own}")
            ]
            if told:
                settings[f"{kind}.{own}"] = _summary(told)
    return settings


def _value(own: str, text: str) -> str:
    """Return the value, which some parameters give among others: "max_cached_mb: 983"."""
    lines = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith(f"{own}:")]
    return lines[0] if lines else text


def _summary(values: list[str]) -> str:
    """One value where all targets have it."""
    seen = Counter(values).most_common()
    return seen[0][0] if len(seen) == 1 else ", ".join(f"{value} ({counted(times, 'target')})" for value, times in seen)


def _quota_notes(answers: Answers, path: str) -> list[str]:
    user = user_name()
    notes = []
    limits = answers.get(quota(user, path), _NO_LIMITS)
    for used, hard, unit in (
        (limits.used_bytes, limits.hard_bytes, "bytes"),
        (limits.used_files, limits.hard_files, "files"),
    ):
        if hard:
            has, may = (
                (format_bytes(used), format_bytes(hard)) if unit == "bytes" else (counted(used, "file"), f"{hard:,}")
            )
            notes.append(f"User {user} has {has} here and may have {may}.")
    return notes
