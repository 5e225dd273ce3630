"""Rules about what stands between a node and its disks: LVM, multipath, iSCSI, pools of ZFS, and disks of sbd."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile

from strakes.failover.cib_values import is_true
from strakes.failover.rules.commands import enabled_units
from strakes.failover.rules.fencing_devices import plug_of
from strakes.failover.rules.layers import volume_groups, volume_named
from strakes.failover.rules.mentions import mentions_of
from strakes.failover.rules.rule import AGENTS, MULTIPATH, QDEVICE, SBD, rule
from strakes.failover.setup import Setup

_LVM = "https://manpages.debian.org/bookworm/lvm2/lvm.conf.5.en.html"
_UNSTABLE = re.compile(r"/dev/(sd[a-z]+|nvme\d+n\d+p?|vd[a-z]+|hd[a-z])\d*")
_REDUNDANT = re.compile(r"mirror|raidz[123]?|draid[123]?(:\S+)?")
_FEWEST_WITHOUT = 3
_NO_PLACE = re.compile(r"/dev/(?!(mapper|disk/by-[a-z-]+|zvol|md|drbd|vx|dm-|sd|nvme|loop)\b)\w+/?$")


def _inside(text: str, name: str) -> list[str]:
    """Return what stands in the braces of each section of that name."""
    return re.findall(rf"\b{name}\s*\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}", text)


def _values(text: str) -> dict[str, str]:
    return {name: value.strip().strip('"') for name, value in re.findall(r"(?m)^\s*(\w+)[ \t]+(\S.*?)\s*$", text)}


def _aliases(setup: Setup) -> list[tuple[str, str]]:
    """Return alias and WWID of each disk that multipath.conf names."""
    found = []
    for block in _inside(setup.bare("etc/multipath.conf"), "multipath"):
        values = _values(block)
        if values.get("alias") and values.get("wwid"):
            found.append((values["alias"], values["wwid"]))
    return found


@rule("pacemaker").error(
    reason="LVM-activate relies on lvm.conf: if the system has no name, any node can activate the volume group.",
    remedy='system_id_source = "uname" in lvm.conf; auto_activation_volume_list without the shared volume groups.',
    source=f"{AGENTS}/LVM-activate",
)
def volumes_activated_beside_pacemaker(setup: Setup) -> Iterator[str]:
    """Find groups of volumes that lvm.conf does not keep for one node."""
    text = setup.bare("etc/lvm/lvm.conf")
    source = re.search(r"\bsystem_id_source\s*=\s*\"(\w+)\"", text)
    listed = re.search(r"\bauto_activation_volume_list\s*=\s*\[([^\]]*)\]", text)
    for one in setup.pacemaker.services:
        if one.agent not in ("LVM-activate", "LVM") or not text:
            continue
        mode, group = one.values.get("vg_access_mode", ""), one.values.get("vgname") or one.values.get("volgrpname", "")
        # The older agent marks a group with the name of its node, if it is told to have it alone.
        if one.agent == "LVM":
            mode = "tagging" if is_true(one.values.get("exclusive", "")) else ""
        if re.search(rf'\bread_only_volume_list\s*=\s*\[[^\]]*"{re.escape(group)}["/]', text):
            yield f"lvm.conf: read_only_volume_list has {group}, which {one.id} activates"
        allowed = re.search(r"(?<!activation_)\bvolume_list\s*=\s*\[([^\]]*)\]", text)
        named = bool(allowed and re.search(rf'"{re.escape(group)}[/"]', allowed[1]))
        if mode == "tagging" and named:
            yield f"lvm.conf: volume_list has {group}, which {one.id} activates by its tag"
        # With tags the agent allows the group by itself, and only where it activates it.
        if mode != "tagging" and allowed and "@" not in allowed[1] and not named:
            yield f"lvm.conf: volume_list has no {group}, which {one.id} activates"
        for name in _rejecting_all(text):
            yield f"lvm.conf: {name} rejects all disks, and {one.id} activates {group}"
        if mode == "system_id" and source and source[1] == "none":
            yield f'lvm.conf: system_id_source = "none", and {one.id} has vg_access_mode=system_id'
        if mode == "lvmlockd" and re.search(r"\buse_lvmlockd\s*=\s*0", text):
            yield f"lvm.conf: use_lvmlockd = 0, and {one.id} has vg_access_mode=lvmlockd"
        if mode in ("tagging", "system_id") and listed and f'"{group}"' in listed[1]:
            yield f"lvm.conf: auto_activation_volume_list has {group}, which {one.id} activates"


@rule("drbd").error(
    reason="Because of lvm.conf, the volume below DRBD is not activated when the node starts: DRBD has no disk there, "
    "and the second copy is missing.",
    remedy="Use a filter that accepts the disks of that volume group and rejects /dev/drbd; add the group to "
    "auto_activation_volume_list and to volume_list.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-lvm.adoc",
)
def disk_below_drbd_not_activated(setup: Setup) -> Iterator[str]:
    """Find volumes below DRBD that LVM does not see, or that nobody activates."""
    text = setup.bare("etc/lvm/lvm.conf")
    disks = {volume[1] for one in setup.drbd for host in one.hosts for volume in host.volumes.values()}
    groups = sorted({volume_named(disk)[0] for disk in disks} - {""})
    by_pacemaker = {group for _, group, _ in volume_groups(setup.cib)} if setup.cib else set()
    by_hand = [
        line for one in setup.texts.values() for line in one.splitlines() if re.search(r"\b(vg|lv)change\b", line)
    ]
    for group in groups if text else ():
        for name in _rejecting_all(text):
            yield f"lvm.conf: {name} rejects all disks, and DRBD has its disk in {group}"
        if re.search(rf'\bread_only_volume_list\s*=\s*\[[^\]]*"{re.escape(group)}["/]', text):
            yield f"lvm.conf: read_only_volume_list has {group}, in which DRBD has its disk"
        for name in ("volume_list", "auto_activation_volume_list"):
            listed = re.search(rf"(?<!\w){name}\s*=\s*\[([^\]]*)\]", text)
            # A tag may be on any group; a command or Pacemaker may activate what does not come by itself.
            if not listed or "@" in listed[1] or re.search(rf'"{re.escape(group)}["/]', listed[1]):
                continue
            activated = group in by_pacemaker or any(group in line for line in by_hand)
            if name == "volume_list" or not activated:
                yield f"lvm.conf: {name} has no {group}, in which DRBD has its disk"


def _rejecting_all(text: str) -> Iterator[str]:
    """Yield the filters that reject every disk: the first pattern that matches decides."""
    for name, rows in re.findall(r"\b((?:global_)?filter)\s*=\s*\[((?:[\s,]*\"[^\"]*\")*)", text):
        earlier = re.split(r"\"r(?:\|\.\*\||/\.\*/)\"", rows)
        accepted = re.findall(r"\"a(.)(.*?)\1\"", earlier[0])
        # What lies on DRBD is accepted, and not what DRBD lies on.
        if len(earlier) > 1 and all("drbd" in pattern for _, pattern in accepted):
            yield name


@rule().error(
    reason="LVM refuses a file with unbalanced braces: none of its commands works, and no volume is activated.",
    remedy="Check with: lvmconfig --validate",
    source=_LVM,
)
def lvm_conf_broken(setup: Setup) -> Iterator[str]:
    """Find files of LVM whose braces or brackets do not match."""
    for name in ("etc/lvm/lvm.conf", "etc/lvm/lvmlocal.conf"):
        text = re.sub(r"\"(?:[^\"\\\n]|\\.)*\"", "", re.sub(r"(?m)^([^\"\n#]*)#.*$", r"\1", setup.texts.get(name, "")))
        text = re.sub(r"(?m)#.*$", "", text)
        for opening, closing in ("{}", "[]"):
            opened, closed = text.count(opening), text.count(closing)
            if opened != closed:
                yield f"{name.removeprefix('etc/')}: {opened} {opening} and {closed} {closing}"


@rule("pacemaker").error(
    reason="fence_mpath uses the key in multipath.conf; without a key, or with the same one on both nodes, no node is "
    "kept out.",
    remedy="Set reservation_key in the defaults section of multipath.conf, to a different key on each node.",
    source="https://github.com/ClusterLabs/fence-agents/blob/main/agents/mpath/fence_mpath.py",
)
def multipath_reservation_key_wrong(setup: Setup) -> Iterator[str]:
    """Find fencing by reservations of multipath without its key."""
    text = setup.bare("etc/multipath.conf")
    of_file = re.compile(r"(?m)^\s*reservation_key\s+\"?((?:0x)?[0-9a-fA-F]+)\b")
    for device in setup.pacemaker.devices:
        if device.agent != "fence_mpath":
            continue
        if text and not re.search(r"\breservation_key\b", text):
            yield f"multipath.conf: no reservation_key, and {device.id} is fence_mpath"
        owners: dict[str, str] = {}
        for name, of_node in setup.texts.items():
            node = re.fullmatch(r"nodes/([^/]+)/etc/multipath\.conf", name)
            for key in of_file.findall(of_node) if node else ():
                if node and owners.setdefault(key, node[1]) != node[1]:
                    yield f"multipath.conf: reservation_key {key} is that of {owners[key]} and {node[1]}"
        one_key = of_file.search(text)
        keys = {plug_of(device, node) for node in setup.pacemaker.fences(device)}
        if one_key and len(keys) > 1 and not setup.node and "nodes" not in setup.parts:
            several = ", ".join(sorted(keys))
            yield f"multipath.conf: reservation_key {one_key[1]} is for every node, {device.id} has {several}"


@rule().error(
    reason="One disk looks like two: two targets, or two disks of a mirror, overwrite each other.",
    remedy="Use one alias for each disk: for each WWID in multipath.conf, for each path in vdev_id.conf.",
    source=MULTIPATH,
)
def disk_with_two_names(setup: Setup) -> Iterator[str]:
    """Find disks with two aliases, and aliases of two disks."""
    of_zfs = re.findall(r"(?m)^\s*alias\s+(\S+)\s+(\S+)", setup.bare("etc/zfs/vdev_id.conf"))
    for file, known in (("multipath.conf", _aliases(setup)), ("zfs/vdev_id.conf", of_zfs)):
        for column, what in ((1, "the disk"), (0, "the alias")):
            for value, times in Counter(pair[column] for pair in known).items():
                others = sorted({pair[1 - column] for pair in known if pair[column] == value})
                if times > 1:
                    yield f"{file}: {what} {value} is {' and '.join(others)}"


@rule().error(
    reason="multipath ignores the disks in its blacklist: the aliases that the cluster uses do not exist.",
    remedy="Remove the line from the blacklist, or add the disks to blacklist_exceptions.",
    source=MULTIPATH,
)
def disk_hidden_from_multipath(setup: Setup) -> Iterator[str]:
    """Find blacklists of all SCSI disks, or of a disk that has an alias."""
    text = setup.bare("etc/multipath.conf")
    known = _aliases(setup)
    excepted = re.search(r"\bblacklist_exceptions\s*\{\s*\w", text)
    listed = "\n".join(_inside(text, "blacklist"))
    if not listed or excepted:
        return
    configured = [_values(block) for block in _inside("\n".join(_inside(text, "devices")), "device")]
    for block in _inside(listed, "device"):
        names = {name: value for name, value in _values(block).items() if name in ("vendor", "product")}
        for values in configured:
            vendor, product = values.get("vendor", ""), values.get("product", "")
            if names and all(name in values and _matches(names[name], values[name]) for name in names):
                yield f"multipath.conf: the blacklist has {' '.join(names.values())}, which hides {vendor} {product}"
    for key, value in re.findall(r"(?m)^\s*(protocol|property)\s+\"?([^\"\n]+?)\"?\s*$", listed):
        # The kinds of disks that several paths lead to, and the properties that all of them have.
        if any(_matches(value, one) for one in ("scsi:fcp", "scsi:iscsi", "scsi:sas", "SCSI_IDENT_SERIAL", "ID_WWN")):
            yield f"multipath.conf: the blacklist has {key} {value}"
    for key, value in re.findall(
        r"(?m)^\s*(devnode|wwid)\s+\"?([^\"\n]+?)\"?\s*$", listed if known or configured else ""
    ):
        pattern = value.lstrip("!")
        try:
            if key == "devnode" and not value.startswith("!") and re.match(pattern, "sdb"):
                lost = [one for one, _ in known] or [values.get("vendor", "") for values in configured]
                yield f"multipath.conf: the blacklist has {value}, which hides {', '.join(lost[:6])}"
            for alias, wwid in known if key == "wwid" else ():
                if re.match(pattern, wwid):
                    yield f"multipath.conf: the blacklist has the disk of {alias}"
        except re.error:
            continue


@rule().error(
    reason="multipathd understands the file differently than it looks: it skips sections, or sends requests to "
    "controllers that do not own the disk.",
    remedy="Check with: multipath -t; for arrays with ALUA: path_grouping_policy group_by_prio, prio alua.",
    source=MULTIPATH,
)
def multipath_conf_misread(setup: Setup) -> Iterator[str]:
    """Find braces that do not match, and groups of paths that take no notice of ALUA."""
    for name in setup.texts:
        if not re.fullmatch(r"etc/multipath(\.conf|/conf\.d/.*)", name):
            continue
        text = re.sub(r'"[^"\n]*"', "", setup.bare(name))
        if text.count("{") != text.count("}"):
            yield f"{name.removeprefix('etc/')}: {text.count('{')} braces are opened, {text.count('}')} are closed"
        for kind in ("defaults", "device", "overrides", "multipath"):
            for block in _inside(setup.bare(name), kind):
                values = _values(block)
                alua = values.get("prio") == "alua" or values.get("hardware_handler", "").endswith(" alua")
                if alua and values.get("path_grouping_policy") == "multibus":
                    yield f"{name.removeprefix('etc/')}: {kind} has path_grouping_policy multibus, and ALUA"


@rule("pacemaker").error(
    reason="Only lvmlockd keeps two nodes from changing one volume group at the same time.",
    remedy="activation_mode=exclusive; or vg_access_mode=lvmlockd with a file system for several nodes, such as GFS2.",
    source=f"{AGENTS}/LVM-activate",
)
def volumes_shared_without_locks(setup: Setup) -> Iterator[str]:
    """Find groups that are activated on all nodes without lvmlockd."""
    for one in setup.pacemaker.services:
        mode = one.values.get("vg_access_mode", "")
        if one.agent == "LVM-activate" and one.values.get("activation_mode") == "shared" and mode != "lvmlockd":
            yield f"cib: {one.id} has activation_mode=shared and vg_access_mode={mode or '(none)'}"


def _filter(setup: Setup) -> list[tuple[str, str]]:
    """Return the rows of LVM's filter: a for accept or r for reject, and the pattern of disks."""
    match = re.search(r"\b(?:global_)?filter\s*=\s*\[((?:[\s,]*\"[^\"]*\")*)", setup.bare("etc/lvm/lvm.conf"))
    rows = re.findall(r"\"([ar])(.)(.*?)\2\"", match[1]) if match else []
    return [(kind, pattern) for kind, _, pattern in rows]


def _accepted(setup: Setup) -> list[str]:
    """Return the patterns of the disks that LVM's filter accepts, where it rejects all others."""
    rows = _filter(setup)
    rejects_rest = ("r", ".*") in rows or ("r", "") in rows
    return [pattern for kind, pattern in rows if kind == "a" and rejects_rest]


def _rejected_first(setup: Setup) -> list[str]:
    """Return the patterns of disks that LVM's filter rejects before it accepts any."""
    return [pattern for _, pattern in takewhile(lambda row: row[0] == "r", _filter(setup))]


def _matches(pattern: str, device: str) -> bool:
    try:
        return bool(re.search(pattern, device))
    except re.error:
        return False


@rule("pacemaker").error(
    reason="LVM's filter rejects every disk in multipath.conf: the volume group has no disk on any node.",
    remedy="Use a filter in lvm.conf that accepts the aliases, for example a|^/dev/mapper/san_.*|.",
    source=_LVM,
)
def disks_hidden_from_lvm(setup: Setup) -> Iterator[str]:
    """Find filters of LVM that accept none of the disks with an alias, where LVM is used."""
    accepted, known = _accepted(setup), [f"/dev/mapper/{alias}" for alias, _ in _aliases(setup)]
    used = any(one.agent in ("LVM", "LVM-activate", "clvm") for one in setup.pacemaker.services)
    for pattern in _rejected_first(setup) if used and not setup.drbd else ():
        if setup.texts.get("etc/multipath.conf") and _matches(pattern, "/dev/mapper/mpatha"):
            yield f"lvm.conf: the filter rejects {pattern}, and multipath.conf has disks for it"
    if used and accepted and known and not any(_matches(one, device) for one in accepted for device in known):
        yield f"lvm.conf: the filter accepts {', '.join(accepted)}; multipath.conf has {', '.join(known[:6])}"


@rule("sbd").error(
    reason="sbd writes its messages to the beginning of its disk, and overwrites the data there.",
    remedy="Set SBD_DEVICE to small disks that nothing else uses; check each with: sbd -d DISK dump",
    source=SBD,
)
def sbd_disk_holds_data(setup: Setup) -> Iterator[str]:
    """Find disks of sbd that are made for data: LVM's filter accepts them, or other files name them."""
    devices = [device for device in setup.sbd.get("SBD_DEVICE", "").split(";") if device]
    accepted = [pattern for pattern in _accepted(setup) if re.search(r"\w{3}", pattern.replace("mapper", ""))]
    named = {mention.name: mention.where for mention in mentions_of(setup) if not mention.where.startswith("sbd")}
    for device in devices:
        for pattern in accepted:
            if _matches(pattern, device):
                yield f"sbd: SBD_DEVICE has {device}, lvm.conf accepts it by {pattern}"
        if device in named and "multipath.conf" not in named[device] and not _fences(setup, device):
            yield f"sbd: SBD_DEVICE has {device}, so has {named[device]}"


def _fences(setup: Setup, device: str) -> bool:
    return any(device in value for one in setup.devices for value in one.values.values())


@rule("pacemaker").error(
    reason="multihost keeps a second node from importing a pool that is in use. An import from a directory without "
    "disks finds no pool.",
    remedy="Remove -o multihost=off; use -d /dev/disk/by-id or /dev/mapper.",
    source="https://openzfs.github.io/openzfs-docs/man/master/7/zpoolprops.7.html",
)
def pool_import_unguarded(setup: Setup) -> Iterator[str]:
    """Find imports that switch multihost off, or look for disks where none are."""
    for one in setup.pacemaker.services:
        arguments = one.values.get("importargs", "") if one.agent == "ZFS" else ""
        places = re.findall(r"-d\s*(\S+)", arguments)
        if "multihost=off" in arguments or any(_NO_PLACE.match(place) for place in places):
            yield f"cib: {one.id} has importargs={arguments}"


@rule("lustre").error(
    reason="With sync=disabled, a pool acknowledges data that are only in memory: if the node fails, acknowledged "
    "writes are lost.",
    remedy="Remove -O sync=disabled.",
    source="https://openzfs.github.io/openzfs-docs/man/master/7/zfsprops.7.html",
)
def pool_acknowledges_unwritten_data(setup: Setup) -> Iterator[str]:
    """Find pools that do not write what they acknowledge."""
    for line in re.sub(r"\\\n", " ", setup.lustre).splitlines():
        if line.strip().startswith("zpool create") and re.search(r"\bsync=disabled\b", line):
            yield f"make-targets.sh: {line.strip()[:70]} ... has sync=disabled"


@rule("description").warning(
    reason="Each node numbers its disks as it finds them, so sda may be a different disk after a restart; and a pool "
    "without mirror or raidz is lost with its first disk.",
    remedy="Use names in /dev/mapper or /dev/disk/by-id, with mirror, raidz2 or draid before them.",
    source="https://openzfs.github.io/openzfs-docs/man/master/7/zpoolconcepts.7.html",
)
def described_disk_doubtful(setup: Setup) -> Iterator[str]:
    """Find described disks with names that change, and pools of several disks without redundancy."""
    for target in setup.described.targets:
        disks = [word for word in target.vdevs if word.startswith("/dev/")]
        shared_disks = [*disks, *(target.devices.values() if target.shared else ())]
        for device in dict.fromkeys(shared_disks):
            if _UNSTABLE.fullmatch(device):
                yield f"cluster.toml: {target.name} has {device}"
        if len(disks) >= _FEWEST_WITHOUT and not any(map(_REDUNDANT.fullmatch, target.vdevs)):
            yield f"cluster.toml: {target.name} has {len(disks)} disks without mirror or raidz"


@rule("units", "corosync").error(
    reason="Other units of the cluster are enabled, but this one is not: after a restart of the node something is "
    "missing, such as the vote of the quorum device, sbd, or the names of the disks.",
    remedy="systemctl enable UNIT on all nodes.",
    source=QDEVICE,
)
def cluster_unit_not_enabled(setup: Setup) -> Iterator[str]:
    """Find programs that the configuration needs and that nothing starts at boot."""
    enabled = enabled_units(setup)
    if not {"pacemaker.service", "corosync.service"} & enabled:
        return
    if setup.membership.one("quorum").one("device").get("model") == "net" and "corosync-qdevice.service" not in enabled:
        yield "systemd: corosync-qdevice.service is not enabled, corosync.conf has a quorum device"
    watched = is_true(setup.cib.properties.get("have-watchdog", "")) if setup.cib else False
    early = [name for name in setup.units if name.startswith("sysinit.target.wants/")]
    if early and _aliases(setup) and "multipathd.service" not in enabled:
        yield "systemd: multipathd.service is not enabled, multipath.conf names the disks"
    if (setup.sbd.get("SBD_DEVICE") or watched) and "sbd.service" not in enabled:
        yield "systemd: sbd.service is not enabled"
