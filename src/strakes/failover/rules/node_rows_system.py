"""Settings of a node's own system that work against the cluster: kernel, boot, power, clock, updates, locks, disks."""

from __future__ import annotations

from strakes.failover.rules.node_row import NO, YES, NodeRow

_CLUSTER = "pacemaker|corosync|sbd|corosync-qdevice|multipathd|iscsid|iscsi|open-iscsi|drbd"
_MODULES = r"drbd|zfs|spl|lustre|lnet|ldiskfs|ko2iblnd|ksocklnd|dm_multipath|nfsd|bonding|iscsi_tcp|softdog"
SYSTEM_ROWS = (
    # The kernel.
    NodeRow(
        "sysctl",
        r"vm\.dirty_writeback_centisecs",
        "0",
        "what is written stays in memory until somebody asks for it: a take-over loses more",
        "warning",
    ),
    NodeRow(
        "sysctl",
        r"net\.ipv[46]\.neigh\.\S+\.gc_thresh[23]",
        r"\d{1,2}|1[01]\d",
        "nodes and clients beyond so many are not reached",
    ),
    NodeRow("sysctl", r"kernel\.panic_on_warn", "1", "the node goes down for a mere warning of its kernel", "warning"),
    NodeRow("sysctl", r"kernel\.(soft_)?watchdog", "0", "a processor that hangs is not noticed", "warning"),
    NodeRow(
        "sysctl",
        r"fs\.nfs\.nlm_grace_period",
        "[1-9]",
        "clients have no time to get their locks back after a take-over",
    ),
    NodeRow("sysctl", r"fs\.file-max|kernel\.(pid_max|threads-max)", r"\d{1,4}", "so few that services do not start"),
    NodeRow(
        "sysctl",
        r"net\.netfilter\.nf_conntrack_max",
        r"\d{1,4}",
        "connections beyond so many are dropped, those of the cluster too",
    ),
    NodeRow(
        "sysctl",
        r"net\.netfilter\.nf_conntrack_tcp_loose",
        "0",
        "after a take-over the new node drops the connections that clients still have",
        "warning",
    ),
    NodeRow(
        "sysctl",
        r"dev\.raid\.speed_limit_max",
        r"\d{1,4}",
        "a broken disk is rebuilt in weeks, and a second one breaks meanwhile",
        "warning",
    ),
    NodeRow("sysctl", r"net\.core\.[rw]mem_max", r"\d{1,5}", "a burst of packets is lost", "warning"),
    NodeRow("sysctl", r"net\.core\.somaxconn", r"\d{1,2}", "clients that come back together are refused", "warning"),
    NodeRow("sysctl", r"vm\.min_free_kbytes", r"\d{1,4}", "no memory is left for packets when it is short", "warning"),
    NodeRow("sysctl", r"net\.ipv4\.tcp_tw_recycle", "1", "clients behind one address are refused", "warning"),
    NodeRow(
        "sysctl",
        r"vm\.zone_reclaim_mode",
        r"[1-7]",
        "servers wait for memory of one processor while others have some",
        "warning",
        "lustre",
    ),
    # Modules.
    NodeRow(
        "module zfs",
        "zfs_multihost_import_intervals",
        "[0-4]",
        "a pool that is in use is not watched long enough before it is imported",
    ),
    NodeRow(
        "module zfs",
        "zfs_multihost_fail_intervals",
        "1",
        "one slow write of the disks stops the pool",
        "warning",
    ),
    NodeRow("module drbd", "allow_oos", YES, "a copy that is out of date may become primary"),
    NodeRow("module ipmi_watchdog", "action", "none", "the watchdog bites and the node lives", only_with="sbd"),
    NodeRow("module scsi_mod", "max_luns", "[1-7]", "disks of the storage beyond so many do not appear"),
    NodeRow("module scsi_mod", "scan", "none|manual", "disks of the storage do not appear"),
    NodeRow("module nvme_core", "io_timeout", r"\d{4,}", "a request to a dead disk waits for ever", "warning"),
    NodeRow(
        "module bonding",
        "downdelay|miimon|updelay",
        r"\d{5,}",
        "a dead cable is noticed later than the nodes give each other up",
    ),
    NodeRow(
        "module bonding",
        "num_grat_arp|num_unsol_na",
        "0",
        "after a change of cards nobody on the network learns of it",
        "warning",
    ),
    NodeRow(
        "module (ksocklnd|ko2iblnd)",
        "sock_timeout|timeout",
        r"\d",
        "a server that is busy for seconds loses its connections",
    ),
    NodeRow("module ksocklnd", "keepalive_idle", "0", "a client that died is noticed by nobody", "warning"),
    NodeRow("module lockd", "nlm_grace_period", "[1-9]", "clients have no time to get their locks back"),
    NodeRow("module md_mod", "start_dirty_degraded", YES, "an array with holes is served as a good one", "warning"),
    # The command line of the kernel, and the menu before it.
    NodeRow("kernel command line", "multipath", "off", "no disk over several paths appears"),
    NodeRow("kernel command line", "nompath", "", "no disk over several paths appears"),
    NodeRow(
        "kernel command line",
        r"systemd\.unit",
        r"(rescue|emergency)\S*|runlevel1\.target",
        "the node starts for repairs, and joins nobody",
    ),
    NodeRow("kernel command line", r"single|emergency|rescue|rd\.break", ".*", "the node waits for a person"),
    NodeRow("kernel command line", r"init", ".+", "the node starts another program in place of systemd"),
    NodeRow(
        "kernel command line",
        r"systemd\.mask",
        r"(pacemaker|corosync|sbd|multipathd|iscsid)\S*",
        "a program of the cluster cannot be started",
    ),
    NodeRow(
        "kernel command line",
        r"module_blacklist|modprobe\.blacklist|rd\.driver\.blacklist",
        rf"(.*,)?({_MODULES})(,.*)?",
        "a module that the cluster needs is not loaded",
    ),
    NodeRow("kernel command line", "nowatchdog", ".*", "a processor that hangs is not noticed", "warning"),
    NodeRow(
        "boot menu",
        "GRUB_(RECORDFAIL_)?TIMEOUT",
        r"-\d+",
        "the menu waits for a person: a node that was powered off does not come back",
    ),
    NodeRow(
        "boot menu",
        "GRUB_(RECORDFAIL_|HIDDEN_)?TIMEOUT",
        r"[1-9]\d{2,}",
        "the menu waits for minutes: a node comes back so much later",
        "warning",
    ),
    # systemd.
    NodeRow(
        "logind.conf Login",
        "IdleAction|HandleLidSwitch|HandleSuspendKey",
        r"poweroff|reboot|halt|kexec|suspend|hibernate|hybrid-sleep|suspend-then-hibernate",
        "the node sleeps or stops when nobody types: the others power it off",
    ),
    NodeRow(
        "system.conf Manager",
        "DefaultTimeoutStartSec",
        r"[1-9]s?",
        "services that need longer to start are ended",
    ),
    NodeRow("system.conf Manager", "CrashShell", YES, "after a crash the node stands still, powered on", "warning"),
    NodeRow(
        "system.conf Manager",
        "DefaultTasksMax|DefaultLimitNOFILE|DefaultLimitNPROC",
        r"\d{1,3}(:\d{1,3})?",
        "so few that services do not start",
    ),
    NodeRow("journald.conf Journal", "Storage", "none", "after a failure nobody can tell what happened", "warning"),
    NodeRow(
        f"unit Unit of ({_CLUSTER})",
        r"(Condition|Assert)\w+",
        ".+",
        "where the condition does not hold the program is not started, and nobody says so",
        "warning",
    ),
    # Programs of the cluster.
    NodeRow(
        "pacemaker settings",
        "PCMK_(valgrind|callgrind)_enabled",
        rf"{YES}|pacemaker.*",
        "its programs become many times slower than their time-outs allow",
    ),
    NodeRow("pacemaker settings", "PCMK_node_action_limit", "1", "one thing at a time is started", "warning"),
    NodeRow("corosync settings", "COROSYNC_OPTIONS", r"(.* )?-t( .*)?", "Corosync only tests its file, and ends"),
    NodeRow(
        "corosync settings", "COROSYNC_OPTIONS", r"(.* )?-p( .*)?", "it gets no time of a busy processor", "warning"
    ),
    NodeRow("corosync settings", "START", NO, "Corosync is not started at boot", "warning"),
    NodeRow("dlm.conf", "enable_(startup_|quorum_)?fencing", "0", "locks are given away before a dead node is off"),
    NodeRow("dlm.conf", "enable_quorum_lockspace", "0", "both halves of a divided cluster give locks"),
    NodeRow("sanlock.conf", "use_watchdog", "0", "a node that has lost its leases writes on"),
    # NFS in older files.
    NodeRow("nfs settings", "RPCNFSDCOUNT", "[01]", "no thread, or a single one, serves all clients"),
    NodeRow("nfs settings", "RPCNFSD(ARGS|OPTS)", r".*(-N|--no-nfs-version) ?[34]\b.*\b[34]\b.*", "no version is left"),
    NodeRow(
        "nfs settings",
        "RPCNFSD(ARGS|OPTS)",
        r".*(-G|--grace-time)[ =]?\d( .*)?",
        "clients have no time to get their locks back",
    ),
    # Restarts and updates.
    NodeRow(
        "apt.conf",
        "Unattended-Upgrade::Automatic-Reboot",
        YES,
        "all nodes restart in the same night, and nobody is left to take over",
        "warning",
    ),
    NodeRow(
        "automatic.conf commands",
        "reboot",
        r"when-(needed|changed)",
        "all nodes restart in the same night, and nobody is left to take over",
        "warning",
    ),
    NodeRow(
        "automatic.conf commands",
        "apply_updates",
        YES,
        "all nodes change their programs in the same night",
        "warning",
    ),
    NodeRow("needrestart", "restart", "a", "an update restarts Corosync below running services", "warning"),
    # The clock.
    NodeRow("chrony.conf", "makestep", r"\S+ -\d+", "the clock may jump at any time", "warning"),
    # Between a node and its disks.
    NodeRow("kdump", "final_action|failure_action|default", "halt", "the node stands still after its dump", "warning"),
    NodeRow(
        "multipath.conf (defaults|device|overrides|multipath)",
        "fast_io_fail_tmo",
        "off",
        "requests on a dead path wait until the whole disk is given up",
        "warning",
    ),
    NodeRow("multipath.conf defaults", "polling_interval", r"\d{3,}", "a dead path is noticed late", "warning"),
    NodeRow(
        "iscsid.conf",
        r"node\.session\.initial_login_retry_max|node\.conn\[0\]\.timeo\.login_timeout",
        "[0-2]",
        "a login that takes a few seconds fails: the disk is not there",
        "warning",
    ),
    NodeRow("lvm.conf activation", "udev_(sync|rules)", "0", "a volume is used before its device is there", "warning"),
    NodeRow("lvm.conf local", "host_id", "0", "lvmlockd takes no lock without the node's number"),
    NodeRow("pool", "cachefile", r"/.*|", "each node that has the file imports the pool at boot", only_with="zfs"),
    NodeRow("dataset", "xattr", "off|false", "Lustre and its quota need extended attributes", only_with="lustre"),
    NodeRow("dataset", "keylocation", "prompt", "at a take-over nobody is there to type the key"),
    NodeRow("dataset", "sharenfs", "on|rw.*|ro.*", "it is exported beside Pacemaker", "warning", "exports"),
    NodeRow("dataset", "redundant_metadata", "none", "one bad block takes whole directories", "warning"),
    NodeRow(
        "dataset",
        "dedup",
        "on|verify|sha\\S*",
        "after a take-over its tables are read for hours",
        "warning",
    ),
    # Lustre.
    NodeRow("lctl", r"(.*\.)?auto_scrub", "0", "a target that was restored is never put in order", "warning"),
    NodeRow("lctl", r"(mdt|obdfilter|ofd)\..*\.readonly", "1", "nothing can be written"),
    NodeRow("lctl", r"(.*\.)?fail_(loc|val)", r"(?!0x0+$|0$).+", "Lustre makes up errors, as a test left it"),
)
