"""Rules about unknown options and invalid values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from strakes.base.foreign_text import is_secret
from strakes.failover import known_options
from strakes.failover.facts import Certain, Doubtful, graded, shared
from strakes.failover.known_options import DRBD_SECTIONS, Option, installed_options, meant, options_of, slip
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.rules_nodes import settings_of_nodes
from strakes.failover.setup import Setup

_MODULES = ("lnet", "lustre", "zfs", "drbd", "ko2iblnd", "ksocklnd", "softdog", "bonding", "spl", "nfsd", "lockd")
# Parameters without which all versions of an agent fail.
_INDISPENSABLE = ("ip", "device", "directory", "drbd_resource", "target", "mountpoint", "pool", "iqn")
_Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class _Settings:
    where: str
    pairs: _Pairs
    known: Mapping[str, Option]
    asks: Primitive | None = None
    complete: bool = True

    @property
    def sure(self) -> bool:
        """Return whether an invalid value is surely rejected, as by Pacemaker and Corosync. An agent may accept it."""
        return not self.asks and self.where.startswith(("cib", "corosync"))


def _parameters(one: Primitive) -> Mapping[str, Option]:
    if one.standard == "stonith":
        return options_of("fencing", "fence", one.agent) if options_of(one.agent) else {}
    name = f"{one.provider}:{one.agent}"
    return options_of(name, "ocf") if options_of(name) else {}


def _of_pacemaker(setup: Setup) -> Iterator[_Settings]:
    cib = setup.pacemaker
    known = options_of("properties")  # Skip properties with underscores: agents store values in them.
    own = [(name, value) for name, value in cib.properties.items() if "_" not in name or meant(name, known)]
    yield _Settings("cib: the cluster", own, known)
    yield _Settings("cib: op_defaults", cib.operation_defaults.items(), options_of("operation"))
    for one in cib.primitives:
        yield _Settings(f"cib: {one.id} ({one.agent})", one.values.items(), _parameters(one), one)
    known = {**options_of("meta", "operation"), "timestamp-format": Option("timestamp-format")}
    for identity, pairs in _blocks(setup, "meta_attributes", "op/instance_attributes"):
        yield _Settings(f"cib: {identity}", pairs, known, complete=False)
    for tag in ("op", "rsc_location", "rsc_colocation", "rsc_order"):
        for element in cib.root.iter(tag):
            known = options_of("operation" if tag == "op" else tag)
            yield _Settings(f"cib: {element.get('id')}", element.attrib.items(), known, complete=False)


def _blocks(setup: Setup, *tags: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for block in (block for tag in tags if setup.cib for block in setup.cib.root.iterfind(f".//{tag}")):
        pairs = [(pair.get("name", ""), pair.get("value", "")) for pair in block.iterfind("./nvpair")]
        yield block.get("id", ""), pairs


def _of_corosync(setup: Setup) -> Iterator[_Settings]:
    yield _Settings("corosync.conf:", [(block.name, "") for block in setup.corosync.blocks], options_of("corosync"))
    for path, block in setup.corosync.sections("corosync"):
        inner = {one.name: Option(one.name) for one in block.blocks if options_of(f"{path} {one.name}")}
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
                if block.name in DRBD_SECTIONS and id(block) not in seen:
                    seen.add(id(block))
                    known = options_of(f"drbd {block.name}", f"drbd old {block.name}", f"{version} {block.name}")
                    yield _Settings(f"drbd: {block.name} of {place}", block.settings, known)


def _all_settings(setup: Setup) -> Iterator[_Settings]:
    yield from _of_pacemaker(setup) if setup.cib else ()
    yield from _of_corosync(setup) if setup.corosync else ()
    yield from _of_drbd(setup)
    for given in settings_of_nodes(setup):
        table = given.table.removesuffix(" of the cluster")
        if known := options_of(table):
            pairs, complete = [(given.name, given.value)], table == "module lnet"
            yield _Settings(f"{given.file}: {table}", pairs, known, complete=complete)


def agent_unknown(setup: Setup) -> Iterator[str]:
    """Find unknown agents whose names are similar to a known name."""
    for one in setup.pacemaker.primitives:
        fencing = one.standard == "stonith"
        known = known_options.fencing_agents() if fencing else known_options.resource_agents()
        name = one.agent if fencing else f"{one.provider}:{one.agent}"
        if "/" in re.sub("^(external|rhcs)/", "", name):
            yield f"cib: {one.id} is {name}, which is a path"
        if (fencing or one.standard == "ocf") and one.agent and name not in (*known, *known_options.newer_names()):
            other = slip(name, known)
            if other and not installed_options(one):
                yield f"cib: {one.id} is {name}, which may mean {other}"


def _unknown(setup: Setup) -> Iterator[tuple[_Settings, str, str]]:
    for settings in _all_settings(setup):
        resembling = meant if settings.complete and not settings.asks else slip
        names = dict.fromkeys(name for name, _ in settings.pairs if settings.known and name not in settings.known)
        asked = installed_options(settings.asks) if names and settings.asks else ()
        yield from ((settings, name, resembling(name, settings.known)) for name in names if name not in asked)


def option_misspelt(setup: Setup) -> Iterator[str]:
    """Find unknown options with a name similar to a known one."""
    for settings, name, other in _unknown(setup):
        if other:
            yield f"{settings.where} has {name}, which may mean {other}"
    for module in re.findall(r"(?m)^[ \t]*options\s+(\S+)", setup.modules):
        if module not in _MODULES and (other := slip(module, _MODULES)):
            yield f"modprobe.d: options of {module}, which may mean {other}"


def option_unknown(setup: Setup) -> Iterator[str]:
    """Find unknown options without a similar known name."""
    yield from (f"{one.where} has {name}" for one, name, other in _unknown(setup) if not other and one.complete)


def value_not_accepted(setup: Setup) -> Iterator[str]:
    """Find invalid values, such as a word in place of a time."""
    for settings in _all_settings(setup):
        for name, value in settings.pairs:
            wanted = settings.known[name].complaint(value) if name in settings.known else ""
            if wanted and value not in ("", "#default"):
                yield graded(settings.sure, f"{settings.where} has {name}={value}, which has to be {wanted}")
    for path, block in setup.corosync.sections():
        for name in [name for name, value in block.settings if not value or " #" in value]:
            exact = name.endswith("addr") or options_of(f"corosync {path}").get(name, Option(name)).kind
            yield graded(exact, f"corosync.conf: {path} has {name} without a value, or with a comment after it")


def parameter_missing(setup: Setup) -> Iterator[str]:
    """Find resources without a required parameter, and fencing devices with an empty parameter."""
    for one in setup.pacemaker.primitives:
        for name, option in _parameters(one).items():
            if option.required and not one.values.get(name, "").strip():
                grade = Certain if name in _INDISPENSABLE and one.standard == "ocf" else Doubtful
                yield grade(f"cib: {one.id} ({one.agent}) has no {name}")
        for name, value in one.values.items() if one.standard == "stonith" else ():
            if not value.strip():
                yield f"cib: {one.id} has an empty {name}"


# Old name of a fencing parameter -> current name.
_OLDER = {"login": "username", "ipaddr": "ip", "passwd": "password", "passwd_script": "password_script", "port": "plug"}


def setting_given_twice(setup: Setup) -> Iterator[str]:
    """Find settings with two different values, perhaps one by an old name and one by its current name."""
    places = [*_blocks(setup, "instance_attributes", "meta_attributes", "cluster_property_set", "utilization")]
    old = ((one.id, one.values.items()) for one in setup.devices)
    places += [(identity, [(_OLDER.get(name, name), value) for name, value in items]) for identity, items in old]
    rows = [(f"cib: {identity}", pairs) for identity, pairs in places]
    rows += [(f"corosync.conf: {path}", section.settings) for path, section in setup.corosync.sections()]
    for where, pairs in rows:
        for name, *values in shared(pairs):
            if name:
                first, other = ("..." if is_secret(name, value) else value for value in values)
                yield f"{where} has {name}={first} and {other}"
