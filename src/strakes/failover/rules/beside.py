"""Rules about files beside the cluster's own: hosts, exports, modules, sbd's disk, and how targets are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from strakes.failover.cib_values import is_true
from strakes.failover.known_options import meant, options_of
from strakes.failover.pacemaker_resources import PINGING
from strakes.failover.rules.commands import commands_run
from strakes.failover.rules.heartbeat import links_of, name_of, nodes_of
from strakes.failover.rules.lustre import made_targets
from strakes.failover.rules.rule import AGENTS, MKFS, MOUNT_LUSTRE, OWN, SBD, rule
from strakes.failover.setup import Setup

_NID = re.compile(r"[^\s:,@]+@(tcp|o2ib|kfi|gni|efa|ptlf|socklnd|lo)\d*")
_MOUNTED = re.compile(r"(?:[^\s:]+(?::[^\s:]+)*):/[\w.-]{1,8}(/\S*)?")
# Names of disks that change with the order in which the kernel finds them.
_UNSTABLE = re.compile(r"/dev/(sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+)(p?\d+)?")
_TIMEOUT_ACTION = re.compile(r"((no)?flush|off|reboot|crashdump)(,((no)?flush|off|reboot|crashdump))*")
# The last one means any.
_MOST_INDEX = 0xFFFF
_HARMFUL_MKFS = {
    "--reformat": "formats again what is a target already, with all that is on it",
    "--replace": "takes the place of a target that exists",
    "--writeconf": "erases the configuration of the file system",
    "--noformat": "makes nothing",
    "--dryrun": "makes nothing",
}


def commands(text: str) -> list[str]:
    """Return the commands of a script, each in one line."""
    return [line.strip() for line in re.sub(r"\\\n", " ", text).splitlines() if not line.lstrip().startswith("#")]


@rule("hosts").error(
    reason="Installers write the node's name next to 127.0.1.1: Corosync, DRBD and NFS then bind to the node itself, "
    "and do not find the others.",
    remedy="Remove the line; write the node's real address with its name.",
    source="https://github.com/corosync/corosync/issues/162",
)
def node_name_on_loopback(setup: Setup) -> Iterator[str]:
    """Find nodes whose name is an address of the loopback in /etc/hosts."""
    for line in setup.texts.get("etc/hosts", "").splitlines():
        words = line.partition("#")[0].split()
        for name in words[1:]:
            if words[0].startswith("127.") and name.partition(".")[0] in setup.node_names and name != "localhost":
                yield f"hosts: {name} is {words[0]}"


@rule("hosts").error(
    reason="Data sent to one node by its name arrive at the other one.",
    remedy="Write each node's own address with its name.",
    source=OWN,
)
def one_address_for_two_nodes(setup: Setup) -> Iterator[str]:
    """Find addresses in /etc/hosts that are beside the names of two nodes."""
    owners: dict[str, str] = {}
    for line in setup.texts.get("etc/hosts", "").splitlines():
        words = line.partition("#")[0].split()
        for name in sorted({word.partition(".")[0] for word in words[1:]} & set(setup.node_names)):
            other = owners.setdefault(words[0], name)
            if other != name and not words[0].startswith("127."):
                yield f"hosts: {words[0]} is {other} and {name}"


@rule("hosts", "corosync").warning(
    reason="The name resolves to a different address of the same network than the one in corosync.conf: one of them is "
    "wrong, and programs that use the name reach the wrong machine, or none.",
    remedy="Use the same address in /etc/hosts and in corosync.conf.",
    source=OWN,
)
def name_resolves_to_another_address(setup: Setup) -> Iterator[str]:
    """Find nodes whose address in /etc/hosts is near one of their links, and none of them."""
    links = {name_of(node): set(links_of(node).values()) for node in nodes_of(setup)}
    for line in setup.texts.get("etc/hosts", "").splitlines():
        words = line.partition("#")[0].split()
        for name in sorted(set(words[1:]) & set(links)):
            near = {address.rpartition(".")[0] for address in links[name] if "." in address}
            if words[0] not in links[name] and words[0].rpartition(".")[0] in near:
                yield f"hosts: {name} is {words[0]}, corosync.conf has {', '.join(sorted(links[name]))}"


@rule("exports", "pacemaker").error(
    reason="Both nodes export what is in /etc/exports when they boot: clients get the empty directory below the mount "
    "point.",
    remedy="Remove the line; the exportfs resource in Pacemaker exports it.",
    source=f"{AGENTS}/exportfs",
)
def exported_beside_pacemaker(setup: Setup) -> Iterator[str]:
    """Find exports in /etc/exports that lie on a mount of Pacemaker."""
    mounts = {primitive.mount_point for primitive in setup.pacemaker.services if primitive.is_mount}
    for line in commands("\n".join(text for name, text in setup.texts.items() if name.startswith("etc/exports"))):
        place = line.split(maxsplit=1)[0] if line else ""
        if any(f"{place}/".startswith(f"{mount}/") for mount in mounts if mount):
            yield f"exports: {place}"


@rule("lustre").error(
    reason="mkfs.lustre refuses options that it does not know; others make a target that replaces another one, or that "
    "a take-over damages.",
    remedy="Use only the options of the run-book; see mkfs.lustre --help.",
    source=MKFS,
)
def mkfs_lustre_options_wrong(setup: Setup) -> Iterator[str]:
    """Find options of mkfs.lustre that are unknown, harmful or malformed, and malformed NIDs."""
    known = options_of("lustre targets")
    for words in made_targets(setup):
        for word in (word for word in words[1:] if word.startswith("--")):
            name, _, value = word.partition("=")
            if name not in known:
                other = meant(name, known)
                yield f"make-targets.sh: {words[-1]} has {name}" + (f", which may mean {other}" if other else "")
            if name in _HARMFUL_MKFS:
                yield f"make-targets.sh: {words[-1]} has {name}, which {_HARMFUL_MKFS[name]}"
            if name == "--index" and not (
                re.fullmatch(r"\d{1,5}|0x[0-9a-fA-F]{1,4}", value)
                and int(value, 0 if "x" in value else 10) < _MOST_INDEX
            ):
                yield f"make-targets.sh: {words[-1]} has --index={value}"
            if name == "--mountfsoptions" and re.search(
                r"errors=continue|nobarrier|barrier=0|noload|norecovery", value
            ):
                yield f"make-targets.sh: {words[-1]} has {word}"
            if name == "--mkfsoptions" and "has_journal" in value and "^has_journal" in value:
                yield f"make-targets.sh: {words[-1]} has no journal"
            if name == "--fsname" and not re.fullmatch(r"[A-Za-z0-9_-]{1,8}", value):
                yield f"make-targets.sh: {words[-1]} has --fsname={value}, more than 8 letters, or strange ones"
            if name in ("--servicenode", "--mgsnode", "--failnode"):
                for nid in re.split(r"[,:]", value):
                    # A host name without a network is of the first network.
                    if "@" in nid and not _NID.fullmatch(nid):
                        yield f"make-targets.sh: {words[-1]} has {nid}, which is no NID"


@rule("lustre").error(
    reason="A disk can belong to one pool only: the second pool is refused, or with -f destroys the first.",
    remedy="Use each disk once, by a name that both nodes have.",
    source="https://openzfs.github.io/openzfs-docs/man/master/8/zpool-create.8.html",
)
def one_disk_in_two_pools(setup: Setup) -> Iterator[str]:
    """Find disks that are used twice by the pools."""
    seen: dict[str, str] = {}
    for command in commands_run(setup):
        if command.words[0] != "zpool" or command.words[1:2] not in (("create",), ("add",), ("attach",)):
            continue
        disks = [word for word in command.words if word.startswith("/dev/")]
        # A disk is attached to one that is there.
        for disk in disks[1:] if command.words[1] == "attach" else disks:
            other = seen.setdefault(disk, command.text)
            if other != command.text or disks.count(disk) > 1:
                yield f"{command.file.rpartition('/')[2]}: {disk} is used twice"


@rule("lustre").error(
    reason="A pool of plain disks is lost when the first disk fails.",
    remedy="zpool create ... raidz2 DISKS, or mirror DISKS.",
    source="https://github.com/openzfs/zfs/blob/master/man/man7/zpoolconcepts.7",
)
def pool_without_redundancy(setup: Setup) -> Iterator[str]:
    """Find pools of several disks that are neither mirrored nor have parity."""
    for line in commands(setup.lustre):
        words = line.split()
        disks = [word for word in words if word.startswith("/dev/")]
        if words[:2] == ["zpool", "create"] and len(disks) > 1 and not re.search(r" (raidz\d?|mirror|draid)", line):
            yield f"make-targets.sh: {' '.join(disks[:2])} ..."
    for command in commands_run(setup):
        if command.words[:2] != ("zpool", "add"):
            continue
        # What stands before the first disk says what the disks become.
        kinds = list(takewhile(lambda word: not word.startswith("/dev/"), command.words[2:]))
        needless = {"log", "cache", "spare"} & set(kinds) and not {"special", "dedup"} & set(kinds)
        if not needless and not any(re.match(r"raidz|mirror|draid", kind) for kind in kinds):
            yield f"{command.file.rpartition('/')[2]}: {command.text[:80]}"


@rule("lustre").error(
    reason="mkfs.lustre needs the pool that it is given, but the pool that is created has another name.",
    remedy="Use the same name: zpool create ... POOL ..., and mkfs.lustre ... POOL/TARGET",
    source=MKFS,
)
def target_in_a_pool_that_is_never_created(setup: Setup) -> Iterator[str]:
    """Find ZFS targets whose pool no command makes."""
    lines = [line.split() for line in commands(setup.lustre)]
    made = {word for words in lines if words[:2] == ["zpool", "create"] for word in words[2:]}
    for words in made_targets(setup):
        pool = words[-1].partition("/")[0]
        if made and "--backfstype=zfs" in words and pool and pool not in made:
            yield f"make-targets.sh: {words[-1]}, and no pool {pool} is created"


@rule("lustre").warning(
    reason="sda may be a different disk after a reboot, and on the other node: the pool or the target is then looked "
    "for on the wrong disk.",
    remedy="/dev/mapper/..., /dev/disk/by-id/..., /dev/VG/LV",
    source="https://openzfs.github.io/openzfs-docs/Project%20and%20Community/FAQ.html",
)
def disk_name_not_persistent(setup: Setup) -> Iterator[str]:
    """Find commands that name a disk by a device name that may change."""
    for line in commands(setup.lustre):
        if line.startswith(("zpool create", "mkfs.lustre", "tunefs.lustre")):
            names = [word for word in line.split() if _UNSTABLE.fullmatch(word)]
            if names:
                yield f"make-targets.sh: {', '.join(names)}"


@rule("mounting").error(
    reason="mount.lustre does not understand this command, or mounts in such a way that clients lose locks or data.",
    remedy="mount -t lustre NID1:NID2:/FSNAME /MOUNTPOINT",
    source=MOUNT_LUSTRE,
)
def client_mount_wrong(setup: Setup) -> Iterator[str]:
    """Find mount commands of clients that are malformed or have unknown options."""
    known = options_of("lustre mount")
    for line in commands(setup.texts["lustre/mount-clients.sh"]):
        words = line.split()
        if words[:1] != ["mount"]:
            continue
        given = words[words.index("-o") + 1] if "-o" in words[:-1] else ""
        rest = [word for before, word in pairwise(words) if not word.startswith("-") and before not in ("-o", "-t")]
        if "lustre" not in words:
            yield f"mount-clients.sh: {line} has no -t lustre"
        if not rest or not _MOUNTED.fullmatch(rest[0]):
            yield f"mount-clients.sh: {rest[0] if rest else line} is not NID:NID:/FSNAME"
        elif len(rest) < 2 or not rest[1].startswith("/"):
            yield f"mount-clients.sh: {line} names no directory"
        for nid in rest[0].rpartition(":/")[0].split(":") if rest else ():
            for part in nid.split(","):
                if "@" in part and not _NID.fullmatch(part):
                    yield f"mount-clients.sh: {part} is no NID"
        for option in filter(None, given.split(",")):
            name = option.partition("=")[0]
            if name == "localflock":
                yield "mount-clients.sh: with localflock two clients lock the same file"
            elif name not in known and meant(name, known):
                yield f"mount-clients.sh: {name} may mean {meant(name, known)}"


@rule("sbd", "pacemaker").error(
    reason="A message on a disk that sbd does not watch is never read: the node is believed to be off, and keeps "
    "writing.",
    remedy="Use the same disks in SBD_DEVICE and in the parameter devices of the fencing device, or leave devices out.",
    source=SBD,
)
def sbd_disk_differs(setup: Setup) -> Iterator[str]:
    """Find fencing devices that write to other disks than sbd reads."""
    watched = set(filter(None, re.split(r"[;,\s]+", setup.sbd.get("SBD_DEVICE", ""))))
    for device in setup.pacemaker.devices:
        given = device.values.get("devices") or device.values.get("sbd_device", "")
        named = set(filter(None, re.split(r"[;,\s]+", given)))
        if device.agent in ("fence_sbd", "external/sbd") and named and watched and named != watched:
            yield f"cib: {device.id} has {given}, SBD_DEVICE={setup.sbd['SBD_DEVICE']}"


@rule("sbd").error(
    reason="sbd uses its default, or does not start: a node that should reset itself does not.",
    remedy="As in sbd(8): times in seconds, SBD_STARTMODE=always or clean, 1 or 3 disks by persistent names.",
    source=SBD,
)
def sbd_setting_wrong(setup: Setup) -> Iterator[str]:
    """Find settings of sbd that are misspelt or out of range."""
    values, known = setup.sbd, options_of("sbd settings")
    for name, value in values.items():
        if name not in known and meant(name, known):
            yield f"sbd: {name} may mean {meant(name, known)}"
        if name == "SBD_STARTMODE" and value not in ("always", "clean"):
            yield f"sbd: SBD_STARTMODE={value}"
        if name == "SBD_WATCHDOG_TIMEOUT" and not (value.isdecimal() and 2 <= int(value) <= 300):
            yield f"sbd: SBD_WATCHDOG_TIMEOUT={value}"
        if value and (wanted := known[name].complaint(value) if name in known else ""):
            yield f"sbd: {name}={value}, not {wanted}"
        if name == "SBD_TIMEOUT_ACTION" and not _TIMEOUT_ACTION.fullmatch(value):
            yield f"sbd: SBD_TIMEOUT_ACTION={value}"
        if name == "SBD_WATCHDOG" and value.lower() in ("no", "0", "false", "off"):
            yield f"sbd: SBD_WATCHDOG={value}"
    disks = list(filter(None, re.split(r"[;\s]+", values.get("SBD_DEVICE", ""))))
    if len(disks) == 2:
        yield "sbd: with two disks the loss of either is the loss of sbd"
    for disk in disks:
        if not disk.startswith("/") or _UNSTABLE.fullmatch(disk):
            yield f"sbd: SBD_DEVICE={disk}"


@rule("pacemaker").error(
    reason="healthLNET and ping need different names: NIDs for lctl ping, addresses for ping. Names of the other kind "
    "never answer.",
    remedy="lctl=true with NIDs in host_list, or lctl=false with addresses.",
    source=OWN,
)
def watched_hosts_of_the_wrong_kind(setup: Setup) -> Iterator[str]:
    """Find watchers whose hosts are written the wrong way: NIDs for LNet, addresses otherwise."""
    for primitive in setup.pacemaker.services:
        hosts = primitive.values.get("host_list", "").split()
        with_nids = primitive.agent == "healthLNET" and is_true(primitive.values.get("lctl", "true"))
        for host in hosts if primitive.agent in PINGING else ():
            if ("@" in host) != with_nids:
                yield f"cib: {primitive.id} watches {host}"
