"""Rules about names that programs do not know, and values that they do not take; from the tables of their options."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping

from strakes.failover.blocks import Block
from strakes.failover.known_options import (
    Option,
    fencing_agents,
    is_known,
    meant,
    newer_names,
    options_of,
    resource_agents,
)
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules.rule import COROSYNC_CONF, DRBD_CONF, OWN, PACEMAKER, rule
from strakes.failover.setup import Setup

_AGENTS = "https://manpages.debian.org/bookworm/fence-agents/index.html"
_CONSTRAINTS = ("rsc_location", "rsc_colocation", "rsc_order")
_DRBD_SECTIONS = ("net", "disk", "options", "handlers", "startup")
# Where a section of DRBD may stand, from outside inwards.
_DRBD_HOLDERS = ("resource", "common", "connection", "connection-mesh", "on", "floating", "volume")
_Pairs = Iterable[tuple[str, str]]


def _unknown(pairs: _Pairs, known: Mapping[str, Option], where: str, *, similar: bool) -> Iterator[str]:
    """Find names that are not in the table: those that resemble one that is, or the others."""
    for name, _ in pairs:
        if name in known:
            continue
        other = meant(name, known)
        if other and similar:
            yield f"{where} has {name}, which may mean {other}"
        elif not other and not similar:
            yield f"{where} has {name}"


def _not_taken(pairs: _Pairs, known: Mapping[str, Option], where: str) -> Iterator[str]:
    for name, value in pairs:
        complaint = known[name].complaint(value) if name in known else ""
        if complaint:
            yield f"{where} has {name}={value}, which ought to be {complaint}"


def _parameters(primitive: Primitive) -> Mapping[str, Option]:
    """Return the parameters that the resource's agent knows, none where the agent is unknown."""
    if primitive.standard == "stonith":
        return options_of("fencing", "fence", primitive.agent) if is_known(primitive.agent) else {}
    name = f"{primitive.provider}:{primitive.agent}"
    return options_of(name, "ocf") if options_of(name) else {}


def _of_known_agents(setup: Setup) -> Iterator[tuple[_Pairs, Mapping[str, Option], str]]:
    """Yield the parameters of each resource whose agent is known, those that the agent has, and where that is."""
    for primitive in setup.pacemaker.primitives:
        if known := _parameters(primitive):
            yield primitive.values.items(), known, f"cib: {primitive.id} ({primitive.agent})"


@rule("pacemaker").error(
    reason="There is no agent of that name: the resource never starts, or the device powers off no node.",
    remedy="Write the name as crm_resource --list-agents ocf:PROVIDER, or stonith_admin --list-installed, prints it.",
    source=f"{PACEMAKER}/resources.rst",
)
def agent_unknown(setup: Setup) -> Iterator[str]:
    """Find agents that do not exist."""
    for primitive in setup.pacemaker.primitives:
        if primitive.standard == "stonith":
            known: tuple[str, ...] = fencing_agents()
            name = primitive.agent
        elif primitive.standard == "ocf":
            known, name = resource_agents(), f"{primitive.provider}:{primitive.agent}"
        else:
            continue
        if name in known or not primitive.agent:
            continue
        same = [other for other in known if other.rpartition(":")[2] == primitive.agent]
        # An agent of the site's own may have any name, also that of another provider's.
        other = same[0] if same and meant(name, same) else meant(name, known)
        same_provider = other.rpartition(":")[0] == primitive.provider if ":" in other else True
        # A name that is longer or shorter is rather that of an agent which another package brings.
        if other and (same or (same_provider and abs(len(other) - len(name)) <= 1)):
            yield f"cib: {primitive.id} is {name}, which may mean {other}"


@rule("pacemaker").error(
    reason="An agent ignores or refuses a parameter that it does not know: the intended setting has no effect.",
    remedy="Write the name as crm_resource --show-metadata AGENT, or stonith_admin -M -a AGENT, prints it.",
    source=_AGENTS,
)
def parameter_misspelt(setup: Setup) -> Iterator[str]:
    """Find parameters that are similar to one that the agent knows."""
    for given, known, where in _of_known_agents(setup):
        yield from _unknown(given, known, where, similar=True)


@rule("pacemaker").warning(
    reason="An agent ignores or refuses a parameter that it does not know: the intended setting has no effect.",
    remedy="Remove it, or look up the agent's parameters: crm_resource --show-metadata AGENT, stonith_admin -M -a "
    "AGENT.",
    source=_AGENTS,
)
def parameter_of_another_agent(setup: Setup) -> Iterator[str]:
    """Find parameters that the agent does not know, and that are similar to none it knows."""
    for given, known, where in _of_known_agents(setup):
        yield from _unknown(given, known, where, similar=False)


@rule("pacemaker").error(
    reason="The agent refuses to start without it.",
    remedy="Set it; crm_resource --show-metadata AGENT explains it.",
    source=f"{PACEMAKER}/resources.rst",
)
def parameter_missing(setup: Setup) -> Iterator[str]:
    """Find services and fencing devices that lack a required parameter."""
    for primitive in setup.pacemaker.primitives:
        for name, option in _parameters(primitive).items():
            if option.required and not primitive.values.get(name, "").strip():
                yield f"cib: {primitive.id} ({primitive.agent}) has no {name}"


@rule("pacemaker").error(
    reason="Pacemaker stores any name but only uses those that it knows: the intended setting has no effect.",
    remedy="Write the name as Pacemaker does (crm_attribute --list-options=all, or the page below).",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def setting_misspelt(setup: Setup) -> Iterator[str]:
    """Find misspelt properties of the cluster and meta attributes."""
    cib = setup.pacemaker
    yield from _unknown(cib.properties.items(), options_of("properties"), "cib: the cluster", similar=True)
    yield from _unknown(cib.operation_defaults.items(), options_of("operation"), "cib: op_defaults", similar=True)
    known = options_of("meta")
    seen = set[str]()
    blocks = [(f"cib: {primitive.id}", primitive.meta) for primitive in cib.primitives]
    for where, meta in (*blocks, *((f"cib: {clone}", meta) for clone, meta in cib.clones.items())):
        yield from _unknown(((name, "") for name in meta if name not in seen), known, where, similar=True)
        seen |= set(meta)


@rule("pacemaker").error(
    reason="Pacemaker uses its default instead of a value that it does not understand; an agent refuses to start.",
    remedy="Use a value that the option accepts.",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def option_value_invalid(setup: Setup) -> Iterator[str]:
    """Find values in the CIB that Pacemaker or an agent does not take."""
    cib = setup.pacemaker
    yield from _not_taken(cib.properties.items(), options_of("properties"), "cib: the cluster")
    for primitive in cib.primitives:
        where = f"cib: {primitive.id}"
        yield from _not_taken(primitive.values.items(), _parameters(primitive), where)
        yield from _not_taken(primitive.meta.items(), options_of("meta"), where)
    for clone, meta in cib.clones.items():
        yield from _not_taken(meta.items(), options_of("meta"), f"cib: {clone}")
    for operation in cib.root.iter("op"):
        yield from _not_taken(operation.attrib.items(), options_of("operation"), f"cib: {operation.get('id')}")
    for tag in _CONSTRAINTS:
        for constraint in cib.constraints(tag):
            yield from _not_taken(constraint.items(), options_of(tag), f"cib: {constraint.get('id')}")


@rule("corosync").error(
    reason="Corosync ignores a section or a name that it does not know: the intended setting has no effect.",
    remedy="Write it as in corosync.conf(5), votequorum(5) and corosync-qdevice(8).",
    source=COROSYNC_CONF,
)
def heartbeat_option_misspelt(setup: Setup) -> Iterator[str]:
    """Find misspelt sections and settings of corosync.conf."""
    sections = options_of("corosync")
    top = [(block.name, "") for block in setup.membership.blocks]
    yield from _unknown(top, sections, "corosync.conf: the file", similar=True)
    for path, block in setup.membership.sections("corosync"):
        known = options_of(path)
        inner = [
            name.rpartition(" ")[2] for name in ("interface", "node", "device", "net") if is_known(f"{path} {name}")
        ]
        if known or inner:
            names = dict(known) | {name: Option(name) for name in inner}
            place = f"corosync.conf: {path.partition(' ')[2]}"
            yield from _unknown(block.settings, names, place, similar=True)
            yield from _unknown([(part.name, "") for part in block.blocks], names, place, similar=True)


@rule("corosync").error(
    reason="Corosync does not start with a value that it does not accept, or uses its default instead.",
    remedy="Use a value that the option accepts, without a unit and without a comment after it.",
    source=COROSYNC_CONF,
)
def heartbeat_value_invalid(setup: Setup) -> Iterator[str]:
    """Find values that Corosync does not take."""
    for path, block in setup.membership.sections("corosync"):
        yield from _not_taken(block.settings, options_of(path), f"corosync.conf: {path.partition(' ')[2]}")


def _drbd_options(setup: Setup) -> Iterator[tuple[str, Block, Mapping[str, Option]]]:
    """Yield each section of options, its place, and the table of the version that it is written for."""
    seen = set[int]()
    for resource in setup.drbd:
        version = "9" if resource.dialect9 else "8.4"
        waiting = [(resource.name, resource.block), ("common", resource.common)]
        while waiting:
            place, holder = waiting.pop()
            for block in holder.blocks:
                if block.name in _DRBD_HOLDERS:
                    waiting.append((place, block))
                elif block.name in _DRBD_SECTIONS and id(block) not in seen:
                    seen.add(id(block))
                    tables = (f"{version} {block.name}", f"drbd old {block.name}", f"drbd {block.name}")
                    yield f"drbd: {block.name} of {place}", block, options_of(*reversed(tables))


@rule("drbd").error(
    reason="drbdadm refuses a file with an option that it does not know, or that is in the wrong section.",
    remedy="Write it where drbd.conf(5) of the installed version has it.",
    source=DRBD_CONF,
)
def replication_option_unknown(setup: Setup) -> Iterator[str]:
    """Find options that DRBD does not know."""
    for place, block, known in _drbd_options(setup):
        yield from _unknown(block.settings, known, place, similar=True)
        for name, _ in block.settings:
            if name not in known and not meant(name, known):
                yield f"{place} has {name}"


@rule("drbd").error(
    reason="drbdadm refuses a value that the option does not have, or that is out of range.",
    remedy="Use a value that drbd.conf(5) lists.",
    source=DRBD_CONF,
)
def replication_value_invalid(setup: Setup) -> Iterator[str]:
    """Find values that DRBD does not take."""
    for place, block, known in _drbd_options(setup):
        # A flag without a value is yes.
        given = [(name, value) for name, value in block.settings if value]
        yield from _not_taken(given, known, place)


@rule("pacemaker").error(
    reason="exportfs refuses an option that it does not know: nothing is exported after the take-over.",
    remedy="Use options=rw,sync and other options that exports(5) lists.",
    source="https://manpages.debian.org/bookworm/nfs-kernel-server/exports.5.en.html",
)
def export_option_unknown(setup: Setup) -> Iterator[str]:
    """Find options of exports that are unknown, and values that they do not take."""
    known = options_of("exports")
    for primitive in setup.pacemaker.services:
        text = primitive.values.get("options", "") if primitive.agent == "exportfs" else ""
        pairs = [(word.partition("=")[0].strip(), word.partition("=")[2]) for word in text.split(",") if word.strip()]
        for name, _ in pairs:
            if name not in known:
                other = meant(name, known)
                yield f"cib: {primitive.id} has {name}" + (f", which may mean {other}" if other else "")
        yield from _not_taken([pair for pair in pairs if pair[1]], known, f"cib: {primitive.id}")


_ADDRESS_PARAMETERS = ("ip", "ipaddr", "host_list", "source_host", "nfs_ip", "clientspec", "broadcast")


@rule("pacemaker").error(
    reason="A malformed address is looked up as a host name, which nobody has.",
    remedy="Write four numbers up to 255, separated by dots, and a mask of at most 32.",
    source=f"{PACEMAKER}/resources.rst",
)
def address_malformed(setup: Setup) -> Iterator[str]:
    """Find malformed addresses."""
    for primitive in setup.pacemaker.primitives:
        for name in _ADDRESS_PARAMETERS:
            for word in re.split(r"[,\s]+", primitive.values.get(name, "")):
                text = word.partition("@")[0]
                if re.fullmatch(r"[\d.]+(/[\d.]+)?", text) and not _is_network(text, with_mask=name == "clientspec"):
                    yield f"cib: {primitive.id} has {name}={word}"


def _is_network(text: str, *, with_mask: bool) -> bool:
    """Tell whether the text is an address, or one with a mask where that may be."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return with_mask or "/" not in text


@rule("pacemaker").error(
    reason="Only one of the two values is used, and nothing says which.",
    remedy="Keep one of them.",
    source=OWN,
)
def setting_given_twice(setup: Setup) -> Iterator[str]:
    """Find names that one block of the CIB has twice, with two values."""
    for tag in ("instance_attributes", "meta_attributes", "cluster_property_set", "utilization"):
        for block in setup.pacemaker.root.iter(tag):
            given: dict[str, str] = {}
            for pair in block.iterfind("./nvpair"):
                name, value = pair.get("name", ""), pair.get("value", "")
                if name and given.setdefault(name, value) != value:
                    yield f"cib: {block.get('id')} has {name}={given[name]} and {name}={value}"


@rule("pacemaker").note(
    reason="Newer releases warn about it, or no longer have it: it stops working with an upgrade.",
    remedy="Use its replacement.",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def deprecated(setup: Setup) -> Iterator[str]:
    """Find agents, properties, parameters and elements that newer releases no longer have."""
    cib, old = setup.pacemaker, newer_names()
    named = [("the cluster", name) for name in cib.properties]
    named += [(element.get("id", ""), element.tag) for element in cib.root.iter("master")]
    for primitive in cib.primitives:
        kinds = (primitive.standard, f"{primitive.provider}:{primitive.agent}", *primitive.values)
        named += [(primitive.id, kind) for kind in kinds]
    for place, name in named:
        if name in old:
            yield f"cib: {place} has {name}, which is now {old[name]}"
