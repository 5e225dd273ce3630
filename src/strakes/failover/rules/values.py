"""Rules about single values that programs take, and that do not do what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.cib_values import is_true, seconds
from strakes.failover.pacemaker_resources import PINGING
from strakes.failover.replication import kib
from strakes.failover.rules.fencing_devices import is_bmc, is_outlet
from strakes.failover.rules.heartbeat import links_of, nodes_of, read_address
from strakes.failover.rules.node_options import settings_of_nodes
from strakes.failover.rules.rule import AGENTS, COROSYNC_CONF, DRBD_CONF, DRBD_PACEMAKER, OWN, PACEMAKER, PING, rule
from strakes.failover.setup import Setup
from strakes.units import counted as count_of

_OFF = ("none", "off", "no")
_SLOWEST_RESYNC_KIB = 1024

# Mount options that only these file systems take.
_EXT = ("ext2", "ext3", "ext4")
_OPTIONS_OF = {
    **dict.fromkeys(("errors", "data", "commit", "journal_checksum", "user_xattr", "delalloc", "data_err"), _EXT),
    **dict.fromkeys(("inode64", "logbufs", "logbsize", "allocsize", "swalloc", "nouuid", "pquota"), ("xfs",)),
}
_WITH_OPTIONS = (*_EXT, "xfs")


@rule("corosync").warning(
    reason="Anybody who can send packets to the cluster's network can join it, or make nodes power each other off.",
    remedy="crypto_cipher: aes256, crypto_hash: sha256, and the key of corosync-keygen on all nodes.",
    source=COROSYNC_CONF,
)
def heartbeat_not_authenticated(setup: Setup) -> Iterator[str]:
    """Find encryption of the heartbeat that is switched off."""
    totem = setup.membership.one("totem")
    given = [
        f"{key}: {totem.get(key)}" for key in ("crypto_hash", "crypto_cipher", "secauth") if totem.get(key) in _OFF
    ]
    if given:
        yield f"corosync.conf: {', '.join(given)}"


@rule("corosync").error(
    reason="One link is configured twice, or its addresses are of a different family than ip_version: the node does "
    "not find the others.",
    remedy="Use one interface section for each link; remove ip_version.",
    source=COROSYNC_CONF,
)
def heartbeat_links_contradict(setup: Setup) -> Iterator[str]:
    """Find links that are given twice, and addresses of another family."""
    totem = setup.membership.one("totem")
    numbers = [one.get("linknumber") or one.get("ringnumber") for one in totem.all("interface")]
    for number in sorted({number for number in numbers if number and numbers.count(number) > 1}):
        yield f"corosync.conf: two interface sections have the number {number}"
    version = totem.get("ip_version")
    for node in nodes_of(setup) if version in ("ipv4", "ipv6") else ():
        for address in links_of(node).values():
            known = read_address(address)
            if known and f"ipv{known.version}" != version:
                yield f"corosync.conf: ip_version: {version}, and {address}"


@rule("corosync").warning(
    reason="After an outage nobody can find out what happened.",
    remedy="logging: to_syslog: yes",
    source=COROSYNC_CONF,
)
def nothing_is_logged(setup: Setup) -> Iterator[str]:
    """Find a Corosync that logs nowhere."""
    logging = setup.membership.one("logging")
    if logging.get("to_syslog") in _OFF and logging.get("to_logfile", "no") in _OFF:
        yield "corosync.conf: to_syslog: no, and no to_logfile"


@rule("pacemaker").error(
    reason="Levels have numbers from 1 to 9, and a level fails if any of its devices fails: if the BMC died with its "
    "node, the outlets in the same level cannot help.",
    remedy="Level 1: the BMC. Level 2: all outlets of the node.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_level_unusable(setup: Setup) -> Iterator[str]:
    """Find fencing levels out of range, and levels that need a BMC and an outlet together."""
    cib = setup.pacemaker
    for level in cib.levels:
        if level.get("index", "1") not in map(str, range(1, 10)):
            yield f"cib: fencing level {level.get('id', '')} has the index {level.get('index')}"
    devices = {device.id: device for device in cib.devices}
    for node in cib.nodes:
        for names in cib.levels_of(node):
            kinds = [devices[name] for name in names if name in devices]
            if any(map(is_bmc, kinds)) and any(map(is_outlet, kinds)):
                yield f"cib: one level of {node} needs {' and '.join(names)}"


@rule("pacemaker").warning(
    reason="The monitor does not contact the device: that the device does not work is noticed only when a node has to "
    "be powered off.",
    remedy="Remove pcmk_monitor_action.",
    source=f"{PACEMAKER}/fencing.rst",
)
def fencing_monitor_ineffective(setup: Setup) -> Iterator[str]:
    """Find monitors that do not reach the device."""
    for device in setup.pacemaker.devices:
        # A reservation has no power to ask for, and fence_kdump nobody.
        asks = device.agent not in ("fence_scsi", "fence_mpath", "fence_kdump")
        if asks and device.values.get("pcmk_monitor_action", "monitor") in ("metadata", "meta-data", "list"):
            yield f"cib: {device.id} has pcmk_monitor_action={device.values['pcmk_monitor_action']}"


@rule("pacemaker").error(
    reason="A fencing device with an empty user or password cannot log in, and a watcher without hosts watches "
    "nothing.",
    remedy="username=USER of the BMC; host_list=ADDRESSES that are always reachable.",
    source=PING,
)
def required_value_empty(setup: Setup) -> Iterator[str]:
    """Find users and lists of hosts that are empty."""
    for device in setup.pacemaker.devices:
        for key, value in device.values.items():
            if not value.strip():
                yield f"cib: {device.id} has an empty {key}"
    for service in setup.pacemaker.primitives:
        if service.agent in PINGING and not service.values.get("host_list", "").strip():
            yield f"cib: {service.id} has no host_list"


@rule("pacemaker").error(
    reason="A service that is found on two nodes writes from both. With this setting it is only blocked or stopped, so "
    "this continues, or nothing is served.",
    remedy="Remove multiple-active; the default stops both and starts one.",
    source=f"{PACEMAKER}/resources.rst",
)
def service_on_two_nodes_not_resolved(setup: Setup) -> Iterator[str]:
    """Find services that are not restarted after they ran on two nodes."""
    for primitive in setup.pacemaker.services:
        given = primitive.meta.get("multiple-active", "")
        if given in ("block", "stop_only"):
            yield f"cib: {primitive.id} has multiple-active={given}"


@rule("pacemaker").warning(
    reason="With shutdown-lock, a service waits for the node that was shut down, and is not taken over.",
    remedy="Remove shutdown-lock.",
    source=f"{PACEMAKER}/cluster-options.rst",
)
def service_waits_for_shut_down_node(setup: Setup) -> Iterator[str]:
    """Find locks to a node that was shut down."""
    if is_true(setup.pacemaker.properties.get("shutdown-lock", "false")):
        yield "cib: shutdown-lock=true"


@rule("pacemaker").warning(
    reason="A dead service is not noticed before start-delay is over.",
    remedy="Remove start-delay; give the start of the service a longer timeout instead.",
    source=f"{PACEMAKER}/operations.rst",
)
def monitor_begins_late(setup: Setup) -> Iterator[str]:
    """Find monitors that begin late."""
    for operation in setup.pacemaker.root.iter("op"):
        if operation.get("name") == "monitor" and seconds(operation.get("start-delay", "0")) > 120:
            yield f"cib: {operation.get('id')} has start-delay={operation.get('start-delay')}"


@rule("pacemaker").error(
    reason="Pacemaker runs the program by its full path; with anything else, the program is not found, and nobody is "
    "alerted.",
    remedy="path=/... of a program that hacluster may run.",
    source=f"{PACEMAKER}/alerts.rst",
)
def alert_without_a_program(setup: Setup) -> Iterator[str]:
    """Find alerts without an absolute path, and programs that are not where the others are."""
    for alert in setup.pacemaker.root.iterfind("./configuration/alerts/alert"):
        path = alert.get("path", "")
        program = setup.root / path.lstrip("/")
        if not path.startswith("/") or (program.parent.is_dir() and not program.exists()):
            yield f"cib: {alert.get('id')} has the path {path!r}"


@rule("pacemaker").error(
    reason="Clients cannot write to a read-only mount, a mount with an option of another file system fails, and an "
    "address on the loopback device cannot be reached.",
    remedy="Remove ro from the options; remove nic: the agent finds the card by the address.",
    source=f"{AGENTS}/IPaddr2",
)
def service_unusable_for_clients(setup: Setup) -> Iterator[str]:
    """Find mounts that cannot be written to, options of other file systems, and addresses on the loopback."""
    for service in setup.pacemaker.services:
        if service.is_mount and "ro" in service.values.get("options", "").split(","):
            yield f"cib: {service.id} mounts with ro"
        on_loopback = service.agent == "IPaddr2" and service.values.get("nic", "").split(":")[0] == "lo"
        if on_loopback and not is_true(service.values.get("lvs_support", "false")):
            yield f"cib: {service.id} is on lo"
        for word in service.values.get("options", "").split(",") if service.is_mount else ():
            kinds = _OPTIONS_OF.get(word.partition("=")[0], ())
            if kinds and service.values.get("fstype") in _WITH_OPTIONS and service.values["fstype"] not in kinds:
                yield f"cib: {service.id} mounts {service.values['fstype']} with {word}, an option of {kinds[-1]}"


@rule("pacemaker", "drbd").error(
    reason="DRBD's agent needs as many anonymous instances as there are copies: extra instances start where there is "
    "no copy, and numbered instances move.",
    remedy="clone-max=2 (the number of hosts of the resource); remove globally-unique.",
    source=DRBD_PACEMAKER,
)
def drbd_clone_max_wrong(setup: Setup) -> Iterator[str]:
    """Find DRBD clones with more or fewer copies than hosts, or whose copies are not interchangeable."""
    hosts = {resource.name: len(resource.hosts) for resource in setup.drbd}
    sides = {resource.name: [host.name for host in resource.hosts] for resource in setup.drbd}
    for primitive in setup.pacemaker.primitives:
        meta = setup.pacemaker.clones.get(primitive.clone, {})
        copies = hosts.get(primitive.values.get("drbd_resource", ""), 0)
        given = meta.get("clone-max", "")
        here = [host for host in sides.get(primitive.values.get("drbd_resource", ""), ()) if host in setup.node_names]
        if primitive.is_drbd and given.isdecimal() and int(given) < len(here):
            yield f"cib: {primitive.clone} has clone-max={given}, copies are on {count_of(len(here), 'node')}"
        if primitive.is_drbd and copies and given.isdecimal() and int(given) > copies:
            yield f"cib: {primitive.clone} has clone-max={given}, the resource {count_of(copies, 'host')}"
        if primitive.is_drbd and is_true(meta.get("globally-unique", "false")):
            yield f"cib: {primitive.clone} is globally-unique"


@rule("drbd").warning(
    reason="DRBD's manual page warns about it: a slow disk or a hung peer leads to a panic, a full resynchronisation "
    "or an endless wait.",
    remedy="Remove it; the default is right.",
    source=DRBD_CONF,
)
def replication_option_dangerous(setup: Setup) -> Iterator[str]:
    """Find settings of DRBD that may lose data, stop it, or slow it down."""
    for resource in setup.drbd:
        if resource.option("disk", "disk-timeout", "0") != "0":
            yield f"drbd: {resource.name} has disk-timeout {resource.option('disk', 'disk-timeout')}"
        if resource.option("disk", "al-updates", "yes") == "no":
            yield f"drbd: {resource.name} has al-updates no"
        if resource.option("net", "ko-count", "7") == "0":
            yield f"drbd: {resource.name} has ko-count 0"
        if resource.option("net", "data-integrity-alg", ""):
            yield f"drbd: {resource.name} has data-integrity-alg, which is for tests"
        if resource.option("disk", "on-io-error", "") == "call-local-io-error" and not resource.option(
            "handlers", "local-io-error"
        ):
            yield f"drbd: {resource.name} calls local-io-error, and there is no such handler"
        rate = resource.option("disk", "c-max-rate", "")
        speed, planned = kib(rate), resource.option("disk", "c-plan-ahead", "20") != "0"
        if planned and speed is not None and speed < _SLOWEST_RESYNC_KIB:
            yield f"drbd: {resource.name} is resynchronised at {rate} at most"


@rule("pacemaker").error(
    reason="A node that was powered off has not exported its pool: without force no other node can import it.",
    remedy="importforce=true; multihost=on keeps two nodes from using the pool at once.",
    source=f"{AGENTS}/ZFS",
)
def pool_import_not_forced(setup: Setup) -> Iterator[str]:
    """Find pools that are not imported after a crash."""
    for service in setup.pacemaker.services:
        if service.agent == "ZFS" and service.values.get("importforce", "true").lower() in ("false", "no", "0", "off"):
            yield f"cib: {service.id} has importforce={service.values['importforce']}"


@rule().error(
    reason="A pool in a cache file is imported at boot by every node that has the file, even while another node serves "
    "it.",
    remedy="Set cachefile=none wherever the pool is created or imported.",
    source=OWN,
)
def pool_imported_at_boot(setup: Setup) -> Iterator[str]:
    """Find pools that are imported at boot."""
    for given in settings_of_nodes(setup):
        if (given.table, given.name) == ("pool", "cachefile") and given.value not in ("none", "-"):
            yield f"{given.file}: cachefile={given.value}"
