"""Facts of DRBD's resources."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.replication import Resource
from strakes.failover.rules.condition import Facts
from strakes.failover.rules.facts import Table, Thing, facts, yes
from strakes.failover.setup import Setup


def replicated_resources(setup: Setup) -> Iterator[Thing]:
    """Yield the resources."""
    both = any(one.values.get("fstype") in ("gfs2", "ocfs2") for one in setup.services)
    for one in setup.drbd:
        handler = one.option("handlers", "fence-peer")
        program = handler.split()[0].rpartition("/")[2] if handler.split() else ""
        deduced: Table = {
            "the protocol": one.protocols,
            "the fencing": one.fencing,
            "number of hosts": str(len(one.hosts)),
            "half of the hosts": str(len(one.hosts) / 2),
            "is mounted on both nodes": yes(both),
            "fence-peer program": program,
            "lifts what fence-peer sets": one.option("handlers", "unfence-peer")
            or one.option("handlers", "after-resync-target"),
            "is of version 9": yes(one.dialect9),
            "disks": sorted(one.disks),
            "startup.become-primary-on": one.option("startup", "become-primary-on"),
        }
        yield Thing(f"drbd: {one.name}", _replicatedfacts(one, facts(deduced)))


def _replicatedfacts(one: Resource, deduced: Facts) -> Facts:
    def fact(name: str) -> tuple[str, ...]:
        section, _, key = name.partition(".")
        return deduced(name) or (tuple(one.all_values(section, key)) if key else ())

    return fact
