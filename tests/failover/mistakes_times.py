"""Mistakes in times: each breaks one relation of the table."""

from __future__ import annotations

from collections.abc import Mapping

from failover.mistakes import BUSY, CIB, COROSYNC, HOME, PAIR, Row, device_value, planted, property_of_cluster, set_to

_RES, _SBD = "etc/drbd.d/r0.res", "etc/sysconfig/sbd"
_BMC = "fence_beta"


def _totem(lines: str) -> tuple[str, str]:
    return r"totem \{", f"totem {{\n  {lines}"


def _link(lines: str) -> tuple[str, str]:
    return _totem(f"interface {{\n    linknumber: 0\n    {lines}\n  }}")


def _device(lines: str) -> tuple[str, str]:
    return "model: net", f"model: net\n    {lines}"


def _net(lines: str) -> tuple[str, str]:
    return "protocol C;", f"protocol C; {lines}"


def _drop_in(text: str) -> tuple[str, str]:
    return "", f"[Service]\n{text}\n"


_WAITS, _QUORUM = "heartbeat-times-contradict", "quorum-device-times-contradict"
_DOUBTFUL, _HARMFUL = "cluster-time-doubtful", "cluster-time-harmful"
_REPLICATION, _RECOVERY = "replication-times-contradict", "recovery-times-contradict"
_MODULES = "etc/modprobe.d/planted.conf"
_ROWS: Mapping[str, Row] = {
    "consensus of a minute and a half": ("token-too-long", "pcs", COROSYNC, _totem("consensus: 90000")),
    "hold above the token": (_WAITS, "pcs", COROSYNC, _totem("hold: 5000")),
    "a ping every five seconds": (_WAITS, "pcs", COROSYNC, _link("knet_ping_interval: 5000")),
    "a window below its messages": (_WAITS, "pcs", COROSYNC, _totem("window_size: 10")),
    "a window for the last man that is too short": (
        _WAITS,
        BUSY,
        COROSYNC,
        (r"quorum \{", "quorum {\n  last_man_standing_window: 500"),
    ),
    "a device asked for longer than membership waits": (_QUORUM, BUSY, COROSYNC, _device("timeout: 40000")),
    "a device waited for less than membership takes": (
        _QUORUM,
        BUSY,
        COROSYNC,
        _device("timeout: 2000\n    sync_timeout: 3000"),
    ),
    "heuristics that outlast their device": (
        _QUORUM,
        BUSY,
        COROSYNC,
        _device(
            "heuristics {\n      mode: on\n      timeout: 12000\n      exec_ping: /bin/ping -c1 192.168.10.254\n    }"
        ),
    ),
    "a device that may answer for minutes": (
        "quorum-device-timeout-too-long",
        BUSY,
        COROSYNC,
        _device("timeout: 100000\n    sync_timeout: 200000"),
    ),
    "fencing given up after ten seconds": (
        "stonith-timeout-too-short",
        "pcs",
        CIB,
        property_of_cluster("stonith-timeout", "10"),
    ),
    "a priority delay of almost the limit": (
        "stonith-timeout-too-short",
        "pcs",
        CIB,
        property_of_cluster("priority-fencing-delay", "55s"),
    ),
    "a pause as long as the limit": (
        "fencing-device-times-contradict",
        "pcs",
        CIB,
        device_value(_BMC, "power_wait", "60"),
    ),
    "a shell of two seconds": ("fencing-device-times-contradict", "pcs", CIB, device_value(_BMC, "shell_timeout", "2")),
    "a state asked for in five seconds": (
        "fencing-action-timeout-too-short",
        "pcs",
        CIB,
        device_value(_BMC, "pcmk_status_timeout", "5s"),
    ),
    "a power-off that may take an hour": (
        "fencing-timeout-too-long",
        "pcs",
        CIB,
        device_value(_BMC, "pcmk_off_timeout", "1h"),
    ),
    "an agent that sleeps between looks": (
        "fencing-timeout-too-long",
        "pcs",
        CIB,
        device_value(_BMC, "stonith_status_sleep", "50"),
    ),
    "priorities below the random delay": (
        "priority-delay-below-random-delay",
        "priorities",
        CIB,
        device_value(_BMC, "pcmk_delay_max", "40s"),
    ),
    "a message that nobody waits for": (
        "stonith-timeout-below-msgwait",
        "crmsh with sbd",
        _SBD,
        ("TIMEOUT=5", "TIMEOUT=90"),
    ),
    "a watchdog of a second": (
        "watchdog-timeout-too-short",
        "crmsh with sbd",
        _SBD,
        ("TIMEOUT=5", "TIMEOUT=1"),
    ),
    "a watchdog that bites before the device answers": (
        "watchdog-timeout-below-quorum-device-timeout",
        "diskless sbd with a quorum device",
        _SBD,
        ("", "SBD_WATCHDOG_DEV=/dev/watchdog\nSBD_WATCHDOG_TIMEOUT=10\n"),
    ),
    "a watchdog of five minutes": (
        "watchdog-timeout-too-long",
        "crmsh with sbd",
        _SBD,
        ("TIMEOUT=5", "TIMEOUT=300"),
    ),
    "an election of a second": (_HARMFUL, "pcs", CIB, property_of_cluster("election-timeout", "1s")),
    "a stop that is cut off": (_HARMFUL, "pcs", CIB, property_of_cluster("shutdown-escalation", "30s")),
    "no recheck": (_HARMFUL, HOME, CIB, set_to("cluster-recheck-interval", "0")),
    "a lone start after two seconds": (_DOUBTFUL, "pcs", CIB, property_of_cluster("dc-deadtime", "2s")),
    "a cluster that waits for ten minutes": (_DOUBTFUL, "pcs", CIB, property_of_cluster("transition-delay", "600s")),
    "a stop longer than the escalation": (_DOUBTFUL, "pcs", CIB, (r'(name="stop" [^>]*timeout=)"[^"]*"', r'\1"1500s"')),
    "failures forgotten between two looks": (
        "failure-forgotten-too-early",
        PAIR,
        CIB,
        set_to("failure-timeout", "40s"),
    ),
    "a unit that stops longer than it may": (
        "agent-timeout-above-operation-timeout",
        "a service of systemd",
        "etc/systemd/system/postgresql.service.d/stop.conf",
        _drop_in("TimeoutStopSec=10min"),
    ),
    "a watch that is dampened for no time": ("ping-dampening-too-short", HOME, CIB, set_to("dampen", "0")),
    "a grace shorter than the lease": (
        "nfs-grace-time-below-lease-time",
        "pcs",
        "etc/nfs.conf",
        ("", "[nfsd]\ngrace-time=30\n"),
    ),
    "a lease longer than the grace": (
        "nfs-grace-time-below-lease-time",
        "pcs",
        "etc/nfs.conf",
        ("", "[nfsd]\nlease-time=300\n"),
    ),
    "a pool watched for minutes": (
        "pool-start-timeout-too-short",
        "ZFS pools of OSTs",
        _MODULES,
        ("", "options zfs zfs_multihost_interval=30000\n"),
    ),
    "a pool given up after a second": (
        "pool-suspended-too-early",
        "ZFS pools of OSTs",
        _MODULES,
        ("", "options zfs zfs_multihost_fail_intervals=1\n"),
    ),
    "paths that are waited for without end": (
        "disk-retries-longer-than-stop-timeout",
        "Lustre on a SAN",
        "etc/multipath.conf",
        ("", "defaults {\n  no_path_retry queue\n}\n"),
    ),
    "a session that is waited for for hours": (
        "disk-retries-longer-than-stop-timeout",
        "Lustre on a SAN",
        "etc/iscsi/iscsid.conf",
        ("", "node.session.timeo.replacement_timeout = 86400\n"),
    ),
    "a device lost before its path": (
        "disk-removed-before-path-failover",
        "Lustre on a SAN",
        "etc/multipath.conf",
        ("", "defaults {\n  fast_io_fail_tmo 30\n  dev_loss_tmo 10\n}\n"),
    ),
    "Pacemaker is killed after half a minute": (
        "cluster-unit-stop-timeout-too-short",
        "pcs",
        "etc/systemd/system/pacemaker.service.d/stop.conf",
        _drop_in("TimeoutStopSec=30"),
    ),
    "a ping that is waited for longer than its interval": (_REPLICATION, "pcs", _RES, _net("ping-timeout 110;")),
    "a time-out above the interval of connecting": (_REPLICATION, "pcs", _RES, _net("timeout 80; connect-int 5;")),
    "a time-out of half a second": ("replication-timeouts-doubtful", "pcs", _RES, _net("timeout 5;")),
    "a peer that is knocked at for 20 minutes": ("replication-timeouts-doubtful", "pcs", _RES, _net("ko-count 200;")),
    "the least time above the greatest": (_RECOVERY, "Lustre on a SAN", _MODULES, ("", "options ptlrpc at_min=700\n")),
    "locks that outlast requests": (
        _RECOVERY,
        "Lustre on a SAN",
        _MODULES,
        ("", "options ptlrpc obd_timeout=30 ldlm_timeout=60\n"),
    ),
    "a ticket that nobody waits for": (
        "ticket-acquire-after-too-short",
        "two sites and tickets",
        "etc/booth/booth.conf",
        (r"acquire-after = \d+", "acquire-after = 5"),
    ),
}
PLANTED = planted(_ROWS)
