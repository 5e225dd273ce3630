"""What is checked: the files of a plan, or those of the running cluster, as far as they are there."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.failover.blocks import Block, read_corosync, read_drbd
from strakes.failover.cib import Cib
from strakes.failover.description import Cluster, read_description
from strakes.failover.plan import DESCRIPTION
from strakes.failover.replication import Resource, resources_of
from strakes.targets.command import Runner, run


@dataclass(frozen=True)
class Setup:
    """Parts that are not there are None, or empty; the rules about them are then passed over.

    ``root`` is where ``etc`` is; ``modes`` are the permissions of the files that were read; ``host`` is the node we are on, if it is one.
    """

    where: str
    root: Path
    cluster: Cluster | None = None
    corosync: Block | None = None
    drbd: tuple[Resource, ...] = ()
    cib: Cib | None = None
    lustre: str = ""
    fstab: str = ""
    modes: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[str]:
        """Names of those that are there."""
        there = {
            "description": self.cluster,
            "corosync": self.corosync,
            "drbd": self.drbd,
            "pacemaker": self.cib,
            "lustre": self.lustre,
            "fstab": self.fstab,
        }
        return frozenset(name for name, part in there.items() if part)


def read_plan(directory: Path) -> Setup:
    """The plan in a directory, also one that was changed by hand. Raises BadInputError when there is none, or it cannot be read."""
    if not (directory / "etc" / "corosync" / "corosync.conf").is_file() and not (directory / "pacemaker" / "cib.xml").is_file():
        raise BadInputError(
            "there is no plan", where=str(directory), remedy="Make one (strakes failover plan CLUSTER.toml -o DIR), or check --live."
        )
    description = directory / DESCRIPTION
    texts = _read_texts(directory, ("pacemaker/cib.xml", "lustre/make-targets.sh"))
    return _setup(str(directory), directory, texts, read_description(description) if description.is_file() else None)


def read_live(runner: Runner = run, root: Path = Path("/")) -> Setup:
    """The cluster that this machine is a node of. Raises EnvironmentLacksError when it is none."""
    texts = _read_texts(root, ("etc/fstab",))
    if "etc/corosync/corosync.conf" not in texts:
        raise EnvironmentLacksError(
            "this machine is no node of a cluster",
            where=str(root / "etc/corosync/corosync.conf"),
            why="it does not exist",
            remedy="Run this on a node, or check a plan: strakes failover check DIR",
        )
    asked = runner(["cibadmin", "--query"], 30.0)
    if asked.status != 0:
        raise EnvironmentLacksError(
            "Pacemaker does not answer",
            where="cibadmin --query",
            why=asked.stderr.strip() or f"exit status {asked.status}",
            remedy="Start it (systemctl start pacemaker), or check a plan: strakes failover check DIR",
        )
    return _setup("the running cluster", root, {**texts, "pacemaker/cib.xml": asked.stdout}, None)


def _setup(where: str, root: Path, texts: dict[str, str], cluster: Cluster | None) -> Setup:
    corosync = texts.get("etc/corosync/corosync.conf")
    cib = texts.get("pacemaker/cib.xml")
    drbd = [read_drbd(text, str(root / name)) for name, text in texts.items() if name.startswith("etc/drbd")]
    return Setup(
        where=where,
        root=root,
        cluster=cluster,
        corosync=read_corosync(corosync, str(root / "etc/corosync/corosync.conf")) if corosync is not None else None,
        drbd=resources_of(drbd),
        cib=Cib(cib, str(root / "pacemaker/cib.xml")) if cib is not None else None,
        lustre=texts.get("lustre/make-targets.sh", ""),
        fstab=texts.get("etc/fstab", ""),
        modes={name: stat.S_IMODE((root / name).stat().st_mode) for name in texts if (root / name).is_file()},
        texts=texts,
    )


def _read_texts(root: Path, names: tuple[str, ...]) -> dict[str, str]:
    found = ["etc/corosync/corosync.conf", "etc/drbd.conf", *names]
    # Secrets are not read: they are nobody's business but the programs'.
    found += sorted(str(path.relative_to(root)) for pattern in ("*.res", "*.conf") for path in (root / "etc/drbd.d").glob(pattern))
    texts = {}
    for name in found:
        path = root / name
        try:
            texts[name] = path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BadInputError("a file cannot be read", where=str(path), why=error.strerror or str(error)) from error
    return texts
