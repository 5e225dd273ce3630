"""Rules about what starts on a node, where its disks come from, and files that must agree with the cluster's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.rules.commands import commands_run, enabled_units
from strakes.failover.rules.lustre import made_targets, options_given
from strakes.failover.rules.rule import AGENTS, MKFS, MULTIPATH, OWN, rule
from strakes.failover.setup import Setup

_ALWAYS_NEEDED = ("pacemaker", "corosync", "sbd", "corosync-qdevice", "multipathd", "iscsid", "resource-agents-deps")
# What agents start by systemctl.
_NEEDED_BY = {"nfsserver": ("nfs-server", "rpc-statd", "rpcbind", "nfs-mountd", "nfs-idmapd"), "controld": ("dlm",)}
_OTHER_MANAGERS = ("heartbeat", "cman", "rgmanager", "openais", "keepalived", "pacemaker_remote")
_SYSTEM_ID_SOURCES = ("none", "uname", "lvmlocal", "machineid", "appmachineid", "file")
_LOCAL = re.compile(r"/dev/(sd[a-z]+|nvme\d+n\d+|vd[a-z]+|hd[a-z])p?\d*")
# Options of zpool import that take what another node has written, or what is not there.
_IMPORT = {
    "-F": "goes back to an older state of the pool",
    "-X": "goes back to an older state of the pool",
    "-D": "imports pools that were destroyed",
    "-a": "imports every pool that it finds",
    "-m": "imports a pool without its log, and what that has acknowledged",
    "-c": "believes a file in place of the disks",
}


@rule("units").error(
    reason="A unit that is a link to /dev/null, or empty, cannot be started by anything, including Pacemaker and its "
    "agents.",
    remedy="systemctl unmask UNIT; to keep systemd from starting it, disable is enough.",
    source="https://www.freedesktop.org/software/systemd/man/latest/systemctl.html",
)
def unit_masked(setup: Setup) -> Iterator[str]:
    """Find masked units that the cluster needs."""
    services = setup.services
    needed = set(_ALWAYS_NEEDED)
    for one in services:
        needed |= {one.agent.removesuffix(".service")} if one.standard in ("systemd", "service") else set()
        needed |= set(_NEEDED_BY.get(one.agent, ()))
    for name, text in setup.units.items():
        if "/" not in name and not text.strip() and name.rpartition(".")[0] in needed:
            yield f"systemd: {name} is masked"


@rule("units", "pacemaker").error(
    reason="Two programs then manage one node, or use one watchdog: the second one fails, or works against the first.",
    remedy="systemctl disable the other one on all nodes.",
    source=OWN,
)
def conflicting_program_enabled(setup: Setup) -> Iterator[str]:
    """Find cluster managers and watchdog daemons that are enabled beside Pacemaker and sbd."""
    enabled = enabled_units(setup)
    for name in _OTHER_MANAGERS:
        if f"{name}.service" in enabled and (name != "pacemaker_remote" or "pacemaker.service" in enabled):
            yield f"systemd: {name}.service is enabled beside Pacemaker"
    if "watchdog.service" in enabled and setup.sbd:
        yield "systemd: watchdog.service is enabled, and sbd holds the watchdog"


@rule("units", "pacemaker").error(
    reason="What Pacemaker mounts or starts is not there at boot: a unit that requires it starts it behind Pacemaker's "
    "back, or waits until it fails.",
    remedy="Remove the line; for a service that Pacemaker starts, use constraints.",
    source="https://www.freedesktop.org/software/systemd/man/latest/systemd.unit.html",
)
def unit_depends_on_a_cluster_resource(setup: Setup) -> Iterator[str]:
    """Find units that start at boot and require what Pacemaker mounts or starts."""
    cib, enabled = setup.pacemaker, enabled_units(setup)
    mounts = {one.mount_point for one in cib.services if one.is_mount and one.mount_point}
    units = {f"{place.strip('/').replace('/', '-')}.mount": place for place in mounts}
    managed = {
        f"{one.agent.removesuffix('.service')}.service"
        for one in cib.services
        if one.standard in ("systemd", "service")
    }
    managed |= {"drbd.service"} if any(one.is_drbd for one in cib.primitives) else set()
    for name, text in setup.units.items():
        unit = name.partition(".d/")[0]
        if unit in managed or not (unit in enabled or unit.partition(".")[0] in _ALWAYS_NEEDED or ".d/" in name):
            continue
        for key, value in re.findall(r"(?m)^\s*(Requires|Wants|BindsTo|Requisite|RequiresMountsFor)\s*=\s*(.*)$", text):
            for word in value.split():
                below = key == "RequiresMountsFor" and any(f"{word}/".startswith(f"{place}/") for place in mounts)
                if below or word in units or word in managed:
                    yield f"systemd: {unit} has {key}={word}, which is Pacemaker's"


@rule("pacemaker").error(
    reason="Only lvm.conf enforces vg_access_mode: without it, or if the other node's name is allowed, both nodes may "
    "activate the volume group.",
    remedy='system_id: system_id_source = "uname", no extra_system_ids. tagging: volume_list with the node\'s own '
    "groups.",
    source=f"{AGENTS}/LVM-activate",
)
def volume_group_owner_not_enforced(setup: Setup) -> Iterator[str]:
    """Find files of LVM that do not keep what LVM-activate counts on."""
    text = setup.bare("etc/lvm/lvm.conf")
    own = setup.bare("etc/lvm/lvmlocal.conf")
    for one in setup.pacemaker.services if text else ():
        mode = one.values.get("vg_access_mode", "") if one.agent == "LVM-activate" else ""
        found = re.search(r"\bsystem_id_source\s*=\s*\"?(\w+)", text)
        source = found[1] if found else ""
        if mode == "system_id" and not source:
            yield f"lvm.conf: no system_id_source, and {one.id} has vg_access_mode=system_id"
        elif mode == "system_id" and source not in _SYSTEM_ID_SOURCES:
            yield f"lvm.conf: system_id_source is {source}"
        elif mode == "system_id" and source == "lvmlocal" and own and not re.search(r"\bsystem_id\s*=", own):
            yield f"lvmlocal.conf: no system_id, and {one.id} has vg_access_mode=system_id"
        if mode == "lvmlockd" and not re.search(r"\buse_lvmlockd\s*=\s*1", text):
            yield f"lvm.conf: no use_lvmlockd = 1, and {one.id} has vg_access_mode=lvmlockd"
        if mode == "tagging" and not re.search(r"(?<!activation_)\bvolume_list\s*=", text):
            yield f"lvm.conf: no volume_list, and {one.id} has vg_access_mode=tagging"
    given = re.search(r"\bextra_system_ids\s*=\s*\[([^\]]*)\]", own)
    for name in re.findall(r"\"([^\"]+)\"", given[1]) if given else ():
        if name in setup.node_names:
            yield f"lvmlocal.conf: extra_system_ids has {name}"


@rule("pacemaker").error(
    reason="An import with this option does not restore acknowledged writes, or imports more than its pool.",
    remedy="Remove the option from importargs; -d with the directory of the disks is enough.",
    source="https://openzfs.github.io/openzfs-docs/man/master/8/zpool-import.8.html",
)
def pool_import_dangerous(setup: Setup) -> Iterator[str]:
    """Find options of zpool import that lose data, or import others' pools."""
    for one in setup.pacemaker.services:
        for word in one.values.get("importargs", "").split() if one.agent == "ZFS" else ():
            for option, because in _IMPORT.items():
                if re.fullmatch(rf"-[fN]*{option[1]}", word):
                    yield f"cib: {one.id} has importargs={one.values['importargs']}: {option} {because}"


@rule("lustre").error(
    reason="A log or a journal on a disk inside one node is missing when the other node takes over: the pool or the "
    "target is not imported, or loses the writes that the log has acknowledged.",
    remedy="Use a shared disk for it, as for the data: /dev/mapper/..., /dev/disk/by-id/...",
    source="https://openzfs.github.io/openzfs-docs/man/master/7/zpoolconcepts.7.html",
)
def part_of_a_target_on_one_node(setup: Setup) -> Iterator[str]:
    """Find logs of pools and journals of targets on a node's own disks."""
    for command in commands_run(setup):
        words = list(command.words)
        if words[:2] in (["zpool", "create"], ["zpool", "add"]) and "log" in words:
            after = words[words.index("log") + 1 :]
            local = [word for word in after if _LOCAL.fullmatch(word)]
            # What is added later goes to a pool that is made elsewhere.
            shared = words[1] == "add" or [
                word for word in words[: words.index("log")] if word.startswith("/dev/") and not _LOCAL.fullmatch(word)
            ]
            where = command.file.rpartition("/")[2]
            yield from (f"{where}: the log of a pool is {word}" for word in local if shared)
        if words[0] == "mkfs.lustre":
            for device in re.findall(r"\bdevice=(/dev/\S+)", " ".join(words)):
                if _LOCAL.fullmatch(device) or device == words[-1]:
                    yield f"make-targets.sh: the journal of {words[-1]} is {device}"


@rule("lustre").error(
    reason="mkfs.lustre refuses this combination, or makes a target that lacks what Lustre needs.",
    remedy="Use one of --mdt and --ost; --mgsnode unless there is --mgs; and the features that mkfs.lustre chooses by "
    "itself.",
    source=MKFS,
)
def mkfs_lustre_options_contradict(setup: Setup) -> Iterator[str]:
    """Find options that exclude each other, kinds of disks that are none, and features that are taken away."""
    for words in made_targets(setup):
        given = options_given(words)
        if "--mdt" in given and "--ost" in given:
            yield f"make-targets.sh: {words[-1]} is made as --mdt and as --ost"
        if "--mgs" in given and "--mgsnode" in given:
            yield f"make-targets.sh: {words[-1]} has --mgs and --mgsnode"
        if words[0] == "mkfs.lustre" and not {"--mgs", "--mdt", "--ost"} & set(given):
            yield f"make-targets.sh: {words[-1]} is neither --mgs nor --mdt nor --ost"
        if given.get("--backfstype", "ldiskfs") not in ("ldiskfs", "zfs", "wbcfs"):
            yield f"make-targets.sh: {words[-1]} has --backfstype={given['--backfstype']}"
        options = given.get("--mkfsoptions", "")
        for feature in re.findall(r"\^(dirdata|extents?|quota|ea_inode|large_dir|dir_index|sparse_super)\b", options):
            yield f"make-targets.sh: {words[-1]} is made with ^{feature}"
        size = re.search(r"-I\s*(\d+)", options)
        if size and "--mdt" in given and int(size[1]) < 512:
            yield f"make-targets.sh: {words[-1]} has inodes of {size[1]} bytes, too small for its attributes"
        mounted = given.get("--mountfsoptions", "").split(",")
        for word in ("ro", "data=writeback", "journal_async_commit", "nouser_xattr", "commit=0"):
            if word in mounted:
                yield f"make-targets.sh: {words[-1]} has --mountfsoptions with {word}"


@rule().error(
    reason="ldev.conf says which node has which target: with an unknown node, or a target or disk listed twice, a "
    "target is mounted on the wrong node or on both.",
    remedy="LOCAL FOREIGN LABEL DEVICE: the two nodes of the pair, and each label and device once.",
    source="https://github.com/lustre/lustre-release/blob/master/lustre/doc/ldev.conf.5",
)
def ldev_conf_contradicts_itself(setup: Setup) -> Iterator[str]:
    """Find lines of ldev.conf that contradict each other, or name nodes that are none."""
    seen: set[str] = set()
    known = {part for full in setup.node_names for part in (full, full.partition(".")[0])}
    for line in setup.texts.get("etc/ldev.conf", "").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) < 4:
            yield f"ldev.conf: {' '.join(words)} has fewer than four words"
            continue
        local, foreign, label, device = words[:4]
        if local == foreign:
            yield f"ldev.conf: {label} has {local} twice"
        for name in sorted({local, foreign} - {"-"}):
            if known and name not in known:
                yield f"ldev.conf: {label} is on {name}, which is no node"
        for thing in (label, re.sub(r"^(zfs|md|lustre):", "", device)):
            if thing in seen:
                yield f"ldev.conf: {thing} stands twice"
            seen.add(thing)


@rule("pacemaker").error(
    reason="fence_kdump waits for messages from the node that dumps: kdump sends them only to the nodes listed in "
    "kdump.conf, and only if memory is reserved for it.",
    remedy="List all other nodes in fence_kdump_nodes in kdump.conf; add crashkernel=auto or a size to the kernel's "
    "command line.",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/agents/kdump/fence_kdump.c",
)
def kdump_not_announced(setup: Setup) -> Iterator[str]:
    """Find fencing by kdump without its nodes, or without memory for it."""
    if not any(device.agent == "fence_kdump" for device in setup.pacemaker.devices):
        return
    text = setup.bare("etc/kdump.conf")
    if text.strip() and not re.search(r"(?m)^\s*fence_kdump_nodes\s+\S", text):
        yield "kdump.conf: no fence_kdump_nodes"
    grub = setup.bare("etc/default/grub")
    if grub and "crashkernel=" not in grub:
        yield "default/grub: no crashkernel"
    enabled = enabled_units(setup)
    if {"pacemaker.service", "corosync.service"} & enabled and not {"kdump.service", "kdump-tools.service"} & enabled:
        yield "systemd: kdump.service is not enabled"


@rule().error(
    reason="The number before the features must be the number of words that follow: otherwise the kernel refuses the "
    "table, and the disk does not appear.",
    remedy='Use no_path_retry instead of features; or features "1 queue_if_no_path".',
    source=MULTIPATH,
)
def multipath_features_miscounted(setup: Setup) -> Iterator[str]:
    """Find features and handlers of multipath with the wrong number before them."""
    for name, value in re.findall(
        r"(?m)^\s*(features|hardware_handler)\s+\"([^\"]*)\"", setup.texts.get("etc/multipath.conf", "")
    ):
        words = value.split()
        if words and (not words[0].isdecimal() or int(words[0]) != len(words) - 1):
            yield f'multipath.conf: {name} "{value}"'


# Lines of these may differ: each node has its own.
_OWN_LINES = re.compile(
    r"^\s*(#.*|system_id\s*=.*|PCMK_remote_address=.*|reservation_key\s.*|bindnetaddr:.*|InitiatorName=.*|host\s*=.*|name\s*=.*)?$"
)
_OWN_FILES = re.compile(
    r"etc/(hostid|hostname|fstab|crypttab|mdadm(/mdadm)?\.conf|lvm/lvmlocal\.conf|iscsi/initiatorname\.iscsi|default/grub"
    r"|machine-id|zfs/vdev_id\.conf|sysconfig/network(-scripts)?/.*|NetworkManager/.*|netplan/.*|network/.*"
    r"|systemd/network/.*)"
)
# Cards have other names on other machines.
_OF_CARDS = re.compile(r"etc/(sysconfig/network(-scripts)?|NetworkManager|netplan|network|systemd/network)/.*")
_MUST_DIFFER = re.compile(r"etc/(hostid|hostname|machine-id|iscsi/initiatorname\.iscsi)")


@rule("nodes").error(
    reason="After a take-over the other node serves with its own files: a difference is noticed only then. Files that "
    "identify a node, such as its hostid, must differ.",
    remedy="Copy the file to all nodes (csync2, pcs, ansible); give each node its own hostid, host name and initiator.",
    source=OWN,
)
def files_of_nodes_differ(setup: Setup) -> Iterator[str]:
    """Find files below nodes/NAME that differ and should not, that are on one node only, or that have to differ."""
    nodes: dict[str, dict[str, str]] = {}
    for name, text in setup.texts.items():
        if name.startswith("nodes/"):
            _, node, file = name.split("/", 2)
            nodes.setdefault(node, {})[file] = text
    if len(nodes) < 2:
        return
    first = next(iter(nodes))
    for file in dict.fromkeys(file for files in nodes.values() for file in files):
        without = [node for node, files in nodes.items() if file not in files]
        if without and not _OF_CARDS.fullmatch(file):
            yield f"{file} is not on {', '.join(without)}"
        if without:
            continue
        texts = {node: _compared(file, files[file]) for node, files in nodes.items()}
        for node, lines in texts.items():
            if node == first:
                continue
            if _MUST_DIFFER.fullmatch(file) and lines == texts[first]:
                yield f"{file} is the same on {first} and {node}"
            elif not _OWN_FILES.fullmatch(file) and lines != texts[first]:
                line = next(
                    iter(
                        [one for one in lines if one not in texts[first]]
                        or [one for one in texts[first] if one not in lines]
                        or ["(order)"]
                    )
                )
                yield f"{file} differs between {first} and {node}: {line.strip()[:80]}"


def _compared(file: str, text: str) -> list[str]:
    if _MUST_DIFFER.fullmatch(file):
        return text.split()
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if not _OWN_LINES.fullmatch(line)]
