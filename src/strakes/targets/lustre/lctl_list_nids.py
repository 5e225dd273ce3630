"""``lctl list_nids``: this machine's addresses in Lustre's network."""

from __future__ import annotations

import re

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import checked, not_understood

_NID = re.compile(r"^\S+@[a-z0-9]+$")


def list_nids() -> Command[tuple[str, ...]]:
    """Ask for this client's addresses."""
    return Command(("lctl", "list_nids"), read_nids)


def read_nids(done: Completed) -> tuple[str, ...]:
    """Read them."""
    nids = tuple(checked(done, "the network is not known").splitlines())
    for nid in nids:
        if not _NID.match(nid):
            raise not_understood("lctl list_nids", nid)
    return nids
