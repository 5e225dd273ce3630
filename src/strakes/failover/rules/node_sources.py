"""Settings in the files of a node that have forms of their own: LVM, ZFS, Lustre, kdump, the kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from strakes.failover.rules.commands import commands_run
from strakes.failover.setup import Setup

# File, table, name and value.
Row = tuple[str, str, str, str]
_CLUSTER_UNIT = re.compile(r"etc/systemd/system/([\w-]+)\.service(\.d/.*\.conf)?")


def special_settings(setup: Setup) -> Iterator[Row]:
    """Yield the settings of these files."""
    for file in ("etc/lvm/lvm.conf", "etc/lvm/lvmlocal.conf"):
        yield from _lvm(file.removeprefix("etc/"), setup.texts.get(file, ""))
    for name in ("etc/default/zfs", "etc/sysconfig/zfs"):
        for key, value in setup.settings_of(name).items() if name in setup.texts else ():
            yield name.removeprefix("etc/"), "zfs settings", key, value
    for line in setup.texts.get("etc/kdump.conf", "").splitlines():
        key, _, value = line.partition("#")[0].strip().partition(" ")
        if key:
            yield "kdump.conf", "kdump", key, value.strip()
    yield from _of_boot(setup)
    yield from _of_words(setup)
    yield from _of_commands(setup)
    yield from _of_cluster_units(setup)
    for one in setup.services:
        words = one.values.get("importargs", "").split() if one.agent == "ZFS" else []
        yield from _pairs(f"cib: {one.id}", "pool", words)


def _of_boot(setup: Setup) -> Iterator[Row]:
    """Yield the settings of the boot menu, and each word of the command line of the kernel."""
    for file, text in setup.texts.items():
        if not re.fullmatch(r"etc/default/grub(\.d/.*)?|etc/sysconfig/bootloader", file):
            continue
        where = file.removeprefix("etc/")
        for name, value in re.findall(r"(?m)^\s*(?:export )?(\w+)=[\"']?(.*?)[\"']?\s*$", text):
            yield where, "boot menu", name, value
            for word in value.split() if name.startswith(("GRUB_CMDLINE_LINUX", "DEFAULT_APPEND")) else ():
                key, _, given = word.partition("=")
                yield where, "kernel command line", key, given
                owner, dot, option = key.partition(".")
                if dot and given:
                    table = "sysctl" if owner == "sysctl" else f"module {owner.replace('-', '_')}"
                    yield where, table, option, given


# Files whose lines are NAME VALUE or NAME=VALUE, with the table of each and how a line is written.
_WORDS = (
    (r"chrony\.conf|chrony/chrony\.conf|chrony\.d/.*|chrony/conf\.d/.*", "chrony.conf", r"([a-z]\w*)\s*(.*?)"),
    (r"dlm/dlm\.conf", "dlm.conf", r"(\w+)\s*=\s*(\S+).*"),
    (r"sanlock/sanlock\.conf", "sanlock.conf", r"(\w+)\s*=\s*(\S+).*"),
    (r"apt/apt\.conf\.d/.*", "apt.conf", r"([\w:-]+)\s+\"(.*?)\"\s*;.*"),
    (r"(sysconfig/nfs|default/nfs-(kernel-server|common))", "nfs settings", r"(\w+)=[\"']?(.*?)[\"']?"),
    (r"udev/rules\.d/.*", "udev", r"[^#\n]*\bATTR\{([\w/]+)\}\s*=\s*\"(\w+)\".*"),
    (r"needrestart/.*", "needrestart", r"\$nrconf\{(\w+)\}\s*=\s*'(\w)'.*"),
)


def _of_words(setup: Setup) -> Iterator[Row]:
    for file, text in setup.texts.items():
        for pattern, table, line in _WORDS:
            if not re.fullmatch(pattern, file.removeprefix("etc/")):
                continue
            # What is left out of the restarts by name is not restarted.
            if table == "needrestart" and "corosync" in text:
                continue
            for name, value in re.findall(rf"(?m)^[ \t]*{line}[ \t]*$", text):
                yield file.removeprefix("etc/"), table, name, value


def _lvm(file: str, text: str) -> Iterator[Row]:
    section = ""
    for line in text.splitlines():
        plain = line.partition("#")[0].strip()
        if head := re.match(r"(\w+)\s*\{", plain):
            section = head[1]
            plain = plain[head.end() :]
        for name, value in re.findall(r"(\w+)\s*=\s*(\"[^\"]*\"|\[[^\]]*\]?|[^\s}]+)", plain):
            yield file, f"lvm.conf {section}", name, value.strip('"')


def _pairs(where: str, table: str, words: list[str]) -> Iterator[Row]:
    for before, word in pairwise(words):
        name, equal, value = word.partition("=")
        if equal and before in ("-o", "-O"):
            yield where, "dataset" if before == "-O" else table, name, value


def _of_commands(setup: Setup) -> Iterator[Row]:
    for command in commands_run(setup):
        words, where = list(command.words), command.file.rpartition("/")[2]
        yield from _of_kernel(where, command.text)
        if words[0] in ("zpool", "zfs") and len(words) > 2:
            kind = "pool" if words[0] == "zpool" else "dataset"
            if words[1] == "set":
                yield from ((where, kind, *word.split("=", 1)) for word in words[2:] if "=" in word)  # type: ignore[misc]
            else:
                yield from _pairs(f"{where}: {words[0]} {words[1]}", kind, words)
        if words[0] == "lctl" and len(words) > 2 and words[1] in ("set_param", "conf_param"):
            for word in words[2:]:
                name, equal, value = word.partition("=")
                if equal:
                    yield where, "lctl", name, value
        if words[0] in ("mkfs.lustre", "tunefs.lustre"):
            for word in words[1:]:
                match = re.fullmatch(r"--param=([\w.*-]+)=(.*)", word)
                if match:
                    yield f"{where}: {words[-1]}", "lctl", match[1], match[2]


def _of_kernel(where: str, text: str) -> Iterator[Row]:
    """Yield what a command sets in the running kernel, and what it gives to a module."""
    if text.startswith("sysctl "):
        for name, value in re.findall(r"([\w./]+\.[\w./]+) ?= ?(\S+)", text):
            yield where, "sysctl", name, value
    if written := re.fullmatch(r"echo (?:-n )?(\S+) ?>+ ?/proc/sys/(\S+)", text):
        yield where, "sysctl", written[2].replace("/", "."), written[1]
    if written := re.fullmatch(r"echo (?:-n )?(\S+) ?>+ ?/sys/module/(\w+)/parameters/(\w+)", text):
        yield where, f"module {written[2]}", written[3], written[1]
    if loaded := re.fullmatch(r"modprobe (?:-\w+ )*(\w[\w-]*) (.*)", text):
        for name, value in re.findall(r"(\w+)=(\S+)", loaded[2]):
            yield where, f"module {loaded[1]}", name, value


def _of_cluster_units(setup: Setup) -> Iterator[Row]:
    for file, text in setup.texts.items():
        unit = _CLUSTER_UNIT.fullmatch(file)
        section = ""
        for line in text.splitlines() if unit else ():
            if head := re.match(r"\s*\[(\w+)\]", line):
                section = head[1]
            name, equal, value = line.partition("=")
            if unit and unit[1] in ("pacemaker", "corosync") and name.strip() == "Environment":
                for key, given in re.findall(r"(\w+)=([^\s\"']+)", value):
                    yield file.removeprefix("etc/"), f"{unit[1]} settings", key, given
            if unit and equal and not line.lstrip().startswith(("#", ";")):
                yield file.removeprefix("etc/"), f"unit {section} of {unit[1]}", name.strip(), value.strip()
