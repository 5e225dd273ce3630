"""Rules about names that programs do not know, and values that they do not accept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from strakes.failover.known_options import (
    Option,
    fencing_agents,
    installed_options,
    is_known,
    meant,
    newer_names,
    options_of,
    resource_agents,
    slip,
)
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules_nodes import settings_of_nodes
from strakes.failover.setup import Setup

_CONSTRAINTS = ("rsc_location", "rsc_colocation", "rsc_order")
_DRBD_SECTIONS = ("net", "disk", "options", "handlers", "startup")


@dataclass(frozen=True)
class _Settings:
    """The settings of one place, and its known options.

    ``asks``: resource whose installed agent may have further parameters. ``complete``: all valid names are known.
    """

    where: str
    pairs: tuple[tuple[str, str], ...]
    known: Mapping[str, Option]
    asks: Primitive | None = None
    complete: bool = True


def _parameters(one: Primitive) -> Mapping[str, Option]:
    """Return the known parameters of the agent of a resource; empty for an unknown agent."""
    if one.standard == "stonith":
        return options_of("fencing", "fence", one.agent) if is_known(one.agent) else {}
    name = f"{one.provider}:{one.agent}"
    return options_of(name, "ocf") if options_of(name) else {}


def _of_pacemaker(setup: Setup) -> Iterator[_Settings]:
    cib = setup.pacemaker
    yield _Settings("cib: the cluster", tuple(cib.properties.items()), options_of("properties"))
    yield _Settings("cib: op_defaults", tuple(cib.operation_defaults.items()), options_of("operation"))
    for one in cib.primitives:
        yield _Settings(f"cib: {one.id} ({one.agent})", tuple(one.values.items()), _parameters(one), one)
    for block in cib.root.iter("meta_attributes"):
        pairs = tuple((pair.get("name", ""), pair.get("value", "")) for pair in block.iterfind("./nvpair"))
        known = {**options_of("meta"), **options_of("operation"), "timestamp-format": Option("timestamp-format")}
        yield _Settings(f"cib: {block.get('id')}", pairs, known, complete=False)
    for operation in cib.root.iter("op"):
        yield _Settings(
            f"cib: {operation.get('id')}", tuple(operation.attrib.items()), options_of("operation"), complete=False
        )
    for tag in _CONSTRAINTS:
        for constraint in cib.constraints(tag):
            yield _Settings(f"cib: {constraint.get('id')}", tuple(constraint.items()), options_of(tag), complete=False)


def _of_corosync(setup: Setup) -> Iterator[_Settings]:
    top = tuple((block.name, "") for block in setup.membership.blocks)
    yield _Settings("corosync.conf:", top, options_of("corosync"))
    for path, block in setup.membership.sections("corosync"):
        inner = {one.name: Option(one.name) for one in block.blocks if is_known(f"{path} {one.name}")}
        heuristics = {name: Option(name) for name, _ in block.settings if name.startswith("exec_")}
        if options_of(path):
            names = (*block.settings, *((one.name, "") for one in block.blocks))
            known = {**options_of(path), **inner, **heuristics}
            yield _Settings(f"corosync.conf: {path.removeprefix('corosync ')}", names, known)


def _of_drbd(setup: Setup) -> Iterator[_Settings]:
    seen = set[int]()
    for resource in setup.drbd:
        version = "9" if resource.dialect9 else "8.4"
        for place, holder in ((resource.name, resource.block), ("common", resource.common)):
            for _, block in holder.sections():
                if block.name in _DRBD_SECTIONS and id(block) not in seen:
                    seen.add(id(block))
                    tables = (f"drbd {block.name}", f"drbd old {block.name}", f"{version} {block.name}")
                    yield _Settings(f"drbd: {block.name} of {place}", tuple(block.settings), options_of(*tables))


def _of_nodes(setup: Setup) -> Iterator[_Settings]:
    for given in settings_of_nodes(setup):
        table = given.table.removesuffix(" of the cluster")
        if known := options_of(table):
            yield _Settings(
                f"{given.file}: {table}", ((given.name, given.value),), known, complete=table == "module lnet"
            )


def _all_settings(setup: Setup) -> Iterator[_Settings]:
    yield from _of_pacemaker(setup) if setup.cib else ()
    yield from _of_corosync(setup) if setup.corosync else ()
    yield from _of_drbd(setup)
    yield from _of_nodes(setup)


def agent_unknown(setup: Setup) -> Iterator[str]:
    """Find agents with a slightly misspelt name of an existing agent."""
    for one in setup.pacemaker.primitives:
        if one.standard not in ("stonith", "ocf") or not one.agent:
            continue
        known: Iterable[str] = fencing_agents() if one.standard == "stonith" else resource_agents()
        name = one.agent if one.standard == "stonith" else f"{one.provider}:{one.agent}"
        # The site may have written an agent, or it may be in an unknown package.
        other = "" if name in (*known, *newer_names()) else slip(name, known)
        if other and not installed_options(one):
            yield f"cib: {one.id} is {name}, which may mean {other}"


def _unknown(settings: _Settings) -> Iterator[tuple[str, str]]:
    """Yield each unknown name with the known one that it resembles, or with an empty text."""
    for name in dict.fromkeys(name for name, _ in settings.pairs):
        if settings.known and name not in settings.known:
            asked = installed_options(settings.asks) if settings.asks else ()
            if name not in asked:
                yield (
                    name,
                    meant(name, settings.known) if settings.complete or settings.asks else slip(name, settings.known),
                )


def option_misspelt(setup: Setup) -> Iterator[str]:
    """Find names that resemble a known one."""
    for settings in _all_settings(setup):
        for name, other in _unknown(settings):
            if other:
                yield f"{settings.where} has {name}, which may mean {other}"
    modules = re.findall(r"(?m)^\s*options\s+(\S+)", setup.modules)
    for module in modules:
        names = ("lnet", "lustre", "zfs", "drbd", "ko2iblnd", "ksocklnd", "softdog", "bonding", "spl", "nfsd", "lockd")
        if module not in names and (other := slip(module, names)):
            yield f"modprobe.d: options of {module}, which may mean {other}"


def option_unknown(setup: Setup) -> Iterator[str]:
    """Find names that no program knows and that resemble none."""
    for settings in _all_settings(setup):
        for name, other in _unknown(settings):
            if not other and settings.complete:
                yield f"{settings.where} has {name}"


def value_not_accepted(setup: Setup) -> Iterator[str]:
    """Find values that the option does not accept."""
    for settings in _all_settings(setup):
        for name, value in settings.pairs:
            complaint = (
                settings.known[name].complaint(value)
                if value not in ("", "#default") and name in settings.known
                else ""
            )
            if complaint:
                yield f"{settings.where} has {name}={value}, which has to be {complaint}"


def parameter_missing(setup: Setup) -> Iterator[str]:
    """Find services and fencing devices that lack a required parameter, or have an empty one."""
    for one in setup.pacemaker.primitives:
        for name, option in _parameters(one).items():
            if option.required and not one.values.get(name, "").strip():
                yield f"cib: {one.id} ({one.agent}) has no {name}"
        for name, value in one.values.items() if one.standard == "stonith" else ():
            if not value.strip():
                yield f"cib: {one.id} has an empty {name}"


_OLDER = {"login": "username", "ipaddr": "ip", "passwd": "password", "passwd_script": "password_script", "port": "plug"}


def setting_given_twice(setup: Setup) -> Iterator[str]:
    """Find names that one place has twice with different values, also if one is an older name."""
    for tag in ("instance_attributes", "meta_attributes", "cluster_property_set", "utilization"):
        for block in setup.cib.root.iter(tag) if setup.cib else ():
            pairs = [(pair.get("name", ""), pair.get("value", "")) for pair in block.iterfind("./nvpair")]
            yield from _twice(f"cib: {block.get('id')}", pairs)
    for one in setup.devices:
        for older, newer in _OLDER.items():
            if one.values.get(older, one.values.get(newer)) != one.values.get(newer, one.values.get(older)):
                yield f"cib: {one.id} has {older} and {newer}, with two values"
    for path, section in setup.corosync.sections("") if setup.corosync else ():
        yield from _twice(f"corosync.conf: {path}", section.settings)


def _twice(where: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    given: dict[str, str] = {}
    for name, value in pairs:
        if name and given.setdefault(name, value) != value:
            yield f"{where} has {name}={given[name]} and {name}={value}"


def deprecated(setup: Setup) -> Iterator[str]:
    """Find agents, properties, parameters and elements that newer releases no longer have."""
    cib, old = setup.pacemaker, newer_names()
    named = [("the cluster", name) for name in cib.properties]
    named += [(element.get("id", ""), element.tag) for element in cib.root.iter("master")]
    for one in cib.primitives:
        named += [(one.id, kind) for kind in (one.standard, f"{one.provider}:{one.agent}", *one.values)]
    for place, name in named:
        if name in old:
            yield f"cib: {place} has {name}, which is now {old[name]}"
