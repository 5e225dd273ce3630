"""Rules about Lustre targets: found on both nodes, mounted on one, and clients waited for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from strakes.failover.planned.lustre import PUBLISHED_S_PER_CLIENT
from strakes.failover.rules.base import rule
from strakes.failover.setup import Setup

_DEFAULT_HARD_S = 900


def _targets(setup: Setup) -> Iterator[list[str]]:
    """The words of each mkfs.lustre or tunefs.lustre."""
    joined = re.sub(r"\\\n", " ", setup.lustre)
    for line in joined.splitlines():
        text = line.strip()
        if text.startswith(("mkfs.lustre", "tunefs.lustre")):
            yield shlex.split(text)


def _named(words: list[str], option: str) -> list[str]:
    return [nid for word in words if word.startswith(f"--{option}=") for nid in re.split(r"[:]", word.partition("=")[2]) if nid]


@rule(
    "multiple-mount-protection-off",
    "error",
    "lustre",
    reason="It is the last line that keeps two nodes from mounting the same ldiskfs; a mistake of a minute then costs the file system.",
    remedy="Do not pass -O ^mmp; mkfs.lustre switches it on where --servicenode or --failnode is given.",
    source="https://manpages.debian.org/bookworm/e2fsprogs/ext4.5.en.html",
)
def mmp(setup: Setup) -> Iterator[str]:
    for words in _targets(setup):
        if any("^mmp" in word for word in words):
            yield f"make-targets.sh: {words[-1]} is made with ^mmp"
        elif not _named(words, "servicenode") and not _named(words, "failnode"):
            yield f"make-targets.sh: {words[-1]} names no server, so protection stays off"


@rule(
    "clients-know-one-server",
    "error",
    "lustre",
    reason="A target has an explicit list of the hosts that can serve it: after the take-over it is looked for where it is not.",
    remedy="--servicenode for both nodes.",
    source="https://wiki.lustre.org/images/f/fa/Defining_Multiple_LNet_Interfaces_for_Multi-homed_Servers,_v1.pdf",
)
def one_server(setup: Setup) -> Iterator[str]:
    for words in _targets(setup):
        nodes = set(_named(words, "servicenode"))
        if nodes and len(nodes) < 2:
            yield f"make-targets.sh: {words[-1]} names only {', '.join(nodes)}"


@rule(
    "mgs-known-on-one-node",
    "error",
    "lustre",
    reason="A target that knows the MGS on one node cannot be mounted while that node is down, which is when it must be.",
    remedy="--mgsnode for both nodes.",
    source="https://wiki.lustre.org/Creating_the_Lustre_Metadata_Service_(MDS)",
)
def one_mgs(setup: Setup) -> Iterator[str]:
    for words in _targets(setup):
        if "--mgs" not in words and len(set(_named(words, "mgsnode"))) < 2:
            yield f"make-targets.sh: {words[-1]} knows {len(set(_named(words, 'mgsnode')))} node of the MGS"


@rule(
    "failnode-and-servicenode",
    "error",
    "lustre",
    reason="The two ways exclude each other: with servicenode all nodes are equal, with failnode one is another's partner.",
    remedy="Only --servicenode.",
    source="https://github.com/lustre/lustre-release/blob/master/lustre/doc/mkfs.lustre.8",
)
def mixed(setup: Setup) -> Iterator[str]:
    for words in _targets(setup):
        if _named(words, "failnode") and _named(words, "servicenode"):
            yield f"make-targets.sh: {words[-1]} has both"


@rule(
    "recovery-shorter-than-the-clients-need",
    "error",
    "lustre",
    "description",
    reason="Clients that have not come back in time are evicted and lose what they had not written; with thousands it takes minutes.",
    remedy="recovery_time_hard of at least what so many clients need; published experience is 0.21 s for each.",
    source="https://github.com/lustre/lustre-release/blob/master/lustre/doc/mount.lustre.8",
)
def recovery(setup: Setup) -> Iterator[str]:
    assert setup.cluster is not None
    given = re.search(r"recovery_time_hard=(\d+)", setup.lustre)
    hard = int(given[1]) if given else _DEFAULT_HARD_S
    needed = PUBLISHED_S_PER_CLIENT * setup.cluster.file_system.clients
    if hard < needed:
        yield f"make-targets.sh: recovery_time_hard is {hard} s, {setup.cluster.file_system.clients:,} clients need about {needed:,.0f} s"
