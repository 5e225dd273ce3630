"""Rules about the room: its power."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.rules.rule import OWN, rule
from strakes.failover.setup import Setup


@rule("description").error(
    reason="One fuse takes down both nodes; no software can make up for that.",
    remedy="Use two feeds for each node, or a feed of its own for each node.",
    source=OWN,
)
def both_nodes_on_one_feed(setup: Setup) -> Iterator[str]:
    """Find a cluster that hangs on one power feed."""
    feeds = [frozenset(node.power_feeds) for node in setup.described.nodes]
    if len(frozenset().union(*feeds)) == 1:
        yield f"cluster.toml: everything hangs on {next(iter(feeds[0]))}"
