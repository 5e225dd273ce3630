"""Settings of a node's own system that work against the cluster: kernel, boot, power, clock, updates, locks, disks."""

from __future__ import annotations

from strakes.failover.rules.node_row import DATASET, KERNEL_LINE, LCTL, MULTIPATH, NO, SYSCTL, YES, ZFS, SettingsOf

_CLUSTER = "pacemaker|corosync|sbd|corosync-qdevice|multipathd|iscsid|iscsi|open-iscsi|drbd"
_SERVICE = SettingsOf(f"unit Service of ({_CLUSTER})")
_MODULES = r"drbd|zfs|spl|lustre|lnet|ldiskfs|ko2iblnd|ksocklnd|dm_multipath|nfsd|bonding|iscsi_tcp|softdog"
SYSTEM_ROWS = (
    # The kernel.
    SYSCTL.warning(
        r"vm\.dirty_writeback_centisecs",
        "0",
        "written data stay in memory until they are synchronised: a take-over loses more",
    ),
    SYSCTL.error(
        r"net\.ipv[46]\.neigh\.\S+\.gc_thresh[23]",
        r"\d{1,2}|1[01]\d",
        "no more nodes and clients than that can be reached",
    ),
    SYSCTL.warning(r"kernel\.panic_on_warn", "1", "the node goes down after a mere warning of its kernel"),
    SYSCTL.warning(r"kernel\.(soft_)?watchdog", "0", "a processor that hangs is not noticed"),
    SYSCTL.error(
        r"fs\.nfs\.nlm_grace_period", "[1-9]", "clients have no time to get their locks back after a take-over"
    ),
    SYSCTL.error(r"fs\.file-max|kernel\.(pid_max|threads-max)", r"\d{1,4}", "this is too small: services do not start"),
    SYSCTL.error(
        r"net\.netfilter\.nf_conntrack_max",
        r"\d{1,4}",
        "more connections than that are dropped, including those of the cluster",
    ),
    SYSCTL.warning(
        r"net\.netfilter\.nf_conntrack_tcp_loose",
        "0",
        "after a take-over the new node drops the existing connections of clients",
    ),
    SYSCTL.warning(
        r"dev\.raid\.speed_limit_max",
        r"\d{1,4}",
        "rebuilding a disk takes weeks, and a second one may fail in that time",
    ),
    SYSCTL.warning(r"net\.core\.[rw]mem_max", r"\d{1,5}", "a burst of packets is lost"),
    SYSCTL.warning(r"net\.core\.somaxconn", r"\d{1,2}", "many clients that reconnect at the same time are refused"),
    SYSCTL.warning(r"vm\.min_free_kbytes", r"\d{1,4}", "when memory is short, none is left for packets"),
    SYSCTL.warning(r"net\.ipv4\.tcp_tw_recycle", "1", "clients that share one address are refused"),
    SYSCTL.warning(
        r"vm\.zone_reclaim_mode",
        r"[1-7]",
        "servers wait for memory of one NUMA node while others have free memory",
        only_with="lustre",
    ),
    # Modules.
    ZFS.error(
        "zfs_multihost_import_intervals",
        "[0-4]",
        "before an import, a pool that is in use is not watched long enough",
    ),
    ZFS.warning("zfs_multihost_fail_intervals", "1", "one slow write to the disks suspends the pool"),
    SettingsOf("module drbd").error("allow_oos", YES, "a copy that is out of date may become primary"),
    SettingsOf("module ipmi_watchdog").error(
        "action", "none", "when the watchdog expires, the node is not reset", only_with="sbd"
    ),
    SettingsOf("module scsi_mod").error("max_luns", "[1-7]", "no more disks than that appear"),
    SettingsOf("module scsi_mod").error("scan", "none|manual", "the disks do not appear"),
    SettingsOf("module nvme_core").warning("io_timeout", r"\d{4,}", "a request to a dead disk waits for ever"),
    SettingsOf("module bonding").error(
        "downdelay|miimon|updelay", r"\d{5,}", "the nodes declare each other dead before the bond notices a dead cable"
    ),
    SettingsOf("module bonding").warning(
        "num_grat_arp|num_unsol_na", "0", "the network does not learn that the bond has changed its card"
    ),
    SettingsOf("module (ksocklnd|ko2iblnd)").error(
        "sock_timeout|timeout", r"\d", "a server that is busy for some seconds loses its connections"
    ),
    SettingsOf("module ksocklnd").warning("keepalive_idle", "0", "nobody notices that a client has died"),
    SettingsOf("module lockd").error("nlm_grace_period", "[1-9]", "clients have no time to get their locks back"),
    SettingsOf("module md_mod").warning(
        "start_dirty_degraded", YES, "an array with missing data is started and served"
    ),
    # The command line of the kernel, and the menu before it.
    KERNEL_LINE.error("multipath", "off", "multipath disks do not appear"),
    KERNEL_LINE.error("nompath", "", "multipath disks do not appear"),
    KERNEL_LINE.error(
        r"systemd\.unit",
        r"(rescue|emergency)\S*|runlevel1\.target",
        "the node starts in repair mode, and does not join the cluster",
    ),
    KERNEL_LINE.error(r"single|emergency|rescue|rd\.break", ".*", "the node waits for a person"),
    KERNEL_LINE.error(r"init", ".+", "the node starts another program instead of systemd"),
    KERNEL_LINE.error(
        r"systemd\.mask", r"(pacemaker|corosync|sbd|multipathd|iscsid)\S*", "a program of the cluster cannot be started"
    ),
    KERNEL_LINE.error(
        r"module_blacklist|modprobe\.blacklist|rd\.driver\.blacklist",
        rf"(.*,)?({_MODULES})(,.*)?",
        "a module that the cluster needs is not loaded",
    ),
    KERNEL_LINE.warning("nowatchdog", ".*", "a processor that hangs is not noticed"),
    SettingsOf("boot menu").error(
        "GRUB_(RECORDFAIL_)?TIMEOUT",
        r"-\d+",
        "the menu waits for a person: a node that was powered off does not come back",
    ),
    SettingsOf("boot menu").warning(
        "GRUB_(RECORDFAIL_|HIDDEN_)?TIMEOUT",
        r"[1-9]\d{2,}",
        "the menu waits for minutes: the node comes back that much later",
    ),
    # systemd.
    SettingsOf("logind.conf Login").error(
        "IdleAction|HandleLidSwitch|HandleSuspendKey",
        r"poweroff|reboot|halt|kexec|suspend|hibernate|hybrid-sleep|suspend-then-hibernate",
        "the node sleeps or stops when it is idle: the others power it off",
    ),
    SettingsOf("system.conf Manager").error(
        "DefaultTimeoutStartSec", r"[1-9]s?", "services that need longer to start are stopped"
    ),
    SettingsOf("system.conf Manager").warning(
        "CrashShell", YES, "after a crash the node hangs without being powered off"
    ),
    SettingsOf("system.conf Manager").error(
        "DefaultTasksMax|DefaultLimitNOFILE|DefaultLimitNPROC",
        r"\d{1,3}(:\d{1,3})?",
        "this is too small: services do not start",
    ),
    SettingsOf("journald.conf Journal").warning("Storage", "none", "after a failure nobody can tell what happened"),
    SettingsOf(f"unit Unit of ({_CLUSTER})").warning(
        r"(Condition|Assert)\w+",
        ".+",
        "if the condition is not met, the program is silently not started",
    ),
    _SERVICE.error("ExecStartPre", r".*\bsleep \d{3,}.*", "the start times out before it has begun"),
    _SERVICE.error(
        "TasksMax|LimitNOFILE|LimitNPROC", r"\d{1,2}(:\d{1,2})?", "this is too small: the program does not start"
    ),
    SettingsOf("unit Unit of (pacemaker|corosync|sbd)").warning(
        "Requires|Requisite|BindsTo",
        r"(?!.*(corosync|sbd|dbus|time-sync|network|basic|sysinit|resource-agents|multipath|iscsi|lnet|zfs|dlm|drbd)).+",
        "when that unit fails or stops, the cluster on this node does not start, or stops",
    ),
    SettingsOf("unit Unit").error(
        "Conflicts|StopPropagatedFrom",
        r".*\b(pacemaker|corosync|sbd|multipathd|iscsid)\.service.*",
        "its start stops a program of the cluster",
    ),
    # Programs of the cluster.
    SettingsOf("pacemaker settings").error(
        "PCMK_(valgrind|callgrind)_enabled",
        rf"{YES}|pacemaker.*",
        "its programs become so slow that they time out",
    ),
    SettingsOf("pacemaker settings").warning("PCMK_node_action_limit", "1", "only one action runs at a time"),
    SettingsOf("corosync settings").error(
        "COROSYNC_OPTIONS", r"(.* )?-t( .*)?", "Corosync only tests its file, and exits"
    ),
    SettingsOf("corosync settings").warning(
        "COROSYNC_OPTIONS", r"(.* )?-p( .*)?", "it gets no processor time when the node is busy"
    ),
    SettingsOf("corosync settings").warning("START", NO, "Corosync is not started at boot"),
    SettingsOf("dlm.conf").error(
        "enable_(startup_|quorum_)?fencing", "0", "locks are granted to others before a dead node is off"
    ),
    SettingsOf("dlm.conf").error("enable_quorum_lockspace", "0", "both halves of a divided cluster grant locks"),
    SettingsOf("sanlock.conf").error("use_watchdog", "0", "a node that has lost its leases keeps writing"),
    # NFS in older files.
    SettingsOf("nfs settings").error("RPCNFSDCOUNT", "[01]", "no thread, or a single one, serves all clients"),
    SettingsOf("nfs settings").error(
        "RPCNFSD(ARGS|OPTS)", r".*(-N|--no-nfs-version) ?[34]\b.*\b[34]\b.*", "no NFS version is left"
    ),
    SettingsOf("nfs settings").error(
        "RPCNFSD(ARGS|OPTS)", r".*(-G|--grace-time)[ =]?\d( .*)?", "clients have no time to get their locks back"
    ),
    # Restarts and updates.
    SettingsOf("apt.conf").warning(
        "Unattended-Upgrade::Automatic-Reboot",
        YES,
        "all nodes restart in the same night, and no node is left to take over",
    ),
    SettingsOf("automatic.conf commands").warning(
        "reboot", r"when-(needed|changed)", "all nodes restart in the same night, and no node is left to take over"
    ),
    SettingsOf("automatic.conf commands").warning(
        "apply_updates", YES, "all nodes update their programs in the same night"
    ),
    SettingsOf("needrestart").warning("restart", "a", "an update restarts Corosync while services are running"),
    # The clock.
    SettingsOf("chrony.conf").warning("makestep", r"\S+ -\d+", "the clock may jump at any time"),
    # Between a node and its disks.
    SettingsOf("kdump").warning("final_action|failure_action|default", "halt", "the node hangs after its dump"),
    SettingsOf("multipath.conf (defaults|device|overrides|multipath)").warning(
        "fast_io_fail_tmo", "off", "requests on a dead path wait until the whole disk fails"
    ),
    MULTIPATH.warning("polling_interval", r"\d{3,}", "a dead path is noticed late"),
    SettingsOf("iscsid.conf").warning(
        r"node\.session\.initial_login_retry_max|node\.conn\[0\]\.timeo\.login_timeout",
        "[0-2]",
        "a login that takes a few seconds fails: the disk is missing",
    ),
    SettingsOf("lvm.conf activation").warning("udev_(sync|rules)", "0", "a volume is used before its device is there"),
    SettingsOf("lvm.conf local").error("host_id", "0", "without a host id lvmlockd takes no locks"),
    DATASET.error("xattr", "off|false", "Lustre and its quota need extended attributes", only_with="lustre"),
    DATASET.error("keylocation", "prompt", "nobody can type the key during a take-over"),
    DATASET.warning("sharenfs", "on|rw.*|ro.*", "ZFS exports it, and Pacemaker does not know", only_with="exports"),
    DATASET.warning("redundant_metadata", "none", "one bad block can destroy whole directories"),
    DATASET.warning("dedup", "on|verify|sha\\S*", "reading the deduplication tables after a take-over takes hours"),
    # Disks over the network, and mounts.
    SettingsOf("udev").error("(device/)?timeout", r"\d{4,}", "a request to a missing disk waits for that many seconds"),
    MULTIPATH.warning("checker_timeout", r"\d{3,}", "a dead path is noticed late"),
    MULTIPATH.warning("max_fds", r"\d{1,2}", "no more paths than that are used"),
    SettingsOf("multipath.conf (defaults|device|overrides|protocol)").warning(
        "dev_loss_tmo", r"\d", "a path that is down for some seconds is removed, and comes back under a different name"
    ),
    SettingsOf("mount options ext[234]").warning("errors", "continue", "a damaged file system stays in use"),
    SettingsOf("nfs.conf nfsd").warning("port", r"(?!2049$)\d+", "clients look for the server at port 2049"),
    SettingsOf("nfs.conf nfsd").warning(
        "grace-time", r"[3-9]\d\d|\d{4,}", "clients wait that long after each take-over"
    ),
    SettingsOf("nfs.conf (mountd|exportd)").error("threads", "0", "requests to mount are not answered"),
    # Lustre.
    DATASET.warning("canmount", "on", "ZFS mounts a target of Lustre by itself", only_with="lustre"),
    LCTL.error(r"(.*\.)?max_(rpcs_in_flight|dirty_mb|pages_per_rpc)", "0", "clients send nothing more"),
    LCTL.warning(r"((.*\.)?sys\.)?timeout", r"[6-9]\d\d|\d{4,}", "a server that died is noticed late"),
    LCTL.warning(r"(.*\.)?auto_scrub", "0", "a restored target is never repaired"),
    LCTL.error(r"(mdt|obdfilter|ofd)\..*\.readonly", "1", "nothing can be written"),
    LCTL.error(
        r"(.*\.)?fail_(loc|val)", r"(?!0x0+$|0$).+", "Lustre injects errors; a test has left this setting behind"
    ),
)
