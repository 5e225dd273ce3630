"""Rules about who may go on when the nodes do not see each other."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.rules.base import rule
from strakes.failover.rules.heartbeat import nodes_of
from strakes.failover.setup import Setup

_ON = ("1", "yes")


@rule(
    "no-quorum-provider",
    "error",
    "corosync",
    reason="Corosync itself works happily without a provider, but Pacemaker does not come up: its controller refuses connections.",
    remedy="quorum: provider: corosync_votequorum",
    source="https://github.com/corosync/corosync/issues/718",
)
def no_provider(setup: Setup) -> Iterator[str]:
    assert setup.corosync is not None
    if setup.corosync.one("quorum").get("provider") != "corosync_votequorum":
        yield "corosync.conf: the section quorum has no provider corosync_votequorum"


@rule(
    "two-nodes-without-tie-breaker",
    "error",
    "corosync",
    reason="One of two is no majority: when a node dies the survivor loses quorum and stops everything.",
    remedy="quorum: two_node: 1 (with fencing), or a quorum device on a third machine.",
    source="https://manpages.debian.org/bookworm/corosync/votequorum.5.en.html",
)
def no_tie_breaker(setup: Setup) -> Iterator[str]:
    assert setup.corosync is not None
    quorum = setup.corosync.one("quorum")
    decided = quorum.get("two_node") in _ON or quorum.all("device") or quorum.get("auto_tie_breaker") in _ON
    if len(nodes_of(setup)) == 2 and not decided:
        yield "corosync.conf: two nodes, and neither two_node nor a device"


@rule(
    "two-node-with-quorum-device",
    "error",
    "corosync",
    reason='Corosync refuses to start with both: "two_node and quorum device cannot be configured at the same time".',
    remedy="Remove two_node where there is a quorum device.",
    source="https://github.com/ClusterLabs/crmsh/issues/1795",
)
def both(setup: Setup) -> Iterator[str]:
    assert setup.corosync is not None
    quorum = setup.corosync.one("quorum")
    if quorum.get("two_node") in _ON and quorum.all("device"):
        yield "corosync.conf: two_node: 1 beside a device"


@rule(
    "two-node-with-more-nodes",
    "error",
    "corosync",
    reason="two_node sets the quorum to 1 and is switched off when a third node joins: until then every node alone has quorum.",
    remedy="Remove two_node, and expected_votes, where there are more than two nodes.",
    source="https://manpages.debian.org/bookworm/corosync/votequorum.5.en.html",
)
def too_many(setup: Setup) -> Iterator[str]:
    assert setup.corosync is not None
    quorum = setup.corosync.one("quorum")
    many = len(nodes_of(setup))
    if quorum.get("two_node") in _ON and many > 2:
        yield f"corosync.conf: two_node: 1 with {many} nodes"
    if quorum.get("expected_votes") and not quorum.all("device") and quorum.get("expected_votes") != str(many):
        yield f"corosync.conf: expected_votes: {quorum.get('expected_votes')} with {many} nodes"


@rule(
    "wait-for-all-off",
    "error",
    "corosync",
    reason="A node that starts while it cannot see the other has quorum at once, and powers the other one off.",
    remedy="Remove wait_for_all: 0; two_node switches it on by itself.",
    source="https://manpages.debian.org/bookworm/corosync/votequorum.5.en.html",
)
def no_waiting(setup: Setup) -> Iterator[str]:
    assert setup.corosync is not None
    quorum = setup.corosync.one("quorum")
    if quorum.get("two_node") in _ON and quorum.get("wait_for_all", "1") not in _ON:
        yield f"corosync.conf: wait_for_all: {quorum.get('wait_for_all')}"


@rule(
    "quorum-ignored",
    "error",
    "pacemaker",
    reason="Every fragment serves, also one that has just started alone; two nodes are the business of Corosync's two_node.",
    remedy="no-quorum-policy=stop",
    source="https://github.com/os-autoinst/os-autoinst-distri-opensuse/pull/10911",
)
def ignored(setup: Setup) -> Iterator[str]:
    assert setup.cib is not None
    if setup.cib.properties.get("no-quorum-policy") == "ignore":
        yield "cib: no-quorum-policy=ignore"
