"""Clear mistakes, each planted alone in a good configuration: in our own plans, and in those of other styles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from failover.clusters import EXAMPLES, planned
from failover.styles import STYLES, write
from failover.styles_files import FILE_STYLES
from failover.styles_more import MORE_STYLES

COROSYNC, CIB, TOML = "etc/corosync/corosync.conf", "pacemaker/cib.xml", "cluster.toml"
TARGETS, CLIENTS = "lustre/make-targets.sh", "lustre/mount-clients.sh"
PAIR, BUSY, HOME = "tianhe2", "lustre-active-active", "nfs"


@dataclass(frozen=True)
class Planted:
    """``old`` (a regular expression) becomes ``new`` in a file of ``base``: the plan of an example, or a style. An empty ``old``: a new file."""

    rule: str
    base: str
    file: str
    old: str
    new: str

    def plant(self, directory: Path) -> Path:
        if self.base in EXAMPLES:
            planned(self.base, directory)
        elif self.base in STYLES:
            write(STYLES[self.base](), directory)
        else:
            write({**FILE_STYLES, **MORE_STYLES}[self.base](), directory, 0o600)
        path = directory / self.file
        if not self.old:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.new)
            return directory
        text, times = re.subn(self.old, self.new, path.read_text(), count=0)
        assert times, f"{self.old} is not in {self.file} of {self.base}"
        path.write_text(text)
        return directory


def set_to(name: str, new: str, old: str = '[^"]*') -> tuple[str, str]:
    """Another value of an attribute in the CIB, wherever it is."""
    return rf'name="{name}" value="{old}"', f'name="{name}" value="{new}"'


def property_of_cluster(name: str, value: str) -> tuple[str, str]:
    return r"(<cluster_property_set [^>]*>)", rf'\1<nvpair id="planted" name="{name}" value="{value}"/>'


def device_value(device: str, name: str, value: str) -> tuple[str, str]:
    """One more value of one device, of our own plans and of the styles."""
    return (
        rf'(<primitive id="{device}".*?\n.*?<instance_attributes [^>]*>)',
        rf'\1<nvpair id="planted" name="{name}" value="{value}"/>',
    )


def operation(identity: str, name: str, change: str) -> tuple[str, str]:
    """Attributes of an operation of one primitive, in our own plans."""
    return rf'(<op id="{identity}-{name}-[^"]*" name="{name}" interval="[^"]*" )', rf"\1{change} "


def timeout(identity: str, name: str, value: str) -> tuple[str, str]:
    return rf'(<op id="{identity}-{name}-[^>]*timeout=)"[^"]*"', rf'\1"{value}"'


def meta(identity: str, tag: str, name: str, value: str) -> tuple[str, str]:
    block = f'<meta_attributes id="planted"><nvpair id="planted-1" name="{name}" value="{value}"/></meta_attributes>'
    return rf'(<{tag} id="{identity}"[^>]*>)', rf"\1{block}"


def constraint(text: str) -> tuple[str, str]:
    return "<constraints>", f"<constraints>{text}"


def moved(first: str, second: str) -> tuple[str, str]:
    """Two members of a group in the other order."""
    one, other = (rf'(<primitive id="{name}"(?:.|\n)*?</primitive>)' for name in (first, second))
    return one + r"((?:.|\n)*?)" + other, r"\3\2\1"


_NOT_ALPHA = '<expression id="p2" attribute="#uname" operation="ne" value="alpha"/>'
_RES, _PAIR_RES = "etc/drbd.d/r0.res", "etc/drbd.d/mdt0.res"
# Rule, base, file, then what becomes what.
_ROWS: Mapping[str, tuple[str, str, str, tuple[str, str]]] = {
    # Fencing
    "levels split two outlets": (
        "outlets-switched-one-by-one",
        BUSY,
        CIB,
        (
            r'devices="outlet-mds1-1,outlet-mds1-2"',
            'devices="outlet-mds1-1"/><fencing-level id="planted" target="mds1" index="3" devices="outlet-mds1-2"',
        ),
    ),
    "two outlet strips without a level": (
        "outlets-switched-one-by-one",
        "two outlet strips",
        CIB,
        (r"(?s)<fencing-topology>.*</fencing-topology>", ""),
    ),
    "one outlet less in a level": (
        "outlets-switched-one-by-one",
        "two outlet strips",
        CIB,
        ('devices="pdu8,pdu9"', 'devices="pdu8"'),
    ),
    "levels for one node only": (
        "fencing-level-for-some-nodes",
        BUSY,
        CIB,
        (r'<fencing-level id="level-mds2[^>]*>', ""),
    ),
    "levels for a node that is none": (
        "fencing-level-names-nothing",
        "two outlet strips",
        CIB,
        ('target="beta"', 'target="delta"'),
    ),
    "a level with the other node's BMC": (
        "fencing-level-names-nothing",
        BUSY,
        CIB,
        ('devices="fence-mds1"', 'devices="fence-mds2"'),
    ),
    "plug of the other node": ("fencing-differs-from-the-description", BUSY, CIB, (r'mds1:1"', 'mds1:2"')),
    "outlets of one node swapped with the other's": ("one-bmc-for-two-nodes", BUSY, CIB, (r'mds2:2"', 'mds2:1"')),
    "a strip without a map": (
        "outlet-not-named",
        "pcs, one outlet strip for both",
        CIB,
        ('name="pcmk_host_map" value="[^"]*"', 'name="pcmk_host_list" value="alpha beta"'),
    ),
    "one outlet for two nodes": (
        "outlet-not-named",
        "pcs, one outlet strip for both",
        CIB,
        set_to("pcmk_host_map", "alpha:1;beta:1"),
    ),
    "strip asked by SNMP with a user": (
        "outlet-login-of-another-kind",
        "pcs, one outlet strip for both",
        CIB,
        (r'name="community" value="fence"', 'name="username" value="apc"'),
    ),
    "BMC address swapped against the description": (
        "fencing-differs-from-the-description",
        PAIR,
        CIB,
        (r'value="10\.9\.0\.1"((?:.|\n)*)value="10\.9\.0\.2"', r'value="10.9.0.2"\1value="10.9.0.1"'),
    ),
    "both BMCs have one address": ("one-bmc-for-two-nodes", "pcs", CIB, (r"192\.168\.30\.2", "192.168.30.1")),
    "port of the web interface": ("port-of-another-protocol", "pcs", CIB, device_value("fence_alpha", "ipport", "80")),
    "port differs from the description": ("fencing-differs-from-the-description", PAIR, CIB, set_to("ipport", "624")),
    "BMC without an address": (
        "device-without-address",
        "pcs",
        CIB,
        (r'<nvpair [^>]*value="192\.168\.30\.1"[^>]*>', ""),
    ),
    "BMC without a list of hosts": (
        "fencing-device-for-anybody",
        "pcs",
        CIB,
        (r'<nvpair [^>]*name="pcmk_host_list"[^>]*>', ""),
    ),
    "BMC that does not look at the list": (
        "fencing-device-for-anybody",
        "pcs",
        CIB,
        device_value("fence_alpha", "pcmk_host_check", "none"),
    ),
    "one BMC for both nodes": (
        "fencing-device-for-anybody",
        "pcs",
        CIB,
        set_to("pcmk_host_list", "alpha beta", "alpha"),
    ),
    "fence_ack_manual": ("fencing-that-pretends", "pcs", CIB, ("fence_ipmilan", "fence_ack_manual")),
    "fence_dummy": ("fencing-that-pretends", "pcs", CIB, ("fence_ipmilan", "fence_dummy")),
    "external/ssh": ("fencing-that-pretends", PAIR, CIB, ("fence_ipmilan", "external/ssh")),
    "fence_kdump alone": ("fencing-that-pretends", "pcs", CIB, ("fence_ipmilan", "fence_kdump")),
    "off asks for the state": (
        "fencing-that-pretends",
        "pcs",
        CIB,
        device_value("fence_alpha", "pcmk_off_action", "status"),
    ),
    "reboot asks for the state": ("fencing-that-pretends", PAIR, CIB, set_to("pcmk_reboot_action", "status")),
    "off switches on": ("fencing-that-pretends", PAIR, CIB, device_value("fence-mds-a", "pcmk_off_action", "on")),
    "off reboots": ("fencing-that-pretends", PAIR, CIB, device_value("fence-mds-a", "pcmk_off_action", "reboot")),
    "off is cut short": ("power-off-cut-short", "pcs", CIB, device_value("fence_beta", "pcmk_off_timeout", "5s")),
    "reboot is cut short": ("power-off-cut-short", PAIR, CIB, device_value("fence-mds-b", "pcmk_reboot_timeout", "3")),
    "a user may not power off": ("bmc-may-not-power-off", PAIR, CIB, set_to("privlvl", "user")),
    "delay of a second": ("fencing-race", "pcs", CIB, set_to("pcmk_delay_base", "1s")),
    "no delay": ("fencing-race", "pcs", CIB, (r'<nvpair [^>]*name="pcmk_delay_base"[^>]*>', "")),
    "equal delays": ("fencing-race", "pcs", CIB, device_value("fence_beta", "pcmk_delay_base", "15s")),
    "equal delays in one map": (
        "fencing-race",
        "two outlet strips",
        CIB,
        set_to("pcmk_delay_base", "alpha:10s;beta:10s"),
    ),
    "delay of minutes": ("delay-too-long", PAIR, CIB, set_to("pcmk_delay_base", "90s")),
    "delay of the other node": ("another-node-survives", PAIR, TOML, ('survivor = "mds-a"', 'survivor = "mds-b"')),
    "startup-fencing off": ("startup-fencing-off", "pcs", CIB, property_of_cluster("startup-fencing", "false")),
    "an action that is none": ("fencing-action-unknown", PAIR, CIB, set_to("stonith-action", "status")),
    "a device with action=status": (
        "fencing-action-unknown",
        "pcs",
        CIB,
        device_value("fence_alpha", "action", "status"),
    ),
    "watchdog time without sbd": (
        "watchdog-without-sbd",
        "pcs",
        CIB,
        property_of_cluster("stonith-watchdog-timeout", "10s"),
    ),
    "watchdog time too short": (
        "watchdog-time-too-short",
        "diskless sbd, as its own file says",
        CIB,
        set_to("stonith-watchdog-timeout", "6s"),
    ),
    "diskless sbd with two nodes": (
        "watchdog-with-two-nodes",
        "diskless sbd with a quorum device",
        COROSYNC,
        (r"(?s)device \{.*?\n \}\n", "two_node: 1\n"),
    ),
    "sbd with no watchdog": ("sbd-not-working", "crmsh with sbd", "etc/sysconfig/sbd", ("/dev/watchdog", "/dev/null")),
    "sbd without its disk": (
        "sbd-not-working",
        "crmsh with sbd",
        "etc/sysconfig/sbd",
        ("SBD_DEVICE=.*", "SBD_DEVICE="),
    ),
    "sbd on a replicated disk": (
        "sbd-not-working",
        "crmsh with sbd",
        "etc/sysconfig/sbd",
        ("/dev/disk/by-id/scsi-1", "/dev/drbd0"),
    ),
    "sbd that does not watch Pacemaker": (
        "sbd-not-working",
        "crmsh with sbd",
        "etc/sysconfig/sbd",
        ("SBD_PACEMAKER=yes", "SBD_PACEMAKER=no"),
    ),
    "reservations without unfencing": (
        "reservation-without-unfencing",
        "a SAN with reservations",
        CIB,
        set_to("provides", "nothing"),
    ),
    "a device banned from the survivor": (
        "device-kept-from-who-needs-it",
        "pcs",
        CIB,
        constraint('<rsc_location id="planted" rsc="fence_alpha" node="beta" score="-INFINITY"/>'),
    ),
    "a device kept stopped": (
        "node-without-fencing-device",
        "pcs",
        CIB,
        meta("fence_beta", "primitive", "target-role", "Stopped"),
    ),
    "a device for a name without domain": (
        "fencing-device-for-nobody",
        "pcs",
        CIB,
        set_to("pcmk_host_list", "beta.example.org", "beta"),
    ),
    "a priority delay without priorities": (
        "priority-without-priorities",
        "pcs",
        CIB,
        property_of_cluster("priority-fencing-delay", "15s"),
    ),
    "stonith off": ("fencing-switched-off", "ZFS pools of OSTs", CIB, set_to("stonith-enabled", "false")),
    "stonith-timeout below the delay": (
        "power-off-given-up-too-early",
        "pcs",
        CIB,
        property_of_cluster("stonith-timeout", "10s"),
    ),
    "a power cycle": ("power-cycle-instead-of-off", "pcs", CIB, device_value("fence_alpha", "method", "cycle")),
    "both outlets on one feed": ("outlets-leave-a-feed-on", BUSY, TOML, ('feed = "feed-2"', 'feed = "feed-1"')),
    "a feed without an outlet": (
        "outlets-leave-a-feed-on",
        BUSY,
        TOML,
        (r'power_feeds = \["feed-1", "feed-2"\]', 'power_feeds = ["feed-1", "feed-2", "feed-3"]'),
    ),
    # What the policy engine does with it
    "taken over from a node that may still run": (
        "taken-over-without-power-off",
        "pcs",
        CIB,
        set_to("stonith-enabled", "false"),
    ),
    "an address on its own": (
        "address-beside-its-service",
        "a chain without a group",
        CIB,
        (r'<rsc_colocation [^>]*rsc="vip"[^>]*>', ""),
    ),
    # Quorum and links
    "one address on both nodes": ("same-address-on-two-nodes", "pcs", COROSYNC, (r"192\.168\.20\.2", "192.168.20.1")),
    "second link on another subnet": ("link-in-two-subnets", "pcs", COROSYNC, (r"192\.168\.20\.2", "192.168.21.2")),
    "an address that the node does not have": (
        "link-differs-from-the-description",
        PAIR,
        COROSYNC,
        (r"10\.2\.0\.2", "10.2.0.22"),
    ),
    "links crossed": (
        "link-differs-from-the-description",
        PAIR,
        COROSYNC,
        (r"ring0_addr: 10\.1\.0\.2\n(\s*)ring1_addr: 10\.2\.0\.2", r"ring0_addr: 10.2.0.2\n\1ring1_addr: 10.1.0.2"),
    ),
    "both rings on one subnet": (
        "heartbeat-links-share-a-subnet",
        "pcs",
        COROSYNC,
        (r"192\.168\.20\.(\d)", r"192.168.10.10\1"),
    ),
    "one ring only": ("one-heartbeat-path", "pcs", COROSYNC, (r".*ring1_addr.*\n", "")),
    "auto_tie_breaker in place of two_node": (
        "quorum-by-lowest-node",
        "pcs",
        COROSYNC,
        ("two_node: 1", "auto_tie_breaker: 1"),
    ),
    "neither two_node nor device": (
        "two-nodes-without-tie-breaker",
        "pcs",
        COROSYNC,
        ("two_node: 1", "expected_votes: 2"),
    ),
    "a node without a vote": ("votes-not-equal", "pcs", COROSYNC, ("nodeid: 2", "nodeid: 2\n  quorum_votes: 0")),
    "a node with two votes": (
        "votes-not-equal",
        "a third node for the quorum",
        COROSYNC,
        ("nodeid: 1", "nodeid: 1\n  quorum_votes: 2"),
    ),
    "a device without a vote": (
        "quorum-device-wrong",
        "diskless sbd with a quorum device",
        COROSYNC,
        ("votes: 1", "votes: 0"),
    ),
    "a device with three votes": ("quorum-device-wrong", BUSY, COROSYNC, ("votes: 1", "votes: 3")),
    "the device on a node": ("quorum-device-wrong", BUSY, COROSYNC, (r"host: 10\.20\.0\.9", "host: 10.20.0.1")),
    "the device on a node, by name": (
        "quorum-device-wrong",
        "diskless sbd with a quorum device",
        COROSYNC,
        (r"qnetd\.example\.org", "alpha"),
    ),
    "a device without a host": (
        "quorum-device-wrong",
        "diskless sbd with a quorum device",
        COROSYNC,
        (r"host: .*", ""),
    ),
    "a device with the test algorithm": (
        "quorum-device-wrong",
        "diskless sbd with a quorum device",
        COROSYNC,
        ("ffsplit", "test"),
    ),
    "a device elsewhere than described": (
        "link-differs-from-the-description",
        BUSY,
        COROSYNC,
        (r"host: 10\.20\.0\.9", "host: 10.20.0.8"),
    ),
    "a device without encryption": ("quorum-device-without-tls", BUSY, COROSYNC, ("tls: on", "tls: off")),
    "the last man of two": (
        "last-man-standing",
        "a third node for the quorum",
        COROSYNC,
        ("expected_votes: 3", "last_man_standing: 1"),
    ),
    "consensus below the token": (
        "consensus-too-short",
        PAIR,
        COROSYNC,
        ("token: 3000", "token: 3000\n  consensus: 3000"),
    ),
    "token of 300 ms": ("token-too-short", "Corosync 2", COROSYNC, ("token: 10000", "token: 300")),
    "wait_for_all off": ("wait-for-all-off", "pcs", COROSYNC, ("two_node: 1", "two_node: 1\n wait_for_all: 0")),
    "two_node with three": (
        "two-node-with-more-nodes",
        "a third node for the quorum",
        COROSYNC,
        ("expected_votes: 3", "two_node: 1"),
    ),
    "expected_votes of four": (
        "two-node-with-more-nodes",
        "a third node for the quorum",
        COROSYNC,
        ("expected_votes: 3", "expected_votes: 5"),
    ),
    "udpu with two rings and no rrp_mode": (
        "transport-without-redundancy",
        "Corosync 2",
        COROSYNC,
        ("rrp_mode: passive", "rrp_mode: none"),
    ),
    "version 1": ("totem-version", "pcs", COROSYNC, ("version: 2", "version: 1")),
    "nodeid 0": ("node-ids", "pcs", COROSYNC, ("nodeid: 1", "nodeid: 0")),
    "a node that Corosync calls otherwise": (
        "names-differ-from-corosync",
        "pcs",
        COROSYNC,
        ("name: beta", "name: beta2"),
    ),
    "quorum ignored": ("quorum-ignored", "pcs", CIB, property_of_cluster("no-quorum-policy", "ignore")),
    "a policy that is none": ("quorum-policy-unknown", "pcs", CIB, property_of_cluster("no-quorum-policy", "stopp")),
    "a cluster of another name": (
        "nodes-differ-from-the-description",
        PAIR,
        COROSYNC,
        ("cluster_name: .*", "cluster_name: other"),
    ),
    "a key that others can read": ("authkey-readable-by-all", "pcs", "etc/corosync/authkey", ("", "secret")),
    "haresources beside Corosync": (
        "two-cluster-managers",
        "pcs",
        "etc/ha.d/haresources",
        ("", "alpha drbddisk::r0 Filesystem::/dev/drbd0::/srv::xfs\n"),
    ),
    "ha.cf beside Corosync": (
        "two-cluster-managers",
        "pcs",
        "etc/ha.d/ha.cf",
        ("", "bcast eth0\nnode alpha beta\nauto_failback on\n"),
    ),
    "authkeys with crc": ("heartbeat-key-open", "pcs", "etc/ha.d/authkeys", ("", "auth 1\n1 crc\n")),
    # DRBD
    "dont-care in a connection": (
        "no-replication-fencing",
        "DRBD 9 with volumes",
        _RES,
        (r'on "alpha"', 'connection { host alpha; host beta; net { fencing dont-care; } }\n  on "alpha"'),
    ),
    "protocol A in a connection": (
        "replication-not-synchronous",
        "DRBD 9 with volumes",
        _RES,
        (r'on "alpha"', 'connection { host alpha; host beta; net { protocol A; } }\n  on "alpha"'),
    ),
    "protocol B in common": ("replication-not-synchronous", "pcs", _RES, ("protocol C", "protocol B")),
    "protocol A of the resource": (
        "replication-not-synchronous",
        "pcs",
        _RES,
        ("resource r0 {", "resource r0 {\n net { protocol A; }"),
    ),
    "no fencing at all": ("no-replication-fencing", "pcs", _RES, ("fencing resource-and-stonith;", "")),
    "fencing without a freeze": (
        "replication-fencing-without-freeze",
        "pcs",
        _RES,
        ("resource-and-stonith", "resource-only"),
    ),
    "fence-peer does nothing": ("no-fence-peer-handler", "pcs", _RES, (r'fence-peer ".*"', 'fence-peer "/bin/true"')),
    "fence-peer of cman": (
        "no-fence-peer-handler",
        "pcs",
        _RES,
        (r'fence-peer ".*"', 'fence-peer "/usr/lib/drbd/rhcs_fence"'),
    ),
    "fence-peer of Heartbeat": (
        "no-fence-peer-handler",
        "pcs",
        _RES,
        (r'fence-peer ".*"', 'fence-peer "/usr/lib/heartbeat/drbd-peer-outdater -t 5"'),
    ),
    "no fence-peer": ("no-fence-peer-handler", "DRBD 9 with volumes", _RES, (r"fence-peer .*", "")),
    "no unfence-peer": ("no-fence-peer-handler", "DRBD 9 with volumes", _RES, (r"unfence-peer .*", "")),
    "fence-peer gives up after 5 s": (
        "fence-peer-gives-up-before-the-power-off",
        "pcs",
        _RES,
        (r'crm-fence-peer\.sh"', 'crm-fence-peer.sh --timeout 5"'),
    ),
    "fence-peer waits its default": ("fence-peer-waits-for-its-default", PAIR, _PAIR_RES, (" --timeout 180", "")),
    "handler of 8.4 with 9": (
        "handler-of-the-other-version",
        "DRBD 9 with volumes",
        _RES,
        (r"crm-fence-peer\.9\.sh", "crm-fence-peer.sh"),
    ),
    "unfence handler of 9 with 8.4": (
        "handler-of-the-other-version",
        "pcs",
        _RES,
        (r"crm-unfence-peer\.sh", "crm-unfence-peer.9.sh"),
    ),
    "flushes off in old words": (
        "flushes-off",
        "pcs",
        _RES,
        ("on-io-error detach;", "on-io-error detach; no-disk-flushes;"),
    ),
    "flushes off in a volume": (
        "flushes-off",
        "DRBD 9 with volumes",
        _RES,
        (r"volume 0 \{ device", "volume 0 { disk { md-flushes no; } device"),
    ),
    "drain off": ("writes-not-ordered", "pcs", _RES, ("on-io-error detach;", "on-io-error detach; disk-drain no;")),
    "rr-conflict violently": (
        "split-brain-solved-by-discarding",
        "pcs",
        _RES,
        ("protocol C;", "protocol C; rr-conflict violently;"),
    ),
    "the younger primary is discarded": (
        "split-brain-solved-by-discarding",
        "DRBD 9 with volumes",
        _RES,
        ("protocol C;", "protocol C; after-sb-0pri discard-younger-primary;"),
    ),
    "the secondary is discarded": (
        "split-brain-discards-the-secondary",
        "pcs",
        _RES,
        ("protocol C;", "protocol C; after-sb-1pri discard-secondary;"),
    ),
    "both primaries at the start": (
        "promoted-beside-pacemaker",
        "pcs",
        _RES,
        ("startup {", "startup { become-primary-on both;"),
    ),
    "one primary at the start": (
        "promoted-beside-pacemaker",
        "pcs",
        _RES,
        ("startup {", "startup { become-primary-on alpha;"),
    ),
    "two primaries": (
        "two-primaries",
        "DRBD 9 with volumes",
        _RES,
        ("protocol C;", "protocol C; allow-two-primaries yes;"),
    ),
    "a host that is none": ("replication-between-other-hosts", "pcs", _RES, ("on beta", "on beta.example.org")),
    "a side on one host": ("replication-between-other-hosts", "pcs", _RES, (r"on beta \{.*\}", "")),
    "an address on no network": (
        "replication-differs-from-the-description",
        PAIR,
        _PAIR_RES,
        (r"10\.2\.0\.2", "172.16.0.2"),
    ),
    "one address for both sides": ("replication-address-wrong", "pcs", _RES, (r"192\.168\.20\.2", "192.168.20.1")),
    "Corosync's port": ("replication-address-wrong", "pcs", _RES, (":7789", ":5405")),
    "metadata in another resource's place": (
        "metadata-of-another-resource",
        "active/active",
        _RES,
        ("meta-disk internal", "meta-disk /dev/vg0/meta"),
    ),
    "metadata on another resource's disk": (
        "metadata-of-another-resource",
        "active/active",
        _RES,
        (r"(?s)(disk /dev/vg0/more;\s*meta-disk) internal", r"\1 /dev/vg0/data"),
    ),
    "one disk for two": ("devices-collide", "active/active", _RES, ("/dev/vg0/more", "/dev/vg0/data")),
    "one port for two": ("devices-collide", "active/active", _RES, (":7790", ":7789")),
    "one minor for two": ("devices-collide", "active/active", _RES, ("/dev/drbd1", "/dev/drbd0")),
    "DRBD on DRBD": ("replicated-device-as-its-own-disk", "pcs", _RES, ("disk /dev/vg0/data", "disk /dev/drbd1")),
    "another disk than described": (
        "replication-differs-from-the-description",
        PAIR,
        _PAIR_RES,
        ("disk /dev/md/mdt0", "disk /dev/md/mdt1"),
    ),
    "another minor than described": (
        "replication-differs-from-the-description",
        PAIR,
        _PAIR_RES,
        ("/dev/drbd0 minor 0", "/dev/drbd3 minor 3"),
    ),
    "quorum of two copies": (
        "replication-quorum-of-two",
        "DRBD 9 with volumes",
        _RES,
        ('resource "r0" {', 'resource "r0" {\n options { quorum majority; }'),
    ),
    "a secret that others can read": (
        "secret-readable-by-all",
        "pcs",
        _RES,
        ("protocol C;", 'protocol C; shared-secret "hunter2";'),
    ),
    "errors of the disk passed on": (
        "disk-error-passed-on",
        "pcs",
        _RES,
        ("on-io-error detach", "on-io-error pass_on"),
    ),
    # Pacemaker
    "a failed stop ignored": ("failure-passed-over", PAIR, CIB, operation("mount-mdt0", "stop", 'on-fail="ignore"')),
    "a failed stop blocks": ("failure-passed-over", PAIR, CIB, operation("mount-mdt0", "stop", 'on-fail="block"')),
    "a failed monitor ignored": (
        "failure-passed-over",
        HOME,
        CIB,
        operation("export-home", "monitor", 'on-fail="ignore"'),
    ),
    "all failures ignored": (
        "failure-passed-over",
        "op_defaults",
        CIB,
        ('name="timeout" value="300s"', 'name="on-fail" value="ignore"'),
    ),
    "a monitor switched off": ("no-monitor", PAIR, CIB, operation("mount-mdt0", "monitor", 'enabled="false"')),
    "monitors switched off by default": (
        "no-monitor",
        "op_defaults",
        CIB,
        ('name="timeout" value="300s"', 'name="enabled" value="false"'),
    ),
    "looked at every hour": ("monitored-too-seldom", "pcs", CIB, (r'(name="monitor" interval=)"20s"', r'\1"3600s"')),
    "started without fencing": (
        "started-without-fencing",
        PAIR,
        CIB,
        meta("mount-mdt0", "primitive", "requires", "nothing"),
    ),
    "started with quorum only": (
        "started-without-fencing",
        "pcs",
        CIB,
        ('name="resource-stickiness"', 'name="requires" value="quorum"/><nvpair id="p2" name="resource-stickiness"'),
    ),
    "an order for starting only": (
        "demotion-before-unmount",
        "pcs",
        CIB,
        ('kind="Mandatory"', 'kind="Mandatory" symmetrical="false"'),
    ),
    "an optional order": ("mount-before-promotion", "pcs", CIB, ('kind="Mandatory"', 'kind="Optional"')),
    "an order after the start": (
        "mount-before-promotion",
        "pcs",
        CIB,
        ('first-action="promote"', 'first-action="start"'),
    ),
    "an optional set": ("mount-before-promotion", "resource sets", CIB, ('kind="Mandatory"', 'kind="Optional"')),
    "a set that starts": ("mount-before-promotion", "resource sets", CIB, ('action="promote"', 'action="start"')),
    "a colocation with any copy": ("mount-not-with-the-primary", "pcs", CIB, (' with-rsc-role="Promoted"', "")),
    "a colocation that only wishes": (
        "mount-not-with-the-primary",
        "pcs",
        CIB,
        ('score="INFINITY" with-rsc-role', 'score="1000" with-rsc-role'),
    ),
    "a colocation set without role": (
        "mount-not-with-the-primary",
        "resource sets",
        CIB,
        (r'(<resource_set id="[^"]*") role="Promoted"', r"\1"),
    ),
    "no constraint for the mount": (
        "mount-not-with-the-primary",
        "a chain without a group",
        CIB,
        (r'<rsc_colocation id="col"[^>]*>', ""),
    ),
    "the address first": ("address-before-mount", "a service of systemd", CIB, moved("fs", "vip")),
    "the export first": ("exported-before-mounted", "pcs", CIB, moved("fs", "export")),
    "the database before its file system": ("exported-before-mounted", "a service of systemd", CIB, moved("fs", "db")),
    "the disk below DRBD mounted": (
        "disk-below-drbd-mounted",
        "pcs",
        CIB,
        ('value="/dev/drbd0"', 'value="/dev/vg0/data"'),
    ),
    "a device that nobody makes": ("device-not-managed", "pcs", CIB, ('value="/dev/drbd0"', 'value="/dev/drbd5"')),
    "a resource that DRBD does not have": ("resource-of-drbd-unknown", "pcs", CIB, set_to("drbd_resource", "r5")),
    "one directory twice": ("one-place-mounted-twice", "active/active", CIB, ("/srv/more", "/srv/data")),
    "one device twice": ("one-place-mounted-twice", "active/active", CIB, ('value="/dev/drbd1"', 'value="/dev/drbd0"')),
    "ext4 mounted on both nodes": ("mounted-on-both-nodes", "GFS2 on two primaries", CIB, set_to("fstype", "ext4")),
    "a mount that is not the described one": (
        "service-differs-from-the-description",
        PAIR,
        CIB,
        set_to("mountpoint", "/mnt/other"),
    ),
    "the devices of two targets swapped": (
        "service-differs-from-the-description",
        BUSY,
        CIB,
        (r'value="/dev/drbd1"((?:.|\n)*)value="/dev/drbd2"', r'value="/dev/drbd2"\1value="/dev/drbd1"'),
    ),
    "another address than described": (
        "service-differs-from-the-description",
        HOME,
        CIB,
        set_to("ip", "192.168.10.11", r"192\.168\.10\.10"),
    ),
    "a node's own address": ("address-wrong", HOME, CIB, set_to("ip", "192.168.10.1", r"192\.168\.10\.10")),
    "one address for two services": ("address-wrong", "active/active", CIB, (r"192\.168\.10\.51", "192.168.10.50")),
    "an address tied to nothing": (
        "service-not-with-its-mount",
        "a chain without a group",
        CIB,
        (r'<rsc_colocation id="vip-with-fs"[^>]*>', ""),
    ),
    "one copy only": ("drbd-clone-wrong", PAIR, CIB, set_to("clone-max", "1")),
    "two copies on a node": ("drbd-clone-wrong", PAIR, CIB, set_to("clone-node-max", "2")),
    "two promoted": ("drbd-clone-wrong", "crmsh with sbd", CIB, set_to("master-max", "2")),
    "not promotable": ("drbd-clone-wrong", "pcs", CIB, set_to("promotable", "false")),
    "not notified": ("drbd-clone-wrong", "crmsh with sbd", CIB, set_to("notify", "false")),
    "a stop of DRBD too short": ("stop-timeout-too-short", PAIR, CIB, timeout("drbd-mdt0", "stop", "10s")),
    "a promotion too short": ("start-timeout-too-short", PAIR, CIB, timeout("drbd-mdt0", "promote", "10s")),
    "a start of DRBD too short": ("start-timeout-too-short", PAIR, CIB, timeout("drbd-mdt0", "start", "20s")),
    "a demotion too short": ("stop-timeout-too-short", PAIR, CIB, timeout("drbd-mdt0", "demote", "15s")),
    "a start of Lustre of two minutes": ("start-timeout-too-short", PAIR, CIB, timeout("mount-mdt0", "start", "120s")),
    "a stop of Lustre of a minute": (
        "stop-timeout-too-short",
        "Lustre on a SAN",
        CIB,
        (r'(name="stop" interval="0s" timeout=)"300s"', r'\1"60s"'),
    ),
    "an NFS server cut short": ("stop-timeout-too-short", HOME, CIB, timeout("nfsd-home", "stop", "5s")),
    "an export cut short": ("start-timeout-too-short", HOME, CIB, timeout("export-home", "start", "5s")),
    "a mount with Pacemaker's default": (
        "stop-timeout-too-short",
        "pcs",
        CIB,
        (r'(<primitive id="fs"(?:.|\n)*?)<op [^>]*name="stop"[^>]*>', r"\1"),
    ),
    "defaults too short for a mount": ("stop-timeout-too-short", "op_defaults", CIB, ('value="300s"', 'value="30s"')),
    "a node in standby": (
        "nothing-is-managed",
        "pcs",
        CIB,
        (
            'uname="beta" */>',
            'uname="beta"><instance_attributes id="p"><nvpair id="p1" name="standby" value="on"/></instance_attributes></node>',
        ),
    ),
    "a node in maintenance": (
        "nothing-is-managed",
        "pcs",
        CIB,
        (
            'uname="beta" */>',
            'uname="beta"><instance_attributes id="p"><nvpair id="p1" name="maintenance" value="true"/></instance_attributes></node>',
        ),
    ),
    "maintenance": ("nothing-is-managed", "pcs", CIB, property_of_cluster("maintenance-mode", "true")),
    "everything stopped": ("nothing-is-managed", "pcs", CIB, property_of_cluster("stop-all-resources", "true")),
    "a group kept stopped": ("nothing-is-managed", PAIR, CIB, meta("serve-mdt0", "group", "target-role", "Stopped")),
    "a clone that is not managed": (
        "nothing-is-managed",
        "pcs",
        CIB,
        ('name="notify" value="true"', 'name="notify" value="true"/><nvpair id="p" name="is-managed" value="false"'),
    ),
    "nothing managed by default": (
        "nothing-is-managed",
        "pcs",
        CIB,
        ('name="resource-stickiness" value="200"', 'name="is-managed" value="false"'),
    ),
    "a clone never promoted": (
        "nothing-is-managed",
        "crmsh with sbd",
        CIB,
        ('name="notify" value="true"', 'name="notify" value="true"/><nvpair id="p" name="target-role" value="Slave"'),
    ),
    "nowhere allowed": ("nowhere-to-run", "pcs", CIB, property_of_cluster("symmetric-cluster", "false")),
    "allowed on one node": ("pinned-to-one-node", "opt-in", CIB, (r'<rsc_location id="on-grp-beta"[^>]*>', "")),
    "kept away by a rule": (
        "pinned-to-one-node",
        "pcs",
        CIB,
        constraint(
            f'<rsc_location id="p" rsc="grp"><rule id="p1" score="-INFINITY">{_NOT_ALPHA}</rule></rsc_location>'
        ),
    ),
    "kept away by name": (
        "pinned-to-one-node",
        "pcs",
        CIB,
        constraint('<rsc_location id="p" rsc="fs" node="beta" score="-INFINITY"/>'),
    ),
    "a copy kept away": (
        "pinned-to-one-node",
        "pcs",
        CIB,
        constraint('<rsc_location id="p" rsc="drbd-clone" node="beta" score="-INFINITY"/>'),
    ),
    "a ban left over": (
        "left-over-move",
        "pcs",
        CIB,
        constraint('<rsc_location id="cli-ban-grp-on-beta" rsc="grp" node="beta" score="-INFINITY" role="Started"/>'),
    ),
    "a move left over": (
        "left-over-move",
        "pcs",
        CIB,
        constraint('<rsc_location id="cli-prefer-grp" rsc="grp" node="beta" score="INFINITY" role="Started"/>'),
    ),
    "a copy locked out": (
        "copy-locked-out",
        "pcs",
        CIB,
        constraint(
            '<rsc_location id="drbd-fence-by-handler-r0-drbd-clone" rsc="drbd-clone">'
            f'<rule id="p1" role="Promoted" score="-INFINITY">{_NOT_ALPHA}</rule></rsc_location>'
        ),
    ),
    "two services kept apart": (
        "services-keep-each-other-away",
        "active/active",
        CIB,
        ('score="-50"', 'score="-INFINITY"'),
    ),
    "home is stronger than the stickiness": (
        "no-stickiness",
        "active/active",
        CIB,
        ('name="resource-stickiness" value="1000"', 'name="resource-stickiness" value="10"'),
    ),
    "failures forgotten at once": ("failure-forgotten-too-early", PAIR, CIB, set_to("failure-timeout", "1s")),
    "one role not monitored": ("one-role-not-monitored", "pcs", CIB, (r'<op [^>]*role="Promoted"[^>]*>', "")),
    "the standby not monitored": ("standby-copy-not-monitored", "pcs", CIB, (r'<op [^>]*role="Unpromoted"[^>]*>', "")),
    "a password in the CIB": (
        "password-in-the-cib",
        "pcs",
        CIB,
        ('name="password_script" value="/etc/cluster/pw"', 'name="passwd" value="secret"'),
    ),
    "async exports": ("acknowledged-before-written", "pcs", CIB, ("rw,sync", "rw,async")),
    "barriers off": (
        "acknowledged-before-written",
        "pcs",
        CIB,
        ('name="fstype" value="xfs"', 'name="fstype" value="xfs"/><nvpair id="p" name="options" value="nobarrier"'),
    ),
    "an export beside the mount": ("exports-collide", "pcs", CIB, ("/srv/data/home", "/srv/home")),
    "the state of NFS beside the mount": ("exports-collide", "pcs", CIB, ("/srv/data/nfsinfo", "/var/lib/nfs")),
    "one pool twice": (
        "pool-imported-twice",
        "ZFS pools of OSTs",
        CIB,
        (r'name="pool" value="ost1"', 'name="pool" value="ost0"'),
    ),
    # Lustre
    "NIDs of strangers": ("lustre-differs-from-the-description", PAIR, TARGETS, (r"10\.1\.0\.2@tcp", "10.7.0.2@tcp")),
    "another kind of network": ("lustre-differs-from-the-description", PAIR, TARGETS, ("@tcp", "@o2ib")),
    "kinds of networks mixed": (
        "network-of-lustre-mixed",
        BUSY,
        TARGETS,
        (r"--servicenode=10\.30\.0\.2@o2ib", "--servicenode=10.30.0.2@tcp"),
    ),
    "an MGS where it never is": (
        "network-of-lustre-mixed",
        BUSY,
        TARGETS,
        (r"--mgsnode=10\.30\.0\.2@o2ib", "--mgsnode=10.30.0.3@o2ib"),
    ),
    "one index twice": ("index-given-twice", BUSY, TARGETS, ("--index=1", "--index=0")),
    "no index": ("index-given-twice", BUSY, TARGETS, (r"--index=1\b", "")),
    "two MGS": ("index-given-twice", BUSY, TARGETS, (r"--mdt\b", "--mgs --mdt")),
    "another index than described": ("lustre-differs-from-the-description", PAIR, TARGETS, ("--index=0", "--index=3")),
    "made on the disk below DRBD": (
        "target-made-below-drbd",
        PAIR,
        TARGETS,
        (r"(?m)^(\s+)/dev/drbd0$", r"\1/dev/md/mdt0"),
    ),
    "made on no device of DRBD": ("target-made-below-drbd", PAIR, TARGETS, (r"(?m)^(\s+)/dev/drbd0$", r"\1/dev/drbd9")),
    "clients waited for five seconds": (
        "clients-not-waited-for",
        PAIR,
        TARGETS,
        (r"recovery_time_soft=\d+", "recovery_time_soft=5"),
    ),
    "soft longer than hard": (
        "clients-not-waited-for",
        PAIR,
        TARGETS,
        (r"recovery_time_hard=\d+", "recovery_time_hard=100"),
    ),
    "failout": ("clients-not-waited-for", PAIR, TARGETS, ("--mgs", "--param=failover.mode=failout --mgs")),
    "recovery given up": (
        "recovery-given-up",
        "Lustre by Filesystem",
        CIB,
        ('value="lustre"', 'value="lustre"/><nvpair id="p" name="options" value="abort_recov"'),
    ),
    "a client that knows one MGS": ("client-knows-one-mgs", PAIR, CLIENTS, (r":10\.1\.0\.2@tcp", "")),
    "a client of another file system": ("client-knows-one-mgs", PAIR, CLIENTS, (":/th2", ":/th3")),
    "a client that asks strangers": ("client-knows-one-mgs", PAIR, CLIENTS, (r"10\.1\.0\.2@tcp", "10.1.0.9@tcp")),
    "a file system of another name": (
        "lustre-differs-from-the-description",
        PAIR,
        TARGETS,
        ("--fsname=th2", "--fsname=th3"),
    ),
    "no protection against two mounts": (
        "multiple-mount-protection-off",
        BUSY,
        TARGETS,
        ("--backfstype=ldiskfs", '--backfstype=ldiskfs --mkfsoptions="-O ^mmp"'),
    ),
    "the room: BMCs beside the heartbeat": (
        "fencing-shares-the-heartbeat-network",
        BUSY,
        TOML,
        ("management-switch", "lan-switch"),
    ),
    "the room: one feed": ("both-nodes-on-one-feed", PAIR, TOML, ('"feed-1", "feed-2"', '"feed-2"')),
}
PLANTED = {name: Planted(rule, base, file, *change) for name, (rule, base, file, change) in _ROWS.items()}
