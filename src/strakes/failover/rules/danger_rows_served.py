"""Values of agents', Corosync's and DRBD's options that do harm in a pair: one row for each, with the reason."""

from __future__ import annotations

import re

from strakes.failover.cib_values import is_true
from strakes.failover.known_options import meant, options_of
from strakes.failover.rules.danger import Danger, OptionsOf, is_off, is_one_of, is_relative, less, more

SERVED_ROWS: tuple[Danger, ...] = (
    OptionsOf("Filesystem").warning(
        "device",
        lambda value: bool(re.fullmatch(r"/dev/(sd[a-z]+|nvme\d+n\d+p?|vd[a-z]+|hd[a-z])\d*", value)),
        "/dev/sdb1",
        "Each node numbers its disks as it finds them: after a start the name may be that of another disk.",
        "device=/dev/disk/by-id/..., /dev/mapper/..., or a logical volume.",
    ),
    OptionsOf("Filesystem").error(
        "fstype",
        lambda value: value not in options_of("file systems") and bool(meant(value, options_of("file systems"))),
        "xsf",
        "The kernel knows no file system of that name: the mount fails on every node.",
        "Write it as mount(8) does.",
    ),
    OptionsOf("drbd").error(
        "adjust_master_score",
        lambda value: not re.fullmatch(r"\d+( +\d+){3}", value.strip()),
        "high",
        "The agent wants four numbers, the preferences of a copy that is alone, outdated, secondary and primary.",
        "Remove it; its default is 0 10 1000 10000.",
    ),
    OptionsOf("Filesystem").warning(
        "force_unmount",
        is_off,
        "0",
        "One open file keeps the file system mounted: the stop fails, and the node is powered off for it.",
        "Remove it; its default is true.",
    ),
    OptionsOf("Filesystem").error(
        "force_clones",
        is_true,
        "1",
        "It lets the same local file system be mounted on several nodes at once.",
        "Remove it.",
    ),
    OptionsOf("Filesystem").warning(
        "run_fsck",
        is_one_of("force", "true", "yes"),
        "true",
        "A whole check before each mount takes longer than the start may: the take-over fails.",
        "Remove it; its default is auto.",
    ),
    OptionsOf("Filesystem").error(
        "directory",
        lambda value: is_relative(value) or value == "/",
        "0",
        "A file system is mounted on an absolute path, and not over the root.",
        "directory=/srv/NAME",
    ),
    OptionsOf("Filesystem").error(
        "options",
        lambda value: bool(
            {"nobarrier", "barrier=0", "norecovery", "noload", "errors=continue"} & set(value.split(","))
        ),
        "nobarrier",
        "Without barriers or the journal, or going on after errors, a take-over finds a damaged file system.",
        "Remove these options.",
    ),
    OptionsOf("exportfs").error(
        "fsid",
        lambda value: not re.fullmatch(r"root|\d{1,9}|[0-9a-fA-F:-]{16,40}", value),
        "home",
        "exportfs takes a number, root or a UUID.",
        "fsid=1",
    ),
    OptionsOf("exportfs").warning(
        "unlock_on_stop",
        is_off,
        "0",
        "Locks stay held when the export moves: the file system cannot be unmounted.",
        "Remove it.",
    ),
    OptionsOf("exportfs").warning(
        "options",
        lambda value: "insecure_locks" in value or "no_auth_nlm" in value,
        "insecure_locks",
        "Clients lock without being known.",
        "options=rw,sync",
    ),
    OptionsOf("drbd").warning(
        "ignore_missing_notifications",
        is_true,
        "1",
        "The agent then cannot tell its peer's death from its own isolation.",
        "Remove it, and set notify=true.",
    ),
    OptionsOf("drbd").warning(
        "drbdconf",
        lambda value: value != "/etc/drbd.conf",
        "0",
        "The files that are checked here, and that drbdadm uses by itself, are others.",
        "Remove it.",
    ),
    OptionsOf("ping").warning(
        "attempts",
        less(2),
        "0",
        "One lost packet moves the service.",
        "Remove it; its default is 3.",
    ),
    OptionsOf("totem").warning(
        "heartbeat_failures_allowed",
        more(0),
        "1",
        "corosync.conf(5) warns of it: on a busy network nodes are declared dead.",
        "Remove it.",
    ),
    OptionsOf("totem").warning(
        "block_unlisted_ips",
        is_one_of("no"),
        "no",
        "Packets of strangers are taken for those of the cluster.",
        "Remove it.",
    ),
    OptionsOf("totem").error(
        "fail_recv_const",
        less(100),
        "0",
        "After so few lost packets a node is declared dead: one burst is enough.",
        "Remove it; its default is 2500.",
    ),
    OptionsOf("totem").warning(
        "token_retransmits_before_loss_const",
        more(20),
        "50",
        "The token is repeated every few milliseconds: a busy network is flooded.",
        "Remove it.",
    ),
    OptionsOf("totem").error(
        "keyfile",
        is_relative,
        "0",
        "Corosync is started in no particular directory: the key is not found.",
        "Remove it; its default is /etc/corosync/authkey.",
    ),
    OptionsOf("totem interface").error(
        "mcastport",
        is_one_of("7788", "7789", "7790", "623", "2049", "988", "3121", "2224", "5403", "22"),
        "7788",
        "The port belongs to DRBD, IPMI, NFS, LNet, Pacemaker or the quorum device: one of the two does not start.",
        "Remove mcastport; the links have 5405 and the following.",
    ),
    OptionsOf("totem interface").warning(
        "knet_pong_count",
        more(20),
        "50",
        "A link that came back is used only after so many answers.",
        "Remove it.",
    ),
    OptionsOf("logging").warning(
        "syslog_priority",
        is_one_of("emerg", "alert", "crit"),
        "crit",
        "Why a node was taken for dead is said at info and notice: after an outage nobody can tell.",
        "Remove it.",
    ),
    OptionsOf("logging").error(
        "logfile",
        lambda value: is_relative(value) or value.endswith("/"),
        "0",
        "Corosync does not start when it cannot open its log.",
        "logfile: /var/log/corosync/corosync.log",
    ),
    OptionsOf("system").warning(
        "sched_rr",
        is_one_of("no"),
        "no",
        "Without realtime scheduling a busy node sends its heartbeat late, and is powered off.",
        "Remove it.",
    ),
    OptionsOf("net").error(
        "always-asbp",
        is_true,
        "1",
        "The policies for a split brain are then used where DRBD would ask a person: three different copies "
        "are merged.",
        "Remove it.",
    ),
    OptionsOf("net").error(
        "on-congestion",
        is_one_of("pull-ahead", "disconnect"),
        "pull-ahead",
        "When the network is slow the other copy is left behind, and a take-over then loses what was acknowledged.",
        "on-congestion block",
    ),
    OptionsOf("disk").warning(
        "read-balancing",
        is_one_of("prefer-remote"),
        "prefer-remote",
        "All reads go over the network, although the same data is on the local disk.",
        "Remove it.",
    ),
)
