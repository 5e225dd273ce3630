"""How times have to be in relation to each other, and within which limits: one row for each rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from strakes.failover.rules.rule import COROSYNC_CONF, DRBD_CONF, PACEMAKER, QDEVICE, SBD, Severity

_BOOTH = "https://github.com/ClusterLabs/booth/blob/main/docs/boothd.8.txt"
_MULTIPATH = "https://manpages.debian.org/bookworm/multipath-tools/multipath.conf.5.en.html"


@dataclass(frozen=True)
class Limit:
    """``left`` has to be in this relation to ``times`` x ``right`` + ``plus``; without ``right`` to ``plus`` alone.

    Both are names of amounts in ``strakes.failover.times``. Two defaults are never held against each other.
    ``before`` is the version of Pacemaker from which on it no longer holds.
    """

    left: str
    relation: Literal["<", "<=", ">", ">="]
    right: str = ""
    plus: float = 0.0
    times: float = 1.0
    before: tuple[int, ...] = ()


@dataclass(frozen=True)
class TimeRule:
    """A rule about times: it is broken where one of its limits is not kept."""

    name: str
    severity: Severity
    needs: tuple[str, ...]
    limits: tuple[Limit, ...]
    reason: str
    remedy: str
    source: str


TIME_ROWS = (
    TimeRule(
        "token-too-short",
        "error",
        ("corosync",),
        (Limit("token-as-written", ">", plus=1.0),),
        "A busy node that is late for a second is taken for dead and powered off; the default was raised for this.",
        "totem: token: 3000, more where machines stall.",
        "https://github.com/corosync/corosync/pull/600",
    ),
    TimeRule(
        "token-too-long",
        "warning",
        ("corosync",),
        (Limit("token-as-written", "<=", plus=30.0), Limit("consensus", "<=", plus=60.0)),
        "For so long nobody takes over from a node that is dead; every client waits as well.",
        "totem: token: 3000 to 10000",
        "https://github.com/corosync/corosync/pull/600",
    ),
    TimeRule(
        "consensus-too-short",
        "error",
        ("corosync",),
        (Limit("consensus", ">=", "token-as-written", times=1.2),),
        "Corosync wants at least 1.2 times the token for it, and does not start with less.",
        "Remove consensus: it then follows from token.",
        COROSYNC_CONF,
    ),
    TimeRule(
        "heartbeat-waits-contradict",
        "error",
        ("corosync",),
        (
            *(Limit(name, "<", "token") for name in ("hold", "token_retransmit", "merge", "send_join")),
            *(Limit(name, "<", "token") for name in ("knet-ping", "knet-patience")),
            Limit("knet-patience", ">=", "knet-ping"),
            Limit("join", "<", "consensus"),
            Limit("retransmits", ">=", plus=2),
            Limit("messages", "<=", "window"),
            Limit("last-man-window", ">", "consensus"),
        ),
        "What has to happen within the token's time is given more than that: a healthy node is taken for dead, "
        "or a link that died is found too late.",
        "Remove these settings; all of them follow from token.",
        COROSYNC_CONF,
    ),
    TimeRule(
        "quorum-device-times-contradict",
        "error",
        ("corosync",),
        (
            Limit("qdevice-sync", ">=", "qdevice-timeout"),
            Limit("qdevice-sync", ">", "consensus"),
            Limit("qdevice-connect", "<", "qdevice-sync"),
            Limit("heuristics-timeout", "<", "qdevice-timeout"),
            Limit("heuristics-sync", "<", "qdevice-sync"),
            Limit("heuristics-interval", ">", "heuristics-timeout"),
            Limit("qdevice-timeout", ">=", plus=2.0),
        ),
        "While the nodes find each other they wait for the device for sync_timeout: less than what has to happen "
        "within it, and they lose quorum.",
        "Remove these times (timeout has 10 s, sync_timeout 30 s, heuristics half of each), or keep their order.",
        QDEVICE,
    ),
    TimeRule(
        "quorum-device-answers-late",
        "warning",
        ("corosync",),
        (Limit("qdevice-timeout", "<=", plus=60.0), Limit("qdevice-sync", "<=", plus=120.0)),
        "So long after a failure nobody has quorum, and nobody serves.",
        "Remove timeout and sync_timeout (10 and 30 s).",
        QDEVICE,
    ),
    TimeRule(
        "power-off-given-up-too-early",
        "error",
        ("pacemaker",),
        (
            Limit("fencing-limit", ">=", plus=20.0),
            Limit("fencing-limit", ">=", "device-delay", plus=20.0),
            Limit("fencing-limit", ">=", "priority-delay", plus=20.0, before=(2, 1, 6)),
        ),
        "The wait is over before the delay (it counts, until Pacemaker 2.1.6) and the BMC are: it fails, though "
        "the node goes off.",
        "stonith-timeout of at least 30 s more than the longest delay.",
        "https://github.com/ClusterLabs/crmsh/pull/890",
    ),
    TimeRule(
        "fencing-device-times-contradict",
        "error",
        ("pacemaker",),
        (
            Limit("device-wait", "<", "device-limit"),
            Limit("device-own-limit", ">=", plus=3.0),
            Limit("device-random-delay", ">=", "device-delay"),
        ),
        "The agent gives up before the power is off, or waits longer than Pacemaker waits for it: fencing "
        "fails, and nothing is taken over.",
        "Remove power_timeout, power_wait, login_timeout and shell_timeout, or keep their sum below stonith-timeout.",
        "https://manpages.debian.org/bookworm/fence-agents/fence_ipmilan.8.en.html",
    ),
    TimeRule(
        "power-off-cut-short",
        "error",
        ("pacemaker",),
        (
            *(Limit(f"device-{name}", ">=", plus=20.0) for name in ("off", "reboot")),
            *(Limit(f"device-{name}", ">=", plus=10.0) for name in ("status", "monitor", "list")),
        ),
        "A BMC needs some seconds to cut the power and to confirm it; the agent is killed before, and the "
        "fencing fails.",
        "Remove pcmk_off_timeout and its like, or give them 60s.",
        f"{PACEMAKER}/fencing.rst",
    ),
    TimeRule(
        "power-off-waited-for-too-long",
        "warning",
        ("pacemaker",),
        (
            *(Limit(f"device-{name}", "<=", plus=1800.0) for name in ("off", "reboot", "status", "monitor", "list")),
            Limit("fencing-limit", "<=", plus=1800.0),
            Limit("device-pause", "<=", plus=120.0),
            Limit("device-sleep", "<=", plus=10.0),
        ),
        "So long nobody takes over when the device does not answer; the next level is not tried before.",
        "Remove it; its default is right.",
        f"{PACEMAKER}/fencing.rst",
    ),
    TimeRule(
        "delay-too-long",
        "warning",
        ("pacemaker",),
        (Limit("longest-delay", "<", plus=60.0), Limit("priority-delay", "<=", plus=120.0)),
        "The delay is waited for whenever this node dies, not only when the links are cut: so much longer "
        "nobody serves.",
        "pcmk_delay_base=10s is enough for the other side to be first.",
        f"{PACEMAKER}/fencing.rst",
    ),
    TimeRule(
        "priority-below-the-random-delay",
        "warning",
        ("pacemaker",),
        (Limit("priority-delay", ">", "device-random-delay"),),
        "The random delay may be longer than the one that the more important node is given: it loses all the same.",
        "priority-fencing-delay of twice pcmk_delay_max.",
        f"{PACEMAKER}/cluster-options.rst",
    ),
    TimeRule(
        "fencing-by-disk-given-up-too-early",
        "error",
        ("pacemaker", "sbd"),
        (Limit("fencing-limit", ">=", "message-wait", times=1.2),),
        "A node has msgwait (twice the watchdog's time) to obey the message on the disk; Pacemaker gives up before, "
        "and takes nothing over.",
        "stonith-timeout of at least 1.2 x 2 x SBD_WATCHDOG_TIMEOUT.",
        SBD,
    ),
    TimeRule(
        "watchdog-time-too-short",
        "error",
        ("pacemaker", "sbd"),
        (Limit("watchdog-limit", ">=", "watchdog", times=2.0),),
        "The survivor goes on before the watchdog of the lost node has reset it: for some seconds both write.",
        "stonith-watchdog-timeout of at least twice SBD_WATCHDOG_TIMEOUT.",
        SBD,
    ),
    TimeRule(
        "watchdog-bites-at-once",
        "error",
        ("sbd",),
        (
            Limit("watchdog", ">=", plus=3.0),
            Limit("sbd-start", ">", "sbd-delay"),
        ),
        "A node resets itself while it only waits for a busy disk, or for its own start.",
        "SBD_WATCHDOG_TIMEOUT=5 or more; TimeoutStartSec of sbd above SBD_DELAY_START.",
        SBD,
    ),
    TimeRule(
        "watchdog-bites-before-the-device-answers",
        "warning",
        ("sbd", "corosync"),
        (Limit("watchdog-without-disk", ">", "qdevice-sync"),),
        "A node waits for the quorum device for sync_timeout, has no quorum meanwhile, and resets itself.",
        "SBD_WATCHDOG_TIMEOUT above sync_timeout, such as 35.",
        SBD,
    ),
    TimeRule(
        "watchdog-bites-late",
        "warning",
        ("sbd",),
        (Limit("watchdog", "<=", plus=180.0), Limit("watchdog-limit", "<=", plus=600.0)),
        "For so long nobody takes over from a node that is lost.",
        "SBD_WATCHDOG_TIMEOUT=5 to 60",
        SBD,
    ),
    TimeRule(
        "cluster-time-harmful",
        "error",
        ("pacemaker",),
        (
            *(Limit(name, ">=", plus=30.0) for name in ("join-integration", "join-finalization", "election")),
            Limit("shutdown-escalation", ">=", plus=300.0),
            Limit("recheck", ">", plus=0.0),
        ),
        "A busy node answers, or stops, later than that: it is powered off while it joins or leaves. Without a "
        "recheck nothing happens without an event.",
        "Remove it; its default is right.",
        f"{PACEMAKER}/cluster-options.rst",
    ),
    TimeRule(
        "cluster-time-doubtful",
        "warning",
        ("pacemaker",),
        (
            Limit("dc-deadtime", ">=", plus=5.0),
            Limit("dc-deadtime", "<=", plus=300.0),
            Limit("dc-deadtime", ">", "token"),
            Limit("shutdown-escalation", ">", "longest-stop"),
            Limit("cluster-delay", ">=", plus=10.0),
            Limit("cluster-delay", "<=", plus=600.0),
            Limit("transition-delay", "<=", plus=60.0),
            Limit("recheck", "<=", plus=7200.0),
            Limit("attempts", ">=", plus=3),
            Limit("remote-connect", ">=", plus=10.0),
            Limit("recheck", "<=", "failure-timeout", before=(2, 0, 3)),
        ),
        "A node that starts believes that it is alone before others can answer, a stop is cut off, or the next step "
        "waits for so long.",
        "Remove it; its default is right.",
        f"{PACEMAKER}/cluster-options.rst",
    ),
    TimeRule(
        "failure-forgotten-too-early",
        "error",
        ("pacemaker",),
        (Limit("failure-timeout", ">=", plus=30.0), Limit("failure-timeout", ">=", "monitor-interval")),
        "The failure is forgotten before it can count: a service that cannot run here is restarted here for ever.",
        "failure-timeout=600s",
        f"{PACEMAKER}/resources.rst",
    ),
    TimeRule(
        "agent-waits-longer-than-it-may",
        "error",
        ("pacemaker",),
        (
            *(Limit(f"own-{name}", "<", name) for name in ("start", "stop", "monitor")),
            Limit("unit-stop", "<", "stop"),
        ),
        "The agent still waits when Pacemaker gives the operation up: a stop that would have ended well counts as "
        "failed, and the node is powered off.",
        "The agent's own wait below the time-out of its operation.",
        f"{PACEMAKER}/operations.rst",
    ),
    TimeRule(
        "watched-too-nervously",
        "warning",
        ("pacemaker",),
        (Limit("dampen", ">=", plus=1.0),),
        "The nodes notice a dead router at different moments: without dampening the service moves for nothing.",
        "dampen=5s",
        "https://github.com/ClusterLabs/pacemaker/blob/main/extra/resources/ping.in",
    ),
    TimeRule(
        "watched-too-calmly",
        "warning",
        ("pacemaker",),
        (Limit("dampen", "<=", plus=120.0),),
        "For so long nothing is done about a card or a router that is dead.",
        "dampen=5s",
        "https://github.com/ClusterLabs/pacemaker/blob/main/extra/resources/ping.in",
    ),
    TimeRule(
        "stopped-before-its-lease-ends",
        "error",
        ("pacemaker",),
        (Limit("leased-stop", ">", "nfs-lease"),),
        "With wait_for_leasetime_on_stop the stop takes longer than the lease of NFSv4 (90 s): it times out, and "
        "the node is powered off at every switch.",
        "op stop timeout=120s, or leave wait_for_leasetime_on_stop out.",
        "https://github.com/ClusterLabs/resource-agents/blob/main/heartbeat/exportfs",
    ),
    TimeRule(
        "locks-not-given-back",
        "error",
        (),
        (Limit("nfs-grace", ">=", "nfs-lease"), Limit("nfs-grace", ">=", plus=10.0)),
        "After a take-over a client finds out within its lease that the server is new; when the grace is over by "
        "then, another client gets its locks.",
        "nfs.conf: grace-time at least lease-time.",
        "https://manpages.debian.org/bookworm/nfs-common/nfs.conf.5.en.html",
    ),
    TimeRule(
        "pool-watched-longer-than-its-start",
        "error",
        ("pacemaker",),
        (Limit("pool-start", ">", "pool-watched"), Limit("multihost-interval", ">=", plus=0.1)),
        "A pool with multihost is watched for a while before it is imported: the start is given up before.",
        "op start timeout of the pool above zfs_multihost_interval x zfs_multihost_import_intervals.",
        "https://openzfs.github.io/openzfs-docs/Performance%20and%20Tuning/Module%20Parameters.html",
    ),
    TimeRule(
        "pool-given-up-at-once",
        "warning",
        ("modules",),
        (Limit("pool-given-up", ">=", plus=3.0),),
        "A path that fails over, or a busy disk, is silent for some seconds: the pool is suspended for it.",
        "Remove zfs_multihost_fail_intervals.",
        "https://openzfs.github.io/openzfs-docs/Performance%20and%20Tuning/Module%20Parameters.html",
    ),
    TimeRule(
        "disk-waits-longer-than-the-stop",
        "warning",
        ("pacemaker",),
        (Limit("path-wait", "<", "storage-stop"), Limit("iscsi-replacement", "<", "storage-stop")),
        "A disk that lost all its paths keeps writes waiting, and neither monitor nor stop comes to an end before it "
        "is given up: the node has to be powered off.",
        "no_path_retry fail (or few tries), replacement_timeout 20",
        _MULTIPATH,
    ),
    TimeRule(
        "device-gone-before-its-paths",
        "error",
        (),
        (Limit("device-loss", ">", "fast-io-fail"),),
        "The device is removed before its requests have failed over to another path.",
        "dev_loss_tmo above fast_io_fail_tmo.",
        _MULTIPATH,
    ),
    TimeRule(
        "cluster-program-stopped-too-early",
        "error",
        ("units",),
        (Limit("program-stop", ">=", "longest-stop"), Limit("program-stop", ">=", plus=60.0)),
        "Pacemaker must have the time to stop everything: a node whose programs are killed in their stop is fenced.",
        "Remove TimeoutStopSec from the drop-in file; the unit as it is delivered waits for 30 minutes.",
        "https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html",
    ),
    TimeRule(
        "replication-times-contradict",
        "error",
        ("drbd",),
        (
            Limit("drbd-timeout", "<=", "drbd-ping"),
            Limit("drbd-timeout", "<=", "drbd-connect"),
            Limit("drbd-ping-timeout", "<", "drbd-ping"),
        ),
        "drbd.conf(5): timeout has to be below connect-int and ping-int (those are in seconds, it in tenths); "
        "else it never applies.",
        "Remove timeout, ping-int and connect-int; their defaults fit.",
        DRBD_CONF,
    ),
    TimeRule(
        "replication-waits-doubtful",
        "warning",
        ("drbd",),
        (
            Limit("drbd-timeout", ">=", plus=2.0),
            Limit("drbd-ping-timeout", "<=", plus=10.0),
            Limit("drbd-expelled", "<=", plus=300.0),
        ),
        "A short pause of the peer cuts the replication, and gets the peer powered off; or a dead peer is waited for "
        "so long, while all writes hang. timeout and ping-timeout are in tenths of a second.",
        "Remove timeout (60), ping-timeout (5) and ko-count (7).",
        DRBD_CONF,
    ),
    TimeRule(
        "fence-peer-gives-up-before-the-power-off",
        "error",
        ("pacemaker", "drbd"),
        (Limit("fence-peer", ">=", "power-off-limit"),),
        "When the handler gives up waiting for the fencing, writing goes on although the peer may be alive; "
        "what is then told may be lost.",
        "crm-fence-peer with --timeout above stonith-timeout.",
        "https://github.com/LINBIT/drbd-utils/blob/master/scripts/crm-fence-peer.9.sh",
    ),
    TimeRule(
        "fence-peer-waits-for-its-default",
        "warning",
        ("pacemaker", "drbd"),
        (Limit("fence-peer-default", ">=", "power-off-limit"),),
        "The handler's default of 90 s is below stonith-timeout: when fencing takes longer, writing goes on "
        "while the peer may be alive.",
        "crm-fence-peer with --timeout above stonith-timeout.",
        "https://github.com/LINBIT/drbd-utils/blob/master/scripts/crm-fence-peer.9.sh",
    ),
    TimeRule(
        "recovery-times-contradict",
        "error",
        (),
        (
            Limit("recovery-soft", ">=", plus=60.0),
            Limit("recovery-soft", "<=", "recovery-hard"),
            Limit("at-min", "<=", "at-max"),
            Limit("at-max", ">=", plus=30.0),
            Limit("ldlm-timeout", "<", "obd-timeout"),
            Limit("obd-timeout", ">=", plus=20.0),
            Limit("lnet-transaction", ">", "lnet-retries"),
        ),
        "Clients that are not waited for, or that give up before their message was sent again, are evicted and lose "
        "what they had not written.",
        "recovery_time_soft=300 recovery_time_hard=900, at_max=600; leave the others out.",
        "https://github.com/lustre/lustre-release/blob/master/lustre/doc/mount.lustre.8",
    ),
    TimeRule(
        "ticket-times-contradict",
        "error",
        ("booth",),
        (Limit("ticket-left", ">", "ticket-tries"),),
        "A ticket is renewed at half of its time, and every try waits for the other sites: where the tries take "
        "longer than what is left, a slow network loses the ticket and stops the service.",
        "expire=600, timeout=10, retries=5",
        _BOOTH,
    ),
    TimeRule(
        "other-site-does-not-wait",
        "warning",
        ("pacemaker", "booth"),
        (Limit("ticket-wait", ">=", "power-off-limit"),),
        "After a ticket is lost its site has to stop everything, or power off nodes; without that wait the other "
        "site begins to write at once.",
        "acquire-after of at least stonith-timeout",
        _BOOTH,
    ),
)
