"""Settings in the files of a node: the kernel, its modules, systemd, multipath, NFS, iSCSI, ZFS and Lustre."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from strakes.failover.rules.commands import commands_run
from strakes.failover.setup import Setup

# A section, a name and a value.
_Row = tuple[str, str, str]


@dataclass(frozen=True)
class Given:
    """One setting: the file, the table that lists such settings, its name and value."""

    file: str
    table: str
    name: str
    value: str


def _ini(text: str) -> Iterator[_Row]:
    section = ""
    for plain in map(str.strip, text.splitlines()):
        if head := re.fullmatch(r"\[\s*([\w.-]+)[^\]]*\]", plain):
            section = head[1]
        elif "=" in plain and plain[0] not in "#;":
            name, _, value = plain.partition("=")
            yield section, name.removeprefix("export ").strip(), re.sub(r"\s+#.*", "", value).strip().strip("\"'")


def _braces(text: str) -> Iterator[_Row]:
    path: list[str] = []
    for line in text.splitlines():
        plain = re.sub(r"[#!].*$", "", line).strip()
        if plain.endswith("{"):
            path.append(plain[:-1].strip())
        elif plain == "}":
            del path[-1:]
        elif plain:
            name, _, value = plain.partition(" ")
            yield path[-1] if path else "", name, value.strip().strip('"')


def _kernel_line(text: str) -> Iterator[_Row]:
    for name, value in re.findall(r"(?m)^\s*(?:export )?(\w+)=[\"']?(.*?)[\"']?\s*$", text):
        yield "menu", name, value
        for word in value.split() if name.startswith(("GRUB_CMDLINE_LINUX", "DEFAULT_APPEND")) else ():
            key, _, given = word.partition("=")
            yield "line", key, given


_Reader = Callable[[str], Iterable[_Row]]
_FILES: tuple[tuple[re.Pattern[str], str, _Reader], ...] = tuple(
    (re.compile(rf"etc/({pattern})"), table, reader)
    for pattern, table, reader in (
        (r"nfs\.conf(\.d/.*)?", "nfs.conf", _ini),
        (r"iscsi/iscsid\.conf", "iscsid.conf", _ini),
        (r"multipath\.conf|multipath/conf\.d/.*", "multipath.conf", _braces),
        (r"(sysconfig|default)/pacemaker", "pacemaker settings", _ini),
        (r"(sysconfig|default)/corosync", "corosync settings", _ini),
        (r"(sysconfig|default)/sbd", "sbd settings", _ini),
        (r"(sysconfig|default)/zfs", "zfs settings", _ini),
        (r"(sysconfig/nfs|default/nfs-(kernel-server|common))", "nfs settings", _ini),
        (r"systemd/logind\.conf(\.d/.*)?", "logind.conf", _ini),
        (r"systemd/system\.conf(\.d/.*)?", "system.conf", _ini),
        (r"systemd/system/.*\.(service|mount|target)(\.d/.*\.conf)?", "unit", _ini),
        (r"dlm/dlm\.conf", "dlm.conf", _ini),
        (r"sanlock/sanlock\.conf", "sanlock.conf", _ini),
        (r"default/grub(\.d/.*)?|sysconfig/bootloader", "boot", _kernel_line),
    )
)
_CLUSTER_UNIT = re.compile(r"systemd/system/(pacemaker|corosync|corosync-qdevice|sbd|multipathd|iscsid|drbd)\.service")


def settings_of_nodes(setup: Setup) -> Iterator[Given]:
    """Yield every known setting in the files of the node."""
    for file, text in setup.texts.items():
        name = file.removeprefix("etc/")
        for pattern, table, reader in _FILES:
            for section, key, value in reader(text) if pattern.fullmatch(file) else ():
                cluster = table == "unit" and _CLUSTER_UNIT.match(name)
                yield Given(name, f"{table} {section}{' of the cluster' if cluster else ''}".strip(), key, value)
    for module, words in re.findall(r"(?m)^\s*options\s+(\S+)[ \t]+(.*)$", setup.modules):
        for key, value in re.findall(r"(\w+)=(\"[^\"]*\"|\S*)", words):
            yield Given("modprobe.d", f"module {module}", key, value.strip('"'))
    for module, command in re.findall(r"(?m)^\s*install\s+(\S+)[ \t]+(.*)$", setup.modules):
        yield Given("modprobe.d", "module", f"install {module}", command)
    for key, value in setup.sysctl.items():
        yield Given("sysctl", "sysctl", re.sub(r"\.(conf|neigh)\.[^.]+\.", r".\1.all.", key), value)
    yield from _commands(setup)
    yield from _mounts(setup)


def _commands(setup: Setup) -> Iterator[Given]:
    """Yield the settings made by commands: for ZFS pools and datasets, Lustre and the kernel."""
    for command in commands_run(setup):
        where, words = command.file.rpartition("/")[2], command.words
        if words[0] in ("zpool", "zfs"):
            kind = "pool" if words[0] == "zpool" else "dataset"
            for before, word in pairwise(words):
                if "=" in word and (words[1] == "set" or before in ("-o", "-O")):
                    yield Given(where, "dataset" if before == "-O" else kind, *word.split("=", 1))
        if words[:2] in (("lctl", "set_param"), ("lctl", "conf_param")):
            yield from (Given(where, "lctl", *word.split("=", 1)) for word in words[2:] if "=" in word)
        if words[0] in ("mkfs.lustre", "tunefs.lustre"):
            for key, value in re.findall(r"--param=([\w.*-]+)=(\S*)", command.text):
                yield Given(where, "lctl", key, value)
        if words[0] == "sysctl":
            for key, value in re.findall(r"([\w./]+\.[\w./]+) ?= ?(\S+)", command.text):
                yield Given(where, "sysctl", key, value)


def _mounts(setup: Setup) -> Iterator[Given]:
    """Yield the options of mounts of Lustre and of ZFS pools in the CIB, and of disk file systems in fstab."""
    for one in setup.services:
        for word in re.split(r"[,\s]+", one.values.get("options", "")) if one.is_lustre else ():
            yield Given(f"cib: {one.id}", "mount options lustre", *word.partition("=")[::2])
        for word in one.values.get("importargs", "").split() if one.agent == "ZFS" else ():
            if "=" in word:
                yield Given(f"cib: {one.id}", "pool", *word.split("=", 1))
