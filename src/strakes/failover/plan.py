"""Make the configuration files of a planned cluster from its description and templates, and write them to disk.

The line ``#: SETTING | RISK`` in a template becomes a row of a table in the run-book.
"""

from __future__ import annotations

import html
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Xml

from strakes.base.errors import BadInputError
from strakes.base.files import closing, open_directory, pinned, write_below
from strakes.failover.cluster import Cluster, ServedTarget
from strakes.failover.description import read_description

if TYPE_CHECKING:
    from jinja2 import Environment

DESCRIPTION = "cluster.toml"
# Files that not every plan has.
_PLANNED = ("etc/drbd.conf", "etc/drbd.d/*.res", "etc/drbd.d/*.conf", "etc/strakes/alert-*", "lustre/m*-*.sh")
_SECRET_MODE = 0o600  # for files with SNMP communities, which can switch nodes off
# Seconds that Lustre's recovery takes per client. One site published 420 s for 2,000 clients.
_PUBLISHED_S_PER_CLIENT = 0.21
_SOFT_S, _HARD_S = 300, 900  # Lustre's default soft and hard limit of recovery, in seconds.
_STONITH_TIMEOUT_S = 120  # Pacemaker's stonith-timeout in plans, in seconds.
_WATCHED = "20000"  # Score of a node with a working network. It exceeds the stickiness of a group.
_DRBD_CONF = """\
include "drbd.d/global_common.conf";
# The shared secret, readable by root alone; RUNBOOK.md says how it is made.
include "drbd.d/*.secret";
include "drbd.d/*.res";
"""


@dataclass(frozen=True)
class Line:
    """A setting that the run-book explains. ``why``: the risk without the setting."""

    text: str
    why: str


@dataclass(frozen=True)
class PlannedFile:
    """A file of a plan. ``goes_to``: its path on each node, or empty. ``lines``: settings that RUNBOOK.md explains."""

    path: str
    text: str
    goes_to: str = ""
    mode: int = 0o644
    lines: tuple[Line, ...] = ()


def plan_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    """Return all files of a plan except cluster.toml."""
    files = (
        *drbd_files(cluster),
        corosync_file(cluster),
        pacemaker_file(cluster),
        *alert_files(cluster),
        *_lustre_files(cluster),
    )
    return (*files, _runbook(cluster, files))


def drbd_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    """Return the configuration files of DRBD 8.4 or 9. Empty for a cluster with shared disks."""
    replicated = [target for target in cluster.targets if target.replicated]
    if not replicated:
        return ()
    # Corosync notices a lost peer after 2.2 times the token (token and consensus), and then Pacemaker fences it.
    given: dict[str, Any] = {"fence_peer_s": _STONITH_TIMEOUT_S + max(60, round(2.5 * cluster.token_s))}
    resources = [
        _rendered("drbd.res", f"/etc/drbd.d/{one.name}.res", cluster=cluster, target=one, **given) for one in replicated
    ]
    return (
        PlannedFile("etc/drbd.conf", _DRBD_CONF, "/etc/drbd.conf"),
        PlannedFile("etc/drbd.d/global_common.conf", "global { usage-count no; }\n", "/etc/drbd.d/global_common.conf"),
        *resources,
    )


def corosync_file(cluster: Cluster) -> PlannedFile:
    """Return the planned corosync.conf."""
    return _rendered("corosync.conf", "/etc/corosync/corosync.conf", cluster=cluster)


def pacemaker_file(cluster: Cluster) -> PlannedFile:
    """Return the CIB with resources, constraints, fencing and alerts."""
    given: dict[str, Any] = {
        "watchers": list(_watchers(cluster)),
        "recipients": _recipients(cluster),
        "import_options": _import_options,
        "stonith_timeout_s": _STONITH_TIMEOUT_S,
    }
    file = _rendered("cib.xml", "pacemaker/cib.xml", cluster=cluster, **given)
    root = Xml.fromstring(file.text)
    (name, times), *_ = Counter(one.attrib["id"] for one in root.iter() if "id" in one.attrib).most_common(1)
    if times > 1:
        remedy = "Rename a target, a node or a network."
        raise BadInputError("two parts of the plan get the same id", where="pacemaker/cib.xml", why=name, remedy=remedy)
    Xml.indent(root)
    lines = tuple(Line(html.unescape(line.text), html.unescape(line.why)) for line in file.lines)
    return PlannedFile(file.path, Xml.tostring(root, encoding="unicode") + "\n", mode=_SECRET_MODE, lines=lines)


def _watchers(cluster: Cluster) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    hosts = cluster.file_system.watch
    watched = {"host_list": " ".join(hosts), "multiplier": _WATCHED}
    name = "clients-network"
    if hosts and "@" in hosts[0]:
        yield name, "lustre", "healthLNET", {"lctl": "true", **watched, "name": name}
    elif hosts:
        yield name, "pacemaker", "ping", {**watched, "dampen": "5s", "name": name}
    for network in cluster.client_networks:
        if network.interface:
            card = f"card-{network.name}"
            values = {"interface": network.interface, "multiplier": _WATCHED, "name": card}
            yield card, "heartbeat", "ethmonitor", values


def _recipients(cluster: Cluster) -> dict[str, str]:
    wanted = {"mail": cluster.alerts.mail_to, "webhook": cluster.alerts.webhook_url_file}
    return {kind: recipient for kind, recipient in wanted.items() if recipient}


def alert_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    """Return the alert programs. A separate file holds the URL of a webhook, which is secret."""
    return tuple(
        _rendered("alert.sh", f"/etc/strakes/alert-{kind}", mode=0o755, kind=kind) for kind in _recipients(cluster)
    )


def _lustre_files(cluster: Cluster) -> tuple[PlannedFile, ...]:
    if cluster.file_system.kind != "lustre":
        return ()
    manager = next((target for target in cluster.targets if "mgs" in target.role), None)
    managers = _nids(cluster, manager) if manager else list(cluster.file_system.mgs)
    soft_s, hard_s = recovery_limits(cluster)
    given: dict[str, Any] = {
        "managers": managers,
        "nids": _nids,
        "create_pool": _create_pool,
        "soft_s": soft_s,
        "hard_s": hard_s,
    }
    name = cluster.file_system.name
    mounting = (
        "#!/bin/sh\n"
        "# Run this on every client. With both servers named, a client can mount while one server is down.\n"
        f"mount -t lustre {':'.join(managers)}:/{name} /mnt/{name}\n"
    )
    return (
        _rendered("make-targets.sh", "lustre/make-targets.sh", mode=0o755, cluster=cluster, **given),
        PlannedFile("lustre/mount-clients.sh", mounting, mode=0o755),
    )


def recovery_limits(cluster: Cluster) -> tuple[int, int]:
    """Return the soft and the hard limit of Lustre's recovery in seconds."""
    # The default hard limit is at least twice the published recovery time for this number of clients.
    needed = math.ceil(2 * _PUBLISHED_S_PER_CLIENT * cluster.file_system.clients)
    hard = round(cluster.file_system.recovery_hard_s) or max(_HARD_S, needed)
    return round(cluster.file_system.recovery_soft_s) or max(_SOFT_S, hard // 3), hard


def _nids(cluster: Cluster, target: ServedTarget) -> list[str]:
    name, net = cluster.file_system.lnet_network, cluster.file_system.lnet
    return [f"{cluster.node(node).addresses[name]}@{net}" for node in target.nodes]


def _create_pool(target: ServedTarget) -> str:
    options = ["-o multihost=on", "-o cachefile=none", "-o failmode=panic"]
    mounting = "canmount=off" if target.file_system == "lustre" else f"mountpoint={target.mount}"
    words = (f"-O {shlex.quote(mounting)}", shlex.quote(target.pool), " ".join(map(shlex.quote, target.vdevs)))
    return " \\\n        ".join(["zpool create", *options, *words])


def _import_options(target: ServedTarget) -> str:
    return " ".join(f"-d {place}" for place in dict.fromkeys(path.rpartition("/")[0] for path in target.disks("")))


def _runbook(cluster: Cluster, files: tuple[PlannedFile, ...]) -> PlannedFile:
    scripts = {node.bmc.password_script for node in cluster.nodes}
    scripts |= {pdu.password_script for node in cluster.nodes for pdu in node.pdus if pdu.password_script}
    return _rendered(
        "runbook.md",
        "RUNBOOK.md",
        cluster=cluster,
        files=files,
        first=cluster.nodes[0],
        second=cluster.nodes[1],
        password_scripts=sorted(scripts),
        authentication="/etc/drbd.d/authentication.secret",
        create_pool=_create_pool,
        s_per_client=_PUBLISHED_S_PER_CLIENT,
        **dict(zip(("soft_s", "hard_s"), recovery_limits(cluster), strict=True)),
    )


def _rendered(template: str, path: str, mode: int = 0o644, **given: Any) -> PlannedFile:
    text = _environment().get_template(f"{template}.j2").render(given)
    rows = text.splitlines(keepends=True)
    lines = tuple(Line(*row[3:].strip().split(" | ", 1)) for row in rows if row.startswith("#: "))
    kept = "".join(row for row in rows if not row.startswith("#: "))
    return PlannedFile(path.removeprefix("/"), kept, path if path.startswith("/") else "", mode, lines)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("strakes.failover"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=lambda name: name == "cib.xml.j2",
    )
    environment.filters["sh"] = shlex.quote
    return environment


def write_plan(description: Path, directory: Path, *, replace: bool) -> tuple[Cluster, tuple[PlannedFile, ...]]:
    """Write the plan for a description. Return the cluster and the files. Raises BadInputError.

    ``replace``: also write to a directory with an earlier plan.
    """
    cluster, text = read_description(description)
    files = (PlannedFile(DESCRIPTION, text, mode=_SECRET_MODE), *plan_files(cluster))
    try:
        with closing(open_directory(directory, make=0o777)) as opened, pinned(directory, opened):
            if (names := os.listdir(opened)) and not (replace and DESCRIPTION in names):
                remedy = "Give another one, or --replace to write over an earlier plan (it has a cluster.toml)."
                raise BadInputError("the directory is not empty", where=str(directory), remedy=remedy)
            present = {str(path.relative_to(directory)) for one in _PLANNED for path in directory.glob(one)}
            if left := sorted(present - {file.path for file in files}):
                what, remedy = "files of an earlier plan would stay", "Remove them, or give another directory."
                raise BadInputError(what, where=str(directory), why=", ".join(left), remedy=remedy)
            if description.parent.samefile(directory) and description.name in {file.path for file in files[1:]}:
                raise BadInputError("the plan would overwrite its description", where=str(description))
            for file in files:
                write_below(directory, file.path, file.text.encode(), file.mode)
    except OSError as error:
        where, why = error.filename or str(directory), error.strerror or str(error)
        raise BadInputError("the plan cannot be written", where=where, why=why) from error
    return cluster, files
