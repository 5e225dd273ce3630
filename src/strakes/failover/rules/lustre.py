"""Rules about Lustre targets: found on both nodes, mounted on one, and clients waited for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from strakes.failover.planned.lustre import PUBLISHED_S_PER_CLIENT
from strakes.failover.rules.rule import MKFS, MOUNT_LUSTRE, OWN, rule
from strakes.failover.setup import Setup
from strakes.units import counted

_DEFAULT_HARD_S = 900


def made_targets(setup: Setup) -> Iterator[list[str]]:
    """Return the words of each mkfs.lustre or tunefs.lustre."""
    joined = re.sub(r"\\\n", " ", setup.lustre)
    for line in joined.splitlines():
        text = line.strip()
        if text.startswith(("mkfs.lustre", "tunefs.lustre")):
            yield shlex.split(text)


def named_words(words: list[str], option: str) -> list[str]:
    """Return the values of an option; several nodes may stand in one, with colons."""
    return [
        nid
        for word in words
        if word.startswith(f"--{option}=")
        for nid in re.split(r"[:]", word.partition("=")[2])
        if nid
    ]


def options_given(words: list[str]) -> dict[str, str]:
    """Return the options of mkfs.lustre, ``--NAME``, with their values."""
    return {name: value for name, _, value in (word.partition("=") for word in words) if name.startswith("--")}


def nids_of(words: list[str], *options: str) -> list[str]:
    """Return the NIDs that options name; a node may have several, with commas."""
    return [nid for option in options for node in named_words(words, option) for nid in node.split(",")]


@rule("lustre").error(
    reason="It is the last protection against two nodes mounting the same ldiskfs; without it, one short mistake "
    "destroys the file system.",
    remedy="Do not pass -O ^mmp; mkfs.lustre switches it on if --servicenode or --failnode is given.",
    source="https://manpages.debian.org/bookworm/e2fsprogs/ext4.5.en.html",
)
def multiple_mount_protection_off(setup: Setup) -> Iterator[str]:
    """Find targets without protection against being mounted twice."""
    for words in made_targets(setup):
        if any("^mmp" in word for word in words):
            yield f"make-targets.sh: {words[-1]} is made with ^mmp"
        elif not nids_of(words, "servicenode", "failnode") and "--backfstype=zfs" not in words:
            yield f"make-targets.sh: {words[-1]} names no server, so protection stays off"


@rule("lustre").error(
    reason="A target stores an explicit list of the hosts that can serve it: clients do not look for it on the node "
    "that takes over.",
    remedy="--servicenode for both nodes.",
    source="https://wiki.lustre.org/images/f/fa/Defining_Multiple_LNet_Interfaces_for_Multi-homed_Servers,_v1.pdf",
)
def clients_know_one_server(setup: Setup) -> Iterator[str]:
    """Find targets that name fewer than two servers."""
    for words in made_targets(setup):
        nodes = set(named_words(words, "servicenode"))
        if len(nodes) < 2 and not (nodes or named_words(words, "failnode")):
            yield f"make-targets.sh: {words[-1]} names no server"
        elif len(nodes) == 1:
            yield f"make-targets.sh: {words[-1]} names only {', '.join(nodes)}"


@rule("lustre").error(
    reason="POOL/NAME is a ZFS dataset; mkfs.lustre takes it for the path of a disk, and fails.",
    remedy="--backfstype=zfs, or a device below /dev.",
    source=MKFS,
)
def dataset_made_as_a_disk(setup: Setup) -> Iterator[str]:
    """Find datasets of ZFS that are made without saying so."""
    for words in made_targets(setup):
        pool = re.fullmatch(r"[\w.:-]+/[\w./:-]+", words[-1])
        if words[0] == "mkfs.lustre" and pool and "--backfstype=zfs" not in words:
            yield f"make-targets.sh: {words[-1]} is made without --backfstype=zfs"


@rule("lustre").error(
    reason="A target that knows only one node of the MGS cannot be mounted while that node is down, which is when it "
    "has to be.",
    remedy="--mgsnode for both nodes.",
    source="https://wiki.lustre.org/Creating_the_Lustre_Metadata_Service_(MDS)",
)
def mgs_known_on_one_node(setup: Setup) -> Iterator[str]:
    """Find targets that know fewer than two nodes of the MGS, or nodes that do not serve it."""
    servers = {nid for words in made_targets(setup) if "--mgs" in words for nid in named_words(words, "servicenode")}
    for words in made_targets(setup):
        known = set(named_words(words, "mgsnode"))
        if servers and "--mgs" not in words and (strange := sorted(known - servers)):
            yield f"make-targets.sh: {words[-1]} looks for the MGS on {', '.join(strange)}, which does not serve it"
        if "--mgs" not in words and len(known) < 2:
            yield f"make-targets.sh: {words[-1]} knows {len(known)} node of the MGS"


@rule("lustre").error(
    reason="The two options exclude each other: with servicenode all nodes are equal, with failnode one node is the "
    "partner of another.",
    remedy="Use only --servicenode.",
    source=MKFS,
)
def failnode_and_servicenode(setup: Setup) -> Iterator[str]:
    """Find targets with both ``--failnode`` and ``--servicenode``."""
    for words in made_targets(setup):
        if named_words(words, "failnode") and named_words(words, "servicenode"):
            yield f"make-targets.sh: {words[-1]} has both"


@rule("lustre", "description").error(
    reason="Clients that have not reconnected in time are evicted and lose what they had not written yet; thousands of "
    "clients need minutes.",
    remedy="Set recovery_time_hard to at least what that many clients need; published measurements found 0.21 s for "
    "each.",
    source=MOUNT_LUSTRE,
)
def recovery_shorter_than_the_clients_need(setup: Setup) -> Iterator[str]:
    """Find a recovery that is too short for the described number of clients."""
    # What lctl sets for good counts more than what a target was made with.
    places = (("lctl", setup.lustre_parameters), ("make-targets.sh", setup.lustre))
    where, text = next((place for place in places if "recovery_time_hard=" in place[1]), places[1])
    given = re.search(r"recovery_time_hard=(\d+)", text)
    hard = int(given[1]) if given else _DEFAULT_HARD_S
    clients = setup.described.file_system.clients
    needed = PUBLISHED_S_PER_CLIENT * clients
    if hard < needed:
        yield f"{where}: recovery_time_hard is {hard} s, {counted(clients, 'client')} need about {needed:,.0f} s"


def _client_mounts(setup: Setup) -> Iterator[tuple[list[str], str]]:
    """Yield the nodes of the MGS and the file system of every client's mount."""
    for line in setup.texts.get("lustre/mount-clients.sh", "").splitlines():
        match = re.search(r"(?:^|\s)(\S+@\S+):/(\S+)", line)
        if match and not line.lstrip().startswith("#"):
            yield match[1].split(":"), match[2].partition("/")[0]


@rule("lustre").error(
    reason="A NID on another kind of network than the servers use can never be reached: after a take-over, the target "
    "is not found.",
    remedy="ADDRESS@NET as lctl list_nids prints it on each server.",
    source=MKFS,
)
def lustre_networks_of_different_kinds(setup: Setup) -> Iterator[str]:
    """Find targets whose servers differ, or are on different networks."""
    targets = list(made_targets(setup))
    servers = [
        {
            frozenset(re.sub(r"\d+$", "", nid.partition("@")[2]) for nid in node.split(","))
            for node in named_words(words, "servicenode")
        }
        for words in targets
    ]
    kinds = set().union(*servers) if servers else set()
    if len(kinds) > 1:
        yield f"make-targets.sh: servers are on {' and '.join(sorted('+'.join(sorted(kind)) for kind in kinds))}"
    known = {nid for words in targets for nid in nids_of(words, "servicenode")}
    for words in targets:
        strangers = [nid for nid in nids_of(words, "mgsnode") if known and nid not in known]
        if strangers and any("--mgs" in other for other in targets):
            yield f"make-targets.sh: {words[-1]} looks for the MGS on {', '.join(strangers)}, where it is never"
    sets = {frozenset(named_words(words, "servicenode")) for words in targets}
    # Two pairs have no server in common; two targets of one pair have both.
    if any(one != other and one & other for one in sets for other in sets):
        yield "make-targets.sh: the targets name different servers"


@rule("lustre").error(
    reason="The index identifies the target in the file system: the MGS refuses a second target with the same index, "
    "or lets it replace the first.",
    remedy="--index=0, 1, 2, ... for the metadata targets, and the same for the OSTs.",
    source=MKFS,
)
def index_given_twice(setup: Setup) -> Iterator[str]:
    """Find targets without an index or with one that is taken, several MGS, and several file systems."""
    seen: dict[tuple[str, str, str], str] = {}
    managers = []
    for words in made_targets(setup):
        names = [word.partition("=")[2] for word in words if word.startswith("--fsname=")]
        given = [word.partition("=")[2] for word in words if word.startswith("--index=")]
        kind = next((word for word in ("--mdt", "--ost") if word in words), "")
        managers += [words[-1]] if "--mgs" in words else []
        if kind and not given:
            yield f"make-targets.sh: {words[-1]} has no --index"
        for index in given if kind else ():
            other = seen.setdefault((kind, names[0] if names else "", index), words[-1])
            if other != words[-1]:
                yield f"make-targets.sh: {other} and {words[-1]} have --index={index}"
    if len(managers) > 1:
        yield f"make-targets.sh: {' and '.join(managers)} are made with --mgs"
    systems = {name for _, name, _ in seen}
    if len(systems) > 1:
        yield f"make-targets.sh: the targets are of {' and '.join(sorted(systems))}"


@rule("lustre", "drbd").error(
    reason="A target made on the disk below DRBD exists on one node only, and overwrites DRBD's metadata at the end of "
    "the disk.",
    remedy="mkfs.lustre ... /dev/drbdN",
    source=OWN,
)
def target_made_below_drbd(setup: Setup) -> Iterator[str]:
    """Find targets on the disk below DRBD, or on a device that DRBD does not have."""
    disks = {disk: resource.name for resource in setup.drbd for disk in resource.disks}
    devices = {device for resource in setup.drbd for device in resource.devices}
    for words in made_targets(setup):
        if words[-1] in disks:
            yield f"make-targets.sh: {words[-1]} is the disk of {disks[words[-1]]}"
        elif words[-1].startswith("/dev/drbd") and words[-1] not in devices:
            yield f"make-targets.sh: {words[-1]} is no device of DRBD's configuration"


@rule("lustre").error(
    reason="If the server does not wait for clients, or sends them errors instead, they lose what they had not written "
    "yet.",
    remedy="Remove failover.mode=failout and abort_recov.",
    source=MOUNT_LUSTRE,
)
def clients_not_waited_for(setup: Setup) -> Iterator[str]:
    """Find settings by which clients are not waited for."""
    for word in ("abort_recov", "failout"):
        if word in setup.lustre:
            yield f"make-targets.sh: {word}"


@rule("pacemaker").error(
    reason="With abort_recov, every client is evicted at each take-over, and loses what it had not written yet.",
    remedy="Remove abort_recov from the mount options.",
    source=MOUNT_LUSTRE,
)
def recovery_aborted(setup: Setup) -> Iterator[str]:
    """Find mounts that abort the recovery of clients."""
    for primitive in setup.pacemaker.services:
        if any("abort_recov" in value for value in primitive.values.values()):
            yield f"cib: {primitive.id} mounts with abort_recov"


@rule("mounting").error(
    reason="A client that knows only one node of the MGS cannot mount while that node is down.",
    remedy="mount -t lustre NID1:NID2:/FSNAME",
    source="https://wiki.lustre.org/Mounting_a_Lustre_File_System_on_Client_Nodes",
)
def client_knows_one_mgs(setup: Setup) -> Iterator[str]:
    """Find clients that know one server only, another file system, or no server of the MGS."""
    made = [word.partition("=")[2] for words in made_targets(setup) for word in words if word.startswith("--fsname=")]
    managers = [words for words in made_targets(setup) if "--mgs" in words]
    servers = {nid for words in managers for nid in nids_of(words, "servicenode", "failnode", "mgsnode")}
    for nodes, name in _client_mounts(setup):
        if len(set(nodes)) < 2:
            yield f"mount-clients.sh: {':'.join(nodes)} is one server"
        if made and name not in made:
            yield f"mount-clients.sh: {name} is not {made[0]}"
        for nid in (nid for node in nodes for nid in node.split(",")):
            if servers and nid not in servers:
                yield f"mount-clients.sh: {nid} is no server of the MGS"


@rule("lustre").error(
    reason="Only multihost keeps a second node from importing a pool that is in use, which destroys the pool: ZFS has "
    "no other lock.",
    remedy="zpool create -o multihost=on ..., and a hostid of its own on each node (zgenhostid).",
    source="https://openzfs.github.io/openzfs-docs/man/master/7/zpoolprops.7.html",
)
def pool_without_multihost(setup: Setup) -> Iterator[str]:
    """Find pools that are not protected against being imported twice."""
    for line in re.sub(r"\\\n", " ", setup.lustre).splitlines():
        words = line.split()
        if words[:2] == ["zpool", "create"] and "multihost=on" not in words:
            yield f"make-targets.sh: {' '.join(words[:2])} {words[-1]} without -o multihost=on"


@rule("lustre", "pacemaker").error(
    reason="The targets that are made and the ones that Pacemaker mounts are not the same: a device holds one target, "
    "so one overwrites another, or a mounted target does not exist.",
    remedy="One device for each target, with the same name in make-targets.sh and in the CIB.",
    source=MKFS,
)
def targets_made_and_mounted_differ(setup: Setup) -> Iterator[str]:
    """Find devices on which two targets are made, and devices that Pacemaker mounts and nobody made."""
    made = [words[-1] for words in made_targets(setup) if words[0] == "mkfs.lustre"]
    for device in dict.fromkeys(made):
        if made.count(device) > 1:
            yield f"make-targets.sh: {device} is made {made.count(device)} times"
    mounted = {one.device: one.id for one in setup.pacemaker.services if one.is_lustre and one.device.startswith("/")}
    # The same disk may have other names: only what is named alike is compared.
    places = {device.rpartition("/")[0] for device in mounted if device in made}
    for device, name in mounted.items():
        if device not in made and device.rpartition("/")[0] in places:
            yield f"cib: {name} mounts {device}, which make-targets.sh does not make"


@rule("lustre", "pacemaker").error(
    reason="Targets register with the MGS when they start: a target that must be up before the MGS never starts.",
    remedy="Order the MGS first, with kind Optional.",
    source="https://wiki.lustre.org/Starting_and_Stopping_Lustre_Services",
)
def mgs_started_after_its_targets(setup: Setup) -> Iterator[str]:
    """Find an MGS of its own that waits for other targets."""
    cib = setup.pacemaker
    alone = {words[-1] for words in made_targets(setup) if "--mgs" in words and "--mdt" not in words}
    for order in cib.orders:
        first, then = (
            {one.device for one in cib.ties.members(name) if one.is_lustre} for name in (order.first, order.then)
        )
        if order.first_action == "start" and then & alone and first - alone:
            yield f"cib: {order.then} waits for {order.first}"


@rule("pacemaker").error(
    reason="With nosvc the mount succeeds but the target does not start: Pacemaker does not notice, and clients wait.",
    remedy="Remove nosvc; it is meant for maintenance of a target.",
    source=MOUNT_LUSTRE,
)
def target_mounted_but_not_served(setup: Setup) -> Iterator[str]:
    """Find targets that are mounted without being started."""
    for one in setup.pacemaker.services:
        if one.is_lustre and any("nosvc" in value.split(",") for value in one.values.values()):
            yield f"cib: {one.id} is mounted with nosvc"
