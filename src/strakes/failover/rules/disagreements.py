"""Rules about settings of Corosync and of DRBD that contradict each other, or do nothing as they stand."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatch

from strakes.failover.blocks import included_by
from strakes.failover.known_options import meant, options_of
from strakes.failover.replication import kib
from strakes.failover.rules.heartbeat import is_address, network_of
from strakes.failover.rules.rule import COROSYNC_CONF, DRBD_CONF, rule
from strakes.failover.setup import Setup

_ON = ("yes", "on", "1", "true")
# Digests of the kernel that drbd.conf(5) names, or that are common; others may be there, a similar name is a mistake.
_DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "crc32c", "crc32", "xxhash64")
_LOCKS_OUT, _LETS_IN = re.compile(r"crm-fence-peer"), re.compile(r"crm-unfence-peer")


@rule("corosync").error(
    reason="The last one is used; those above it have no effect.",
    remedy="Keep one of them.",
    source=COROSYNC_CONF,
)
def heartbeat_option_given_twice(setup: Setup) -> Iterator[str]:
    """Find settings of one section of corosync.conf that are given twice, with two values."""
    # Sections that may stand several times, each for another thing, are no contradiction; those of one name are one.
    top = {name: setup.membership.one(name) for name in ("totem", "quorum", "logging")}
    blocks = [*top.items(), *((path, block) for path, block in setup.membership.sections() if " " in path.strip())]
    for path, block in blocks:
        given: dict[str, str] = {}
        for name, value in block.settings:
            if given.setdefault(name, value) != value:
                yield f"corosync.conf: {path} has {name}: {given[name]} and {name}: {value}"


@rule("corosync").error(
    reason="Corosync does not start if it is told to log to a file, and no file is named.",
    remedy="logging: logfile: /var/log/corosync/corosync.log",
    source=COROSYNC_CONF,
)
def log_file_not_named(setup: Setup) -> Iterator[str]:
    """Find a log to a file where no file is given."""
    logging = setup.membership.one("logging")
    if logging.get("to_logfile").lower() in _ON and not logging.get("logfile"):
        yield "corosync.conf: to_logfile: yes, and no logfile"


@rule("corosync").warning(
    reason="knet and udpu take the addresses from nodelist: these lines have no effect.",
    remedy="Remove bindnetaddr and mcastaddr.",
    source=COROSYNC_CONF,
)
def multicast_settings_unused(setup: Setup) -> Iterator[str]:
    """Find addresses of multicast and broadcast, which knet does not use."""
    totem = setup.membership.one("totem")
    if totem.get("transport", "knet") != "knet" or not setup.membership.one("nodelist").all("node"):
        return
    for interface in totem.all("interface"):
        for key in ("bindnetaddr", "mcastaddr", "broadcast"):
            if interface.get(key):
                yield f"corosync.conf: {key}: {interface.get(key)} with knet"


@rule("drbd").warning(
    reason="The lowest rate is above the highest, or there is neither a controller nor a rate: a copy is "
    "resynchronised at 250 KiB/s.",
    remedy="Set c-max-rate above c-min-rate; set resync-rate if c-plan-ahead is 0.",
    source=DRBD_CONF,
)
def replication_rates_contradict(setup: Setup) -> Iterator[str]:
    """Find resync rates of DRBD that exclude each other, or that are missing."""
    for resource in setup.drbd:
        least, most = (resource.option("disk", key, "") for key in ("c-min-rate", "c-max-rate"))
        if (kib(least) or 0) > (kib(most) or 0) > 0:
            yield f"drbd: {resource.name} has c-min-rate {least} and c-max-rate {most}"
        if resource.option("disk", "c-plan-ahead", "") == "0" and not resource.option("disk", "resync-rate", ""):
            yield f"drbd: {resource.name} has c-plan-ahead 0 and no resync-rate"


@rule("drbd").error(
    reason="The two sides authenticate with a digest and a secret: with only one of them, anybody can connect, or "
    "nobody.",
    remedy="net { cram-hmac-alg sha256; shared-secret ...; }",
    source=DRBD_CONF,
)
def replication_secret_incomplete(setup: Setup) -> Iterator[str]:
    """Find a shared secret of DRBD without an algorithm, and the reverse."""
    # The secret may be in a file that is not read.
    hidden = any("include" in text and "secret" in text for text in setup.texts.values())
    for resource in setup.drbd:
        digest, word = (resource.option("net", key, "") for key in ("cram-hmac-alg", "shared-secret"))
        if word and not digest:
            yield f"drbd: {resource.name} has a shared-secret and no cram-hmac-alg"
        if digest and not word and not hidden:
            yield f"drbd: {resource.name} has cram-hmac-alg and no shared-secret"


@rule("drbd").error(
    reason="drbdadm refuses it: an address is an IP address with a port, and metadata are internal or on a device.",
    remedy="address 10.2.0.1:7788; meta-disk internal;",
    source=DRBD_CONF,
)
def replication_address_or_metadata_malformed(setup: Setup) -> Iterator[str]:
    """Find malformed DRBD addresses, ports and metadata disks."""
    for resource in setup.drbd:
        for host in resource.hosts:
            for address in host.addresses:
                # Of IPv6, and of other families, too.
                if not re.fullmatch(r"(\[[0-9a-fA-F:.%\w]+\]|\d+\.\d+\.\d+\.\d+):\d{1,5}", address):
                    yield f"drbd: {resource.name} has the address {address} on {host.name}"
                elif int(address.rpartition(":")[2]) > 65_535:
                    yield f"drbd: {resource.name} has no such port: {address} on {host.name}"
            for _, _, metadata in host.volumes.values():
                if metadata not in ("", "internal") and not metadata.startswith("/"):
                    yield f"drbd: {resource.name} has meta-disk {metadata} on {host.name}"


@rule("drbd").warning(
    reason="The two ends are in different networks: the copies never connect unless there is a router between them. "
    "Possibly one digit is wrong.",
    remedy="Use addresses of one network, preferably on a direct cable.",
    source=DRBD_CONF,
)
def replication_in_two_subnets(setup: Setup) -> Iterator[str]:
    """Find DRBD resources whose two addresses are in different networks."""
    for resource in setup.drbd:
        sides = [[address.rpartition(":")[0].strip("[]") for address in host.addresses] for host in resource.hosts]
        if len(sides) == 2 and len(sides[0]) == len(sides[1]) == 1:
            first, second = sides[0][0], sides[1][0]
            known = all(map(is_address, (first, second)))
            if known and network_of(setup, first) != network_of(setup, second):
                yield f"drbd: {resource.name} between {first} and {second}"


@rule("drbd").error(
    reason="The kernel has no digest of that name: the two sides do not connect, or are never compared.",
    remedy="sha256, or another one from /proc/crypto.",
    source=DRBD_CONF,
)
def digest_unknown(setup: Setup) -> Iterator[str]:
    """Find misspelt digests of DRBD."""
    for resource in setup.drbd:
        for key in ("verify-alg", "csums-alg", "cram-hmac-alg", "data-integrity-alg"):
            for given in resource.all_values("net", key):
                name = re.sub(r"^hmac\((.*)\)$", r"\1", given)
                if name not in _DIGESTS and meant(name, _DIGESTS):
                    yield f"drbd: {resource.name} has {key} {given}, which may mean {meant(name, _DIGESTS)}"


@rule("drbd").error(
    reason="crm-fence-peer forbids the other copy to be promoted, crm-unfence-peer allows it again: swapped, each does "
    "the opposite.",
    remedy='fence-peer "...crm-fence-peer..."; unfence-peer (8.4: after-resync-target) "...crm-unfence-peer...";',
    source=DRBD_CONF,
)
def fence_peer_handlers_swapped(setup: Setup) -> Iterator[str]:
    """Find DRBD handlers that do the opposite of what they are called for."""
    for resource in setup.drbd:
        for key, wrong in (("fence-peer", _LETS_IN), ("unfence-peer", _LOCKS_OUT), ("after-resync-target", _LOCKS_OUT)):
            handler = resource.option("handlers", key)
            if wrong.search(handler):
                yield f"drbd: {resource.name} has {key} {handler}"


@rule("drbd").error(
    reason="The kernel calls drbdadm without a search path: a program without its full path is not found, and writing "
    "stays frozen.",
    remedy="/usr/lib/drbd/PROGRAM",
    source=DRBD_CONF,
)
def handler_not_found(setup: Setup) -> Iterator[str]:
    """Find DRBD handlers that are not where DRBD looks for them, or misspelt."""
    known = options_of("drbd handler programs")
    for resource in setup.drbd:
        for key in options_of("drbd handlers"):
            for program in resource.option("handlers", key).split(maxsplit=1)[:1]:
                directory, _, name = program.rstrip(";").rpartition("/")
                other = meant(name, known)
                if not directory and re.fullmatch(r"[\w.-]+\.sh", name):
                    yield f"drbd: {resource.name} has {key} {program}"
                elif directory in ("/usr/lib/drbd", "/lib/drbd") and name not in known and other:
                    yield f"drbd: {resource.name} has {key} {program}, which may mean {other}"


@rule("drbd").error(
    reason="drbdadm refuses to wait for a resource that does not exist, or for itself.",
    remedy="resync-after RESOURCE/VOLUME of another resource.",
    source=DRBD_CONF,
)
def resync_after_unknown_resource(setup: Setup) -> Iterator[str]:
    """Find DRBD resources that wait for the resync of an unknown resource, or of themselves."""
    names = {resource.name for resource in setup.drbd}
    for resource in setup.drbd:
        for given in resource.all_values("disk", "resync-after"):
            other = given.partition("/")[0]
            if other not in names or (other == resource.name and "/" not in given):
                yield f"drbd: {resource.name} has resync-after {given}"


@rule("drbd").error(
    reason="DRBD reads drbd.conf and the files that it includes: a resource in another file does not exist for DRBD.",
    remedy='include "drbd.d/*.res";',
    source=DRBD_CONF,
)
def replication_file_not_read(setup: Setup) -> Iterator[str]:
    """Find files of resources that drbd.conf does not include."""
    files = {name: re.sub(r"#.*", "", text) for name, text in setup.texts.items() if name.startswith("etc/drbd")}
    included = [
        posixpath.join("/", posixpath.dirname(name), one) for name, text in files.items() for one in included_by(text)
    ]
    for name, text in files.items() if files.get("etc/drbd.conf", "").strip() else ():
        holds = name.startswith("etc/drbd.d/") and re.search(r"(?m)^\s*resource\b", text)
        if holds and not any(fnmatch(f"/{name}", one) for one in included):
            yield f"drbd.conf: {name.removeprefix('etc/')} is not included"
