"""Rules about DRBD: that both copies are the same, and that only one is written to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.rules.heartbeat import hosts_of, is_address, links_of, name_of, nodes_of
from strakes.failover.rules.rule import DRBD_CONF, DRBD_PACEMAKER, OWN, rule
from strakes.failover.setup import Setup

_AUTOMATIC = (
    "discard-younger-primary",
    "discard-older-primary",
    "discard-least-changes",
    "violently-as0p",
    "call-pri-lost-after-sb",
)
# Handlers that say that the peer is outdated and do nothing, or belong to cluster managers of the past.
_NO_HANDLERS = (
    "true",
    "false",
    "echo",
    ":",
    "exit",
    "rhcs_fence",
    "obliterate-peer.sh",
    "drbd-peer-outdater",
    "outdate-peer.sh",
)
# Of ssh, rpcbind, LNet, NFS, pcsd, Pacemaker's remote nodes, the quorum device, Corosync, booth and dlm.
_PORTS_OF_OTHERS = (
    "22",
    "111",
    "988",
    "2049",
    "2224",
    "3121",
    "5403",
    "5404",
    "5405",
    "5406",
    "9929",
    "20048",
    "21064",
)


@rule("drbd").error(
    reason="A write is acknowledged before it is on the disk of the other node: protocol A can lose it in a take-over, "
    "protocol B when both nodes lose power.",
    remedy="net { protocol C; }",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-features.adoc",
)
def replication_not_synchronous(setup: Setup) -> Iterator[str]:
    """Find resources that acknowledge a write before both copies have it."""
    for resource in setup.drbd:
        for chosen in resource.protocols:
            if chosen != "C":
                yield f"drbd: {resource.name} has protocol {chosen}"


@rule("drbd").error(
    reason="If only the replication link is cut, both nodes may be promoted, one of them with old data, and the copies "
    "diverge.",
    remedy="fencing resource-and-stonith; (DRBD 8.4: in the section disk, DRBD 9: in net)",
    source=DRBD_PACEMAKER,
)
def no_replication_fencing(setup: Setup) -> Iterator[str]:
    """Find resources without fencing that no quorum protects either."""
    for resource in setup.drbd:
        quorate = resource.option("options", "quorum") in ("majority", "all") and len(resource.hosts) > 2
        if "dont-care" in resource.fencing and not quorate:
            yield f"drbd: {resource.name} has fencing dont-care"


@rule("drbd").warning(
    reason="With resource-only, writing continues while the peer may be alive; what is acknowledged in this time is "
    "lost if the peer is promoted.",
    remedy="fencing resource-and-stonith;",
    source=DRBD_CONF,
)
def replication_fencing_without_freeze(setup: Setup) -> Iterator[str]:
    """Find resources that go on writing while the other node is fenced."""
    for resource in setup.drbd:
        if "resource-only" in resource.fencing:
            yield f"drbd: {resource.name} has fencing resource-only"


@rule("drbd").error(
    reason="One of two copies is not a majority: when a node dies, the other one stops writing.",
    remedy="Add a diskless third node as tie breaker, or set quorum off with fencing resource-and-stonith.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-features.adoc",
)
def replication_quorum_of_two(setup: Setup) -> Iterator[str]:
    """Find resources of two nodes that stop when one is lost."""
    for resource in setup.drbd:
        if resource.option("options", "quorum") in ("majority", "all") and len(resource.hosts) == 2:
            yield f"drbd: {resource.name} has quorum {resource.option('options', 'quorum')} with two nodes"


@rule("drbd").error(
    reason="If half of the copies or fewer are enough for quorum, two sides can have it at once and both write. If "
    "more copies are needed than exist, no side ever has it.",
    remedy="options { quorum majority; }",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-features.adoc",
)
def replication_quorum_impossible(setup: Setup) -> Iterator[str]:
    """Find numbers for the quorum that two sides can have, or none."""
    for resource in setup.drbd:
        given = resource.option("options", "quorum")
        if (
            given.isdecimal()
            and len(resource.hosts) > 1
            and not len(resource.hosts) < 2 * int(given[:4]) <= 2 * len(resource.hosts)
        ):
            yield f"drbd: {resource.name} has quorum {given} of {len(resource.hosts)} nodes"


@rule("drbd").error(
    reason="The fencing policy needs a handler that acts: without one, the outdated copy may be promoted, or the "
    "primary stays frozen.",
    remedy="handlers "
    "{ fence-peer ...crm-fence-peer...; unfence-peer (8.4: after-resync-target) ...crm-unfence-peer...; }",
    source=DRBD_CONF,
)
def no_fence_peer_handler(setup: Setup) -> Iterator[str]:
    """Find resources whose fencing handler is missing, does nothing, or is never undone."""
    for resource in setup.drbd:
        if set(resource.fencing) == {"dont-care"}:
            continue
        handler = resource.option("handlers", "fence-peer")
        program = re.split(r"[/\s]", re.split(r"\s", handler.strip(), maxsplit=1)[0])[-1]
        lifts = resource.option("handlers", "unfence-peer") or resource.option("handlers", "after-resync-target")
        if not handler:
            yield f"drbd: {resource.name} has no fence-peer handler"
        elif program in _NO_HANDLERS:
            yield f"drbd: {resource.name} has fence-peer {handler}"
        elif "crm-fence-peer" in handler and not lifts:
            yield f"drbd: {resource.name} is locked out for ever: no handler lifts what fence-peer has set"


@rule("drbd").error(
    reason="crm-fence-peer.sh is for DRBD 8.4, crm-fence-peer.9.sh for DRBD 9; the wrong one is noticed only when the "
    "peer is gone.",
    remedy="Use the handlers of the installed version.",
    source=DRBD_PACEMAKER,
)
def handler_of_the_other_version(setup: Setup) -> Iterator[str]:
    """Find handlers that were made for another version of DRBD."""
    for resource in setup.drbd:
        fence, lift = (resource.option("handlers", key) for key in ("fence-peer", "unfence-peer"))
        lift = lift or resource.option("handlers", "after-resync-target")
        written = "9" if resource.dialect9 else "8.4"
        for handler in (fence, lift):
            if re.search(r"crm-(un)?fence-peer", handler) and (".9.sh" in handler) != resource.dialect9:
                yield f"drbd: {resource.name} is written for DRBD {written}, its handler is {handler}"


@rule("drbd").error(
    reason="Two nodes may then mount the same ext4, XFS or ldiskfs; only cluster file systems with fencing support "
    "that.",
    remedy="Remove allow-two-primaries and become-primary-on both.",
    source="https://github.com/LINBIT/drbd/issues/62",
)
def two_primaries(setup: Setup) -> Iterator[str]:
    """Find resources that both nodes may write to, without a file system that allows it."""
    for resource in setup.drbd:
        if any(value != "no" for value in resource.all_values("net", "allow-two-primaries")) and not mounts_on_both(
            setup
        ):
            yield f"drbd: {resource.name} has allow-two-primaries"


def mounts_on_both(setup: Setup) -> bool:
    """Tell whether a cluster file system is mounted, which may be on both nodes."""
    return any(one.values.get("fstype") in ("gfs2", "ocfs2") for one in setup.services)


@rule("drbd").error(
    reason="DRBD's own start-up makes a node primary before Pacemaker has decided which node serves.",
    remedy="Remove become-primary-on, and disable drbd.service.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/pacemaker.adoc",
)
def promoted_beside_pacemaker(setup: Setup) -> Iterator[str]:
    """Find resources that DRBD promotes without Pacemaker."""
    for resource in setup.drbd:
        chosen = resource.option("startup", "become-primary-on")
        if chosen and not (chosen == "both" and mounts_on_both(setup)):
            yield f"drbd: {resource.name} has become-primary-on {chosen}"


@rule("drbd").error(
    reason="After a split brain the writes of one side are discarded without asking anybody.",
    remedy="after-sb-0pri discard-zero-changes, after-sb-1pri consensus, after-sb-2pri disconnect, rr-conflict "
    "disconnect",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def split_brain_solved_by_discarding(setup: Setup) -> Iterator[str]:
    """Find automatic repairs that discard acknowledged writes."""
    for resource in setup.drbd:
        for key in ("after-sb-0pri", "after-sb-1pri", "after-sb-2pri"):
            for chosen in resource.all_values("net", key):
                if chosen in _AUTOMATIC or chosen.startswith("discard-node-"):
                    yield f"drbd: {resource.name} has {key} {chosen}"
        for chosen in resource.all_values("net", "rr-conflict"):
            if chosen in ("violently", "call-pri-lost", "auto-discard"):
                yield f"drbd: {resource.name} has rr-conflict {chosen}"


@rule("drbd").note(
    reason="After a split brain, what the other side wrote before it was demoted is discarded without asking anybody.",
    remedy="after-sb-1pri consensus",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def split_brain_discards_the_secondary(setup: Setup) -> Iterator[str]:
    """Find repairs that discard what was written on the secondary side."""
    names = [one.name for one in setup.drbd if "discard-secondary" in one.all_values("net", "after-sb-1pri")]
    if names:
        yield f"drbd: {', '.join(names)} with after-sb-1pri discard-secondary"


@rule("drbd").note(
    reason="Without a handler nobody is told about a split brain: it is only a line in the kernel's log, and the "
    "copies stay different.",
    remedy='handlers { split-brain "/usr/lib/drbd/notify-split-brain.sh root"; }',
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def split_brain_not_reported(setup: Setup) -> Iterator[str]:
    """Find resources that report a split brain to nobody."""
    for resource in setup.drbd:
        if not resource.option("handlers", "split-brain"):
            yield f"drbd: {resource.name} tells nobody of a split brain"


@rule("drbd").error(
    reason="Without disk-drain, DRBD does not keep the order of writes on the peer: after a power cut the copy may be "
    "in a state that never existed.",
    remedy="Remove disk-drain no.",
    source=DRBD_CONF,
)
def writes_not_ordered(setup: Setup) -> Iterator[str]:
    """Find resources that do not wait for writes before dependent ones."""
    for resource in setup.drbd:
        if "no" in resource.all_values("disk", "disk-drain"):
            yield f"drbd: {resource.name} has disk-drain no"


@rule("drbd").warning(
    reason="Without flushes, a power cut loses acknowledged writes, unless every cache below has a monitored battery.",
    remedy="Leave disk-flushes and md-flushes on, unless you are sure of the battery.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def flushes_off(setup: Setup) -> Iterator[str]:
    """Find resources that do not flush the caches of their disks."""
    off = {
        key: [resource.name for resource in setup.drbd if "no" in resource.all_values("disk", key)]
        for key in ("disk-flushes", "md-flushes")
    }
    if any(off.values()):
        yield "drbd: " + "; ".join(f"{key} no in {', '.join(names)}" for key, names in off.items() if names)


@rule("drbd").warning(
    reason="In DRBD 8.4 an error of the local disk reaches the file system, although the peer has a good copy; DRBD 9 "
    "keeps using the bad disk.",
    remedy="disk { on-io-error detach; }",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def disk_error_passed_to_the_file_system(setup: Setup) -> Iterator[str]:
    """Find resources that pass on a disk error in place of using the other copy."""
    for resource in setup.drbd:
        if "pass_on" in resource.all_values("disk", "on-io-error"):
            yield f"drbd: {resource.name} has on-io-error pass_on"


@rule("drbd").note(
    reason="Copies that differ silently are found by drbdadm verify, which needs verify-alg. Without it, they are "
    "found at a take-over.",
    remedy="net { verify-alg sha256; } and drbdadm verify every month.",
    source=DRBD_CONF,
)
def copies_never_compared(setup: Setup) -> Iterator[str]:
    """Find resources whose copies cannot be compared."""
    for resource in setup.drbd:
        if not resource.option("net", "verify-alg"):
            yield f"drbd: {resource.name} has no verify-alg"


@rule("drbd").error(
    reason="Two resources use the same disk, minor or port: one of them does not start, or overwrites the other.",
    remedy="Give each its own disk, minor and port.",
    source=OWN,
)
def devices_collide(setup: Setup) -> Iterator[str]:
    """Find devices, disks and addresses that several resources use."""
    seen: dict[tuple[str, str, str], str] = {}
    for resource in setup.drbd:
        for host in resource.hosts:
            uses = [("address", address) for address in dict.fromkeys(host.addresses)]
            for device, disk, metadata in host.volumes.values():
                uses += [("device", device), ("disk", "" if disk == "none" else disk)]
                uses.append(("disk", "" if metadata in ("internal", "") or "[" in metadata else metadata.split()[0]))
            for what, value in uses:
                other = seen.setdefault((host.name, what, value), resource.name)
                if value and other != resource.name:
                    yield f"drbd: {other} and {resource.name} have the same {what} on {host.name}: {value}"


@rule("drbd").error(
    reason="Two resources that keep their metadata in the same place overwrite them: DRBD then no longer knows which "
    "blocks differ.",
    remedy="meta-disk internal; or a device, or an [index], for each resource.",
    source=DRBD_CONF,
)
def metadata_of_another_resource(setup: Setup) -> Iterator[str]:
    """Find metadata that several volumes keep in one place, or on a disk with data."""
    seen: dict[tuple[str, str], str] = {}
    disks = {
        (host.name, disk): resource.name
        for resource in setup.drbd
        for host in resource.hosts
        for _, disk, _ in host.volumes.values()
    }
    for resource in setup.drbd:
        for host in resource.hosts:
            for number, (_, _, metadata) in host.volumes.items():
                if metadata in ("", "internal"):
                    continue
                place, mine = metadata.replace(" ", ""), f"{resource.name} volume {number}"
                other = seen.setdefault((host.name, place), mine)
                if other != mine:
                    yield f"drbd: {other} and {mine} have meta-disk {metadata} on {host.name}"
                owner = disks.get((host.name, place.partition("[")[0]))
                if owner:
                    yield f"drbd: meta-disk {metadata} of {mine} on {host.name} is the disk of {owner}"


@rule("drbd").error(
    reason="The disk below a DRBD device is a partition, a volume or a RAID; if it is a DRBD device itself, it waits "
    "for itself.",
    remedy="disk /dev/VG/LV;",
    source=DRBD_CONF,
)
def replicated_device_as_its_own_disk(setup: Setup) -> Iterator[str]:
    """Find resources whose disk is a DRBD device."""
    for resource in setup.drbd:
        stacked = bool(resource.block.all("stacked-on-top-of"))
        for disk in sorted(disk for disk in resource.disks if disk.startswith("/dev/drbd") and not stacked):
            yield f"drbd: {resource.name} has disk {disk}"


@rule("drbd").error(
    reason="DRBD finds its own section by the host name: with a name that no node has, the resource never starts.",
    remedy="Use the output of uname -n in each on section.",
    source=DRBD_CONF,
)
def replication_between_other_hosts(setup: Setup) -> Iterator[str]:
    """Find sides on nodes that do not exist, and resources with one side only."""
    known = set(setup.node_names) or {node.name for node in (setup.cluster.nodes if setup.cluster else ())}
    for resource in setup.drbd:
        names = [host.name for host in resource.hosts]
        for name in names:
            if known and name not in known:
                yield f"drbd: {resource.name} is on {name}, which is no node"
        if len(set(names)) == 1:
            yield f"drbd: {resource.name} is on {names[0]} only"


def _leads_somewhere(address: str) -> bool:
    return is_address(address) and not address.startswith("127.")


@rule("drbd").error(
    reason="The two sides cannot connect if they have the same address, or a port that Corosync, pcsd, LNet or NFS "
    "uses: there is no second copy.",
    remedy="Give each host its own address on the replication network, and a port of its own, for example 7788.",
    source=DRBD_CONF,
)
def replication_address_wrong(setup: Setup) -> Iterator[str]:
    """Find addresses that both sides have, that Corosync uses, of the loopback, and not of that node's cards."""
    hosts = hosts_of(setup)
    cards = {
        name_of(node): {hosts.get(text, text) for text in links_of(node).values()}
        for node in nodes_of(setup)
        # What a name that is not known, or leads to the loopback, would lead to is another rule's to say.
        if all(_leads_somewhere(hosts.get(text, text)) for text in links_of(node).values())
    }
    for resource in setup.drbd:
        seen: dict[str, str] = {}
        for host in resource.hosts:
            for address in host.addresses:
                other = seen.setdefault(address, host.name)
                if other != host.name:
                    yield f"drbd: {other} and {host.name} have the same address in {resource.name}: {address}"
                if address.rpartition(":")[2] in _PORTS_OF_OTHERS:
                    yield f"drbd: {resource.name} uses a port of another program on {host.name}: {address}"
                if address.startswith("127."):
                    yield f"drbd: {resource.name} has the address {address} on {host.name}"
        # Where one side has an address of a heartbeat link, the others have theirs on that link.
        plain = [
            (host.name, address.rpartition(":")[0].strip("[]")) for host in resource.hosts for address in host.addresses
        ]
        known = [address in cards.get(name, ()) for name, address in plain]
        if 2 * sum(known) >= len(known):
            for (name, address), one_of_its_own in zip(plain, known, strict=True):
                if not one_of_its_own and name in cards and is_address(address):
                    yield f"drbd: {resource.name} has the address {address} on {name}, which corosync.conf has not"


@rule("drbd").warning(
    reason="Anybody who can read the shared secret can connect as the peer, and receive or overwrite the whole device.",
    remedy="chmod 600, owned by root; best kept in a file of its own (drbd.d/*.secret).",
    source=DRBD_CONF,
)
def secret_readable_by_all(setup: Setup) -> Iterator[str]:
    """Find files with a shared secret that others than their owner may read."""
    for name, text in setup.texts.items():
        if name.startswith("etc/drbd") and "shared-secret" in text and setup.modes.get(name, 0) & 0o077:
            yield f"{name} has a shared-secret and mode {setup.modes[name]:04o}"
