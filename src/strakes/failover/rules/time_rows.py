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
        reason="A busy node that is one second late is declared dead and powered off; Corosync's default was raised "
        "for this reason.",
        remedy="totem: token: 3000, or more where machines stall.",
        source="https://github.com/corosync/corosync/pull/600",
    ),
    TimesOf("corosync").warning(
        "token-too-long",
        Limit("token-as-written", "<=", plus=30.0),
        Limit("consensus", "<=", plus=60.0),
        reason="Nobody takes over from a dead node for that long, and every client waits.",
        remedy="totem: token: 3000 to 10000",
        source="https://github.com/corosync/corosync/pull/600",
    ),
    TimesOf("corosync").error(
        "consensus-too-short",
        Limit("consensus", ">=", "token-as-written", times=1.2),
        reason="consensus must be at least 1.2 times token; Corosync does not start with less.",
        remedy="Remove consensus: Corosync then calculates it from token.",
        source=COROSYNC_CONF,
    ),
    TimesOf("corosync").error(
        "heartbeat-times-contradict",
        *(Limit(name, "<", "token") for name in ("hold", "token_retransmit", "merge", "send_join")),
        *(Limit(name, "<", "token") for name in ("knet-ping", "knet-patience")),
        Limit("knet-patience", ">=", "knet-ping"),
        Limit("join", "<", "consensus"),
        Limit("retransmits", ">=", plus=2),
        Limit("messages", "<=", "window"),
        Limit("last-man-window", ">", "consensus"),
        reason="These times contradict each other: what has to happen within the token time may take longer. A healthy "
        "node is declared dead, or a dead link is noticed too late.",
        remedy="Remove these settings; Corosync calculates all of them from token.",
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
        reason="While the nodes regroup, they wait for the quorum device for sync_timeout. If that is shorter than "
        "what has to happen within it, they lose quorum.",
        remedy="Remove these times (defaults: timeout 10 s, sync_timeout 30 s, heuristics half of each), or keep their "
        "order.",
        source=QDEVICE,
    ),
    TimesOf("corosync").warning(
        "quorum-device-timeout-too-long",
        Limit("qdevice-timeout", "<=", plus=60.0),
        Limit("qdevice-sync", "<=", plus=120.0),
        reason="For that long after a failure no node has quorum, and nothing is served.",
        remedy="Remove timeout and sync_timeout (defaults: 10 and 30 s).",
        source=QDEVICE,
    ),
    TimesOf("pacemaker").error(
        "stonith-timeout-too-short",
        Limit("fencing-limit", ">=", plus=20.0),
        Limit("fencing-limit", ">=", "device-delay", plus=20.0),
        Limit("fencing-limit", ">=", "priority-delay", plus=20.0, before=(2, 1, 6)),
        reason="Pacemaker gives up before the BMC has finished (until Pacemaker 2.1.6 the delay counts, too): fencing "
        "counts as failed although the node goes off.",
        remedy="Set stonith-timeout to at least 30 s more than the longest delay.",
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
        "fencing-action-timeout-too-short",
        *(Limit(f"device-{name}", ">=", plus=20.0) for name in ("off", "reboot")),
        *(Limit(f"device-{name}", ">=", plus=10.0) for name in ("status", "monitor", "list")),
        reason="A BMC needs some seconds to cut the power and to confirm it. This timeout ends the agent before that, "
        "and fencing fails.",
        remedy="Remove pcmk_off_timeout and similar settings, or set them to 60s.",
        source=f"{PACEMAKER}/fencing.rst",
    ),
    TimesOf("pacemaker").warning(
        "fencing-timeout-too-long",
        *(Limit(f"device-{name}", "<=", plus=1800.0) for name in ("off", "reboot", "status", "monitor", "list")),
        Limit("fencing-limit", "<=", plus=1800.0),
        Limit("device-pause", "<=", plus=120.0),
        Limit("device-sleep", "<=", plus=10.0),
        reason="If the device does not answer, nobody takes over for that long: the next level is tried only "
        "afterwards.",
        remedy="Remove it; the default is right.",
        source=f"{PACEMAKER}/fencing.rst",
    ),
    TimesOf("pacemaker").warning(
        "fencing-delay-too-long",
        Limit("longest-delay", "<", plus=60.0),
        Limit("priority-delay", "<=", plus=120.0),
        reason="The delay applies whenever this node is powered off, not only when the links are cut: services stop "
        "for that much longer.",
        remedy="pcmk_delay_base=10s is enough for the other side to act first.",
        source=f"{PACEMAKER}/fencing.rst",
    ),
    TimesOf("pacemaker").warning(
        "priority-delay-below-random-delay",
        Limit("priority-delay", ">", "device-random-delay"),
        reason="The random delay can be longer than the advantage of the more important node, which is then powered "
        "off all the same.",
        remedy="Set priority-fencing-delay to twice pcmk_delay_max.",
        source=f"{PACEMAKER}/cluster-options.rst",
    ),
    TimesOf("pacemaker", "sbd").error(
        "stonith-timeout-below-msgwait",
        Limit("fencing-limit", ">=", "message-wait", times=1.2),
        reason="A node has msgwait (twice the watchdog timeout) to obey the message on the disk. Pacemaker gives up "
        "before that, and takes nothing over.",
        remedy="Set stonith-timeout to at least 1.2 x 2 x SBD_WATCHDOG_TIMEOUT.",
        source=SBD,
    ),
    TimesOf("pacemaker", "sbd").error(
        "stonith-watchdog-timeout-too-short",
        Limit("watchdog-limit", ">=", "watchdog", times=2.0),
        reason="The surviving node continues before the watchdog of the lost node has reset that node: for some "
        "seconds both write.",
        remedy="Set stonith-watchdog-timeout to at least twice SBD_WATCHDOG_TIMEOUT.",
        source=SBD,
    ),
    TimesOf("sbd").error(
        "watchdog-timeout-too-short",
        Limit("watchdog", ">=", plus=3.0),
        Limit("sbd-start", ">", "sbd-delay"),
        reason="A node resets itself although it is only waiting for a busy disk, or for its own start.",
        remedy="SBD_WATCHDOG_TIMEOUT=5 or more; set TimeoutStartSec of sbd above SBD_DELAY_START.",
        source=SBD,
    ),
    TimesOf("sbd", "corosync").warning(
        "watchdog-timeout-below-quorum-device-timeout",
        Limit("watchdog-without-disk", ">", "qdevice-sync"),
        reason="A node waits for the quorum device for sync_timeout. It has no quorum in this time, and its watchdog "
        "resets it.",
        remedy="Set SBD_WATCHDOG_TIMEOUT above sync_timeout, for example to 35.",
        source=SBD,
    ),
    TimesOf("sbd").warning(
        "watchdog-timeout-too-long",
        Limit("watchdog", "<=", plus=180.0),
        Limit("watchdog-limit", "<=", plus=600.0),
        reason="Nobody takes over from a lost node for that long.",
        remedy="SBD_WATCHDOG_TIMEOUT=5 to 60",
        source=SBD,
    ),
    TimesOf("pacemaker").error(
        "cluster-time-harmful",
        *(Limit(name, ">=", plus=30.0) for name in ("join-integration", "join-finalization", "election")),
        Limit("shutdown-escalation", ">=", plus=300.0),
        Limit("recheck", ">", plus=0.0),
        reason="A busy node needs longer than that to join or to stop, and is powered off meanwhile. With a recheck "
        "interval of 0, Pacemaker acts only after events.",
        remedy="Remove it; the default is right.",
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
        reason="A starting node believes that it is alone before others can answer, a stop is cut off, or the next "
        "step is delayed that long.",
        remedy="Remove it; the default is right.",
        source=f"{PACEMAKER}/cluster-options.rst",
    ),
    TimesOf("pacemaker").error(
        "failure-forgotten-too-early",
        Limit("failure-timeout", ">=", plus=30.0),
        Limit("failure-timeout", ">=", "monitor-interval"),
        reason="The failure expires before it can count: a service that cannot run on this node is restarted there for "
        "ever.",
        remedy="failure-timeout=600s",
        source=f"{PACEMAKER}/resources.rst",
    ),
    TimesOf("pacemaker").error(
        "agent-timeout-above-operation-timeout",
        *(Limit(f"own-{name}", "<", name) for name in ("start", "stop", "monitor")),
        Limit("unit-stop", "<", "stop"),
        reason="The agent is still waiting when Pacemaker ends the operation: a stop that would have succeeded counts "
        "as failed, and the node is powered off.",
        remedy="Set the agent's own timeout below the timeout of its operation.",
        source=f"{PACEMAKER}/operations.rst",
    ),
    TimesOf("pacemaker").warning(
        "ping-dampening-too-short",
        Limit("dampen", ">=", plus=1.0),
        reason="The nodes notice a dead router at different times: without dampening the service moves for no reason.",
        remedy="dampen=5s",
        source=PING,
    ),
    TimesOf("pacemaker").warning(
        "ping-dampening-too-long",
        Limit("dampen", "<=", plus=120.0),
        reason="Nothing is done about a dead card or router for that long.",
        remedy="dampen=5s",
        source=PING,
    ),
    TimesOf("pacemaker").error(
        "export-stop-timeout-below-lease-time",
        Limit("leased-stop", ">", "nfs-lease"),
        reason="With wait_for_leasetime_on_stop, the stop takes longer than the NFSv4 lease (90 s): it times out, and "
        "the node is powered off at every move.",
        remedy="op stop timeout=120s, or remove wait_for_leasetime_on_stop.",
        source=f"{AGENTS}/exportfs",
    ),
    TimesOf().error(
        "nfs-grace-time-below-lease-time",
        Limit("nfs-grace", ">=", "nfs-lease"),
        Limit("nfs-grace", ">=", plus=10.0),
        reason="After a take-over, a client learns within its lease time that the server is new. If the grace time is "
        "over by then, another client can get its locks.",
        remedy="nfs.conf: set grace-time to at least lease-time.",
        source="https://manpages.debian.org/bookworm/nfs-common/nfs.conf.5.en.html",
    ),
    TimesOf("pacemaker").error(
        "pool-start-timeout-too-short",
        Limit("pool-start", ">", "pool-watched"),
        Limit("multihost-interval", ">=", plus=0.1),
        reason="Before a pool with multihost is imported, ZFS watches it for a while: the start times out before that.",
        remedy="Set op start timeout of the pool above zfs_multihost_interval x zfs_multihost_import_intervals.",
        source="https://openzfs.github.io/openzfs-docs/Performance%20and%20Tuning/Module%20Parameters.html",
    ),
    TimesOf("modules").warning(
        "pool-suspended-too-early",
        Limit("pool-given-up", ">=", plus=3.0),
        reason="During a path failover, or when it is busy, a disk does not answer for some seconds: ZFS suspends the "
        "pool for it.",
        remedy="Remove zfs_multihost_fail_intervals.",
        source="https://openzfs.github.io/openzfs-docs/Performance%20and%20Tuning/Module%20Parameters.html",
    ),
    TimesOf("pacemaker").warning(
        "disk-retries-longer-than-stop-timeout",
        Limit("path-wait", "<", "storage-stop"),
        Limit("iscsi-replacement", "<", "storage-stop"),
        reason="A disk that has lost all its paths keeps writes waiting for that long. Monitor and stop hang until "
        "they time out, and the node has to be powered off.",
        remedy="no_path_retry fail (or a few retries), replacement_timeout 20",
        source=MULTIPATH,
    ),
    TimesOf().error(
        "disk-removed-before-path-failover",
        Limit("device-loss", ">", "fast-io-fail"),
        reason="The disk is removed before its requests have failed over to another path.",
        remedy="Set dev_loss_tmo above fast_io_fail_tmo.",
        source=MULTIPATH,
    ),
    TimesOf("units").error(
        "cluster-unit-stop-timeout-too-short",
        Limit("program-stop", ">=", "longest-stop"),
        Limit("program-stop", ">=", plus=60.0),
        reason="Pacemaker must have enough time to stop everything: a node whose cluster programs are killed while "
        "they stop is fenced.",
        remedy="Remove TimeoutStopSec from the drop-in file; the original unit waits for 30 minutes.",
        source="https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html",
    ),
    TimesOf("drbd").error(
        "replication-times-contradict",
        Limit("drbd-timeout", "<=", "drbd-ping"),
        Limit("drbd-timeout", "<=", "drbd-connect"),
        Limit("drbd-ping-timeout", "<", "drbd-ping"),
        reason="drbd.conf(5): timeout (in tenths of a second) must be below connect-int and ping-int (in seconds); "
        "otherwise it never applies.",
        remedy="Remove timeout, ping-int and connect-int; the defaults fit.",
        source=DRBD_CONF,
    ),
    TimesOf("drbd").warning(
        "replication-timeouts-doubtful",
        Limit("drbd-timeout", ">=", plus=2.0),
        Limit("drbd-ping-timeout", "<=", plus=10.0),
        Limit("drbd-expelled", "<=", plus=300.0),
        reason="A short pause of the peer ends the replication and gets the peer powered off; or all writes hang for "
        "that long when the peer is dead. timeout and ping-timeout are in tenths of a second.",
        remedy="Remove timeout, ping-timeout and ko-count (defaults: 60, 5 and 7).",
        source=DRBD_CONF,
    ),
    TimesOf("pacemaker", "drbd").error(
        "fence-peer-timeout-below-stonith-timeout",
        Limit("fence-peer", ">=", "power-off-limit"),
        reason="When the handler stops waiting for the fencing, writing continues although the peer may be alive; "
        "writes acknowledged after that may be lost.",
        remedy="Call crm-fence-peer with --timeout above stonith-timeout.",
        source="https://github.com/LINBIT/drbd-utils/blob/master/scripts/crm-fence-peer.9.sh",
    ),
    TimesOf("pacemaker", "drbd").warning(
        "fence-peer-timeout-not-set",
        Limit("fence-peer-default", ">=", "power-off-limit"),
        reason="The handler's default of 90 s is below stonith-timeout: if fencing takes longer, writing continues "
        "although the peer may be alive.",
        remedy="Call crm-fence-peer with --timeout above stonith-timeout.",
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
        reason="Clients that the server does not wait for, or that give up before they have sent again, are evicted "
        "and lose what they had not written yet.",
        remedy="recovery_time_soft=300 recovery_time_hard=900, at_max=600; remove the others.",
        source=MOUNT_LUSTRE,
    ),
    TimesOf("booth").error(
        "ticket-times-contradict",
        Limit("ticket-left", ">", "ticket-tries"),
        reason="Booth renews a ticket after half of its time, and every attempt waits for the other sites. If the "
        "attempts take longer than the rest of the time, a slow network loses the ticket and stops the service.",
        remedy="expire=600, timeout=10, retries=5",
        source=BOOTH,
    ),
    TimesOf("pacemaker", "booth").warning(
        "ticket-acquire-after-too-short",
        Limit("ticket-wait", ">=", "power-off-limit"),
        reason="A site that has lost its ticket has to stop all its services, or power off nodes. If acquire-after is "
        "too short, the other site starts writing before that.",
        remedy="Set acquire-after to at least stonith-timeout.",
        source=BOOTH,
    ),
)
for _row in _ROWS:
    enter(_row)
