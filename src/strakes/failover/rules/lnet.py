"""Rules about LNet and what finds its way by it: networks and cards, the MGS, clients, and waiting for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.failover.lnet_networks import complaints, numbered, read_networks
from strakes.failover.rules.lustre import made_targets, nids_of
from strakes.failover.rules.rule import LUSTRE_MANUAL, MKFS, MOUNT_LUSTRE, OWN, rule
from strakes.failover.setup import Setup


def options_of_lnet(setup: Setup, name: str) -> list[str]:
    """Return the values of an option of the lnet module, from all files."""
    lines = re.findall(r"(?m)^\s*options\s+lnet[ \t]+(.*)$", setup.lnet)
    return [value.strip("\"'") for line in lines for value in re.findall(rf"\b{name}=(\"[^\"]*\"|'[^']*'|\S+)", line)]


@rule("lnet").error(
    reason="The lnet module brings up other networks than the NIDs name: nobody finds the servers, or the watched "
    "addresses never answer.",
    remedy='options lnet networks="tcp0(INTERFACE)" with the networks of the NIDs.',
    source=MKFS,
)
def lustre_network_not_configured(setup: Setup) -> Iterator[str]:
    """Find LNet networks of servers' and watched NIDs that the lnet module does not have."""
    lists = options_of_lnet(setup, "networks")
    if not lists:
        return
    configured = {network.name for text in lists for network in read_networks(text)}
    nids = [nid for words in made_targets(setup) for nid in nids_of(words, "servicenode")]
    used = {numbered(nid.partition("@")[2]) for nid in nids if "@" in nid}
    for network in sorted(used - configured):
        yield f"modprobe.d: lnet has no {network}, the servers' NIDs have"
    described = setup.cluster.file_system.lnet if setup.cluster else ""
    if described and numbered(described) not in configured | used:
        yield f"modprobe.d: lnet has no {numbered(described)}, cluster.toml says lnet = {described}"
    # Another network is reached through routers.
    routed = bool(re.search(r"^\s*options\s+lnet\s.*?routes=", setup.lnet, re.M))
    for one in setup.cib.services if setup.cib and not routed else ():
        hosts = one.values.get("host_list", "").split() if one.agent == "healthLNET" else []
        for network in sorted({numbered(host.partition("@")[2]) for host in hosts if "@" in host} - configured):
            yield f"modprobe.d: lnet has no {network}, {one.id} watches it"


@rule("lnet").error(
    reason="LNet refuses this list of networks, or ignores a part of it: the node has no network for Lustre.",
    remedy='options lnet networks="o2ib0(ib0,ib1),tcp0(eth0)": each network once, with all its cards.',
    source=LUSTRE_MANUAL,
)
def lustre_networks_refused(setup: Setup) -> Iterator[str]:
    """Find lists of networks that LNet does not take."""
    for text in dict.fromkeys(options_of_lnet(setup, "networks")):
        for complaint in complaints(text):
            yield f"modprobe.d: networks={text}: {complaint}"


@rule("lnet").error(
    reason="LNet takes one list of networks: with two it refuses to start, or the file that is read last wins. It also "
    "refuses the loopback card.",
    remedy='Use one line in one file: options lnet networks="tcp0(INTERFACE)", or ip2nets instead.',
    source=LUSTRE_MANUAL,
)
def lustre_networks_contradict(setup: Setup) -> Iterator[str]:
    """Find several lists of networks, and networks on the loopback card."""
    lists = list(dict.fromkeys(options_of_lnet(setup, "networks")))
    if len(lists) > 1:
        yield f"modprobe.d: networks is {' and '.join(lists)}"
    if lists and options_of_lnet(setup, "ip2nets"):
        yield "modprobe.d: both networks and ip2nets"
    for text in lists:
        if any("lo" in network.cards for network in read_networks(text)):
            yield f"modprobe.d: networks={text}"


@rule().error(
    reason="The soft limit is extended while clients reconnect, up to the hard limit. A soft limit above the hard one "
    "has no effect: recovery always ends at the hard limit.",
    remedy="Set recovery_time_hard to two to three times recovery_time_soft.",
    source=MOUNT_LUSTRE,
)
def recovery_limits_reversed(setup: Setup) -> Iterator[str]:
    """Find soft limits of recovery that are longer than the hard ones beside them."""
    places = [(f"make-targets.sh: {words[-1]}", " ".join(words)) for words in made_targets(setup)]
    places += [(f"cib: {one.id}", " ".join(one.values.values())) for one in setup.services]
    for where, text in places:
        limits = dict(re.findall(r"recovery_time_(soft|hard)=(\d+)", text))
        if len(limits) == 2 and int(limits["soft"]) > int(limits["hard"]):
            yield f"{where} has recovery_time_soft={limits['soft']}, recovery_time_hard={limits['hard']}"
    system = setup.cluster.file_system if setup.cluster else None
    if system and system.recovery_soft_s > system.recovery_hard_s > 0:
        yield f"cluster.toml: recovery_soft is {system.recovery_soft_s:g} s, recovery_hard {system.recovery_hard_s:g} s"


@rule("description").error(
    reason="A target registers with the MGS when it is mounted: if no MGS answers at that NID, the target never "
    "starts.",
    remedy="Set mgs in cluster.toml to the NIDs of the servers of the MGS, as lctl list_nids prints them there.",
    source=MKFS,
)
def mgs_not_at_this_nid(setup: Setup) -> Iterator[str]:
    """Find NIDs of another cluster's MGS that are nodes of this one, or on a network that its servers do not have."""
    cluster = setup.described
    own = {address: node.name for node in cluster.nodes for address in (*node.addresses.values(), node.bmc.address)}
    system = cluster.file_system
    watched = dict(nid.split("@") for nid in system.watch if "@" in nid)
    for nid in system.mgs:
        address, _, network = nid.partition("@")
        if address in own:
            yield f"cluster.toml: mgs has {nid}, which is {own[address]}"
        if numbered(watched.get(address, network)) != numbered(network):
            yield f"cluster.toml: mgs has {nid}, watch has {address}@{watched[address]}"
        elif numbered(network) != numbered(system.lnet) and not options_of_lnet(setup, "routes"):
            yield f"cluster.toml: mgs has {nid}, the servers have lnet = {system.lnet}"


@rule("description").error(
    reason="A direct cable connects only the two nodes: no client, and no other server, reaches what is served there.",
    remedy="Put lnet_network and the addresses of services on a network with a switch.",
    source=OWN,
)
def service_address_on_a_direct_cable(setup: Setup) -> Iterator[str]:
    """Find networks that clients use and that have no switch, where other networks have one."""
    cluster = setup.described
    if any(network.switch for network in cluster.networks):
        for network in cluster.client_networks:
            if not network.switch:
                yield f"cluster.toml: clients use the network {network.name}, which has no switch"


@rule("lustre").error(
    reason="All targets of a file system register with one MGS, and clients use the same NIDs: a target that uses "
    "another MGS, or another network, does not find it.",
    remedy="Use the same --mgsnode for every target, and its NIDs in the mount commands of clients.",
    source=MKFS,
)
def targets_with_different_mgs(setup: Setup) -> Iterator[str]:
    """Find targets that name another MGS than the others, and mounts by another network than the targets name."""
    named: dict[frozenset[str], str] = {}
    for words in made_targets(setup):
        nids = frozenset(nids_of(words, "mgsnode"))
        if nids:
            named.setdefault(nids, words[-1])
    for nids, target in list(named.items())[1:]:
        first = next(iter(named))
        strange = ", ".join(sorted(nids - first) or sorted(nids))
        yield f"make-targets.sh: {target} has --mgsnode {strange}, others do not"
    networks = {nid.partition("@")[0]: numbered(nid.partition("@")[2]) for nids in named for nid in nids if "@" in nid}
    mounts = re.sub(r"(?m)^\s*#.*$", "", setup.texts.get("lustre/mount-clients.sh", ""))
    for address, network in dict.fromkeys(re.findall(r"([\w.-]+)@(\w+)", mounts)):
        if networks.get(address, numbered(network)) != numbered(network) and not options_of_lnet(setup, "routes"):
            yield f"mount-clients.sh: {address}@{network}, targets have {address}@{networks[address]}"
