"""Rules about DRBD: that both copies are the same, and that only one is written to."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.rules.base import OWN, rule
from strakes.failover.setup import Setup

_AUTOMATIC = (
    "discard-younger-primary",
    "discard-older-primary",
    "discard-least-changes",
    "discard-secondary",
    "violently-as0p",
    "call-pri-lost-after-sb",
)


@rule(
    "replication-not-synchronous",
    "error",
    "drbd",
    reason="A write is acknowledged before it is on the other disk: with A a take-over loses it, with B a power cut of both nodes.",
    remedy="net { protocol C; }",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-features.adoc",
)
def protocol(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        if resource.protocol and resource.protocol != "C":
            yield f"drbd: {resource.name} has protocol {resource.protocol}"


@rule(
    "no-replication-fencing",
    "error",
    "drbd",
    reason="When only the replication is cut, both nodes may be promoted, one with old data, and the copies grow apart.",
    remedy="fencing resource-and-stonith; (8.4: in disk {}, 9: in net {})",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def fencing(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        quorate = resource.option("options", "quorum") == "majority"
        if resource.fencing != "resource-and-stonith" and not (quorate and resource.option("options", "on-no-quorum")):
            yield f"drbd: {resource.name} has fencing {resource.fencing or 'dont-care'}"


@rule(
    "no-fence-peer-handler",
    "error",
    "drbd",
    reason="The policy asks a handler; without one the primary stays frozen, and nothing keeps the outdated copy from being promoted.",
    remedy="handlers { fence-peer …crm-fence-peer…; unfence-peer (8.4: after-resync-target) …crm-unfence-peer…; }",
    source="https://manpages.debian.org/bookworm/drbd-utils/drbd.conf-9.0.5.en.html",
)
def handlers(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        if not resource.fencing or resource.fencing == "dont-care":
            continue
        if not resource.option("handlers", "fence-peer"):
            yield f"drbd: {resource.name} has no fence-peer handler"
        elif not (resource.option("handlers", "unfence-peer") or resource.option("handlers", "after-resync-target")):
            yield f"drbd: {resource.name} is locked out for ever: no handler lifts what fence-peer has set"


@rule(
    "handler-of-the-other-version",
    "error",
    "drbd",
    reason="crm-fence-peer.sh is for DRBD 8.4, crm-fence-peer.9.sh for 9; a wrong one shows only when the peer is gone.",
    remedy="Use the handler of the installed version.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG9/en/drbd-pacemaker.adoc",
)
def handler_version(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        handler = resource.option("handlers", "fence-peer")
        if "crm-fence-peer" in handler and (".9.sh" in handler) != resource.dialect9:
            yield f"drbd: {resource.name} is written for DRBD {'9' if resource.dialect9 else '8.4'}, its handler is {handler}"


@rule(
    "two-primaries",
    "error",
    "drbd",
    reason="Two nodes may then mount the same ext4, XFS or ldiskfs; only cluster file systems, with fencing, can live with it.",
    remedy="Remove allow-two-primaries.",
    source="https://github.com/LINBIT/drbd/issues/62",
)
def two_primaries(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        both = any(key == "allow-two-primaries" for key, _ in (*resource.block.one("net").settings, *resource.common.one("net").settings))
        if both and resource.option("net", "allow-two-primaries", "yes") != "no":
            yield f"drbd: {resource.name} has allow-two-primaries"


@rule(
    "split-brain-solved-by-discarding",
    "error",
    "drbd",
    reason="After a split brain the writes of one side are thrown away without anybody being asked.",
    remedy="after-sb-0pri discard-zero-changes, after-sb-1pri consensus, after-sb-2pri disconnect",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def discarding(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        for key in ("after-sb-0pri", "after-sb-1pri", "after-sb-2pri"):
            chosen = resource.option("net", key)
            if chosen in _AUTOMATIC or chosen.startswith("discard-node-"):
                yield f"drbd: {resource.name} has {key} {chosen}"


@rule(
    "split-brain-unheard",
    "warning",
    "drbd",
    reason="Without a handler nobody is told of a split brain: it is a line in the kernel's log, and the copies stay apart.",
    remedy='handlers { split-brain "/usr/lib/drbd/notify-split-brain.sh root"; }',
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def unheard(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        if not resource.option("handlers", "split-brain"):
            yield f"drbd: {resource.name} tells nobody of a split brain"


@rule(
    "flushes-off",
    "warning",
    "drbd",
    reason="Without flushes a power cut loses what was acknowledged, unless every cache below has a battery that is watched.",
    remedy="Leave disk-flushes and md-flushes on; else be sure of the battery.",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def flushes(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        for key in ("disk-flushes", "md-flushes"):
            if resource.option("disk", key) == "no":
                yield f"drbd: {resource.name} has {key} no"


@rule(
    "disk-error-passed-on",
    "warning",
    "drbd",
    reason="With 8.4 an error of the local disk reaches the file system, though the peer has a good copy; 9 goes on using the bad disk.",
    remedy="disk { on-io-error detach; }",
    source="https://github.com/LINBIT/linbit-documentation/blob/master/UG8.4/en/administration.adoc",
)
def passed_on(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        if resource.option("disk", "on-io-error") == "pass_on":
            yield f"drbd: {resource.name} has on-io-error pass_on"


@rule(
    "copies-never-compared",
    "warning",
    "drbd",
    reason="Copies that differ silently are found by drbdadm verify, which needs an algorithm, or by the take-over.",
    remedy="net { verify-alg sha256; } and a monthly drbdadm verify.",
    source="https://manpages.debian.org/bookworm/drbd-utils/drbd.conf-9.0.5.en.html",
)
def verify(setup: Setup) -> Iterator[str]:
    for resource in setup.drbd:
        if not resource.option("net", "verify-alg"):
            yield f"drbd: {resource.name} has no verify-alg"


@rule(
    "devices-collide",
    "error",
    "drbd",
    reason="Two resources on one disk, minor or port: one of them does not come up, or overwrites the other.",
    remedy="Give each its own disk, minor and port.",
    source=OWN,
)
def collide(setup: Setup) -> Iterator[str]:
    seen: dict[tuple[str, str, str], str] = {}
    for resource in setup.drbd:
        for host in resource.hosts:
            name = host.words[0] if host.words else ""
            for what in ("disk", "device", "address"):
                value = host.get(what)
                other = seen.setdefault((name, what, value), resource.name)
                if value and other != resource.name:
                    yield f"drbd: {other} and {resource.name} have the same {what} on {name}: {value}"


@rule(
    "secret-readable-by-all",
    "error",
    "drbd",
    reason="Who can read the shared secret can connect as the peer and receive, or overwrite, the whole device.",
    remedy="chmod 600, owned by root; best in a file of its own (drbd.d/*.secret).",
    source="https://manpages.debian.org/bookworm/drbd-utils/drbd.conf-9.0.5.en.html",
)
def secret(setup: Setup) -> Iterator[str]:
    for name, text in setup.texts.items():
        if name.startswith("etc/drbd") and "shared-secret" in text and setup.modes.get(name, 0) & 0o077:
            yield f"{name} has a shared-secret and mode {setup.modes[name]:04o}"
