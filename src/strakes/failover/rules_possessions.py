"""Disks, pools and units that belong to a cluster, resources that services need, and commands that nodes run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, dropwhile

from strakes.base.foreign_text import shell_words
from strakes.failover.cib import Cib
from strakes.failover.facts import read_table
from strakes.failover.known_options import options_of
from strakes.failover.pacemaker_resources import Primitive
from strakes.failover.setup import Setup

_CHANGES = re.compile(r"\b(((un)?standby|stop|disable|ban|move|migrate|clear|cleanup|fence|-[rBsCU])\b|maintenance)")


def volume_named(device: str) -> tuple[str, str]:
    """Return (volume group, logical volume) for the path of a logical volume, ("", "") for another path."""
    # For example, /dev/mapper/a-b--1 is the volume b-1 of group a.
    mapped = re.fullmatch(r"/dev/mapper/((?:[^-/]|--)++)-((?:[^-/]|--)++)", device)
    plain = re.fullmatch(r"/dev/(?!disk/|mapper/|drbd|md/|zvol/)([^/]+)/([^/]+)", device)
    found = mapped or plain
    return (found[1].replace("--", "-"), found[2].replace("--", "-")) if found else ("", "")


def one_name(device: str) -> str:
    """Return /dev/GROUP/VOLUME for any path of a logical volume, else the path itself."""
    group, volume = volume_named(device)
    return f"/dev/{group}/{volume}" if group else device


def units_of(one: Primitive) -> tuple[str, ...]:
    """Return the systemd units that would start the program of a resource."""
    if one.standard in ("systemd", "service"):
        return (f"{one.agent.removesuffix('.service')}.service",)
    units = options_of(f"units of {one.agent}") or (f"{one.agent}.service",)
    return tuple(unit.replace("NAME", one.values.get("drbd_resource", "")) for unit in units)


@dataclass(frozen=True)
class Possessions:
    """Disks, mount points (``places``), addresses, pools, volume groups and systemd units of the cluster."""

    disks: frozenset[str]
    places: frozenset[str]
    addresses: frozenset[str]
    pools: frozenset[str]
    groups: frozenset[str]
    units: frozenset[str]
    replicates: bool
    exports: bool

    def takes(self, source: str, place: str) -> bool:
        """Return whether a mount uses a disk, pool or directory of the cluster."""
        if source and (one_name(source) in self.disks or source.split("/", maxsplit=1)[0] in self.pools):
            return True
        below = [f"{path.rstrip('/')}/" for path in (place, source) if path.startswith("/") and path != "/"]
        own = tuple(f"{one}/" for one in self.places)
        return source.startswith("/dev/drbd") or any(path.startswith(own) for path in below)

    def is_touched_by(self, words: Sequence[str]) -> bool:
        """Return whether a command uses or changes something that belongs to the cluster."""
        text, given = " ".join(words), words[1:]
        named = {part for word in given for part in (word, word.partition("=")[2], word.partition("/")[0]) if part}
        groups = {re.sub(r"^/dev/", "", word).partition("/")[0] for word in given}
        all_of_them = not [word for word in given[1:] if not word.startswith("-")] or "-a" in given
        touched = {
            "drbd": self.replicates,
            "pool": bool(self.pools & named) or (bool(self.pools) and all_of_them),
            "group": bool(self.groups & groups) or (bool(self.groups) and all_of_them),
            "disk": any(self.takes(word, word) for word in named if word.startswith("/")),
            "export": self.exports,
            "unit": bool(self.units & {word if "." in word else f"{word}.service" for word in given}),
            "address": bool(self.addresses & named),
            "cluster": bool(_CHANGES.search(text)),
        }
        tables = read_table("options/commands").items()
        kinds = [kind for kind, patterns in tables if any(re.fullmatch(one, text) for one in patterns)]
        return any(touched.get(kind, True) for kind in kinds)


def possessions_of(setup: Setup) -> Possessions:
    """Return everything that belongs to the cluster, such as disks, pools and systemd units."""
    services = setup.services
    disks = {one.device for one in services if one.uses_disk}
    disks |= {part for one in setup.drbd for host in one.hosts for row in host.volumes.values() for part in row[:2]}
    pools = {one.values.get("pool", "") for one in services if one.agent in ("ZFS", "zpool")}
    for target in setup.cluster.targets if setup.cluster else ():
        disks |= {target.device, *target.disks("")}
        pools.add(target.pool)
    lvm = [one.values for one in services if one.agent in ("LVM", "LVM-activate")]
    mounts = {one.mount_point for one in services if one.is_mount}
    return Possessions(
        frozenset(one_name(disk) for disk in disks if disk.startswith("/")),
        frozenset(place for place in mounts if place),
        frozenset(one.values.get("ip", "") for one in services) - {""},
        frozenset(pools) - {""},
        frozenset(values.get("vgname") or values.get("volgrpname", "") for values in lvm) - {""},
        frozenset(unit for one in services for unit in units_of(one)),
        bool(setup.drbd),
        any(one.agent in ("exportfs", "nfsserver") for one in services),
    )


_UNIT = re.compile(r"etc/systemd/system/([\w@.\\-]+\.service)(\.d/.*\.conf)?")
_LINK = re.compile(r"\.(wants|requires)/")
# Words that may precede the name of a program, such as nice -n 19 and timeout 60s.
_BEFORE = re.compile(
    r"(\S*/)?(if|then|do|else|while|until|time|exec|sudo|nohup|!|\{|\(|nice|ionice|setsid|chrt|timeout|flock|stdbuf|env)|"
    r"\w+=.*|-.*|\d.*|/(run|var|tmp)/.*"
)


@dataclass(frozen=True)
class Command:
    """A command in a file. ``words``: program and arguments."""

    file: str
    words: tuple[str, ...]


def enabled_units(setup: Setup) -> set[str]:
    """Return the names of the systemd units that start at boot. A SysV init script counts as a unit."""
    found = {name.rpartition("/")[2] for name in setup.units if _LINK.search(name)}
    for name in setup.texts if not found else ():
        if old := re.fullmatch(r"etc/(?:rc\.d/)?rc[2-5]\.d/S\d\d(\S+)", name):
            found.add(f"{old[1]}.service")
    timers = {name for name in found if name.endswith(".timer")}
    timers |= {name for name, text in setup.units.items() if _starts_itself(name, text, ".timer")}
    return found | {f"{name.removesuffix('.timer')}.service" for name in timers}


def _starts_itself(name: str, text: str, kind: str) -> bool:
    return "/" not in name and name.endswith(kind) and bool(re.search(r"(?m)^[ \t]*(Wanted|Required)By\s*=\s*\S", text))


def commands_run(setup: Setup) -> Iterator[Command]:
    """Yield the commands that a node runs automatically, and the commands in Lustre scripts."""
    enabled = enabled_units(setup)
    for file, text in setup.texts.items():
        unit = _UNIT.fullmatch(file)
        is_idle = unit and not unit[2] and unit[1] not in enabled and not _starts_itself(unit[1], text, ".service")
        if is_idle or (file.startswith("etc/systemd/") and not unit):
            continue
        for pattern, inside in read_table("options/command_files").items():
            for part in re.findall(inside, re.sub(r"\\\n", " ", text)) if re.fullmatch(pattern, file) else ():
                for line in part.splitlines():
                    yield from _of_line(file, line)


def _of_line(file: str, line: str) -> Iterator[Command]:
    words: list[str] = []
    for token in _tokens(line):
        if not set(token) <= set(";&|"):
            words.append(token)
            continue
        words = list(dropwhile(_BEFORE.fullmatch, words))
        program = words[0].rpartition("/")[2] if words else ""
        if program in ("sh", "bash") and "-c" in words[1:-1]:
            yield from _of_line(file, words[words.index("-c", 1) + 1])
        elif program:
            yield Command(file, (program, *words[1:]))
        words = []


# A comment, a word, which may end in an open quote, or operators.
_TOKEN = re.compile(r"""#.*|((?:'[^']*+'?|"(?:[^"\\]|\\.)*+"?|\\.?|[^ \t\r\n'"\\;&|])++)|([;&|]+)""")


@lru_cache(maxsize=4096)
def _tokens(line: str) -> tuple[str, ...]:
    try:
        tokens = [shell_words(word) if word else [mark] for word, mark in _TOKEN.findall(line) if word or mark]
        return (*chain.from_iterable(tokens), ";")
    except ValueError:
        return ()


_LOCKED = ("gfs2", "ocfs2")


def provided_by(one: Primitive) -> tuple[str, ...]:
    """Return the prefixes of all paths that exist only while a resource runs, such as ``/dev/GROUP/`` for LVM."""
    values = one.values
    pool = values.get("pool", "") if "zfs" in one.agent.lower() or one.agent == "zpool" else ""
    if pool:
        return f"{pool}/", f"/{pool}/", f"/dev/zvol/{pool}/"
    if one.agent in ("LVM-activate", "LVM"):
        group, volume = values.get("vgname") or values.get("volgrpname", ""), values.get("lvname", "")
        return (f"/dev/{group}/{volume}/" if volume else f"/dev/{group}/",) if group else ()
    if one.agent == "crypt" and values.get("crypt_dev"):
        return (f"/dev/mapper/{values['crypt_dev']}/",)
    array = values.get("md_dev") or values.get("raiddev", "")
    return (f"{array}/",) if array else (f"{one.mount_point}/",) if one.is_mount and one.mount_point else ()


def _named(one: Primitive) -> Iterator[str]:
    for name, value in one.values.items():
        # A value without a slash names a pool or dataset only in these parameters.
        if "/" in value or name in ("device", "dataset", "pool", "target"):
            yield f"{one_name(value.rstrip('/'))}/"
    yield "/usr/sap/{}/{}/".format(*[*one.values.get("InstanceName", "").split("_"), "", ""][:2])


def users(cib: Cib) -> Iterator[tuple[Primitive, Primitive]]:
    """Yield (service, resource) pairs. The resource provides a path that the service uses."""
    provided = [(one, given) for one in cib.services if (given := provided_by(one))]
    for user in cib.services:
        for base, beginnings in provided:
            same = (user.is_mount and user.mount_point == base.mount_point != "") or provided_by(user) == beginnings
            if user.id != base.id and not same and any(name.startswith(beginnings) for name in _named(user)):
                yield user, base


def needs_of(cib: Cib) -> Iterator[tuple[Primitive, Primitive]]:
    """Yield (service, resource) pairs that must run on the same node."""
    yield from users(cib)
    by_agent: dict[str, list[Primitive]] = {}
    for one in cib.services:
        by_agent.setdefault(one.agent, []).append(one)
    for one in cib.services:
        locked = one.values.get("vg_access_mode") in ("lvmlockd", "clvmd") or one.agent in ("lvmlockd", "clvm")
        if locked or (one.is_mount and one.values.get("fstype") in _LOCKED):
            yield from ((one, manager) for manager in by_agent.get("controld", ())[:1])
        if one.agent == "iSCSILogicalUnit":
            targets = by_agent.get("iSCSITarget", ())
            yield from ((one, base) for base in targets if base.values.get("iqn") == one.values.get("target_iqn"))
        if one.agent == "exportfs":
            servers = by_agent.get("nfsserver", ())
            yield from (
                (one, base) for base in servers if base.group == one.group != "" or cib.ties.starts_after(one, base)
            )


def clone_of(setup: Setup, device: str) -> str:
    """Return the id of the clone of a DRBD device, or an empty text."""
    clones = {one.values.get("drbd_resource", ""): one.clone for one in setup.services if one.is_drbd}
    names = [resource.name for resource in setup.drbd if device in resource.devices]
    return next((clones[name] for name in names if name in clones), "")
