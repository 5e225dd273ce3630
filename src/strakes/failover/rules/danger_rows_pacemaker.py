"""Values of Pacemaker's own options that do harm in a pair: one row for each, with the reason."""

from __future__ import annotations

from strakes.failover.cib_values import is_true, score, seconds
from strakes.failover.rules.danger import Danger, OptionsOf, above, always, is_off, is_one_of, number_in

PACEMAKER_ROWS: tuple[Danger, ...] = (
    OptionsOf("meta").error(
        "resource-stickiness",
        lambda value: score(value) < 0,
        "-INFINITY",
        "A service then leaves the node that it runs on whenever there is another one.",
        "resource-stickiness=1000",
    ),
    OptionsOf("op monitor").error(
        "interval",
        lambda value: 0 < seconds(value) < 1,
        "10ms",
        "Monitors that follow one another without a pause keep the node busy, and time out when it is loaded.",
        "interval=10s",
    ),
    OptionsOf("cluster").error(
        "enable-startup-probes",
        is_off,
        "0",
        "Services that already run on a joining node are not detected: the same file system is mounted a second time.",
        "Remove it.",
    ),
    OptionsOf("cluster").warning(
        "start-failure-is-fatal",
        is_off,
        "0",
        "A service that cannot start here is tried here again and again, unless a migration-threshold says when to go.",
        "Remove it, or set migration-threshold.",
    ),
    OptionsOf("fencing").error(
        "snmp_sec_level",
        is_one_of("noauthnopriv"),
        "noauthnopriv",
        "Without authentication the password is not used: anybody on the network can cut the power.",
        "snmp_sec_level=authPriv",
    ),
    OptionsOf("cluster").warning(
        "remove-after-stop",
        is_true,
        "1",
        "Pacemaker's own page calls it poorly tested and potentially dangerous.",
        "Remove it.",
    ),
    OptionsOf("cluster").warning(
        "stop-orphan-resources",
        is_off,
        "0",
        "A resource that was deleted from the configuration goes on running, and writing, without supervision.",
        "Remove it.",
    ),
    OptionsOf("cluster").warning(
        "stop-orphan-actions",
        is_off,
        "0",
        "Monitors that were deleted go on, and their failures are acted on.",
        "Remove it.",
    ),
    OptionsOf("cluster").error(
        "fence-reaction",
        lambda value: value.lower() not in ("stop", "panic"),
        "ignore",
        "A node that is told that it was powered off, although it was not, can only stop or panic.",
        "fence-reaction=panic",
    ),
    OptionsOf("cluster").error(
        "cluster-infrastructure",
        lambda value: value.lower() not in ("corosync", ""),
        "0",
        "Pacemaker 2 runs on Corosync only; a configuration of cman, openais or heartbeat has to be made anew.",
        "cluster-infrastructure=corosync, which Pacemaker sets itself.",
    ),
    OptionsOf("cluster").error(
        "node-pending-timeout",
        lambda value: 0 < seconds(value) < 60,
        "1s",
        "A node that joins is powered off before it has joined: it never comes back.",
        "Remove it; its default is two hours.",
    ),
    OptionsOf("cluster").warning(
        "node-action-limit",
        lambda value: value == "1",
        "1",
        "With one action at a time a node with many targets stops and starts them one after the other.",
        "Remove it.",
    ),
    OptionsOf("fencing").error(
        "pcmk_action_limit",
        lambda value: value == "0",
        "0",
        "With 0 actions at a time the device does nothing.",
        "Remove it, or -1 for as many as there are.",
    ),
    *(
        OptionsOf("fencing").error(
            f"pcmk_{action}_retries",
            lambda value: (number := number_in(value)) is not None and number < 1,
            "0",
            "It is the number of attempts: with less than one the device is never tried.",
            "Remove it; its default is 2.",
        )
        for action in ("off", "reboot", "status", "monitor")
    ),
    *(
        OptionsOf("fencing").error(
            f"pcmk_{action}_action",
            is_one_of("off", "on", "reboot", "cycle", "poweroff", "poweron"),
            "off",
            "Pacemaker only asks, once a minute or so: each question then switches the power of a healthy node.",
            "Remove it.",
        )
        for action in ("status", "monitor", "list")
    ),
    OptionsOf("fencing").error(
        "pcmk_on_action",
        is_one_of("off", "reboot", "cycle", "poweroff"),
        "off",
        "A node that is to be let back is powered off instead.",
        "Remove it.",
    ),
    OptionsOf("fencing").error(
        "pcmk_host_check",
        lambda value: value not in ("dynamic-list", "static-list", "status", "none"),
        "0",
        "Pacemaker knows dynamic-list, static-list, status and none; with another one nobody is powered off.",
        "Remove it: with pcmk_host_list it is static-list.",
    ),
    OptionsOf("fencing").error(
        "cipher",
        lambda value: (number := number_in(value)) is None or not 0 < number <= 19,
        "0",
        "Cipher suite 0 asks for no password, so anybody can cut the power; above 19 there is none.",
        "cipher=17, or 3 for older BMCs.",
    ),
    OptionsOf("fencing").error(
        "auth",
        is_one_of("none"),
        "none",
        "Without authentication anybody on the network can cut the power, and most BMCs refuse it.",
        "Remove it.",
    ),
    OptionsOf("fencing").warning(
        "action",
        always,
        "reboot",
        "Pacemaker says itself what the agent shall do; an action of the device's own is ignored, or does only that.",
        "Remove it; stonith-action, or pcmk_reboot_action, says what is meant.",
    ),
    OptionsOf("fencing").warning(
        "plug",
        lambda value: value == "0",
        "0",
        "Outlets are counted from 1.",
        "The number that is printed at the outlet.",
    ),
    OptionsOf("fencing").warning(
        "disable_timeout",
        is_true,
        "1",
        "An agent without a time-out of its own hangs until Pacemaker kills it: the second attempt is lost.",
        "Remove it.",
    ),
    OptionsOf("meta").error(
        "critical",
        is_off,
        "0",
        "What is not critical is left stopped where it cannot run, and the rest of the group goes on without it.",
        "Remove it.",
    ),
    OptionsOf("op monitor").warning(
        "timeout",
        above(900),
        "3000",
        "For that long nobody notices a service that hangs.",
        "timeout=60s, 300s for Lustre.",
    ),
    *(
        OptionsOf(f"op {name}").warning(
            "timeout",
            above(7200),
            "12h",
            "That is hours. It was probably meant in milliseconds; a start or stop that hangs ends the service.",
            "Write the unit: timeout=600s",
        )
        for name in ("start", "stop", "promote", "demote", "notify")
    ),
    *(
        OptionsOf(f"op {name}").error(
            "interval",
            lambda value: seconds(value) > 0,
            "1",
            "Only monitors are repeated; another operation with an interval is refused, with its time-out.",
            "interval=0s",
        )
        for name in ("start", "stop", "promote", "demote", "notify", "migrate_to", "migrate_from")
    ),
    OptionsOf("op status").error(
        "name",
        always,
        "status",
        "status is Heartbeat's word: Pacemaker repeats monitor.",
        "op monitor",
    ),
    OptionsOf("op stop").error(
        "on-fail",
        is_one_of("restart", "demote", "stop"),
        "restart",
        "A stop that failed cannot be restarted: the service is blocked where it is, and its node is not powered off.",
        "Remove on-fail.",
    ),
)
