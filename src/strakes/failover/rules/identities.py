"""Rules about what names a node or a disk: numbers that have to differ, names that have to agree."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from strakes.failover.rules.commands import commands_run, enabled_units
from strakes.failover.rules.lustre import made_targets, named_words, options_given
from strakes.failover.rules.node_options import settings_of_nodes
from strakes.failover.rules.rule import AGENTS, PACEMAKER, rule
from strakes.failover.setup import LIVE, Setup

_LNET = "https://github.com/lustre/lustre-release/blob/master/lustre/doc/lnetctl.8"
_INITIATOR = re.compile(r"iqn\.\d{4}-(0[1-9]|1[0-2])\.[\w.-]+(:\S+)?|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]+")
_SET_PARAM = re.compile(r"(?:osc|osp|mdc|lov|lod|mdt|mdd|obdfilter|ofd|osd-\w+|llite)\.([A-Za-z0-9_]{1,8})-")
_CONF_PARAM = re.compile(r"([A-Za-z0-9_]{1,8})(?:-(?:MDT|OST)[0-9a-f]{4})?\.(?:sys|quota|mdt|ost|osc|mdc|llite|lov)\.")
# Table, name, and values that are the same for all and should not be, with what goes wrong.
_OF_ONE_NODE = (
    ("module spl", "spl_hostid", r"(?!0+$|0x0+$).+", "multihost takes two nodes with one host id for one"),
    ("lvm.conf local", "system_id", ".+", "both nodes own the groups of volumes"),
    ("lvm.conf local", "host_id", "[1-9].*", "lvmlockd takes two nodes with one number for one"),
    ("sanlock.conf", "our_host_name", ".+", "sanlock takes two nodes with one name for one"),
    ("nfs.conf statd", "name", "(?={node}).+", "after a take-over clients do not know who calls them"),
)


@rule().warning(
    reason="The file is the same on all nodes, but what it sets must differ: the protection against a second node does "
    "not recognise a node with the same identity.",
    remedy="Put the line into a separate file for each node (here nodes/NAME/etc), or remove it where the program "
    "derives the value by itself.",
    source="https://openzfs.github.io/openzfs-docs/man/master/4/spl.4.html",
)
def node_identity_not_unique(setup: Setup) -> Iterator[str]:
    """Find identities of a node in files that all nodes have."""
    if setup.node or setup.where == LIVE:
        return
    names = "|".join(re.escape(name) for name in setup.node_names) or "(?!)"
    for given in settings_of_nodes(setup):
        for table, name, bad, because in _OF_ONE_NODE:
            pattern = bad.replace("{node}", rf"({names})$")
            if given.fits(table, name, pattern):
                yield f"{given.file}: {given.name}={given.value}: {because}"


@rule("nodes").error(
    reason="Corosync, Pacemaker and DRBD identify a node by its host name: with the name of another node, it is taken "
    "for that node, or for none.",
    remedy="hostnamectl set-hostname NAME, as in corosync.conf.",
    source=f"{PACEMAKER}/nodes.rst",
)
def host_name_of_another_node(setup: Setup) -> Iterator[str]:
    """Find nodes whose host name is that of another node, or of none."""
    known = set(setup.node_names)
    for name, text in setup.texts.items():
        found = re.fullmatch(r"nodes/([^/]+)/etc/hostname", name)
        given = text.split()[0] if found and text.split() else ""
        if found and found[1] in known and given and given != found[1] and not given.startswith(f"{found[1]}."):
            yield f"{found[1]}: hostname is {given}"


@rule().error(
    reason="Targets refuse a malformed initiator name, and CHAP without a user name cannot log in: the disks are "
    "missing.",
    remedy="InitiatorName=iqn.YYYY-MM.DOMAIN:NAME; node.session.auth.username together with authmethod = CHAP.",
    source="https://github.com/open-iscsi/open-iscsi/blob/master/README",
)
def iscsi_login_refused(setup: Setup) -> Iterator[str]:
    """Find names of initiators that are none, and logins without a user."""
    for name, text in setup.texts.items():
        if name.rpartition("/")[2] == "initiatorname.iscsi":
            for given in re.findall(r"(?m)^\s*InitiatorName\s*=\s*(.*?)\s*$", text):
                if not _INITIATOR.fullmatch(given):
                    yield f"{name.removeprefix('etc/')}: InitiatorName={given}"
    given = setup.settings_of("etc/iscsi/iscsid.conf")
    if given.get("node.session.auth.authmethod", "").upper() == "CHAP" and not given.get("node.session.auth.username"):
        yield "iscsi/iscsid.conf: authmethod = CHAP, and no username"


@rule("pacemaker").error(
    reason="nfsserver moves /var/lib/nfs from node to node; a program that keeps its list of clients elsewhere does "
    "not have it after a take-over, and clients lose their locks.",
    remedy="Remove the line from nfs.conf: the default is in /var/lib/nfs.",
    source=f"{AGENTS}/nfsserver",
)
def nfs_lock_state_not_shared(setup: Setup) -> Iterator[str]:
    """Find programs of NFS that keep their state beside what moves with the service."""
    carried = [
        one for one in setup.pacemaker.services if one.agent == "nfsserver" and one.values.get("nfs_shared_infodir")
    ]
    for given in settings_of_nodes(setup) if carried else ():
        if given.table.startswith("nfs.conf ") and given.name in ("state-directory-path", "storagedir"):
            shared = tuple(one.values["nfs_shared_infodir"] for one in carried)
            if (
                not given.value.startswith(("/var/lib/nfs/nfsd", "/var/lib/nfs/statd", *shared))
                and given.value != "/var/lib/nfs"
            ):
                yield f"{given.file}: {given.name}={given.value}"


@rule("lustre").warning(
    reason="set_param without -P lasts only until the target is mounted again: a take-over loses it.",
    remedy="lctl set_param -P, on the node of the MGS.",
    source="https://github.com/lustre/lustre-release/blob/master/lustre/doc/lctl-set_param.8",
)
def lustre_parameter_not_permanent(setup: Setup) -> Iterator[str]:
    """Find settings of a script run once that do not last."""
    for command in commands_run(setup):
        lasting = any(re.fullmatch(r"-\w*P\w*|--perm\w*", word) for word in command.words)
        if command.when == "script" and command.words[:2] == ("lctl", "set_param") and not lasting:
            yield f"{command.where}: {command.text[:90]}"


@rule("lustre").error(
    reason="The name is not that of the file system made here: the setting has no effect.",
    remedy="Use the name given to --fsname, or an asterisk.",
    source="https://github.com/lustre/lustre-release/blob/master/lustre/doc/lctl.8",
)
def lustre_parameter_of_another_file_system(setup: Setup) -> Iterator[str]:
    """Find parameters of file systems that are not made here."""
    made = {name for words in made_targets(setup) for name in named_words(words, "fsname")}
    for given in settings_of_nodes(setup):
        if given.table != "lctl" or not made:
            continue
        named = _SET_PARAM.match(given.name) or _CONF_PARAM.match(given.name)
        if named and named[1] not in made:
            yield f"{given.file}: {given.name}, the file system is {', '.join(sorted(made))}"


def _nets_of_yaml(text: str) -> set[str]:
    """Return the nets that lnet.conf brings up."""
    try:
        read = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return set()
    nets = read.get("net") if isinstance(read, dict) else None
    return {str(net["net type"]) for net in nets or () if isinstance(net, dict) and "net type" in net} - {"lo"}


@rule("lustre").error(
    reason="Targets are made for a network that lnet.conf does not configure: clients and servers cannot reach them.",
    remedy="Use the net type of the targets' NIDs in lnet.conf.",
    source=_LNET,
)
def lustre_network_not_in_lnet_conf(setup: Setup) -> Iterator[str]:
    """Find nets of the targets' NIDs that are not in lnet.conf."""
    there = _nets_of_yaml(setup.texts.get("etc/lnet.conf", ""))
    by_modprobe = re.search(r"\b(networks|ip2nets)=", setup.lnet)
    enabled = enabled_units(setup)
    if there and not by_modprobe and "pacemaker.service" in enabled and "lnet.service" not in enabled:
        yield "systemd: lnet.service is not enabled, and lnet.conf has the networks"
    for words in made_targets(setup) if there and not by_modprobe else ():
        used = {nid.rpartition("@")[2] for nid in named_words(words, "servicenode") if "@" in nid}
        for net in sorted(used - there - {f"{one}0" for one in there} - {one.removesuffix("0") for one in there}):
            yield f"lnet.conf: no net type {net}, which {words[-1]} has"


@rule("lustre").error(
    reason="ldev.conf names another disk for a target than the one it was made on: whoever mounts by this file mounts "
    "the wrong disk.",
    remedy="LOCAL FOREIGN LABEL DEVICE, with the device that was given to mkfs.lustre.",
    source="https://github.com/lustre/lustre-release/blob/master/lustre/doc/ldev.conf.5",
)
def ldev_conf_contradicts_the_cluster(setup: Setup) -> Iterator[str]:
    """Find lines of ldev.conf with another disk than the target was made on."""
    made = dict[str, str]()
    for words in made_targets(setup):
        given = options_given(words)
        kind = "OST" if "--ost" in given else "MDT" if "--mdt" in given else ""
        index = given.get("--index", "")
        if kind and re.fullmatch(r"\d{1,5}", index):
            made[f"{given.get('--fsname', '')}-{kind}{int(index):04x}"] = words[-1]
    for line in setup.texts.get("etc/ldev.conf", "").splitlines():
        words = line.partition("#")[0].split()
        device = re.sub(r"^(zfs|md|lustre|lvm):", "", words[3]) if len(words) > 3 else ""
        if device and made.get(words[2], device) != device:
            yield f"ldev.conf: {words[2]} is {device}, made on {made[words[2]]}"
