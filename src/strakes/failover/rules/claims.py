"""Rules about disks and directories that something beside Pacemaker takes at boot, or when somebody looks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from strakes.failover.rules.commands import enabled_units
from strakes.failover.rules.possessions import Possessions, possessions_of
from strakes.failover.rules.rule import DRBD_PACEMAKER, OWN, rule
from strakes.failover.setup import Setup

_MOUNT_PAGE = "https://www.freedesktop.org/software/systemd/man/latest/systemd.mount.html"
_LABEL = re.compile(r"LABEL=\"?[\w-]{1,8}[-:](MDT|OST|MGS)\w*\"?|LABEL=\"?MGS\"?")
_REMOTE = ("nfs", "nfs4", "lustre", "cifs", "ceph", "glusterfs")
# What is written there has to be there after the next start.
_STATE = ("/var/lib/pacemaker", "/var/lib/corosync", "/var/lib/drbd", "/var/lib/pcsd", "/var/lib/iscsi", "/var/lib/nfs")
# Files of the node's own programs with paths that they write to.
_WRITES_PATHS = re.compile(
    r"etc/(rsyslog(\.d/.*)?\.conf|(sysconfig|default)/(pacemaker|corosync)|chrony(/chrony)?\.conf|corosync/.*"
    r"|multipath\.conf|lvm/lvm\.conf)"
)
_MD = "https://man7.org/linux/man-pages/man5/mdadm.conf.5.html"


@dataclass(frozen=True)
class _Line:
    """A line of fstab."""

    source: str
    place: str
    kind: str
    options: frozenset[str]

    @property
    def by_itself(self) -> bool:
        """Tell whether it is mounted at boot, or when somebody looks into its directory."""
        return "noauto" not in self.options or "x-systemd.automount" in self.options


def _lines(setup: Setup) -> Iterator[_Line]:
    for line in setup.fstab.splitlines():
        words = line.partition("#")[0].split()
        if len(words) >= 3:
            place = words[1].replace("\\040", " ")
            yield _Line(words[0], place, words[2], frozenset((words[3] if len(words) > 3 else "").split(",")))


def _taken(owned: Possessions, source: str, place: str) -> str:
    """Return what of the cluster's a mount takes: its disk, or its directory; empty where it takes nothing."""
    if source.startswith("/dev/drbd") or owned.has_disk(source) or source.partition("/")[0] in owned.pools:
        return source
    return owned.place_around(place) or (owned.place_around(source) if source.startswith("/") else "")


@rule("fstab").error(
    reason="A mount in fstab is made at boot even on a node that has to wait, over or below what Pacemaker mounts; a "
    "DRBD device is promoted behind Pacemaker's back.",
    remedy="Remove the line; Pacemaker mounts it. If something has to be mounted with it, add a Filesystem resource "
    "after it.",
    source=DRBD_PACEMAKER,
)
def mounted_beside_pacemaker(setup: Setup) -> Iterator[str]:
    """Find what the node mounts, or swaps to, although it is DRBD's or Pacemaker's."""
    owned = possessions_of(setup)
    for line in _lines(setup):
        remote = line.kind in _REMOTE and ":/" in line.source
        of_a_server = line.kind == "lustre" and not remote
        taken = _taken(owned, "" if remote else line.source, line.place)
        if line.by_itself and (taken or of_a_server or _LABEL.fullmatch(line.source)):
            yield f"fstab: {line.source} on {line.place}"


@rule("fstab").error(
    reason="Memory is empty after each restart: the configuration, votes or the list of clients stored there are lost. "
    "If /dev/shm is too small, Corosync does not start.",
    remedy="Remove the line; keep the directory on a disk of the node, and leave /dev/shm at half of the memory.",
    source=OWN,
)
def state_directory_in_memory(setup: Setup) -> Iterator[str]:
    """Find directories of the cluster's programs that lie in memory."""
    for line in _lines(setup):
        size = next((one for one in line.options if re.fullmatch(r"size=([1-9]\d?[mM]|\d{1,5}[kK])", one)), "")
        # Corosync and Pacemaker talk to each other over files there, several MiB for each client.
        if line.place == "/dev/shm" and size and not re.fullmatch(r"size=[6-9]\d[mM]", size):
            yield f"fstab: {line.kind} on {line.place} has {size}"
        if line.kind in ("tmpfs", "ramfs") and any(
            f"{place}/".startswith(f"{line.place.rstrip('/')}/") for place in _STATE
        ):
            yield f"fstab: {line.kind} on {line.place}"


@rule("fstab", "pacemaker").warning(
    reason="When memory is short, a node that mounts its own export waits for itself, and its stop hangs on that "
    "mount; at boot nobody serves yet.",
    remedy="Mount it on clients only; on the servers, use the directory itself.",
    source=OWN,
)
def node_mounts_what_it_serves(setup: Setup) -> Iterator[str]:
    """Find mounts of a server's own address."""
    addresses = possessions_of(setup).addresses
    for line in _lines(setup):
        if line.kind in _REMOTE and line.by_itself and line.source.partition(":/")[0].strip("[]") in addresses:
            yield f"fstab: {line.source} on {line.place}"


def _unescaped(name: str) -> str:
    """Return the path that a unit of a mount is named after.

    >>> _unescaped(r"srv-home\\x2d1.mount")
    '/srv/home-1'
    """
    path = "/" + name.rpartition(".")[0].replace("-", "/")
    return re.sub(r"\\x([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), path)


@rule("units", "pacemaker").error(
    reason="At boot, or at the first access, a systemd unit mounts what Pacemaker mounts: on two nodes at once, or "
    "behind Pacemaker's back.",
    remedy="Run systemctl disable for the unit, and remove it.",
    source=_MOUNT_PAGE,
)
def mounted_by_systemd(setup: Setup) -> Iterator[str]:
    """Find units of mounts, automounts and swap with a disk or a directory of the cluster."""
    owned, enabled = possessions_of(setup), enabled_units(setup)
    texts = {name.rpartition("/")[2]: text for name, text in setup.units.items() if ".d/" not in name}
    texts |= {name: text for name, text in setup.units.items() if "/" not in name}
    for name, text in texts.items():
        if name.rpartition(".")[2] not in ("mount", "automount", "swap"):
            continue
        given = dict(re.findall(r"(?m)^\s*(What|Where)\s*=\s*(\S+)", text))
        starts = name in enabled or re.search(r"(?m)^\s*(WantedBy|RequiredBy)\s*=", text)
        place = given.get("Where", "") or (_unescaped(name) if not name.endswith(".swap") else "")
        if starts and (taken := _taken(owned, given.get("What", ""), place)):
            yield f"systemd: {name} takes {taken}"


@rule("pacemaker").error(
    reason="At boot, or when it is used, this takes a disk or a directory of the cluster on a node that may not own "
    "it.",
    remedy="Use another disk or directory for it; nothing else may open, hide or write to what Pacemaker manages.",
    source=OWN,
)
def cluster_disk_or_directory_taken_by_node(setup: Setup) -> Iterator[str]:
    """Find disks of the cluster that crypttab opens or dumps are written to, and directories that autofs hides."""
    owned = possessions_of(setup)
    for line in setup.texts.get("etc/crypttab", "").splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and owned.has_disk(words[1]) and "noauto" not in (words[3:] or [""])[0]:
            yield f"crypttab: {words[0]} opens {words[1]}"
    for file, text in setup.texts.items():
        if file == "etc/auto.master" or file.startswith("etc/auto.master.d/"):
            for place in re.findall(r"(?m)^\s*(/[^\s#]+)\s+\S", text):
                if place != "/-" and (found := owned.place_around(place) or owned.place_below(place)):
                    yield f"{file.removeprefix('etc/')}: autofs has {place}, Pacemaker {found}"
    imported = re.split(r"[\s:]+", setup.settings_of("etc/default/zfs").get("ZFS_POOL_IMPORT", ""))
    for pool in sorted(owned.pools & set(imported)):
        yield f"default/zfs: ZFS_POOL_IMPORT={pool}"
    yield from _dumps(setup, owned)


def _dumps(setup: Setup, owned: Possessions) -> Iterator[str]:
    dumps = setup.texts.get("etc/kdump.conf", "")
    for kind, target in re.findall(r"(?m)^\s*(raw|ext[234]|xfs|btrfs|path)\s+(\S+)", dumps):
        if owned.has_disk(target) or (kind == "path" and owned.place_around(target)):
            yield f"kdump.conf: {kind} {target}"
    for server in re.findall(r"(?m)^\s*(?:nfs|ssh)\s+(?:\S+@)?([^\s:]+)", dumps):
        if server in owned.addresses:
            yield f"kdump.conf: {server} moves with a service"
    for name, key in (("etc/default/kdump-tools", "KDUMP_COREDIR"), ("etc/sysconfig/kdump", "KDUMP_SAVEDIR")):
        place = setup.settings_of(name).get(key, "").removeprefix("file://")
        if place.startswith("/") and owned.place_around(place):
            yield f"{name.removeprefix('etc/')}: {key}={place}"


@rule().error(
    reason="If udev assembles an array of Pacemaker, it runs on both nodes at once; if nothing assembles an array "
    "below DRBD, it is missing after a restart.",
    remedy="AUTO -all in mdadm.conf where Pacemaker assembles; an ARRAY line for each array of the node itself.",
    source=_MD,
)
def arrays_assembled_wrong(setup: Setup) -> Iterator[str]:
    """Find arrays of Pacemaker's that come by themselves, and arrays below DRBD that do not."""
    owned = possessions_of(setup)
    for file in ("mdadm.conf", "mdadm/mdadm.conf"):
        text = setup.bare(f"etc/{file}")
        none_by_itself = re.search(r"(?mi)^\s*AUTO\s+-all\b", text)
        named = set(re.findall(r"(?mi)^\s*ARRAY\s+(/\S+)", text))
        if text.strip() and owned.arrays and not none_by_itself:
            yield f"{file}: no AUTO -all, and Pacemaker assembles {', '.join(sorted(owned.arrays))}"
        for disk in sorted(owned.copies) if none_by_itself else ():
            if re.match(r"/dev/md\d|/dev/md/", disk) and disk not in named:
                yield f"{file}: AUTO -all and no ARRAY {disk}, which is below DRBD"


@rule("pacemaker").warning(
    reason="A program of the node itself keeps a file open on this mount: the unmount fails, and the node is powered "
    "off because of it; on the other node the program writes into the empty directory.",
    remedy="Use a directory on the node's own disk, for example in /var/log.",
    source=OWN,
)
def node_program_writes_to_cluster_mount(setup: Setup) -> Iterator[str]:
    """Find logs and state of the node's own programs that lie on a mount of the cluster."""
    owned = possessions_of(setup)
    for file, text in setup.texts.items():
        lines = re.sub(r"(?m)^\s*#.*$", "", text) if _WRITES_PATHS.fullmatch(file) else ""
        for path in re.findall(r"(?m)(?:^|[\s\"'=:@-])(/[\w./-]+)", lines):
            if owned.place_around(path):
                yield f"{file.removeprefix('etc/')}: {path}"
