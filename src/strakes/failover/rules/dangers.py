"""Rules about single options whose value does harm in a pair, made of the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules.danger import Danger
from strakes.failover.rules.danger_rows_pacemaker import PACEMAKER_ROWS
from strakes.failover.rules.danger_rows_served import SERVED_ROWS
from strakes.failover.rules.rule import AGENTS, COROSYNC_CONF, DRBD_CONF, PACEMAKER, PING, Rule, enter
from strakes.failover.setup import Setup

TABLE = (*PACEMAKER_ROWS, *SERVED_ROWS)
Pairs = Iterator[tuple[str, str, str]]


def _properties(setup: Setup) -> Pairs:
    yield from (("cib: the cluster", *pair) for pair in setup.pacemaker.properties.items())


def _devices(setup: Setup) -> Pairs:
    yield from _of_primitives(setup.pacemaker.devices)


def _meta(setup: Setup) -> Pairs:
    for primitive in setup.pacemaker.services:
        yield from ((f"cib: {primitive.id}", *pair) for pair in primitive.meta.items())


def _interfaces(setup: Setup) -> Pairs:
    for interface in setup.membership.one("totem").all("interface"):
        yield from (("corosync.conf: an interface", *pair) for pair in interface.settings)


def _operations(setup: Setup, name: str) -> Pairs:
    for operation in setup.pacemaker.root.iter("op"):
        if operation.get("name") == name:
            yield from ((f"cib: {operation.get('id')}", *pair) for pair in operation.attrib.items())


def _section(setup: Setup, name: str) -> Pairs:
    yield from ((f"corosync.conf: {name}", *pair) for pair in setup.membership.one(name).settings)


def _of_drbd(setup: Setup, section: str) -> Pairs:
    options = dict.fromkeys(danger.option for danger in TABLE if danger.place == section)
    for resource in setup.drbd:
        for option in options:
            for value in resource.all_values(section, option):
                yield f"drbd: {resource.name}", option, value


def _of_agent(setup: Setup, agent: str) -> Pairs:
    yield from _of_primitives(primitive for primitive in setup.pacemaker.services if primitive.agent == agent)


def _of_primitives(primitives: Iterable[Primitive]) -> Pairs:
    for primitive in primitives:
        yield from ((f"cib: {primitive.id}", *pair) for pair in primitive.values.items())


_AGENT_PAGES = {
    "drbd": "https://github.com/LINBIT/drbd-utils/blob/master/scripts/drbd.ocf",
    "ping": PING,
}
_PLACES: dict[str, tuple[str, str, Callable[[Setup], Pairs]]] = {
    "cluster": ("pacemaker", f"{PACEMAKER}/cluster-options.rst", _properties),
    "fencing": ("pacemaker", "https://github.com/ClusterLabs/fence-agents/blob/main/lib/fencing.py.py", _devices),
    "meta": ("pacemaker", f"{PACEMAKER}/resources.rst", _meta),
    "totem interface": ("corosync", COROSYNC_CONF, _interfaces),
    **{name: ("drbd", DRBD_CONF, partial(_of_drbd, section=name)) for name in ("net", "disk", "options")},
    **{
        name: ("corosync", COROSYNC_CONF, partial(_section, name=name))
        for name in ("totem", "quorum", "logging", "system")
    },
}


def _place(danger: Danger) -> tuple[str, str, Callable[[Setup], Pairs]]:
    """Return the part that it needs, the page, and everything that stands in its place as (where, option, value)."""
    if danger.place in _PLACES:
        return _PLACES[danger.place]
    kind, _, name = danger.place.rpartition(" ")
    if kind == "op":
        return "pacemaker", f"{PACEMAKER}/operations.rst", partial(_operations, name=name)
    return "pacemaker", _AGENT_PAGES.get(name, f"{AGENTS}/{name}"), partial(_of_agent, agent=name)


def rule_name(danger: Danger) -> str:
    """Name the rule that is made of a row."""
    return "-".join((*danger.place.lower().split(), danger.option.lower().replace("_", "-"), danger.suffix))


def _find(danger: Danger, pairs: Callable[[Setup], Pairs], setup: Setup) -> Iterator[str]:
    for where, option, value in pairs(setup):
        if option == danger.option and danger.bad(value):
            yield f"{where} has {option}={value}"


def _rule(danger: Danger) -> Rule:
    """Make a rule of one row."""
    part, source, pairs = _place(danger)
    find = partial(_find, danger, pairs)
    return Rule(rule_name(danger), danger.severity, frozenset({part}), danger.reason, danger.remedy, source, find)


for _row in TABLE:
    enter(_rule(_row))
