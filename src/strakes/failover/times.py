"""Times in the files of a cluster, limits on them, and durations of a fail-over. Defaults: ``options/times.toml``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from itertools import groupby, pairwise

from strakes.failover.blocks import Block, Resource
from strakes.failover.facts import RELATIONS, Certain, is_true, read_table, seconds
from strakes.failover.model import Service
from strakes.failover.pacemaker_resources import NETWORK_WATCHERS, Primitive
from strakes.failover.rules_fencing_devices import devices_for
from strakes.failover.rules_nodes import settings_of_nodes
from strakes.failover.setup import Setup, nodes_of

_SYSTEMD_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hr": 3600.0, "": 1.0}
_FENCE_PEER_S = 90.0  # Default time-out in seconds of the script crm-fence-peer.
_POWER_OFF_S, _AGENT_S = 1.0, 0.1  # Assumed minimum seconds for a power-off and for the start of a resource.
_OPERATIONS = ("start", "stop", "promote", "demote", "monitor")


@dataclass(frozen=True)
class Amount:
    """A time in seconds, or another number, that the configuration of a cluster sets."""

    scope: str  # link, device or resource to which the time applies, or empty
    where: str
    text: str
    value: float
    written: bool = True
    unit: str = " s"

    @property
    def shown(self) -> str:
        """Return the value with its unit, such as "90 s" or "unlimited"."""
        return f"{self.value:g}{self.unit}" if math.isfinite(self.value) else "unlimited"


Amounts = Mapping[str, list[Amount]]
# Scope (link, device or resource), file, and a function that returns the values of a key in this file.
_Place = tuple[str, str, Callable[[str], list[str]]]


@dataclass(frozen=True)
class _Source:
    name: str
    place: str
    keys: tuple[str, ...]
    unit: str
    default: float | None = None
    off_at_zero: bool = False


@cache
def _sources() -> tuple[_Source, ...]:
    return tuple(
        _Source(name, place, **{**row, "keys": tuple(row["keys"])})
        for place, rows in read_table("options/times").items()
        for name, row in rows.items()
    )


def _systemd(text: str) -> float | None:
    if text == "infinity":
        return float("inf")
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    known = parts and all(unit in _SYSTEMD_S for _, unit in parts)
    return sum(float(number) * _SYSTEMD_S[unit] for number, unit in parts) if known else None


def _plain(factor: float) -> Callable[[str], float | None]:
    return lambda text: int(text) * factor if re.fullmatch(r"\d{1,15}", text) else None


_UNITS: Mapping[str, Callable[[str], float | None]] = {
    "ms": _plain(0.001),
    "s": _plain(1.0),
    "tenths": _plain(0.1),
    "number": _plain(1.0),
    "pacemaker": lambda text: seconds(text) if re.match(r"\s*(\d|PT\d)", text) else None,
    "systemd": _systemd,
}

_AGENT_WAITS = ("power_wait", "power_timeout", "login_timeout", "shell_timeout", "delay", "timeout", "ipmitool_timeout")


def _of_values(values: Mapping[str, str]) -> Callable[[str], list[str]]:
    return lambda key: [values[key]] if values.get(key) else []


# Section of options/times.toml -> suffix of the files with these times.
_TABLES = {
    "heartbeat": "ha.cf",
    "multipath": "multipath.conf",
    "nfs": "nfs.conf",
    "iscsi": "iscsid.conf",
    "modules": "modprobe.d",
}


def _places(setup: Setup, place: str) -> Iterator[_Place]:
    corosync, cib = setup.corosync, setup.cib
    if place.startswith(("totem", "quorum")):
        *outer, inner = place.split(".")
        holder = reduce(Block.one, outer, corosync)
        if holder.all(inner) or (corosync and not outer):
            yield "", "corosync.conf", _of_values(dict(holder.one(inner).settings))
    elif place == "interface":
        for number, interface in enumerate(corosync.one("totem").all("interface")):
            yield f"link {number}", "corosync.conf", _of_values(dict(interface.settings))
    elif place == "net":
        for resource in setup.drbd:
            yield resource.name, f"drbd: {resource.name}", partial(resource.all_values, "net")
    elif place == "cluster":
        yield from [("", "cib", _of_values(cib.properties))] if cib else ()
    elif place in ("device", "meta", "watcher"):
        for one in setup.devices if place == "device" else setup.services:
            if place != "watcher" or one.agent in ("ping", "pingd"):
                yield one.id, f"cib: {one.id}", _of_values(one.meta if place == "meta" else one.values)
    else:
        yield from _node_places(setup, place)


def _node_places(setup: Setup, place: str) -> Iterator[_Place]:
    if place == "sbd" and setup.sbd:
        yield "", "sbd", _of_values(setup.sbd)
    elif place == "lustre":
        text = f"{setup.lustre}\n{setup.modules}\n{setup.lustre_parameters}"
        yield "", "Lustre", lambda key: re.findall(rf"(?:^|[\s,\"'.=]){re.escape(key)}=(\d+)", text)
    elif place in _TABLES:
        file = _TABLES[place]
        rows = [(given.table.partition(" "), given) for given in settings_of_nodes(setup)]
        # The key of a module parameter begins with the module: "lnet peer_timeout".
        named = [(f"{part} {one.name}" if table == "module" else one.name, one) for (table, _, part), one in rows]
        yield "", file, lambda key: [one.value for name, one in named if name == key and one.file.endswith(file)]


def _of_source(source: _Source, places: Iterable[_Place]) -> Iterator[Amount]:
    unit = "" if source.unit == "number" else " s"
    for scope, where, values_of in places:
        key, values = next(((key, values) for key in source.keys if (values := values_of(key))), ("", []))
        understood = False
        for value in values:
            number = _UNITS[source.unit](value)
            understood = understood or number is not None
            if number or (number == 0 and not source.off_at_zero):
                yield Amount(scope, where, f"{key}={value}", number, unit=unit)
        if not understood and source.default is not None:
            yield Amount(scope, where, source.keys[0], source.default, written=False, unit=unit)


def _of_corosync(setup: Setup) -> Iterator[tuple[str, Amount]]:
    totem = setup.corosync.one("totem")
    old = totem.get("transport", "knet") != "knet" or bool(totem.get("rrp_mode"))
    given, millisecond = totem.get("token"), _UNITS["ms"]
    token_s = millisecond(given)
    base_s = token_s if token_s is not None else 1.0 if old else 3.0
    text = f"token={given}" if token_s is not None else "token"
    yield "token-as-written", Amount("", "corosync.conf", text, base_s, token_s is not None)
    more = max(0, len(nodes_of(setup)) - 2)
    coefficient_s = millisecond(totem.get("token_coefficient"))
    base_s += more * (0.65 if coefficient_s is None else coefficient_s)
    yield "token", Amount("", "corosync.conf", text, base_s, token_s is not None)
    consensus_s = millisecond(totem.get("consensus"))
    if consensus_s is not None:
        yield "consensus", Amount("", "corosync.conf", f"consensus={totem.get('consensus')}", consensus_s)
    else:
        grows = more > 0 and coefficient_s is not None
        text = f"token_coefficient={totem.get('token_coefficient')}" if grows else "consensus"
        yield "consensus", Amount("", "corosync.conf", text, 1.2 * base_s, written=grows)
    if setup.sbd and not setup.sbd.get("SBD_DEVICE") and setup.corosync.one("quorum").all("device"):
        given = setup.sbd.get("SBD_WATCHDOG_TIMEOUT", "5")
        yield "watchdog-without-disk", Amount("", "sbd", f"SBD_WATCHDOG_TIMEOUT={given}", seconds(given))


def _of_devices(setup: Setup) -> Iterator[tuple[str, Amount]]:
    cib = setup.pacemaker
    if setup.sbd and cib.watchdog_s > 0:
        yield "watchdog-limit", Amount("", "cib", "stonith-watchdog-timeout", cib.watchdog_s)
    limit = next(one for one in _sources() if one.name == "fencing-limit")
    common = next(_of_source(limit, _places(setup, limit.place)))
    # A device's pcmk_off_timeout or pcmk_reboot_timeout overrides stonith-timeout.
    asked = "off" if cib.properties.get("stonith-action", "reboot") in ("off", "poweroff") else "reboot"
    for device in cib.devices:
        where = f"cib: {device.id}"
        given_s = seconds(device.values.get(f"pcmk_{asked}_timeout", ""))
        yield "power-off-limit", Amount("", where, f"pcmk_{asked}_timeout", given_s) if given_s else common
        own = {key: seconds(device.values.get(key, "")) for key in ("pcmk_reboot_timeout", "pcmk_off_timeout")}
        limits = [Amount(device.id, where, key, given) for key, given in own.items() if given]
        usual = replace(common, scope=device.id, where=where)
        yield "device-limit", min(limits, key=lambda limit: limit.value, default=usual)
        # Ignore the times of fence_kdump, which only waits for a message.
        for key in _AGENT_WAITS if device.agent != "fence_kdump" else ():
            given = device.values.get(key, "")
            if re.match(r"\d", given) and ":" not in given:
                kind = "device-own-limit" if key.endswith("timeout") else "device-pause"
                amount = Amount(device.id, where, f"{key}={given}", seconds(given))
                yield "device-wait", amount
                yield kind, amount
        if static_s := cib.delay_s(device):
            yield "device-delay", Amount(device.id, where, "pcmk_delay_base", static_s)
        if device.agent in ("external/sbd", "fence_sbd") and setup.sbd:
            # By default, sbd's msgwait is twice the time-out of the watchdog.
            wait_s = 2 * seconds(setup.sbd.get("SBD_WATCHDOG_TIMEOUT", "5"))
            wait_s = seconds(setup.sbd.get("msgwait-timeout", "")) or wait_s
            written = bool({"SBD_WATCHDOG_TIMEOUT", "msgwait-timeout"} & set(setup.sbd))
            yield "message-wait", Amount(device.id, "sbd", "msgwait", wait_s, written)


def _of_services(setup: Setup) -> Iterator[tuple[str, Amount]]:
    longest: Amount | None = None
    for one in setup.pacemaker.services:
        where = f"cib: {one.id}"
        for name in _OPERATIONS:
            amount = Amount(one.id, where, f"{name} timeout", one.timeout_s(name), one.operation(name) is not None)
            yield name, amount
            if name == "stop" and amount.written and (longest is None or amount.value > longest.value):
                longest = amount
        for each in one.operations:
            if each.repeats:
                yield "monitor-interval", Amount(one.id, where, "monitor interval", each.interval_s)
        yield from _own_waits(one, where)
        if one.agent == "ZFS":
            yield "pool-start", Amount(one.id, where, "start timeout", one.timeout_s("start"))
        if one.is_mount or one.agent in ("LVM-activate", "LVM", "ZFS"):
            yield "storage-stop", Amount(one.id, where, "stop timeout", one.timeout_s("stop"))
        if one.agent == "exportfs" and is_true(one.values.get("wait_for_leasetime_on_stop", "false")):
            yield "leased-stop", Amount(one.id, where, "stop timeout", one.timeout_s("stop"))
    if longest:
        yield "longest-stop", Amount("", longest.where, longest.text, longest.value)


def _own_waits(one: Primitive, where: str) -> Iterator[tuple[str, Amount]]:
    for name, value in one.values.items():
        for operation, pattern in read_table("options/waits")["limits"].items():
            if re.fullmatch(pattern, name) and seconds(value):
                yield f"own-{operation}", Amount(one.id, where, f"{name}={value}", seconds(value))
    if rounds := read_table("options/waits")["rounds"].get(one.agent):
        times = [seconds(one.values.get(key, "")) or default for key, default in rounds.items()]
        yield "own-monitor", Amount(one.id, where, " x ".join(rounds), times[0] * times[1])


def fence_peer_s(resource: Resource) -> tuple[float, bool]:
    """Return the seconds for which DRBD may suspend writes during fencing, and whether a file sets this time."""
    words = resource.option("handlers", "fence-peer").replace("=", " ").split()
    given = next((after for word, after in pairwise(words) if word in ("--timeout", "-t")), "")
    return (seconds(given) or _FENCE_PEER_S), bool(given)


def _of_replication(setup: Setup) -> Iterator[tuple[str, Amount]]:
    for resource in setup.drbd:
        wait_s, written = fence_peer_s(resource)
        if written and "crm-fence-peer" in resource.option("handlers", "fence-peer"):
            yield "fence-peer", Amount(resource.name, f"drbd: {resource.name}", "fence-peer --timeout", wait_s)


def _of_units(setup: Setup) -> Iterator[tuple[str, Amount]]:
    for name, text in setup.units.items():
        program = name.partition(".service.d/")[0]
        for key, value in re.findall(r"(?m)^[ \t]*(Timeout(?:Stop)?Sec)\s*=\s*(\S+(?:[ \t]+\S+)*)", text):
            # Ignore zero: depending on systemd's release, it means no wait or no limit.
            if wait_s := _systemd(value):
                for one in setup.services:
                    # A unit NAME@INSTANCE uses the settings of its template NAME@.
                    unit = re.sub(r"@.+", "@", one.agent.removesuffix(".service"))
                    if one.standard in ("systemd", "service") and re.sub(r"@.+", "@", program) == unit:
                        yield "unit-stop", Amount(one.id, f"systemd: {program}", f"{key}={value}", wait_s)
                if program == "pacemaker":
                    yield "program-stop", Amount("", f"systemd: {program}", f"{key}={value}", wait_s)


def _of_paths(setup: Setup) -> Iterator[tuple[str, Amount]]:
    multipath = setup.bare("etc/multipath.conf", "#!")
    every = re.search(r"\bpolling_interval\s+\"?(\d{1,9})", multipath)
    for tries in re.findall(r"\bno_path_retry\s+\"?(\d+|queue)\b", multipath):
        wait_s = float("inf") if tries == "queue" else int(tries[:9]) * float(every[1] if every else 5)
        yield "path-wait", Amount("", "multipath.conf", f"no_path_retry {tries}", wait_s)
    # If no_path_retry is set, the older option queue_if_no_path has no effect.
    for block in re.findall(r"\{([^{}]*)\}", multipath):
        if re.search(r'\bfeatures\s+"[^"]*queue_if_no_path', block) and "no_path_retry" not in block:
            yield "path-wait", Amount("", "multipath.conf", "features queue_if_no_path", float("inf"))


def _of_multihost(setup: Setup) -> Iterator[tuple[str, Amount]]:
    given = {one.name: one.value for one in settings_of_nodes(setup) if one.table == "module zfs"}
    names = {"interval": 1000, "import_intervals": 20, "fail_intervals": 10}
    texts = {name: given.get(f"zfs_multihost_{name}", "") for name in names}
    every_ms, looks, fails = (int(text) if text.isdecimal() else names[name] for name, text in texts.items())
    watched_s = (every_ms or names["interval"]) / 1000 * max(looks, 2 * fails)
    yield "pool-watched", Amount("", "modprobe.d", "zfs_multihost", watched_s, any(texts.values()))


def amounts_of(setup: Setup) -> Amounts:
    """Return name of a time, such as "token" -> all values of this time in the configuration of a cluster."""
    collected: dict[str, list[Amount]] = {}
    for place, sources in groupby(_sources(), lambda source: source.place):
        places = list(_places(setup, place))
        for source in sources:
            collected.setdefault(source.name, []).extend(_of_source(source, places))
    groups = [_of_corosync, _of_replication, _of_units, _of_paths, _of_multihost]
    for group in (*groups, *([_of_devices, _of_services] if setup.cib else [])):
        for name, amount in group(setup):
            collected.setdefault(name, []).append(amount)
    return collected


_LIMIT = re.compile(
    r"(?P<error>error: )?(?P<left>[a-z_-]+) (?P<relation>[<>]=?) (?:(?P<plus>[\d.]+)|"
    r"(?:(?P<times>[\d.]+) x )?(?P<right>[a-z_-]+)(?: \+ (?P<more>[\d.]+))?)(?: before (?P<before>[\d.]+))?"
)
_IN_WORDS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}


@dataclass(frozen=True)
class Limit:
    """A required relation between two times, such as left >= times x right + plus."""

    left: str
    relation: str
    right: str = ""  # name of the other time, or "" if the limit is only the number ``plus``
    plus: float = 0.0
    times: float = 1.0
    before: tuple[int, ...] = ()  # only releases of Pacemaker before this one need the limit
    certain: bool = False


def read_limit(text: str) -> Limit:
    """Parse a limit, such as ``token >= 3``."""
    part = _LIMIT.fullmatch(text)
    assert part, text
    before = tuple(map(int, part["before"].split("."))) if part["before"] else ()
    plus = float(part["plus"] or part["more"] or 0)
    factor = float(part["times"] or 1)
    return Limit(part["left"], part["relation"], part["right"] or "", plus, factor, before, bool(part["error"]))


def broken(limits: tuple[Limit, ...], setup: Setup) -> Iterator[str]:
    """Find times that violate one of the limits."""
    for limit in limits:
        if not limit.before or _version(setup) < limit.before:
            yield from map(Certain if limit.certain else str, _violations(_amounts(setup), limit))


_last: list[tuple[Setup, Amounts]] = []


def _amounts(setup: Setup) -> Amounts:
    if not _last or _last[0][0] is not setup:
        _last[:] = [(setup, amounts_of(setup))]
    return _last[0][1]


def _version(setup: Setup) -> tuple[int, ...]:
    given = setup.cib.properties.get("dc-version", "") if setup.cib else ""
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})", given)
    return tuple(map(int, numbers.groups())) if numbers else (2, 1, 5)


def _violations(amounts: Amounts, limit: Limit) -> Iterator[str]:
    keeps, words = RELATIONS[limit.relation], _IN_WORDS[limit.relation]
    for left in amounts.get(limit.left, []):
        if not limit.right:
            if left.written and not keeps(left.value, limit.plus):
                yield f"{left.where}: {left.text} is {left.shown}, and has to be {words} {limit.plus:g}{left.unit}"
            continue
        for right in amounts.get(limit.right, []):
            same = not left.scope or not right.scope or left.scope == right.scope
            needed = limit.times * right.value + limit.plus
            if same and (left.written or right.written) and not keeps(left.value, needed):
                where = left.where if left.written else right.where
                needs = f"{words} {needed:g}{left.unit}, because {right.text} is {right.shown}"
                yield f"{where}: {left.text} is {left.shown}, and has to be {needs}"


@dataclass(frozen=True, order=True)
class Span:
    """Lower and upper bound of a time in seconds."""

    least_s: float = 0.0
    most_s: float = 0.0

    def __add__(self, other: Span) -> Span:
        return Span(self.least_s + other.least_s, self.most_s + other.most_s)

    @property
    def text(self) -> str:
        """Return the bounds in words, such as "2 s to 3 min". Empty if the upper bound is 0."""
        ends = (f"{end_s:.0f} s" if end_s < 120 else f"{end_s / 60:.0f} min" for end_s in (self.least_s, self.most_s))
        return " to ".join(ends) if self.most_s else ""


NO_WAIT = Span()


@dataclass(frozen=True)
class Times:
    """Durations of the phases of a fail-over. ``looks_s``: seconds until monitoring notices a failure, by resource."""

    silence: Span
    delays_s: dict[str, float]
    power_off: Span
    starts: dict[str, Span]
    stops: dict[str, Span]
    looks_s: dict[str, float]
    watch: Span

    @classmethod
    def of(cls, setup: Setup, services: Mapping[str, Service]) -> Times:
        """Return the times in the configuration files. ``services``: mapping of target to service."""
        cib = setup.pacemaker
        first = {name: amounts[0].value for name, amounts in amounts_of(setup).items() if amounts}
        levels = max((len(cib.levels_of(node)) for node in setup.node_names), default=0) or 1
        watchers = (one for one in cib.primitives if one.agent in NETWORK_WATCHERS)
        return cls(
            silence=Span(first["token"], first["token"] + first["consensus"] + 2.0),
            delays_s={
                node: max((cib.delay_s(device, node) for device in devices_for(cib, node)), default=0.0)
                for node in setup.node_names
            },
            power_off=Span(_POWER_OFF_S, first["fencing-limit"] * levels),
            starts={name: _operations(own, "start", "promote") for name, own in services.items()},
            stops={name: _operations(own, "stop", "demote") for name, own in services.items()},
            looks_s={service.id: _interval_s(service) + service.timeout_s("monitor") for service in cib.primitives},
            watch=Span(0.0, max((_interval_s(one) + one.timeout_s("monitor") + 10.0 for one in watchers), default=0.0)),
        )

    def fencing(self, node: str) -> Span:
        """Return the bounds of the time to fence a node, without random delays."""
        delay_s = self.delays_s.get(node, 0.0)
        return Span(delay_s, delay_s) + self.power_off

    def start(self, targets: Iterable[str], *, stop: bool = False) -> Span:
        """Return the bounds of the time to start the slowest target. ``stop``: include the time of the slowest stop."""
        names = list(targets)
        slowest = max((self.starts.get(name, NO_WAIT) for name in names), default=NO_WAIT)
        return slowest + max((self.stops.get(name, NO_WAIT) for name in names if stop), default=NO_WAIT)


def _operations(own: Service, name: str, of_copy: str) -> Span:
    limits = [one.timeout_s(name) for one in own.members] + [one.timeout_s(of_copy) for one in own.copies]
    return Span(_AGENT_S * len(limits), sum(limits))


def _interval_s(service: Primitive) -> float:
    return max((one.interval_s for one in service.operations if one.name == "monitor"), default=0.0)
