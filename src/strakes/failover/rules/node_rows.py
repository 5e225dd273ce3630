"""Settings of a node that work against the cluster: one row for each, with what then happens."""

from __future__ import annotations

from strakes.failover.rules.node_row import DATASET, KERNEL_LINE, LCTL, LVM, MULTIPATH, NO, SYSCTL, YES, ZFS, SettingsOf
from strakes.failover.rules.node_rows_system import SYSTEM_ROWS

_CLUSTER = "pacemaker|corosync|sbd|corosync-qdevice"
_SERVICE = SettingsOf(f"unit Service of ({_CLUSTER})")
NODE_ROWS = (
    SettingsOf("logind.conf Login").error(
        "HandlePowerKey",
        r"poweroff|reboot|suspend|hibernate",
        "when a BMC presses the power button, the node shuts down slowly instead of losing power at once",
    ),
    SettingsOf("system.conf Manager").error(
        "RuntimeWatchdogSec", r"[1-9].*|default", "systemd holds the watchdog that sbd needs", only_with="sbd"
    ),
    SettingsOf("system.conf Manager").error(
        "DefaultTimeoutStopSec",
        r"[1-9]s?|1\ds?",
        "a unit without a stop timeout of its own is killed while it still writes",
    ),
    SettingsOf("pacemaker settings").error(
        "PCMK_panic_action", r"(?!reboot|crash|sync-).*", "the node does not go down when it must"
    ),
    SettingsOf("pacemaker settings").error(
        "PCMK_node_start_state", r"standby|member.*", "the node serves nothing after it started"
    ),
    SettingsOf("multipath.conf (defaults|device|overrides)").error(
        "path_checker", r"none", "a dead path is not noticed"
    ),
    MULTIPATH.error("skip_kpartx|user_friendly_names", r"(?!yes|no).*", "the only values are yes and no"),
    MULTIPATH.warning(
        "queue_without_daemon",
        "yes",
        "when multipathd stops, requests wait for ever, and so does the shutdown of the node",
    ),
    SettingsOf("nfs.conf nfsd").error("threads", r"[01]", "no thread, or a single one, serves all clients"),
    SettingsOf("nfs.conf nfsd").error("vers4|tcp", NO, "clients that mount in this way are refused"),
    SettingsOf("iscsid.conf").error(
        r"node\.session\.timeo\.replacement_timeout", r"-\d+", "requests wait for ever for a target that is gone"
    ),
    SettingsOf("iscsid.conf").error(
        r"node\.session\.scan", "manual", "the disks of a target do not appear after the login"
    ),
    # The kernel.
    SYSCTL.warning(r"kernel\.panic", "0", "after a panic the node hangs until somebody powers it off"),
    SYSCTL.warning(
        r"kernel\.panic_on_oops", "0", "the node keeps running in an undefined state after its kernel has failed"
    ),
    SYSCTL.warning(
        r"kernel\.hung_task_panic",
        "1",
        "Lustre's threads may wait longer than that for disks and clients: a healthy server panics",
        only_with="lustre",
    ),
    SYSCTL.error(r"kernel\.modules_disabled", "1", "no module can be loaded when a service starts"),
    SYSCTL.error(
        r"kernel\.kexec_load_disabled",
        "1",
        "no dump kernel is loaded: fence_kdump never receives a message",
        only_with="fence_kdump",
    ),
    SYSCTL.warning(
        r"vm\.dirty_ratio",
        r"[6-9]\d|100",
        "the unmount has to write so much memory that the stop times out",
    ),
    SYSCTL.error(r"net\.ipv4\.tcp_retries2", r"[0-4]", "a pause of one or two seconds breaks all connections"),
    SYSCTL.error(r"net\.ipv4\.tcp_syn_retries", "0", "one lost packet makes a connection fail"),
    SYSCTL.warning(
        r"net\.ipv4\.icmp_echo_ignore_all",
        "1",
        "ping gets no answer from the node or from addresses of the cluster",
    ),
    SYSCTL.warning(
        r"net\.ipv4\.conf\.\S+\.promote_secondaries",
        "0",
        "when one address is removed from a card, all others of its network are removed, too",
        only_with="address",
    ),
    SYSCTL.warning(
        r"net\.ipv4\.conf\.\S+\.drop_gratuitous_arp", "1", "this node does not learn that an address has moved"
    ),
    SYSCTL.warning(r"kernel\.watchdog_thresh", "0", "a processor that hangs is not noticed"),
    # Modules.
    ZFS.error("zfs_autoimport_disable", "0", "pools in the cache file are imported when the module is loaded"),
    SettingsOf("module (zfs|spl)").warning(
        "zfs_nocacheflush|zil_nocacheflush", "1", "acknowledged writes may still be only in the cache of the disks"
    ),
    ZFS.error("zil_replay_disable", "1", "writes acknowledged before a crash are not replayed"),
    ZFS.error("zfs_recover", "1", "the pool keeps running after errors that should stop it"),
    ZFS.warning("zfs_txg_timeout", r"\d{3,}", "a node that fails loses minutes of writes"),
    ZFS.warning("zfs_deadman_enabled", "0", "a disk that never answers is not noticed"),
    SettingsOf("module lnet").error("accept_port", r"(?!988$).+", "all other nodes connect to this one on port 988"),
    SettingsOf("module lnet").error("forwarding", "(?!disabled|enabled).+", "the only values are enabled and disabled"),
    SettingsOf("module lnet").warning("auto_down", "0", "a dead peer counts as alive"),
    SettingsOf("module (lnet|ko2iblnd|ksocklnd)").error(
        "credits|peer_credits", "0|1", "only one message is sent at a time"
    ),
    SettingsOf("module ptlrpc").warning("suppress_pings", "[1yY].*", "nobody notices that a client has died"),
    SettingsOf("module ptlrpc").error("at_max", "0", "without adaptive timeouts, a busy server loses its clients"),
    SettingsOf("module (ost|mdt|mds)").error(
        r"\w*(num|max)\w*threads\w*|\w*threads_max", "[0-4]", "a few slow requests block all others"
    ),
    SettingsOf("module softdog").error("soft_margin", "[0-4]", "a node that is only busy resets itself"),
    # LVM.
    LVM.error(
        "locking_type",
        "0|4|5",
        "nothing keeps two nodes from changing one volume group at the same time",
        only_with="lvm",
    ),
    LVM.error(
        "use_lvmetad",
        "1",
        "lvmetad caches metadata that the other node may have changed, and activates volumes at boot",
        only_with="lvm",
    ),
    LVM.warning(
        "fallback_to_(local|clustered)_locking",
        "1",
        "if locks are not available, volumes are changed without them",
        only_with="lvm",
    ),
    LVM.error("activation", "0", "no volume is ever activated", only_with="lvm"),
    LVM.error("metadata_read_only", "1", "the owner of a volume group cannot be changed", only_with="lvm"),
    LVM.warning("wait_for_locks", "0", "a command fails where it should wait", only_with="lvm"),
    SettingsOf("lvm.conf activation").warning(
        "activation_mode",
        "partial",
        "a volume group with missing disks is activated, and served incomplete",
        only_with="lvm",
    ),
    SettingsOf("lvm.conf devices").error(
        "multipath_component_detection",
        "0",
        "LVM uses a single path as the disk, and loses the disk with that path",
        only_with="multipath",
    ),
    SettingsOf("lvm.conf devices").error(
        "dir", "(?!/dev/?$).+", "the cluster mounts devices below /dev", only_with="lvm"
    ),
    # ZFS at boot.
    SettingsOf("zfs settings").error(
        "ZPOOL_IMPORT_ALL_VISIBLE", YES, "every pool that the node sees is imported when it starts", only_with="zfs"
    ),
    SettingsOf("zfs settings").error(
        "ZPOOL_IMPORT_OPTS", r".*-(\w*[fFXD]|a).*", "pools are imported by force when the node starts", only_with="zfs"
    ),
    # Properties of pools and datasets, whoever sets them.
    SettingsOf("pool").error("multihost", "off", "nothing keeps a second node from importing a pool that is in use"),
    SettingsOf("pool").error("readonly", "on", "nothing can be written"),
    SettingsOf("pool").error("failmode", "continue", "a pool whose disks are gone is not taken over"),
    SettingsOf("pool").warning("ashift", "9", "on a disk with sectors of 4 KiB, each write becomes a read and a write"),
    DATASET.error("sync", "disabled", "acknowledged writes are lost when the node fails"),
    DATASET.error("checksum", "off", "damaged data are not detected"),
    DATASET.error("readonly", "on", "nothing can be written"),
    DATASET.warning("(primary)?cache", "none", "nothing is cached: every read goes to the disks"),
    # Lustre's parameters, at the making of a target or by lctl.
    LCTL.error(
        r"(.*\.)?panic_on_lbug", "0", "after an internal error Lustre's threads hang, and the node is not fenced"
    ),
    LCTL.error(r"(osc|osp|mdc|lov)\..*active|.*\.(osc|mdc)\.active", "0", "no client uses the target"),
    LCTL.warning(r"(.*\.)?degraded", "1", "no new files are created on the target"),
    LCTL.warning(r"(.*\.)?no_precreate", "1", "no new files are created on the target"),
    LCTL.warning(r"(.*\.)?max_create_count", "0", "no new files are created on the target"),
    LCTL.warning(r"(.*\.)?ir_state", "disabled|off|0", "clients notice a take-over only by timeouts"),
    LCTL.warning(r"(.*\.)?sync_(on_)?lock_cancel", "never", "a client's lock is released before its data are safe"),
    LCTL.warning(r"(.*\.)?suppress_pings", "1", "nobody notices that a client has died"),
    LCTL.warning(r"(.*\.)?changelog_gc", "0", "the log of a reader that no longer exists fills the metadata target"),
    LCTL.error(r"(.*\.)?at_max", "0", "without adaptive timeouts, a busy server loses its clients"),
    LCTL.error(
        r"(.*\.)?quota\.(mdt|ost)", r"(?![ugp]{1,3}$|none$).*", "the value must be made of u, g and p, or be none"
    ),
    LCTL.error(r"(.*\.)?failover\.mode", r"(?!failover$).*", "clients get errors instead of waiting"),
    LCTL.error(r"(.*\.)?threads_max", "[0-4]", "a few slow requests block all others"),
    LCTL.error(r"(.*\.)?identity_upcall", r"(/usr)?/bin/(false|true)", "no user is known: access is refused"),
    LCTL.warning("debug", "-1", "the kernel writes a line for every step of every request"),
    SettingsOf("mount options lustre").error(
        "skip_lcfg|writeconf|nosvc|abort_recov\\w*", ".*", "this is for repairs only"
    ),
    SettingsOf("mount options lustre").warning("noir", ".*", "clients notice a take-over only by timeouts"),
    SettingsOf("mount options lustre").warning("exclude", ".*", "the excluded targets are not used"),
    # Units of systemd: of the cluster's own programs.
    _SERVICE.error(
        r"Private(Tmp|Mounts|Devices|Network|Users)|Protect(System|Home|Kernel\w+|ControlGroups|Clock)|MountFlags",
        r"(?!no$|false$|0$|shared$).+",
        "what agents mount or set is not visible to other programs",
    ),
    _SERVICE.error(
        r"ReadOnlyPaths|InaccessiblePaths|User|CapabilityBoundingSet|SystemCallFilter|RootDirectory|DynamicUser",
        ".+",
        "the program does not have the rights that it needs",
    ),
    _SERVICE.error(
        r"RestrictRealtime|NoNewPrivileges|RestrictNamespaces",
        YES,
        "the program does not have the rights that it needs",
    ),
    _SERVICE.error("KillSignal", ".*KILL|9", "the program is killed instead of stopped"),
    _SERVICE.warning("LimitMEMLOCK", r"\d{1,8}|\d+[KM]", "it can be paged out, and is then late"),
    _SERVICE.error("LimitRTPRIO", "0", "it gets no processor time when the node is busy"),
    _SERVICE.error(r"Exec(Start|Stop)", r"(/usr)?/bin/(true|false)", "it is never started, or never stopped"),
    SettingsOf(f"unit Unit of ({_CLUSTER})").error(
        "PartOf|BindsTo",
        r".*(network|NetworkManager|systemd-networkd|firewalld|sshd|chronyd).*",
        "a restart of that unit stops the cluster on this node",
    ),
    SettingsOf("kdump").warning(
        "(failure_action|default)", "shell", "a node whose dump fails stays on and waits for a person"
    ),
    KERNEL_LINE.error(r"zfs(\.|_)?zfs_force|zfs_force", "1", "pools are imported by force at boot", only_with="zfs"),
    KERNEL_LINE.error(
        "spl_hostid|spl.spl_hostid", "0+|0x0+", "multihost does not work without a host id", only_with="zfs"
    ),
    KERNEL_LINE.warning("panic", "0", "after a panic the node hangs until somebody powers it off"),
    *SYSTEM_ROWS,
)
