"""Clear mistakes in single values: misspelt, contradicting each other, or not what programs take."""

from __future__ import annotations

from failover.mistakes import CIB, COROSYNC, TARGETS, Planted, property_of_cluster, set_to

PAIR, BUSY, HOME, ZFS = "tianhe2", "lustre-active-active", "nfs", "oss-pair-zfs"
DRBD = "etc/drbd.d/mdt0.res"
METHOD = r'name="method"'
DESCRIBED = "service-differs-from-the-description"
TIMES = "heartbeat-times-contradict"
DANGEROUS = "replication-option-dangerous"


def device(name: str, value: str) -> tuple[str, str]:
    """One more value of every BMC."""
    return METHOD, f'name="{name}" value="{value}"/><nvpair id="planted-{name}" name="method"'


def of_group(name: str, value: str) -> tuple[str, str]:
    """A meta attribute of what is served."""
    meta = f'<meta_attributes id="planted"><nvpair id="planted-1" name="{name}" value="{value}"/></meta_attributes>'
    return r'(<group id="serve-mdt0">)', rf"\1{meta}"


def totem(line: str) -> tuple[str, str]:
    """One more line of totem."""
    return "token: 3000", f"token: 3000\n  {line}"


_ROWS: dict[str, tuple[str, str, str, tuple[str, str]]] = {
    "a property misspelt": ("setting-misspelt", PAIR, CIB, property_of_cluster("stonith-enable", "true")),
    "a property with underscores": (
        "setting-misspelt",
        PAIR,
        CIB,
        (r'name="no-quorum-policy"', 'name="no_quorum_policy"'),
    ),
    "a meta attribute misspelt": ("setting-misspelt", PAIR, CIB, of_group("resource_stickiness", "100")),
    "no cipher": ("heartbeat-not-authenticated", PAIR, COROSYNC, ("crypto_cipher: aes256", "crypto_cipher: none")),
    "no hash": ("heartbeat-not-authenticated", PAIR, COROSYNC, ("crypto_hash: sha256", "crypto_hash: none")),
    "join longer than consensus": (TIMES, PAIR, COROSYNC, totem("join: 50000")),
    "no retransmits": (TIMES, PAIR, COROSYNC, totem("token_retransmits_before_loss_const: 0")),
    "packets that no network carries": ("heartbeat-value-invalid", PAIR, COROSYNC, totem("netmtu: 100000")),
    "another family of addresses": ("heartbeat-links-contradict", PAIR, COROSYNC, totem("ip_version: ipv6")),
    "a ping shorter than its interval": (
        TIMES,
        PAIR,
        COROSYNC,
        ("linknumber: 0", "linknumber: 0\n    knet_ping_timeout: 50\n    knet_ping_interval: 1000"),
    ),
    "one link number twice": ("heartbeat-links-contradict", PAIR, COROSYNC, ("linknumber: 1", "linknumber: 0")),
    "a device waited for too short": (
        "quorum-device-times-contradict",
        BUSY,
        COROSYNC,
        ("model: net", "model: net\n    sync_timeout: 1000"),
    ),
    "no log": ("nothing-is-logged", PAIR, COROSYNC, ("to_syslog: yes", "to_syslog: no")),
    "a level that is not one": ("fencing-level-unusable", BUSY, CIB, (r'(id="level-mds1-1"[^>]*index=)"1"', r'\1"0"')),
    "BMC and outlets as one": ("fencing-level-unusable", BUSY, CIB, (r'(id="level-mds2-2"[^>]*index=)"2"', r'\1"1"')),
    "a power-off given a second": ("fencing-device-times-contradict", PAIR, CIB, device("power_timeout", "1")),
    "a power-off waited for too long": ("fencing-device-times-contradict", PAIR, CIB, device("power_wait", "600")),
    "one attempt": ("cluster-time-doubtful", PAIR, CIB, property_of_cluster("stonith-max-attempts", "1")),
    "a check of nothing": ("fencing-monitor-ineffective", PAIR, CIB, device("pcmk_monitor_action", "metadata")),
    "two that are left": ("service-on-two-nodes-not-resolved", PAIR, CIB, of_group("multiple-active", "block")),
    "locked to a node": (
        "service-waits-for-shut-down-node",
        PAIR,
        CIB,
        property_of_cluster("shutdown-lock", "true"),
    ),
    "a delay of the cluster too short": (
        "cluster-time-doubtful",
        PAIR,
        CIB,
        property_of_cluster("cluster-delay", "1s"),
    ),
    "a monitor after an hour": (
        "monitor-begins-late",
        PAIR,
        CIB,
        (r'(id="mount-mdt0-monitor-60s" name="monitor" )', r'\1start-delay="3600s" '),
    ),
    "an alert without a path": (
        "alert-without-a-program",
        PAIR,
        CIB,
        (r'path="/etc/strakes/alert-mail"', 'path="alert-mail"'),
    ),
    "a mount that cannot be written": (
        "service-unusable-for-clients",
        HOME,
        CIB,
        (r'name="fstype" value="xfs"', 'name="fstype" value="xfs"/><nvpair id="planted" name="options" value="ro"'),
    ),
    "an address on lo": (
        "service-unusable-for-clients",
        HOME,
        CIB,
        (r'name="cidr_netmask"', 'name="nic" value="lo"/><nvpair id="planted" name="cidr_netmask"'),
    ),
    "three copies of two": ("drbd-clone-max-wrong", PAIR, CIB, set_to("clone-max", "3")),
    "numbered copies": (
        "drbd-clone-max-wrong",
        PAIR,
        CIB,
        (r'name="interleave" value="true"', 'name="globally-unique" value="true"'),
    ),
    "a disk given up at once": (DANGEROUS, PAIR, DRBD, ("on-io-error detach;", "on-io-error detach; disk-timeout 1;")),
    "no activity log": (DANGEROUS, PAIR, DRBD, ("on-io-error detach;", "on-io-error detach; al-updates no;")),
    "a hung peer waited for": (DANGEROUS, PAIR, DRBD, ("protocol C;", "protocol C; ko-count 0;")),
    "checksums for tests": (DANGEROUS, PAIR, DRBD, ("protocol C;", "protocol C; data-integrity-alg md5;")),
    "a handler that is not there": (DANGEROUS, PAIR, DRBD, ("on-io-error detach", "on-io-error call-local-io-error")),
    "up to date in months": (DANGEROUS, PAIR, DRBD, ("c-max-rate 200M", "c-max-rate 100K")),
    "a BMC without a user": ("required-value-empty", PAIR, CIB, set_to("username", "")),
    "a watch of nothing": ("required-value-empty", PAIR, CIB, set_to("host_list", "")),
    "another winner of ties": ("another-node-survives", BUSY, COROSYNC, ("tie_breaker: 1", "tie_breaker: 2")),
    "a pool that is not forced": ("pool-import-not-forced", ZFS, CIB, set_to("importforce", "false")),
    "a pool in a cache file": (
        "pool-imported-at-boot",
        ZFS,
        TARGETS,
        ("-o cachefile=none", "-o cachefile=/etc/zfs/zpool.cache"),
    ),
    "a pool that goes on with errors": ("node-setting-harmful", ZFS, TARGETS, ("failmode=panic", "failmode=continue")),
    "another netmask": (DESCRIBED, HOME, CIB, set_to("cidr_netmask", "8")),
    "exported to everybody": (DESCRIBED, HOME, CIB, set_to("clientspec", "*")),
    "another file system": (DESCRIBED, HOME, CIB, set_to("fstype", "ext3")),
    "a connection across networks": (
        "replication-differs-from-the-description",
        PAIR,
        DRBD,
        (r"10\.2\.0\.2:7788", "10.1.0.2:7788"),
    ),
}
PLANTED = {name: Planted(rule, base, file, *change) for name, (rule, base, file, change) in _ROWS.items()}
