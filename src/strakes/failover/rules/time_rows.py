"""How times have to be in relation to each other, and within which limits: one row for each rule."""

from __future__ import annotations

from strakes.failover.rules.rule import (
    AGENTS,
    BOOTH,
    COROSYNC_CONF,
    DRBD_CONF,
    MOUNT_LUSTRE,
    MULTIPATH,
    PACEMAKER,
    PING,
    QDEVICE,
    SBD,
    enter,
)
from strakes.failover.rules.times import Limit, TimesOf

_ROWS = (
    TimesOf("corosync").error(
        "token-too-short",
        Limit("token-as-written", ">", plus=1.0),
        reason="A busy node that is late for a second is taken for dead and powered off; the default was raised for "
        "this.",
        remedy="totem: token: 3000, more where machines stall.",
        source="https://github.com/corosync/corosync/pull/600",
    ),
    TimesOf("corosync").warning(
        "token-too-long",
        Limit("token-as-written", "<=", plus=30.0),
        Limit("consensus", "<=", plus=60.0),
        reason="For that long nobody takes over from a dead node, and every client waits.",
        remedy="totem: token: 3000 to 10000",
        source="https://github.com/corosync/corosync/pull/600",
    ),
    TimesOf("corosync").error(
        "consensus-too-short",
        Limit("consensus", ">=", "token-as-written", times=1.2),
        reason="Corosync wants at least 1.2 times the token for it, and does not start with less.",
        remedy="Remove consensus: it then follows from token.",
        source=COROSYNC_CONF,
    ),
    TimesOf("corosync").error(
        "heartbeat-waits-contradict",
        *(Limit(name, "<", "token") for name in ("hold", "token_retransmit", "merge", "send_join")),
        *(Limit(name, "<", "token") for name in ("knet-ping", "knet-patience")),
        Limit("knet-patience", ">=", "knet-ping"),
        Limit("join", "<", "consensus"),
        Limit("retransmits", ">=", plus=2),
        Limit("messages", "<=", "window"),
        Limit("last-man-window", ">", "consensus"),
        reason="What has to happen within the token's time is given more than that: a healthy node is taken for dead, "
        "or a link that died is found too late.",
        remedy="Remove these settings; all of them follow from token.",
        source=COROSYNC_CONF,
    ),
    TimesOf("corosync").error(
        "quorum-device-times-contradict",
        Limit("qdevice-sync", ">=", "qdevice-timeout"),
        Limit("qdevice-sync", ">", "consensus"),
        Limit("qdevice-connect", "<", "qdevice-sync"),
        Limit("heuristics-timeout", "<", "qdevice-timeout"),
        Limit("heuristics-sync", "<", "qdevice-sync"),
        Limit("heuristics-interval", ">", "heuristics-timeout"),
        Limit("qdevice-timeout", ">=", plus=2.0),
        reason="While the nodes find each other they wait for the device for sync_timeout: less than what has to "
        "happen within it, and they lose quorum.",
        remedy="Remove these times (timeout has 10 s, sync_timeout 30 s, heuristics half of each), or keep their "
        "order.",
        source=QDEVICE,
    ),
    TimesOf("corosync").warning(
        "quorum-device-answers-late",
        Limit("qdevice-timeout", "<=", plus=60.0),
        Limit("qdevice-sync", "<=", plus=120.0),
        reason="For that long after a failure nobody has quorum, and nobody serves.",
        remedy="Remove timeout and sync_timeout (10 and 30 s).",
        source=QDEVICE,
    ),
    TimesOf("pacemaker").error(
        "power-off-given-up-too-early",
        Limit("fencing-limit", ">=", plus=20.0),
        Limit("fencing-limit", ">=", "device-delay", plus=20.0),
        Limit("fencing-limit", ">=", "priority-delay", plus=20.0, before=(2, 1, 6)),
        reason="The wait is over before the delay (it counts, until Pacemaker 2.1.6) and the BMC are: it fails, "
        "though the node goes off.",
        remedy="stonith-timeout of at least 30 s more than the longest delay.",
        source="https://github.com/ClusterLabs/crmsh/pull/890",
    ),
    TimesOf("pacemaker").error(
        "fencing-device-times-contradict",
        Limit("device-wait", "<", "device-limit"),
        Limit("device-own-limit", ">=", plus=3.0),
        Limit("device-random-delay", ">=", "device-delay"),
        reason="The agent gives up before the power is off, or waits longer than Pacemaker waits for it: fencing "
        "fails, and nothing is taken over.",
        remedy="Remove power_timeout, power_wait, login_timeout and shell_timeout, or keep their sum below "
        "stonith-timeout.",
        source="https://manpages.debian.org/bookworm/fence-agents/fence_ipmilan.8.en.html",
    ),
    TimesOf("pacemaker").error(
        "power-off-cut-short",
        *(Limit(f"device-{name}", ">=", plus=20.0) for name in ("off", "reboot")),
        *(Limit(f"device-{name}", ">=", plus=10.0) for name in ("status", "monitor", "list")),
        reason="A BMC needs some seconds to cut the power and to confirm it; the agent is killed before, and the "
        "fencing fails.",
        remedy="Remove pcmk_off_timeout and its like, or give them 60s.",
        source=f"{PACEMAKER}/fencing.rst",
    ),
    TimesOf("pacemaker").warning(
        "power-off-waited-for-too-long",
        *(Limit(f"device-{name}", "<=", plus=1800.0) for name in ("off", "reboot", "status", "monitor", "list")),
        Limit("fencing-limit", "<=", plus=1800.0),
        Limit("device-pause", "<=", plus=120.0),
        Limit("device-sleep", "<=", plus=10.0),
        reason="For that long nobody takes over when the device does not answer; the next level is not tried earlier.",
        remedy="Remove it; its default is right.",
        source=f"{PACEMAKER}/fencing.rst",
    ),
    TimesOf("pacemaker").warning(
        "delay-too-long",
        Limit("longest-delay", "<", plus=60.0),
        Limit("priority-delay", "<=", plus=120.0),
        reason="The delay is waited for whenever this node dies, not only when the links are cut: so much longer "
        "nobody serves.",
        remedy="pcmk_delay_base=10s is enough for the other side to be first.",
        source=f"{PACEMAKER}/fencing.rst",
    ),
    TimesOf("pacemaker").warning(
        "priority-below-the-random-delay",
        Limit("priority-delay", ">", "device-random-delay"),
        reason="The random delay may be longer than the one that the more important node is given: it loses all the "
        "same.",
        remedy="priority-fencing-delay of twice pcmk_delay_max.",
        source=f"{PACEMAKER}/cluster-options.rst",
    ),
    TimesOf("pacemaker", "sbd").error(
        "fencing-by-disk-given-up-too-early",
        Limit("fencing-limit", ">=", "message-wait", times=1.2),
        reason="A node has msgwait (twice the watchdog's time) to obey the message on the disk; Pacemaker gives up "
        "before, and takes nothing over.",
        remedy="stonith-timeout of at least 1.2 x 2 x SBD_WATCHDOG_TIMEOUT.",
        source=SBD,
    ),
    TimesOf("pacemaker", "sbd").error(
        "watchdog-time-too-short",
        Limit("watchdog-limit", ">=", "watchdog", times=2.0),
        reason="The survivor goes on before the watchdog of the lost node has reset it: for some seconds both write.",
        remedy="stonith-watchdog-timeout of at least twice SBD_WATCHDOG_TIMEOUT.",
        source=SBD,
    ),
    TimesOf("sbd").error(
        "watchdog-bites-at-once",
        Limit("watchdog", ">=", plus=3.0),
        Limit("sbd-start", ">", "sbd-delay"),
        reason="A node resets itself while it only waits for a busy disk, or for its own start.",
        remedy="SBD_WATCHDOG_TIMEOUT=5 or more; TimeoutStartSec of sbd above SBD_DELAY_START.",
        source=SBD,
    ),
    TimesOf("sbd", "corosync").warning(
        "watchdog-bites-before-the-device-answers",
        Limit("watchdog-without-disk", ">", "qdevice-sync"),
        reason="A node waits for the quorum device for sync_timeout, has no quorum meanwhile, and resets itself.",
        remedy="SBD_WATCHDOG_TIMEOUT above sync_timeout, such as 35.",
        source=SBD,
    ),
    TimesOf("sbd").warning(
        "watchdog-bites-late",
        Limit("watchdog", "<=", plus=180.0),
        Limit("watchdog-limit", "<=", plus=600.0),
        reason="For that long nobody takes over from a lost node.",
        remedy="SBD_WATCHDOG_TIMEOUT=5 to 60",
        source=SBD,
    ),
    TimesOf("pacemaker").error(
        "cluster-time-harmful",
        *(Limit(name, ">=", plus=30.0) for name in ("join-integration", "join-finalization", "election")),
        Limit("shutdown-escalation", ">=", plus=300.0),
        Limit("recheck", ">", plus=0.0),
        reason="A busy node answers, or stops, later than that: it is powered off while it joins or leaves. Without a "
        "recheck nothing happens without an event.",
        remedy="Remove it; its default is right.",
        source=f"{PACEMAKER}/cluster-options.rst",
    ),
    TimesOf("pacemaker").warning(
        "cluster-time-doubtful",
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
        reason="A node that starts believes that it is alone before others can answer, a stop is cut off, or the "
        "next step waits that long.",
        remedy="Remove it; its default is right.",
        source=f"{PACEMAKER}/cluster-options.rst",
    ),
    TimesOf("pacemaker").error(
        "failure-forgotten-too-early",
        Limit("failure-timeout", ">=", plus=30.0),
        Limit("failure-timeout", ">=", "monitor-interval"),
        reason="The failure is forgotten before it can count: a service that cannot run here is restarted here for "
        "ever.",
        remedy="failure-timeout=600s",
        source=f"{PACEMAKER}/resources.rst",
    ),
    TimesOf("pacemaker").error(
        "agent-waits-longer-than-it-may",
        *(Limit(f"own-{name}", "<", name) for name in ("start", "stop", "monitor")),
        Limit("unit-stop", "<", "stop"),
        reason="The agent still waits when Pacemaker gives the operation up: a stop that would have ended well counts "
        "as failed, and the node is powered off.",
        remedy="The agent's own wait below the time-out of its operation.",
        source=f"{PACEMAKER}/operations.rst",
    ),
    TimesOf("pacemaker").warning(
        "watched-too-nervously",
        Limit("dampen", ">=", plus=1.0),
        reason="The nodes notice a dead router at different moments: without dampening the service moves for nothing.",
        remedy="dampen=5s",
        source=PING,
    ),
    TimesOf("pacemaker").warning(
        "watched-too-calmly",
        Limit("dampen", "<=", plus=120.0),
        reason="For that long nothing is done about a dead card or router.",
        remedy="dampen=5s",
        source=PING,
    ),
    TimesOf("pacemaker").error(
        "stopped-before-its-lease-ends",
        Limit("leased-stop", ">", "nfs-lease"),
        reason="With wait_for_leasetime_on_stop the stop takes longer than the lease of NFSv4 (90 s): it times out, "
        "and the node is powered off at every switch.",
        remedy="op stop timeout=120s, or leave wait_for_leasetime_on_stop out.",
        source=f"{AGENTS}/exportfs",
    ),
    TimesOf().error(
        "locks-not-given-back",
        Limit("nfs-grace", ">=", "nfs-lease"),
        Limit("nfs-grace", ">=", plus=10.0),
        reason="After a take-over a client finds out within its lease that the server is new; when the grace is over "
        "by then, another client gets its locks.",
        remedy="nfs.conf: grace-time at least lease-time.",
        source="https://manpages.debian.org/bookworm/nfs-common/nfs.conf.5.en.html",
    ),
    TimesOf("pacemaker").error(
        "pool-watched-longer-than-its-start",
        Limit("pool-start", ">", "pool-watched"),
        Limit("multihost-interval", ">=", plus=0.1),
        reason="A pool with multihost is watched for a while before it is imported: the start is given up before.",
        remedy="op start timeout of the pool above zfs_multihost_interval x zfs_multihost_import_intervals.",
        source="https://openzfs.github.io/openzfs-docs/Performance%20and%20Tuning/Module%20Parameters.html",
    ),
    TimesOf("modules").warning(
        "pool-given-up-at-once",
        Limit("pool-given-up", ">=", plus=3.0),
        reason="A path that fails over, or a busy disk, is silent for some seconds: the pool is suspended for it.",
        remedy="Remove zfs_multihost_fail_intervals.",
        source="https://openzfs.github.io/openzfs-docs/Performance%20and%20Tuning/Module%20Parameters.html",
    ),
    TimesOf("pacemaker").warning(
        "disk-waits-longer-than-the-stop",
        Limit("path-wait", "<", "storage-stop"),
        Limit("iscsi-replacement", "<", "storage-stop"),
        reason="A disk that lost all its paths keeps writes waiting, and neither monitor nor stop comes to an end "
        "before it is given up: the node has to be powered off.",
        remedy="no_path_retry fail (or few tries), replacement_timeout 20",
        source=MULTIPATH,
    ),
    TimesOf().error(
        "device-gone-before-its-paths",
        Limit("device-loss", ">", "fast-io-fail"),
        reason="The device is removed before its requests have failed over to another path.",
        remedy="dev_loss_tmo above fast_io_fail_tmo.",
        source=MULTIPATH,
    ),
    TimesOf("units").error(
        "cluster-program-stopped-too-early",
        Limit("program-stop", ">=", "longest-stop"),
        Limit("program-stop", ">=", plus=60.0),
        reason="Pacemaker must have the time to stop everything: a node whose programs are killed in their stop is "
        "fenced.",
        remedy="Remove TimeoutStopSec from the drop-in file; the unit as it is delivered waits for 30 minutes.",
        source="https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html",
    ),
    TimesOf("drbd").error(
        "replication-times-contradict",
        Limit("drbd-timeout", "<=", "drbd-ping"),
        Limit("drbd-timeout", "<=", "drbd-connect"),
        Limit("drbd-ping-timeout", "<", "drbd-ping"),
        reason="drbd.conf(5): timeout has to be below connect-int and ping-int (those are in seconds, it in tenths); "
        "else it never applies.",
        remedy="Remove timeout, ping-int and connect-int; their defaults fit.",
        source=DRBD_CONF,
    ),
    TimesOf("drbd").warning(
        "replication-waits-doubtful",
        Limit("drbd-timeout", ">=", plus=2.0),
        Limit("drbd-ping-timeout", "<=", plus=10.0),
        Limit("drbd-expelled", "<=", plus=300.0),
        reason="A short pause of the peer cuts the replication, and gets the peer powered off; or a dead peer is "
        "waited for that long, while all writes hang. timeout and ping-timeout are in tenths of a second.",
        remedy="Remove timeout (60), ping-timeout (5) and ko-count (7).",
        source=DRBD_CONF,
    ),
    TimesOf("pacemaker", "drbd").error(
        "fence-peer-gives-up-before-the-power-off",
        Limit("fence-peer", ">=", "power-off-limit"),
        reason="When the handler gives up waiting for the fencing, writing goes on although the peer may be alive; "
        "what is then told may be lost.",
        remedy="crm-fence-peer with --timeout above stonith-timeout.",
        source="https://github.com/LINBIT/drbd-utils/blob/master/scripts/crm-fence-peer.9.sh",
    ),
    TimesOf("pacemaker", "drbd").warning(
        "fence-peer-waits-for-its-default",
        Limit("fence-peer-default", ">=", "power-off-limit"),
        reason="The handler's default of 90 s is below stonith-timeout: when fencing takes longer, writing goes on "
        "while the peer may be alive.",
        remedy="crm-fence-peer with --timeout above stonith-timeout.",
        source="https://github.com/LINBIT/drbd-utils/blob/master/scripts/crm-fence-peer.9.sh",
    ),
    TimesOf().error(
        "recovery-times-contradict",
        Limit("recovery-soft", ">=", plus=60.0),
        Limit("recovery-soft", "<=", "recovery-hard"),
        Limit("at-min", "<=", "at-max"),
        Limit("at-max", ">=", plus=30.0),
        Limit("ldlm-timeout", "<", "obd-timeout"),
        Limit("obd-timeout", ">=", plus=20.0),
        Limit("lnet-transaction", ">", "lnet-retries"),
        reason="Clients that are not waited for, or that give up before their message was sent again, are evicted and "
        "lose what they had not written.",
        remedy="recovery_time_soft=300 recovery_time_hard=900, at_max=600; leave the others out.",
        source=MOUNT_LUSTRE,
    ),
    TimesOf("booth").error(
        "ticket-times-contradict",
        Limit("ticket-left", ">", "ticket-tries"),
        reason="A ticket is renewed at half of its time, and every try waits for the other sites: where the tries "
        "take longer than what is left, a slow network loses the ticket and stops the service.",
        remedy="expire=600, timeout=10, retries=5",
        source=BOOTH,
    ),
    TimesOf("pacemaker", "booth").warning(
        "other-site-does-not-wait",
        Limit("ticket-wait", ">=", "power-off-limit"),
        reason="After a ticket is lost its site has to stop everything, or power off nodes; without that wait the "
        "other site begins to write at once.",
        remedy="acquire-after of at least stonith-timeout",
        source=BOOTH,
    ),
)
for _row in _ROWS:
    enter(_row)
