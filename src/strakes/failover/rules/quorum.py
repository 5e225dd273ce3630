"""Rules about who may go on when the nodes do not see each other."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.rules.heartbeat import links_of, nodes_of
from strakes.failover.rules.rule import PACEMAKER, QDEVICE, VOTEQUORUM, rule
from strakes.failover.setup import Setup
from strakes.units import counted

_ON = ("1", "yes")


@rule("corosync").error(
    reason="Corosync runs without a quorum provider, but Pacemaker does not start: its controller refuses connections.",
    remedy="quorum: provider: corosync_votequorum",
    source="https://github.com/corosync/corosync/issues/718",
)
def no_quorum_provider(setup: Setup) -> Iterator[str]:
    """Find a corosync.conf without votequorum."""
    if setup.membership.one("quorum").get("provider") != "corosync_votequorum":
        yield "corosync.conf: the section quorum has no provider corosync_votequorum"


@rule("corosync").error(
    reason="One of two nodes is not a majority: when a node dies, the survivor loses quorum and stops all services.",
    remedy="quorum: two_node: 1 (with fencing), or a quorum device on a third machine.",
    source=VOTEQUORUM,
)
def two_nodes_without_tie_breaker(setup: Setup) -> Iterator[str]:
    """Find two nodes with nothing that decides between them."""
    quorum = setup.membership.one("quorum")
    decided = quorum.get("two_node") in _ON or quorum.all("device") or quorum.get("auto_tie_breaker") in _ON
    if len(nodes_of(setup)) == 2 and not decided:
        yield "corosync.conf: two nodes, and neither two_node nor a device"


@rule("corosync").error(
    reason="Corosync refuses to start with both: the device decides who has quorum, and these settings would decide "
    "differently.",
    remedy="Remove two_node, auto_tie_breaker, last_man_standing and allow_downscale where there is a quorum device.",
    source="https://github.com/ClusterLabs/crmsh/issues/1795",
)
def two_node_with_quorum_device(setup: Setup) -> Iterator[str]:
    """Find ``two_node``, and what else decides without it, beside a quorum device."""
    quorum = setup.membership.one("quorum")
    for name in ("two_node", "auto_tie_breaker", "last_man_standing", "allow_downscale"):
        if quorum.get(name) in _ON and quorum.all("device"):
            yield f"corosync.conf: {name}: 1 beside a device"


@rule("corosync").error(
    reason="two_node sets the quorum to 1 and is switched off only when a third node joins: until then every node has "
    "quorum on its own.",
    remedy="Remove two_node and expected_votes if there are more than two nodes.",
    source=VOTEQUORUM,
)
def two_node_with_more_nodes(setup: Setup) -> Iterator[str]:
    """Find ``two_node`` with more than two nodes, and expected votes other than the number of nodes."""
    quorum = setup.membership.one("quorum")
    many = len(nodes_of(setup))
    if quorum.get("two_node") in _ON and many > 2:
        yield f"corosync.conf: two_node: 1 with {many} nodes"
    votes = {
        str(many),
        *(str(many + int(one.get("votes") or 1)) for one in quorum.all("device") if one.get("votes", "1").isdecimal()),
    }
    if quorum.get("expected_votes") and quorum.get("expected_votes") not in votes:
        yield f"corosync.conf: expected_votes: {quorum.get('expected_votes')} with {counted(many, 'node')}"


@rule("corosync").error(
    reason="A node that starts while it cannot see the other one has quorum at once, and powers the other one off.",
    remedy="Remove wait_for_all: 0; two_node switches wait_for_all on by itself.",
    source=VOTEQUORUM,
)
def wait_for_all_switched_off(setup: Setup) -> Iterator[str]:
    """Find two nodes of which one may start without having seen the other."""
    quorum = setup.membership.one("quorum")
    if quorum.get("two_node") in _ON and quorum.get("wait_for_all", "1") not in _ON:
        yield f"corosync.conf: wait_for_all: {quorum.get('wait_for_all')}"


@rule("pacemaker").error(
    reason="Every separated part of the cluster serves, even a node that has just started alone. For two nodes use "
    "Corosync's two_node.",
    remedy="no-quorum-policy=stop",
    source="https://github.com/os-autoinst/os-autoinst-distri-opensuse/pull/10911",
)
def loss_of_quorum_ignored(setup: Setup) -> Iterator[str]:
    """Find a cluster that goes on without quorum."""
    if setup.pacemaker.properties.get("no-quorum-policy") == "ignore":
        yield "cib: no-quorum-policy=ignore"


@rule("corosync").error(
    reason="auto_tie_breaker gives quorum only to the side with the lowest node id: when that node dies, the other one "
    "stops all services.",
    remedy="two_node: 1 (with fencing), or a quorum device, instead of auto_tie_breaker.",
    source=VOTEQUORUM,
)
def quorum_by_lowest_node(setup: Setup) -> Iterator[str]:
    """Find two nodes of which only a fixed one may survive."""
    quorum = setup.membership.one("quorum")
    if quorum.get("auto_tie_breaker") in _ON and len(nodes_of(setup)) == 2 and not quorum.all("device"):
        yield "corosync.conf: auto_tie_breaker: 1 with two nodes"


@rule("corosync").error(
    reason="A node with no vote, or with more votes than the others, leaves the decision to one node: its loss may "
    "take quorum from all.",
    remedy="Remove quorum_votes, so that every node has one vote.",
    source=VOTEQUORUM,
)
def votes_not_equal(setup: Setup) -> Iterator[str]:
    """Find nodes with more or fewer votes than one."""
    given = {node.get("nodeid"): node.get("quorum_votes", "1") for node in nodes_of(setup)}
    for node, number in given.items():
        if number != "1":
            yield f"corosync.conf: quorum_votes: {number} for node {node}"


@rule("corosync").error(
    reason="A quorum device without a host, with the wrong number of votes, or on one of the nodes cannot decide when "
    "it is needed.",
    remedy="device: model: net, votes: 1, net: host on a third machine, algorithm: ffsplit (or lms).",
    source=QDEVICE,
)
def quorum_device_wrong(setup: Setup) -> Iterator[str]:
    """Find a quorum device that is misconfigured, or on a node of the cluster."""
    nodes = nodes_of(setup)
    ours = {address for node in nodes for address in (*links_of(node).values(), node.get("name"))}
    ours |= {address for node in setup.cluster.nodes for address in node.addresses.values()} if setup.cluster else set()
    for device in setup.membership.one("quorum").all("device"):
        model = device.get("model")
        if model not in ("net", "heuristics"):
            yield f"corosync.conf: device has model {model or '(none)'}"
        if model != "net":
            continue
        net = device.one("net")
        algorithm, host = net.get("algorithm", "ffsplit"), net.get("host")
        expected = {"ffsplit": 1, "2nodelms": 1, "lms": max(len(nodes) - 1, 1)}
        if not host:
            yield "corosync.conf: device has no host"
        if host in ours or host.startswith("127.") or host in ("localhost", "::1"):
            yield f"corosync.conf: device is on {host}, which is a node itself"
        if algorithm not in expected:
            yield f"corosync.conf: device has algorithm {algorithm}"
        elif device.get("votes", str(expected[algorithm])) != str(expected[algorithm]):
            yield f"corosync.conf: device has votes: {device.get('votes')}; {algorithm} wants {expected[algorithm]}"


@rule("corosync").warning(
    reason="Anybody who can reach the quorum device can take its vote.",
    remedy="net: tls: on or required, with the certificates of corosync-qdevice-net-certutil.",
    source=QDEVICE,
)
def quorum_device_without_tls(setup: Setup) -> Iterator[str]:
    """Find a quorum device whose messages are not encrypted."""
    for device in setup.membership.one("quorum").all("device"):
        if device.one("net").get("tls") == "off":
            yield "corosync.conf: device has tls: off"


@rule("corosync").error(
    reason="The number of expected votes falls with every lost node: two halves that are separated step by step can "
    "both have quorum.",
    remedy="Remove last_man_standing and allow_downscale.",
    source=VOTEQUORUM,
)
def last_man_standing(setup: Setup) -> Iterator[str]:
    """Find settings that need four nodes in a smaller cluster, or wait_for_all."""
    quorum = setup.membership.one("quorum")
    for key in ("last_man_standing", "allow_downscale"):
        if quorum.get(key) in _ON and len(nodes_of(setup)) < 4:
            yield f"corosync.conf: {key}: 1 with {counted(len(nodes_of(setup)), 'node')}"
    if quorum.get("last_man_standing") in _ON and quorum.get("wait_for_all") not in _ON:
        yield "corosync.conf: last_man_standing: 1 without wait_for_all: 1"


@rule("pacemaker").error(
    reason="Pacemaker ignores a value that it does not know, and uses the default.",
    remedy="no-quorum-policy=stop",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def quorum_policy_unknown(setup: Setup) -> Iterator[str]:
    """Find policies for lost quorum that do not exist."""
    given = setup.pacemaker.properties.get("no-quorum-policy", "stop")
    if given not in ("stop", "freeze", "suicide", "fence", "demote", "ignore"):
        yield f"cib: no-quorum-policy={given}"
