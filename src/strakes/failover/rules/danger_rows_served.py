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
        "Each node numbers its disks as it finds them: after a restart the name may belong to a different disk.",
        "device=/dev/disk/by-id/..., /dev/mapper/..., or a logical volume.",
    ),
    OptionsOf("Filesystem").error(
        "fstype",
        lambda value: value not in options_of("file systems") and bool(meant(value, options_of("file systems"))),
        "xsf",
        "The kernel knows no file system of that name: the mount fails on every node.",
        "Use a type that mount(8) lists.",
    ),
    OptionsOf("drbd").error(
        "adjust_master_score",
        lambda value: not re.fullmatch(r"\d+( +\d+){3}", value.strip()),
        "high",
        "The agent needs four numbers: the preferences for a copy that is alone, outdated, secondary and primary.",
        "Remove it; the default is 0 10 1000 10000.",
    ),
    OptionsOf("Filesystem").warning(
        "force_unmount",
        is_off,
        "0",
        "One open file keeps the file system mounted: the stop fails, and the node is powered off because of it.",
        "Remove it; the default is true.",
    ),
    OptionsOf("Filesystem").error(
        "force_clones",
        is_true,
        "1",
        "It allows the same local file system to be mounted on several nodes at once.",
        "Remove it.",
    ),
    OptionsOf("Filesystem").warning(
        "run_fsck",
        is_one_of("force", "true", "yes"),
        "true",
        "A full check before each mount takes longer than the timeout of the start: the take-over fails.",
        "Remove it; the default is auto.",
    ),
    OptionsOf("Filesystem").error(
        "directory",
        lambda value: is_relative(value) or value == "/",
        "0",
        "A file system must be mounted on an absolute path, and not on the root.",
        "directory=/srv/NAME",
    ),
    OptionsOf("Filesystem").error(
        "options",
        lambda value: bool(
            {"nobarrier", "barrier=0", "norecovery", "noload", "errors=continue"} & set(value.split(","))
        ),
        "nobarrier",
        "Without barriers or the journal, or if the file system continues after errors, the node that takes over finds "
        "it damaged.",
        "Remove these options.",
    ),
    OptionsOf("exportfs").error(
        "fsid",
        lambda value: not re.fullmatch(r"root|\d{1,9}|[0-9a-fA-F:-]{16,40}", value),
        "home",
        "fsid must be a number, root or a UUID.",
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
        "With this option the server grants locks without authentication.",
        "options=rw,sync",
    ),
    OptionsOf("drbd").warning(
        "ignore_missing_notifications",
        is_true,
        "1",
        "The agent can then not tell the death of its peer from its own isolation.",
        "Remove it, and set notify=true.",
    ),
    OptionsOf("drbd").warning(
        "drbdconf",
        lambda value: value != "/etc/drbd.conf",
        "0",
        "The agent then uses another file than drbdadm does by default, and than the ones checked here.",
        "Remove it.",
    ),
    OptionsOf("ping").warning(
        "attempts",
        less(2),
        "0",
        "One lost packet is enough to move the service.",
        "Remove it; the default is 3.",
    ),
    OptionsOf("totem").warning(
        "heartbeat_failures_allowed",
        more(0),
        "1",
        "corosync.conf(5) warns about it: on a busy network nodes are declared dead.",
        "Remove it.",
    ),
    OptionsOf("totem").warning(
        "block_unlisted_ips",
        is_one_of("no"),
        "no",
        "Corosync accepts packets from machines that are not in the cluster.",
        "Remove it.",
    ),
    OptionsOf("totem").error(
        "fail_recv_const",
        less(100),
        "0",
        "A node is declared dead after this few lost packets: one burst of losses is enough.",
        "Remove it; the default is 2500.",
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
        "Corosync does not start in a particular directory: it does not find a key with a relative path.",
        "Remove it; the default is /etc/corosync/authkey.",
    ),
    OptionsOf("totem interface").error(
        "mcastport",
        is_one_of("7788", "7789", "7790", "623", "2049", "988", "3121", "2224", "5403", "22"),
        "7788",
        "The port is used by DRBD, IPMI, NFS, LNet, Pacemaker or the quorum device: one of the two programs does not "
        "start.",
        "Remove mcastport; the links then use port 5405 and the following.",
    ),
    OptionsOf("totem interface").warning(
        "knet_pong_count",
        more(20),
        "50",
        "A link that has recovered is used only after that many answers.",
        "Remove it.",
    ),
    OptionsOf("logging").warning(
        "syslog_priority",
        is_one_of("emerg", "alert", "crit"),
        "crit",
        "Corosync logs at info and notice why a node was declared dead: after an outage nobody can find out.",
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
        "Without realtime scheduling, a busy node sends its heartbeat late and is powered off.",
        "Remove it.",
    ),
    OptionsOf("net").error(
        "always-asbp",
        is_true,
        "1",
        "The split-brain policies are then used where DRBD would otherwise leave the decision to a person: three "
        "different copies are merged.",
        "Remove it.",
    ),
    OptionsOf("net").error(
        "on-congestion",
        is_one_of("pull-ahead", "disconnect"),
        "pull-ahead",
        "When the network is slow, the other copy falls behind, and a take-over then loses acknowledged writes.",
        "on-congestion block",
    ),
    OptionsOf("disk").warning(
        "read-balancing",
        is_one_of("prefer-remote"),
        "prefer-remote",
        "All reads go over the network, although the local disk has the same data.",
        "Remove it.",
    ),
)
