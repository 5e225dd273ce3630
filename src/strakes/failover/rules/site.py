"""Rules about the room: its power."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.rules.rule import OWN, rule
from strakes.failover.setup import Setup


@rule("description").error(
    reason="One fuse takes both nodes; no software makes up for it.",
    remedy="Two feeds for each node, or each node on its own.",
    source=OWN,
)
def both_nodes_on_one_feed(setup: Setup) -> Iterator[str]:
    """Find a cluster that hangs on one power feed."""
    feeds = [frozenset(node.power_feeds) for node in setup.described.nodes]
    if len(frozenset().union(*feeds)) == 1:
        yield f"cluster.toml: everything hangs on {next(iter(feeds[0]))}"
