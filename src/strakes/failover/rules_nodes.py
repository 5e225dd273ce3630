"""Settings in the files of a node: the kernel, systemd, multipath, NFS, ZFS and Lustre; and rules that compare them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from strakes.failover.rules_commands import commands_run
from strakes.failover.rules_possessions import volume_named
from strakes.failover.setup import Setup


def _listed(text: str, name: str) -> str | None:
    """Return the text of a list in lvm.conf, or None if it is not set."""
    found = re.search(rf"(?<!\w){name}\s*=\s*\[([^\]]*)\]", text)
    return found[1] if found else None


def _rejects_all(text: str) -> bool:
    """Return whether a filter of LVM rejects every disk except DRBD devices; the first matching pattern decides."""
    for rows in re.findall(r"\b(?:global_)?filter\s*=\s*\[((?:[\s,]*\"[^\"]*\")*)", text):
        before, rejects, _ = re.sub(r"\"r([|/])\.\*\1\"", "\0", rows).partition("\0")
        if rejects and all("drbd" in pattern for _, pattern in re.findall(r"\"a(.)(.*?)\1\"", before)):
            return True
    return False


def volume_not_activated_or_everywhere(setup: Setup) -> Iterator[str]:
    """Find settings of LVM that conflict with DRBD or with resources that activate volumes."""
    text = setup.bare("etc/lvm/lvm.conf")
    owners = {
        one.values.get("vgname") or one.values.get("volgrpname", ""): one
        for one in setup.services
        if one.agent in ("LVM", "LVM-activate")
    }
    below = {volume_named(disk)[0] for one in setup.drbd for disk in one.disks} - {""}
    for group in sorted({*owners, *below} - {""}) if text else ():
        one = owners.get(group)
        mode = one.values.get("vg_access_mode", "") if one else "below DRBD"
        yield from (f"lvm.conf: {group}: {wrong}" for wrong in _wrong_for(text, group, mode))


def _wrong_for(text: str, group: str, mode: str) -> Iterator[str]:
    named = {
        name: _listed(text, name) for name in ("volume_list", "auto_activation_volume_list", "read_only_volume_list")
    }
    inside = {name: rows is not None and f'"{group}"' in rows.replace("/", '"') for name, rows in named.items()}
    tags = "@" in (named["volume_list"] or "")
    if _rejects_all(text):
        yield "a filter rejects all its disks"
    if inside["read_only_volume_list"]:
        yield "read_only_volume_list"
    if mode in ("tagging", "system_id") and (
        inside["auto_activation_volume_list"] or (mode == "tagging" and inside["volume_list"])
    ):
        yield "a list activates it on every node"
    if mode != "tagging" and named["volume_list"] is not None and not inside["volume_list"] and not tags:
        yield "volume_list does not have it"
    if (
        mode == "below DRBD"
        and named["auto_activation_volume_list"] is not None
        and not inside["auto_activation_volume_list"]
    ):
        yield "auto_activation_volume_list does not have it"
    if mode == "system_id" and re.search(r"system_id_source\s*=\s*\"none\"", text):
        yield 'system_id_source = "none"'
    if mode == "lvmlockd" and re.search(r"\buse_lvmlockd\s*=\s*0", text):
        yield "use_lvmlockd = 0"


def multipath_disk_missing(setup: Setup) -> Iterator[str]:
    """Find disks of the cluster that multipath.conf hides or renames, and disks with two names."""
    text = setup.bare("etc/multipath.conf", "#!")
    used = {one.device: one.id for one in setup.services if re.fullmatch(r"/dev/mapper/[\w.]+", one.device)}
    blocks = re.findall(r"multipath\s*\{([^}]*)\}", text)
    rows = [dict(re.findall(r"\b(wwid|alias)\s+\"?([\w.:-]+)", block)) for block in blocks]
    aliases, wwids = ([row[key] for row in rows if key in row] for key in ("alias", "wwid"))
    for device, name in used.items() if aliases else ():
        if device.removeprefix("/dev/mapper/") not in aliases:
            yield f"multipath.conf: no alias {device.removeprefix('/dev/mapper/')}, which {name} uses"
    for twice in sorted({one for one in (*aliases, *wwids) if (*aliases, *wwids).count(one) > 1}):
        yield f"multipath.conf: {twice} is given twice"
    for word in _blacklisted(text) if used else ():
        if word in wwids or (word in (".*", "*", "^.*$") and "blacklist_exceptions" not in text):
            yield f"multipath.conf: blacklist has {word}"


def _blacklisted(text: str) -> list[str]:
    hidden = re.findall(r"\bblacklist\s*\{((?:[^{}]|\{[^{}]*\})*)\}", text)
    return re.findall(r"\b(?:devnode|wwid)\s+\"?([^\s\"]+)", " ".join(hidden))


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
